package model

import (
	"regexp"
	"slices"
	"strings"
)

// itemOfReasoning stands for all fields of the items with earlier reasoning in responsesFields.
const itemOfReasoning = "an item of reasoning"

// responsesNames returns the names of refused fields for responsesFields. The conversation has fields with the names of
// those of the request: an item of reasoning has a summary, and a message consists of texts. hasSchema is whether the
// request has a schema of the answer.
func (r *apiError) responsesNames(hasSchema bool) (names []string) {
	ofItem := []string{"summary", "encrypted_content", "content", "id", "reasoning"}
	for _, path := range r.refusedPaths() {
		if len(path) > 0 && path[0] == "body" { // Pydantic
			path = path[1:]
		}
		n := len(path) - 1
		if n < 0 || withinTool(path[:n]) {
			continue
		}
		switch name := path[n]; {
		case path[0] == "input" && slices.Contains(ofItem, name):
			names = append(names, itemOfReasoning)
		case path[0] == "input" && name != "phase":
		case (name == "text" || name == "format") && (!hasSchema || path[0] != "text" && n > 0):
		default:
			names = append(names, name)
		}
	}
	return names
}

// thoughtItems matches refusals of the type of the items with earlier reasoning, in lower case: "Invalid value:
// 'reasoning'. Supported values are: 'message', 'function_call'", "unknown variant `reasoning`".
var thoughtItems = regexp.MustCompile("(?:value|variant|type):? ['\"`]reasoning['\"`]|" +
	`\binput[\[.]\d+\b.{0,80}\breasoning\b`)

// refusesThoughtItems reports whether a server does not know the items with earlier reasoning.
func (r *apiError) refusesThoughtItems() bool {
	at := pathOf(strings.ToLower(r.param))
	return thoughtItems.MatchString(r.text()) || len(at) > 0 && at[0] == "input" && r.mentions("reasoning")
}
