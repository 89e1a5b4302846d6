package show

import (
	"encoding/json"
	"strings"
)

// Arguments are the arguments of a call. A model wrote them, so each may have any type: a field of
// an unexpected type counts as empty.
type Arguments map[string]json.RawMessage

// ArgumentsOf reads the arguments of a call. It returns nil if they are no object.
func ArgumentsOf(input json.RawMessage) (a Arguments) {
	if json.Unmarshal(input, &a) != nil {
		return nil
	}
	return a
}

// Text returns an argument that is a string, "" otherwise.
func (a Arguments) Text(name string) (value string) {
	if json.Unmarshal(a[name], &value) != nil {
		return ""
	}
	return value
}

// First returns the first of the named arguments that is a string with text.
func (a Arguments) First(names ...string) string {
	for _, name := range names {
		if value := a.Text(name); strings.TrimSpace(value) != "" {
			return value
		}
	}
	return ""
}
