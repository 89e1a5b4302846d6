package offline

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"journeyman/runner/model"
)

// scripted returns the reply for the script's current step. input is the text around the block.
// After the last step the script repeats its answer, because the runner may ask again. If the
// script ends with a tool call, the reply is a closing text instead.
func (t *turn) scripted(block, input string) (reply, error) {
	steps, fault := parseScript(block)
	if fault != nil {
		return reply{}, fault
	}
	t.input = strings.TrimSpace(input) // later rules must not find the script itself
	n, closing := t.answered, len(steps) == 0
	if n >= len(steps) && !closing {
		n = len(steps) - 1
		closing = steps[n][len(steps[n])-1].word == "tool"
	}
	switch {
	case closing && hasAnswer(steps) && t.req.OutputSchema == nil:
		return reply{closed: true}, nil // an earlier call has already returned the answer
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
		r.calls, r.wait = nil, 0
		for i := range r.lines {
			r.lines[i].wait = 0 // the time may be what is used up: a model answers at once, too
		}
		if !r.answers() {
			r.lines = append(r.lines, t.scriptEnd(t.wrapUp()).lines...)
		}
	}
	return r, nil
}

// scriptEnd returns the answer if the script has none: text, or a value if the answer must
// match a schema.
func (t *turn) scriptEnd(text string) reply {
	if t.req.OutputSchema != nil {
		return valueReply(t.structured(text))
	}
	return textReply(text)
}

func (r *reply) answers() bool {
	return slices.ContainsFunc(r.lines, func(ln line) bool { return ln.kind != reasoningLine })
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

// expand replaces {{input}} and {{last}} in the statement's text. It does not expand the
// inserted values. In JSON it escapes the values. A placeholder in JSON must be inside a
// string, because the script would not be valid otherwise.
func (t *turn) expand(st *statement) (string, *model.Error) {
	if !strings.Contains(st.text, "{{input}}") && !strings.Contains(st.text, "{{last}}") {
		return st.text, nil
	}
	input, last := t.input, t.last()
	if st.word == "json" || st.word == "tool" {
		input, last = escapeJSON(input), escapeJSON(last)
	}
	// Compute the size before building the text: hostile input could make it thousands of times
	// longer.
	size := len(st.text) + strings.Count(st.text, "{{input}}")*len(input) + strings.Count(st.text, "{{last}}")*len(last)
	if size > 2*maxStepBytes {
		return "", tooLarge(st)
	}
	return strings.NewReplacer("{{input}}", input, "{{last}}", last).Replace(st.text), nil
}

// escapeJSON returns s in the form that it has inside a JSON string.
func escapeJSON(s string) string {
	quoted := marshalJSON(s)
	return string(quoted[1 : len(quoted)-1])
}

func failure(code, message string) *model.Error {
	message = cmp.Or(message, "the script says so")
	return &model.Error{Code: code, Message: message, Quoted: true, Retryable: code == "429" || code == "503"}
}
