package model

import (
	"bytes"
	"encoding/json"
	"strings"
)

// scripted is the reply of the script's step that the turn is on. input is the
// text around the block. After the last step the script repeats its answer, for
// a runner that asks again; one that ended in a tool call closes instead.
func (t *turn) scripted(block, input string) (reply, error) {
	s, fault := parseScript(block)
	if fault != nil {
		return reply{}, fault
	}
	t.input = strings.TrimSpace(input) // whatever is read out of it later is not read out of the script
	f := filling{turn: t, input: t.input, last: t.last()}
	n, closing := t.answered, len(s.steps) == 0
	if n >= len(s.steps) && !closing {
		n = len(s.steps) - 1
		closing = s.steps[n][len(s.steps[n])-1].word == "tool"
	}
	if closing && s.talks() && t.req.OutputSchema == nil {
		return reply{}, nil // it has said what it has to say
	}
	if closing {
		return t.scriptEnd(t.closing()), nil
	}
	r, fault := f.reply(s.steps[n])
	if fault != nil {
		return reply{}, fault
	}
	if t.req.Final && r.fail == nil {
		r.calls = nil
		if !r.says() {
			end := t.scriptEnd(t.wrapUp())
			r.lines = append(r.lines, end.lines...)
		}
	}
	return r, nil
}

// talks reports whether any line of the script gives text.
func (s script) talks() bool {
	for _, step := range s.steps {
		for _, st := range step {
			if st.word == "say" || st.word == "json" {
				return true
			}
		}
	}
	return false
}

// scriptEnd answers where the script does not: with text, or with a value if the
// answer has to meet a schema.
func (t *turn) scriptEnd(text string) reply {
	if t.req.OutputSchema != nil {
		return reply{lines: []line{{lane: laneValue, text: t.structured(text)}}}
	}
	return textReply(text)
}

func (r *reply) says() bool {
	for _, ln := range r.lines {
		if ln.lane != laneReasoning {
			return true
		}
	}
	return false
}

// A filling puts what is known into a step's texts.
type filling struct {
	turn  *turn
	input string
	last  string
	size  int // bytes produced so far by the step

	escaped             bool // the two below are set
	jsonInput, jsonLast string
}

func (f *filling) reply(step []statement) (reply, *Error) {
	r := reply{lines: make([]line, 0, len(step))}
	for i := range step {
		st := &step[i]
		text := st.text
		if strings.Contains(text, "{{") {
			text = f.fill(text, st.word == "json" || st.word == "tool")
		}
		if f.size += len(text); f.size > maxStepBytes {
			return r, scriptError(st.line, "the step produces more than %d MiB", maxStepBytes>>20)
		}
		switch st.word {
		case "say":
			r.speak(laneText, text)
		case "think":
			r.speak(laneReasoning, text)
		case "json":
			r.speak(f.valueLane(), text)
		case "wait":
			r.rest += st.wait
		case "usage":
			r.usage = &Usage{InputTokens: st.in, OutputTokens: st.out}
		case "tool":
			r.calls = append(r.calls, toolCall{st.name, json.RawMessage(text)})
		case "fail":
			r.fail = failure(st.name, text)
			return r, nil
		}
	}
	return r, nil
}

// valueLane is where a json line goes. With a schema the value must stand alone;
// without one it is a text like another.
func (f *filling) valueLane() lane {
	if f.turn.req.OutputSchema != nil {
		return laneValue
	}
	return laneText
}

func (r *reply) speak(l lane, text string) {
	r.lines = append(r.lines, line{lane: l, text: text, wait: r.rest})
	r.rest = 0
}

// fill replaces {{input}} and {{last}}, once: what is put in is not read again.
// Within JSON it is escaped; a placeholder can only stand inside a string there,
// the script would not have passed its check otherwise. A text that grows beyond
// the limit is cut right after it, which the caller refuses.
func (f *filling) fill(text string, inJSON bool) string {
	input, last := f.input, f.last
	if inJSON {
		if !f.escaped {
			f.jsonInput, f.jsonLast, f.escaped = escapeJSON(input), escapeJSON(last), true
		}
		input, last = f.jsonInput, f.jsonLast
	}
	var b strings.Builder
	for b.Len() <= maxStepBytes {
		i := strings.Index(text, "{{")
		if i < 0 {
			break
		}
		b.WriteString(text[:i])
		text = text[i:]
		if rest, ok := strings.CutPrefix(text, "{{input}}"); ok {
			b.WriteString(input)
			text = rest
		} else if rest, ok := strings.CutPrefix(text, "{{last}}"); ok {
			b.WriteString(last)
			text = rest
		} else {
			b.WriteByte('{')
			text = text[1:]
		}
	}
	b.WriteString(text)
	return b.String()
}

// escapeJSON gives s as it stands inside a JSON string.
func escapeJSON(s string) string {
	quoted := marshalJSON(s)
	return string(quoted[1 : len(quoted)-1])
}

// marshalJSON is v as one line of JSON with <, > and & as they are. v is made of
// strings, numbers, slices and maps, which always marshal.
func marshalJSON(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return []byte("null")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func failure(code, message string) *Error {
	if message == "" {
		message = "the script says so"
	}
	return &Error{Code: code, Message: message, Retryable: code == "429" || code == "503"}
}
