package runner

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"journeyman/runner/schema"
	"journeyman/store"
)

// CheckOutputSchema returns an error if raw is not a valid output schema. It must be a Draft-07
// schema of limited size, without remote references and plain contradictions. The error names the
// problem and its place in the schema.
func CheckOutputSchema(raw json.RawMessage) error {
	_, err := schema.CompileForObjects(raw)
	return err
}

// structuredOutput returns the JSON object in the answer of steps. Some models write text before
// the object. So if the whole answer does not match the schema, structuredOutput tries only the
// last text. A returned mismatch always describes the whole answer.
func structuredOutput(s *schema.Schema, steps []store.Step) (json.RawMessage, *schema.Mismatch) {
	output, mismatch := checkAnswer(s, store.AnswerText(steps))
	if mismatch == nil {
		return output, nil
	}
	if steps = store.Joined(steps); len(steps) == 0 {
		return nil, mismatch
	}
	// Only the last non-empty text is tried: an earlier text may be a draft.
	for _, p := range slices.Backward(steps[len(steps)-1].Parts) {
		if p.Type != store.PartText || p.Text == "" {
			continue
		}
		if output, wrong := checkAnswer(s, p.Text); wrong == nil {
			return output, nil
		}
		break
	}
	return nil, mismatch
}

// checkAnswer returns the JSON in an answer, or its mismatch with the schema.
func checkAnswer(s *schema.Schema, answer string) (json.RawMessage, *schema.Mismatch) {
	text := jsonText(answer)
	if m, ok := errors.AsType[*schema.Mismatch](s.CheckObject([]byte(text))); ok {
		return nil, m
	}
	return json.RawMessage(text), nil
}

// jsonText returns the JSON of an answer. It removes a code fence, and the text before and after
// the fence.
func jsonText(answer string) string {
	s := strings.TrimSpace(answer)
	// A fence inside a JSON text is part of the text.
	if strings.HasPrefix(s, "{") {
		return s
	}
	lines := strings.Split(s, "\n")
	begin := slices.IndexFunc(lines, isFence)
	if begin < 0 {
		return s
	}
	body := lines[begin+1:]
	if end := slices.IndexFunc(body, isFence); end >= 0 { // a truncated answer has no closing fence
		body = body[:end]
	}
	return strings.TrimSpace(strings.Join(body, "\n"))
}

func isFence(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "```") }
