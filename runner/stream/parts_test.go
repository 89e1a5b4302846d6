package stream

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/matryer/is"

	"journeyman/runner/model"
	"journeyman/runner/view"
	"journeyman/store"
)

// FuzzArguments checks that clients get the same text of arguments, however these are split
// into deltas.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{`{}`, "", " ", "\u2028", `{"a" : "< \" > & \\ \u2028"}`, `{bad <`, "{\"a\":\"\xff\"}", `"{}"`, "\xe2\x82", `{"a":" b "}`} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, raw []byte, size int) {
		kept := view.CleanInput(raw)
		p, g := store.Part{Type: store.PartToolCall}, &partBuilder{}
		for rest := string(raw); rest != ""; {
			n := min(len(rest), max(size&15, 1))
			before := string(p.Input)
			g.add(&p, rest[:n])
			rest = rest[n:]
			if !strings.HasPrefix(string(p.Input), before) || !utf8.Valid(p.Input) {
				t.Fatalf("%q became %q", before, p.Input)
			}
		}
		mended := kept[0] == '{' && (len(raw) == 0 || !json.Valid(raw) || bytes.TrimSpace(raw)[0] != '{') // sent again
		if shown := string(p.Input); !mended && !strings.HasPrefix(view.InputText(kept), shown) {
			t.Fatalf("%q was shown as %q and is %q", raw, shown, view.InputText(kept))
		}
		g.end(&p)
		if !bytes.Equal(p.Input, kept) {
			t.Fatalf("%q in pieces is kept as %q, whole as %q", raw, p.Input, kept)
		}
	})
}

// FuzzText checks that invalid UTF-8 is corrected in the same way, however the text is split
// into deltas.
func FuzzText(f *testing.F) {
	f.Add([]byte("a\xe2\x82\xacb\xff\xf0\x9f\x98"), 1)
	f.Fuzz(func(t *testing.T, raw []byte, size int) {
		p, g := store.Part{Type: store.PartText}, &partBuilder{}
		for rest := string(raw); rest != ""; {
			n := min(len(rest), max(size&7, 1))
			g.add(&p, rest[:n])
			rest = rest[n:]
			if !utf8.ValidString(p.Text) || !strings.HasPrefix(view.ValidText(string(raw)), p.Text) {
				t.Fatalf("%q was shown as %q", raw, p.Text)
			}
		}
		if g.end(&p); p.Text != view.ValidText(string(raw)) {
			t.Fatalf("%q in pieces is %q, whole %q", raw, p.Text, view.ValidText(string(raw)))
		}
	})
}

func TestExtends(t *testing.T) {
	t.Parallel()
	text := func(s string) store.Part { return store.Part{Type: store.PartText, Text: s} }
	call := func(id, input string) store.Part {
		return store.Part{Type: store.PartToolCall, CallID: id, ToolName: "t", Input: json.RawMessage(input)}
	}
	for name, tt := range map[string]struct {
		shown, final []store.Part
		want         bool
	}{
		"nothing shown":      {nil, []store.Part{text("a")}, true},
		"the same":           {[]store.Part{text("a")}, []store.Part{text("a")}, true},
		"less of the last":   {[]store.Part{text("a")}, []store.Part{text("ab")}, true},
		"less of another":    {[]store.Part{text("a"), text("b")}, []store.Part{text("ab"), text("b")}, false},
		"more":               {[]store.Part{text("ab")}, []store.Part{text("a")}, false},
		"too many":           {[]store.Part{text("a"), text("")}, []store.Part{text("a")}, false},
		"another kind":       {[]store.Part{text("a")}, []store.Part{{Type: store.PartReasoning, Text: "a"}}, false},
		"an empty one":       {[]store.Part{{Type: store.PartReasoning}, text("a")}, []store.Part{text(""), text("a")}, true},
		"an empty one only":  {[]store.Part{{Type: store.PartReasoning}, text("a")}, []store.Part{text("x"), text("a")}, false},
		"a call begun":       {[]store.Part{call("a", `{"x`)}, []store.Part{call("a", `{"x":1}`)}, true},
		"another call":       {[]store.Part{call("a", `{"x`)}, []store.Part{call("b", `{"x":1}`)}, false},
		"other arguments":    {[]store.Part{call("a", `{"y`)}, []store.Part{call("a", `{"x":1}`)}, false},
		"bad arguments":      {[]store.Part{call("a", `{bad`)}, []store.Part{call("a", `"{bad \u003c"`)}, true},
		"text for a call":    {[]store.Part{text("")}, []store.Part{call("a", `{}`)}, false},
		"a call for nothing": {[]store.Part{call("a", ``)}, []store.Part{text("")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			is.Equal(extends(tt.shown, tt.final), tt.want)
		})
	}
}

// TestNewPart checks that call ids and names that stream clients reject are replaced.
func TestNewPart(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	st := store.Step{Seq: 3}
	for _, p := range []model.Part{{Type: model.PartToolCall}, {Type: model.PartToolCall, CallID: "x\xff", ToolName: "n"}, {Type: model.PartToolCall, CallID: "x\xff"}} {
		st.Parts = append(st.Parts, newPart(st, p))
	}
	is.Equal(st.Parts[0].CallID, "call_s3p0")
	is.Equal(st.Parts[0].ToolName, "unknown")
	is.Equal(st.Parts[1].CallID, "x\uFFFD")
	is.Equal(st.Parts[2].CallID, "call_s3p2")
}
