package view_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/view"
)

// TestDeepJSON checks that arguments and results with too many values inside each other are stored as
// texts: the database would refuse them as JSON.
func TestDeepJSON(t *testing.T) {
	t.Parallel()
	for depth, isText := range map[int]bool{100: false, 450: false, 600: true, 9000: true} {
		t.Run(fmt.Sprint(depth), func(t *testing.T) {
			is := is.New(t)
			list := json.RawMessage(strings.Repeat("[", depth) + strings.Repeat("]", depth))
			input := json.RawMessage(`{"a":` + string(list) + `}`)
			is.Equal(view.CleanInput(input)[0] == '"', isText)
			is.Equal(view.InputError(input) != "", isText) // the model reads why the call does not run
			is.Equal(view.CleanOutput(list)[0] == '"', isText)
		})
	}
}
