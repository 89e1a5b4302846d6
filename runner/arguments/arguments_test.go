package arguments_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/arguments"
)

func TestObject(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ in, want, err string }{
		"right":                      {`{"a": 1}`, `{"a": 1}`, ``},
		"nothing":                    {` `, `{}`, ``},
		"null":                       {`null`, `{}`, ``},
		"a text of null":             {`"null"`, `{}`, ``},
		"an empty text":              {`""`, `{}`, ``},
		"a byte order mark":          {"\ufeff{\"a\":1}", `{"a":1}`, ``},
		"a trailing comma":           {`{"a":[1,2, ],}`, `{"a":[1,2 ]}`, ``},
		"a comma in a text":          {`{"a":",}",}`, `{"a":",}"}`, ``},
		"a raw line break":           {"{\"a\":\"b\nc\td\"}", `{"a":"b\nc\td"}`, ``},
		"a control character":        {"{\"a\":\"b\x01c\"}", `{"a":"b\u0001c"}`, ``},
		"a fence":                    {"```json\n{\"a\":1}\n```", `{"a":1}`, ``},
		"a fence without a language": {"```\n{\"a\":\"```\"}\n```\n", "{\"a\":\"```\"}", ``},
		"a fence on one line":        {"```json{\"a\":1}```", `{"a":1}`, ``},
		"another fence":              {"~~~\n{\"a\":1}\n~~~", `{"a":1}`, ``},
		"a fence and a comma":        {"```json\n{\"a\":1,}\n```", `{"a":1}`, ``},
		"encoded twice":              {`"{\"a\":\"b\\n\"}"`, `{"a":"b\n"}`, ``},
		"encoded three times":        {`"\"{\\\"a\\\":1}\""`, `{"a":1}`, ``},
		"encoded with a fault":       {`"{\"a\":1,}"`, `{"a":1}`, ``},
		"Python":                     {`{'a': 'say "hi"', 'b': True, 'c': None, 'd': [False]}`, `{"a": "say \"hi\"", "b": true, "c": null, "d": [false]}`, ``},
		"an apostrophe":              {`{'a': 'it\'s'}`, `{"a": "it's"}`, ``},
		"a backslash and apostrophe": {`{"a": "it\'s"}`, `{"a": "it's"}`, ``},
		"bare names":                 {`{path: "x", n_1: 2}`, `{"path": "x", "n_1": 2}`, ``},
		"a pattern":                  {`{"a":"\d+\."}`, `{"a":"\\d+\\."}`, ``},

		"cut in a text":             {`{"path":"x","content":"abc`, ``, `unexpected end of JSON input at character 26, near "`},
		"cut after a comma":         {`{"path":"x",`, ``, `unexpected end`},
		"cut in a list":             {`{"a":[1,2`, ``, `unexpected end`},
		"cut in a fence":            {"```json\n{\"a\":", ``, `invalid character '` + "`" + `'`},
		"a path of Windows":         {`{"a":"C:\Users\new"}`, ``, `invalid character 'U' in string escape code at character 10, near`},
		"marks within marks":        {`{'a': 'he said 'yes', then'}`, ``, `at character 2, near "{'a': `},
		"a missing comma":           {`{"a":1 "b":2}`, ``, `invalid character '"' after object key:value pair at character 8, near "{\"a\":1 \"b\":2}"`},
		"two objects":               {`{"a":1}{"a":2}`, ``, `invalid character '{' after top-level value at character 8`},
		"a list":                    {`[1]`, ``, `not a JSON object, but a list`},
		"a number":                  {`5`, ``, `but a number`},
		"words":                     {`path is x`, ``, `invalid character 'p' looking for beginning of value at character 1, near "path is x"`},
		"a text":                    {`"words"`, ``, `invalid character 'w'`},
		"characters, not bytes":     {`{"ä":"ö" "b":1}`, ``, `at character 10`},
		"a wrong constant":          {`{"a":Yes}`, ``, `invalid character 'Y'`},
		"strings around each other": {`"\"\\\"\\\\\\\"{}\\\\\\\"\\\"\""`, ``, `but a string`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			got, err := arguments.Object([]byte(tt.in))
			is.Equal(string(got), tt.want)
			is.Equal(err != nil, tt.err != "")
			if err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("%q lacks %q", err, tt.err)
			}
		})
	}
}

