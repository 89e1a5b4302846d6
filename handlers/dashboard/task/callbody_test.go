package task

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers/dashboard/show"
	"journeyman/handlers/dashboard/text"
)

// bodyOf returns the body of a call, and all its texts as one.
func bodyOf(t *testing.T, tool string, input any) (b callBody, all string) {
	t.Helper()
	is := is.New(t)
	raw, err := json.Marshal(input)
	is.NoErr(err)
	b = bodyMaker{lang: text.English(), most: 8 << 10, whole: "/raw"}.body(tool, raw, nil, false)
	values := b.Values
	if b.Letter != nil {
		values, all = append(values, b.Letter.Headers...), b.Letter.Text.Text
	}
	for _, v := range values {
		all += "\n" + v.Name + "=" + v.Text.Text
	}
	return b, all
}

// TestNoArgumentHides shows calls whose arguments try to hide from the person who decides.
func TestNoArgumentHides(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	b, all := bodyOf(t, "mail__send", map[string]any{"to": "a@example.com", "recipient": "b@example.com", "body": "kind",
		"html": "unkind", "cc": []any{map[string]any{"email": "c@example.com"}}, "subject": "s"})
	is.True(b.Letter != nil)
	for _, part := range []string{"a@example.com", "b@example.com", "c@example.com", "unkind"} {
		if !strings.Contains(all, part) {
			t.Errorf("the letter hides %q: %s", part, all)
		}
	}
	many := map[string]any{}
	for i := range maxValues + 3 {
		many[fmt.Sprint("k", i)] = i
	}
	_, all = bodyOf(t, "x__y", many)
	is.True(strings.Contains(all, "…=+3")) // the number of missing arguments
	many["to"], many["text"] = "a@example.com", "t"
	_, all = bodyOf(t, "x__y", many)
	is.True(strings.Contains(all, "…=+3")) // also in a letter
	_, all = bodyOf(t, "x__y", map[string]any{"a": "safe\u202eevil"})
	is.True(strings.Contains(all, `safe\u202eevil`)) // invisible characters are shown

	type change struct{ Old, New string }
	same := strings.Repeat("x\n", show.MaxCompared/2)
	for name, input := range map[string]map[string]any{
		"many edits": {"edits": make([]change, maxEditsShown+1)},
		"far behind": {"old": same + "good", "new": same + "evil"},
		"long line":  {"old": strings.Repeat("x", 500) + "good", "new": strings.Repeat("x", 500) + "evil"},
	} {
		if b, _ := bodyOf(t, "edit_file", input); b.Diff == nil || b.Diff.More == "" {
			t.Errorf("%s: nothing says that there is more", name)
		}
	}
}
