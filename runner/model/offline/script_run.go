package offline

import (
	"encoding/json"
	"strings"

	"journeyman/runner/model"
)

// scripted returns the reply of the script's step that the turn has reached. input
// is the text around the block. After the last step the script repeats its answer,
// for a runner that asks again; a script that ended with a tool call closes instead.
func (t *turn) scripted(block, input string) (reply, error) {
	steps, fault := parseScript(block)
	if fault != nil {
		return reply{}, fault
	}
	t.input = strings.TrimSpace(input) // later rules must not read the script itself
	n, closing := t.answered, len(steps) == 0
	if n >= len(steps) && !closing {
		n = len(steps) - 1
		closing = steps[n][len(steps[n])-1].word == "tool"
	}
	switch {
	case closing && hasAnswer(steps) && t.req.OutputSchema == nil:
		return reply{closed: true}, nil // the answer has been given before
	case closing:
		return t.scriptEnd(t.closing()), nil
	}
	r, fault := t.runStep(steps[n])
	if fault != nil {
		return reply{}, fault
	}
	r.closed = r.answers() // an empty text in a script is intended
	// At a limit no tool may be called, but the turn still needs an answer.
	if t.req.Final && r.fail == nil {
		r.calls = nil
		if !r.answers() {
			r.lines = append(r.lines, t.scriptEnd(t.wrapUp()).lines...)
		}
	}
	return r, nil
}

// scriptEnd answers where the script does not: with text, or with a value where the
// answer has to match a schema.
func (t *turn) scriptEnd(text string) reply {
	if t.req.OutputSchema != nil {
		return reply{lines: []line{{kind: valueLine, text: t.structured(text)}}}
	}
	return textReply(text)
}

func (r *reply) answers() bool {
	for _, ln := range r.lines {
		if ln.kind != reasoningLine {
			return true
		}
	}
	return false
}

func (t *turn) runStep(step []statement) (reply, *model.Error) {
	var r reply
	size := 0
	for i := range step {
		st := &step[i]
		text, fault := t.expand(st)
		if size += len(text); fault == nil && size > maxStepBytes {
			fault = tooLarge(st)
		}
		if fault != nil {
			return r, fault
		}
		switch st.word {
		case "say":
			r.add(textLine, text)
		case "think":
			r.add(reasoningLine, text)
		case "json":
			if t.req.OutputSchema != nil {
				r.add(valueLine, text)
			} else {
				r.add(textLine, text)
			}
		case "wait":
			r.wait += st.wait
		case "usage":
			r.usage = &model.Usage{InputTokens: st.in, OutputTokens: st.out}
		case "tool":
			r.calls = append(r.calls, toolCall{st.name, json.RawMessage(text)})
		case "fail":
			r.fail = failure(st.name, text)
			return r, nil
		}
	}
	return r, nil
}

func tooLarge(st *statement) *model.Error {
	return scriptError(st.line, "the step produces more than %d MiB", maxStepBytes>>20)
}

func (r *reply) add(kind lineKind, text string) {
	r.lines = append(r.lines, line{kind: kind, text: text, wait: r.wait})
	r.wait = 0
}

// expand replaces {{input}} and {{last}} in the statement's text, once: the values
// are not expanded again. Inside JSON the values are escaped. A placeholder can only
// stand inside a JSON string, because the script would not be valid otherwise.
func (t *turn) expand(st *statement) (string, *model.Error) {
	if !strings.Contains(st.text, "{{input}}") && !strings.Contains(st.text, "{{last}}") {
		return st.text, nil
	}
	input, last := t.input, t.last()
	if st.word == "json" || st.word == "tool" {
		input, last = escapeJSON(input), escapeJSON(last)
	}
	// The size is known before the text is built, which hostile input could make
	// thousands of times longer.
	size := len(st.text) + strings.Count(st.text, "{{input}}")*len(input) + strings.Count(st.text, "{{last}}")*len(last)
	if size > 2*maxStepBytes {
		return "", tooLarge(st)
	}
	return strings.NewReplacer("{{input}}", input, "{{last}}", last).Replace(st.text), nil
}

// escapeJSON returns s as it stands inside a JSON string.
func escapeJSON(s string) string {
	quoted := marshalJSON(s)
	return string(quoted[1 : len(quoted)-1])
}

func failure(code, message string) *model.Error {
	if message == "" {
		message = "the script says so"
	}
	return &model.Error{Code: code, Message: message, Quoted: true, Retryable: code == "429" || code == "503"}
}
