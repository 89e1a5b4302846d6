package store

import "slices"

// The last step of a turn nearly always holds its answer as one part. Then the text is stored
// once, as the turn's output_text, and the stored part has an empty text.

// withoutAnswer returns the parts of a step as they are stored. answers reports that one of them
// has lost its text, which is answer.
func withoutAnswer(parts []Part, answer string) (stored []Part, answers bool) {
	at := -1
	for i, p := range parts {
		switch {
		case p.Type != PartText:
		case p.Text == "":
			return parts, false // restoreAnswer could not tell the two parts apart
		case p.Text == answer:
			at = i
		}
	}
	if at < 0 {
		return parts, false
	}
	stored = slices.Clone(parts) // the caller keeps its own slice
	stored[at].Text = ""
	return stored, true
}

// onlyAnswer is the JSON of the parts of a step that is nothing but the answer. Most last steps
// are, so the database holds "" in its place.
const onlyAnswer = `[{"type":"text"}]`

// restoreAnswer undoes withoutAnswer.
func restoreAnswer(stored []Part, answer string) {
	isEmpty := func(p Part) bool { return p.Type == PartText && p.Text == "" }
	if i := slices.IndexFunc(stored, isEmpty); i >= 0 {
		stored[i].Text = answer
	}
}
