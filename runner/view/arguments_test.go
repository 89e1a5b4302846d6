package view

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"journeyman/store"
)

// FuzzObjectProblem checks that objectProblem accepts only JSON that encoding/json decodes as an
// object.
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

// FuzzCleanInput checks that stored arguments are JSON and are read from the journal unchanged. A
// tool must never run with arguments that were not an object.
func FuzzCleanInput(f *testing.F) {
	for _, s := range []string{`{}`, "", " ", "\u2028", `{"a" : "< \" > & \\ \u2028"}`, `{bad <`, "{\"a\":\"\xff\"}", `"{}"`, "\xe2\x82", `{"a":" b "}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		kept := CleanInput(raw)
		journal, err := json.Marshal([]store.Part{{Input: kept}})
		if err != nil {
			t.Fatalf("%q is kept as %q: %v", raw, kept, err)
		}
		var back []store.Part
		if err := json.Unmarshal(journal, &back); err != nil || !bytes.Equal(back[0].Input, kept) || !utf8.Valid(kept) {
			t.Fatalf("%q is kept as %q and read as %q: %v", raw, kept, back, err)
		}
		if why := InputError(kept); why == "" && objectProblem([]byte(ValidText(string(raw)))) != "" && strings.Trim(string(raw), " \t\r\n") != "" {
			t.Fatalf("%q can be run as %q", raw, kept)
		}
	})
}
