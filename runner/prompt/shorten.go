package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"journeyman/runner/model"
)

// cutMessages returns messages with shorter tool calls, and how many parts it changed. It cuts
// outputs and arguments to about size bytes each, and replaces images of tools by their names.
// It does not modify its argument.
func cutMessages(messages []model.Message, size int) ([]model.Message, int) {
	return mapParts(messages, func(p model.Part) (model.Part, bool) {
		p, changed := nameImages(p)
		switch {
		case p.Type == model.PartToolResult && longer(p.Text, size):
			p.Text = headTail(p.Text, size)
		case p.Type == model.PartToolCall && longer(string(p.Input), size):
			p.Input = cutInput(p.Input, size)
		default:
			return p, changed
		}
		return p, true
	})
}

// leftOut is the reason in the note on a file that a compaction leaves out.
const leftOut = "it was left out to save room in the conversation"

// named returns a file of which only the name is sent.
func named(p model.Part) model.Part {
	p.Open, p.Picture, p.Pages, p.LeftOut = nil, nil, nil, leftOut
	return p
}

// nameImages replaces the images of a part by their names. changed reports whether the part had
// images.
func nameImages(p model.Part) (_ model.Part, changed bool) {
	return nameImagesOf(p, func(string) bool { return true })
}

// nameImagesOf replaces the images of a part whose path chosen accepts.
func nameImagesOf(p model.Part, chosen func(path string) bool) (_ model.Part, changed bool) {
	images := slices.Clone(p.Images) // other renderings of the conversation share them
	for i, image := range images {
		if image.Open != nil && chosen(image.Path) {
			images[i], changed = named(image), true
		}
	}
	p.Images = images
	return p, changed
}

// nameFiles replaces attached files and images of tools whose path chosen accepts by their
// names. It does not modify its argument.
func nameFiles(messages []model.Message, chosen func(path string) bool) []model.Message {
	messages, _ = mapParts(messages, func(p model.Part) (model.Part, bool) {
		if p.Type == model.PartFile && p.Open != nil && chosen(p.Path) {
			return named(p), true
		}
		return nameImagesOf(p, chosen)
	})
	return messages
}

// mapParts returns messages with the parts that change has replaced, and how many it replaced.
// change returns false to keep a part.
func mapParts(messages []model.Message, change func(model.Part) (model.Part, bool)) ([]model.Message, int) {
	n := 0
	out := slices.Clone(messages)
	for i, m := range messages {
		copied := false
		for k, p := range m.Parts {
			changed, ok := change(p)
			if !ok {
				continue
			}
			// Other renderings of the conversation share these parts, so change a copy.
			if !copied {
				out[i].Parts, copied = slices.Clone(m.Parts), true
			}
			out[i].Parts[k] = changed
			n++
		}
	}
	return out, n
}

// noteSize is the approximate length of the note in a cut text, in bytes. A text that would
// hardly become shorter stays complete.
const noteSize = 120

func longer(text string, size int) bool { return len(text) > size+noteSize }

// headTail keeps about size bytes of a text: two thirds from its beginning and one third from
// its end. A note replaces the omitted part.
func headTail(text string, size int) string {
	if !longer(text, size) {
		return text
	}
	head, tail := size*2/3, len(text)-size/3
	// Cut between characters: providers reject text that is not valid UTF-8.
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	const format = "%s\n[... %d bytes were left out here to save room ...]\n%s"
	return fmt.Sprintf(format, text[:head], tail-head, text[tail:])
}

// cutInput cuts the strings in a tool call's arguments. Models and providers expect an object.
// Another value, or an object that is long even without its strings, is replaced by an object
// with its length.
func cutInput(input json.RawMessage, size int) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(input))
	dec.UseNumber() // a float64 would change large numbers
	var args map[string]any
	if err := dec.Decode(&args); err == nil && args != nil {
		cut, err := json.Marshal(cutStrings(args, size/2)) // sorts the keys, so that the bytes are always the same
		if err == nil && !longer(string(cut), size*2) {
			return cut
		}
	}
	return json.RawMessage(fmt.Sprintf(`{"left_out":"arguments of %d bytes"}`, len(input)))
}

func cutStrings(v any, size int) any {
	switch v := v.(type) {
	case string:
		return headTail(v, size)
	case []any:
		for i := range v {
			v[i] = cutStrings(v[i], size)
		}
	case map[string]any:
		for k := range v {
			v[k] = cutStrings(v[k], size)
		}
	}
	return v
}
