package view

import (
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// TestDeepJSON checks that a few bytes of brackets do not become megabytes of spaces.
func TestDeepJSON(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	nested := func(n int) []byte { return []byte(strings.Repeat("[", n) + `"]"` + strings.Repeat("]", n)) }
	text, ok := Indent(nested(maxIndent))
	is.True(ok)
	ordertest.Above(is, len(text), 2*maxIndent*maxIndent)
	_, ok = Indent(nested(maxIndent + 1))
	is.True(!ok)
	text, ok = Indent([]byte(`["` + strings.Repeat(`[\"`, 200) + `"]`)) // brackets in a text
	is.True(ok)
	is.Equal(text, "[\n  \""+strings.Repeat(`[\"`, 200)+"\"\n]")
}
