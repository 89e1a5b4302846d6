package runner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"journeyman/runner/model"
)

// cutMessages gives messages with the outputs and arguments of tools cut to about
// most bytes each, and how many were cut. It leaves the given ones as they are.
func cutMessages(messages []model.Message, most int) ([]model.Message, int) {
	return mapParts(messages, func(p model.Part) (model.Part, bool) {
		switch {
		case p.Type == model.PartToolResult && longer(p.Text, most):
			p.Text = headTail(p.Text, most)
		case p.Type == model.PartToolCall && longer(string(p.Input), most):
			p.Input = cutInput(p.Input, most)
		default:
			return p, false
		}
		return p, true
	})
}

// nameFiles gives messages whose attached files are only named, and how many were.
func nameFiles(messages []model.Message) ([]model.Message, int) {
	return mapParts(messages, func(p model.Part) (model.Part, bool) {
		if p.Type != model.PartFile || p.Open == nil {
			return p, false
		}
		p.Open = nil
		return p, true
	})
}

// mapParts gives messages with some parts changed, and how many.
func mapParts(messages []model.Message, change func(model.Part) (model.Part, bool)) ([]model.Message, int) {
	n := 0
	var out []model.Message // nil while nothing has changed
	for i, m := range messages {
		copied := false
		for k, p := range m.Parts {
			changed, ok := change(p)
			if !ok {
				continue
			}
			if out == nil {
				out = append([]model.Message(nil), messages...)
			}
			if !copied {
				out[i].Parts = append([]model.Part(nil), m.Parts...)
				copied = true
			}
			out[i].Parts[k] = changed
			n++
		}
	}
	if n == 0 {
		return messages, 0
	}
	return out, n
}

// noteSize is about what the note in a cut text takes: a text that is hardly longer
// than what would be left of it stays whole.
const noteSize = 120

func longer(text string, most int) bool { return len(text) > most+noteSize }

// headTail keeps about most bytes of a text, two thirds from its head and the rest
// from its tail, and says what was left out.
func headTail(text string, most int) string {
	if !longer(text, most) {
		return text
	}
	head, tail := most*2/3, len(text)-most/3
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n[... %d bytes were left out here to save room ...]\n%s", text[:head], tail-head, text[tail:])
}

// cutInput cuts the strings in a tool call's arguments. What is no JSON object, or
// long for other reasons than its strings, is left out altogether: models and
// providers expect an object.
func cutInput(input json.RawMessage, most int) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(input))
	dec.UseNumber()
	var args map[string]any
	if err := dec.Decode(&args); err == nil && args != nil {
		cut, err := json.Marshal(cutStrings(args, most/2))
		if err == nil && !longer(string(cut), most*2) {
			return cut
		}
	}
	return json.RawMessage(fmt.Sprintf(`{"left_out":"arguments of %d bytes"}`, len(input)))
}

func cutStrings(v any, most int) any {
	switch v := v.(type) {
	case string:
		return headTail(v, most)
	case []any:
		for i := range v {
			v[i] = cutStrings(v[i], most)
		}
	case map[string]any:
		for k := range v {
			v[k] = cutStrings(v[k], most)
		}
	}
	return v
}
