package runner

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/matryer/is"

	"journeyman/runner/model"
	"journeyman/store"
)

// objectProblem accepts nothing that encoding/json refuses to make an object of.
func FuzzObjectProblem(f *testing.F) {
	for _, s := range []string{`{}`, ` { "a" : [ 1 , {"b":null} ] } `, `{"a":1}x`, `{"a":1e999}`, `{"__proto__":1}`, `{"a" 1}`, `{"a":1,}`,
		`{"constructor":{"prototype":1}}`, `{"constructor":[{"prototype":1}]}`, `[]`, `{"\u005f_proto__":{}}`, strings.Repeat(`{"a":`, 10001)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if objectProblem(raw) != "" {
			return
		}
		var v map[string]any
		if err := json.Unmarshal(raw, &v); err != nil || v == nil {
			t.Fatalf("accepted %q: %v", raw, err)
		}
		if hostile(v) {
			t.Fatalf("accepted the hostile key in %q", raw)
		}
	})
}

func hostile(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		inner, _ := v["constructor"].(map[string]any)
		_, proto := v["__proto__"]
		_, prototype := inner["prototype"]
		if proto || prototype {
			return true
		}
		for _, child := range v {
			if hostile(child) {
				return true
			}
		}
	case []any:
		for _, child := range v {
			if hostile(child) {
				return true
			}
		}
	}
	return false
}

// What is kept of arguments is JSON, comes out of the journal byte for byte, and is
// shown as the same text whether it came whole or in pieces cut anywhere.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{`{}`, "", " ", "\u2028", `{"a" : "< \" > & \\ \u2028"}`, `{bad <`, "{\"a\":\"\xff\"}", `"{}"`, "\xe2\x82", `{"a":" b "}`} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, raw []byte, size int) {
		kept := cleanInput(raw)
		journal, err := json.Marshal([]store.Part{{Input: kept}})
		if err != nil {
			t.Fatalf("%q is kept as %q: %v", raw, kept, err)
		}
		var back []store.Part
		if err := json.Unmarshal(journal, &back); err != nil || !bytes.Equal(back[0].Input, kept) || !utf8.Valid(kept) {
			t.Fatalf("%q is kept as %q and read as %q: %v", raw, kept, back, err)
		}
		if why := inputError(kept); why == "" && objectProblem([]byte(mended(string(raw)))) != "" && strings.Trim(string(raw), " \t\r\n") != "" {
			t.Fatalf("%q can be run as %q", raw, kept)
		}
		p, g := store.Part{Type: store.PartToolCall}, &growing{}
		for rest := string(raw); rest != ""; {
			n := min(len(rest), max(size&15, 1))
			before := string(p.Input)
			g.add(&p, rest[:n])
			rest = rest[n:]
			if !strings.HasPrefix(string(p.Input), before) || !utf8.Valid(p.Input) {
				t.Fatalf("%q became %q", before, p.Input)
			}
		}
		if shown := string(p.Input); !strings.HasPrefix(inputText(kept), shown) {
			t.Fatalf("%q was shown as %q and is %q", raw, shown, inputText(kept))
		}
		g.end(&p)
		if !bytes.Equal(p.Input, kept) {
			t.Fatalf("%q in pieces is kept as %q, whole as %q", raw, p.Input, kept)
		}
	})
}

// A text is mended the same whether it came whole or in pieces.
func FuzzText(f *testing.F) {
	f.Add([]byte("a\xe2\x82\xacb\xff\xf0\x9f\x98"), 1)
	f.Fuzz(func(t *testing.T, raw []byte, size int) {
		p, g := store.Part{Type: store.PartText}, &growing{}
		for rest := string(raw); rest != ""; {
			n := min(len(rest), max(size&7, 1))
			g.add(&p, rest[:n])
			rest = rest[n:]
			if !utf8.ValidString(p.Text) || !strings.HasPrefix(mended(string(raw)), p.Text) {
				t.Fatalf("%q was shown as %q", raw, p.Text)
			}
		}
		if g.end(&p); p.Text != mended(string(raw)) {
			t.Fatalf("%q in pieces is %q, whole %q", raw, p.Text, mended(string(raw)))
		}
	})
}

func TestFollows(t *testing.T) {
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
			is.Equal(follows(tt.shown, tt.final), tt.want)
		})
	}
}

// Ids and names that readers of a stream cannot take are replaced, the same in the
// making and at the end.
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

func FuzzOutputSchema(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"$ref":"#"}}}`), `{"a":{}}`)
	f.Add([]byte(`{"$id":"x","allOf":[{"$ref":"#/definitions/a"}],"definitions":{"a":{"patternProperties":{"^a":false}}}}`), "```\n{}\n```")
	f.Add([]byte(`{"dependencies":{"a":["b"]},"propertyNames":{"pattern":"a"},"multipleOf":0.1,"contains":{},"items":[{},{}]}`), `{"a":1.1e3}`)
	f.Fuzz(func(t *testing.T, schema []byte, answer string) {
		if s, err := compileOutputSchema(schema); err == nil {
			s.check(answer)
		}
	})
}