func TestFit(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","properties":{"n":{"type":"integer"},"f":{"type":"number"},"b":{"type":"boolean"},"s":{"type":"string"},
		"l":{"type":"array","items":{"type":"string"}},"o":{"type":"object","properties":{"n":{"type":"integer"}}},
		"os":{"type":"array","items":{"type":"object","properties":{"b":{"type":"boolean"}}}},
		"many":{"type":["string","null"]},"any":{},"must":{"type":"integer"}},"required":["must"]}`
	for in, want := range map[string]string{
		`{"n":"1"}`: `{"n":1}`, `{"n":" 12 "}`: `{"n":12}`, `{"n":"1.5"}`: `{"n":1.5}`, `{"f":"-1e3"}`: `{"f":-1e3}`,
		`{"n":"one"}`: `{"n":"one"}`, `{"n":"0x10"}`: `{"n":"0x10"}`, `{"n":"NaN"}`: `{"n":"NaN"}`, `{"n":"1_0"}`: `{"n":"1_0"}`,
		`{"b":"true"}`: `{"b":true}`, `{"b":"False"}`: `{"b":false}`, `{"b":"yes"}`: `{"b":"yes"}`, `{"b":1}`: `{"b":1}`,
		`{"s":5}`: `{"s":"5"}`, `{"s":true}`: `{"s":"true"}`, `{"s":{"a":1}}`: `{"s":{"a":1}}`, `{"s":"<a>"}`: `{"s":"<a>"}`,
		`{"n":null}`: `{}`, `{"n":""}`: `{}`, `{"n":"null"}`: `{}`, `{"b":"None"}`: `{}`, `{"s":null}`: `{}`, `{"s":""}`: `{"s":""}`,
		`{"s":"null"}`: `{"s":"null"}`, `{"must":null}`: `{"must":null}`, `{"must":"3"}`: `{"must":3}`, `{"many":null}`: `{"many":null}`,
		`{"l":"a"}`: `{"l":["a"]}`, `{"l":"[\"a\",\"b\"]"}`: `{"l":["a","b"]}`, `{"l":[1,"b"]}`: `{"l":["1","b"]}`, `{"l":""}`: `{}`,
		`{"o":"{\"n\":\"2\"}"}`: `{"o":{"n":2}}`, `{"o":"n"}`: `{"o":"n"}`, `{"os":{"b":"true"}}`: `{"os":[{"b":true}]}`,
		`{"os":[{"b":"true"},{"b":null}]}`: `{"os":[{"b":true},{}]}`, `{"any":"1"}`: `{"any":"1"}`, `{"else":"1"}`: `{"else":"1"}`,
		`{ "n": 1 }`: `{ "n": 1 }`, `{"n":"2","s":"<&>"}`: `{"n":2,"s":"<&>"}`, `[]`: `[]`,
	} {
		t.Run(in, func(t *testing.T) {
			is.New(t).Equal(string(arguments.Fit(json.RawMessage(schema), json.RawMessage(in))), want)
		})
	}
	is := is.New(t)
	is.Equal(string(arguments.Fit(nil, json.RawMessage(`{"a":1}`))), `{"a":1}`)
	is.Equal(string(arguments.Fit(json.RawMessage(`true`), json.RawMessage(`{"a":1}`))), `{"a":1}`)
}

// TestValue checks values within other text.
func TestValue(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"a": 1} rest`: `{"a": 1}| rest`, `[1,2]]`: `[1,2]|]`, `{'a': True, 'b': None,}x`: `{"a":true,"b":null}|x`,
		`{a: "b"}`: `{"a":"b"}|`, `('a', 2)`: `["a",2]|`, `["""a"b"""],`: `["a\"b"]|,`, `<escape>a<escape>}`: `"a"|}`,
		`<|"|>a<|"|>}`: `"a"|}`, `'it\'s' `: `"it's"| `, `'\ud83d\ude00'`: `"😀"|`, `'\d'`: `"\\d"|`, `-1.5e3)`: `-1.5e3|)`,
		`'a`: ``, ``: ``, `{`: ``, `{a}`: ``, `[1 2]`: ``, `maybe`: ``, `{1:2}`: ``,
		strings.Repeat("[", 40) + strings.Repeat("]", 40): strings.Repeat("[", 40) + strings.Repeat("]", 40) + "|",
		strings.Repeat("(", 40) + strings.Repeat(")", 40): ``,
	} {
		value, rest, ok := arguments.Value(in)
		got := string(value) + "|" + rest
		if is := is.New(t); ok {
			is.Equal(got, want)
		} else {
			is.Equal("", want) // no value
		}
	}
	for in, want := range map[string]string{`(a=1, b='c',) x`: `{"a":1,"b":"c"}| x`, `()`: `{}|`, `( a = [1] )`: `{"a":[1]}|`,
		`(1)`: ``, `(a 1)`: ``, `(a=1 b=2)`: ``, `(a=1`: ``} {
		object, rest, ok := arguments.Named(in)
		is := is.New(t)
		is.Equal(ok, want != "")
		is.True(!ok || string(object)+"|"+rest == want) // the object and the rest
	}
}

func FuzzValue(f *testing.F) {
	f.Add(`{'a': [True, "b\d"], c: (1, None,)} rest`)
	f.Add(`(a=<escape>b<escape>, c="""d""")`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, read := range []func(string) (json.RawMessage, string, bool){arguments.Value, arguments.Named} {
			value, rest, ok := read(text)
			if ok && (!json.Valid(value) || !strings.HasSuffix(text, rest)) {
				t.Fatalf("%q became %q and %q", text, value, rest)
			}
		}
	})
}

func FuzzObject(f *testing.F) {
	f.Add("```json\n{\"a\":'b',}\n```")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := arguments.Object([]byte(text))
		if err == nil && (!json.Valid(got) || got[0] != '{') {
			t.Fatalf("%q became %q", text, got)
		}
		if err == nil {
			arguments.Fit(json.RawMessage(`{"properties":{"a":{"type":"string"}}}`), got)
		}
	})
}
