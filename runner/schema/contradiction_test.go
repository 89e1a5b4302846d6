package schema

import (
	"strconv"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// TestContradictions checks which schemas are rejected, and which must not be.
func TestContradictions(t *testing.T) {
	t.Parallel()
	obj := func(property string) string {
		return `{"type":"object","required":["a"],"properties":{"a":` + property + `}}`
	}
	for name, tt := range map[string]struct{ schema, says string }{
		"a text":                     {`{"type":"string"}`, "/type: allows string where only object is possible"},
		"a list or a number":         {`{"type":["array","integer"]}`, "/type: allows integer or array where only object"},
		"a constant":                 {`{"const":1}`, "/const: allows integer where only object is possible"},
		"values without an object":   {`{"enum":[1,"a",null,[],true]}`, "/enum: allows null or boolean or integer or string or array where only object is possible"},
		"required, false":            {`{"required":["a"],"properties":{"a":false}}`, `/properties/a: false allows no value; "a" is required by /`},
		"required, closed":           {`{"required":["a"],"additionalProperties":false}`, `/additionalProperties: false allows no value; "a" is required`},
		"required, not listed":       {`{"required":["a","b"],"properties":{"a":{}},"additionalProperties":false}`, `"b" is required by /`},
		"required, by another":       {`{"allOf":[{"required":["a"]},{"properties":{"b":{}},"additionalProperties":false}]}`, `"a" is required by /allOf/0`},
		"properties":                 {`{"minProperties":3,"maxProperties":2}`, "/minProperties: 3 is more than the maxProperties of 2"},
		"types":                      {`{"allOf":[{"type":"object"},{"type":"array"}]}`, "/allOf/1/type: allows array where only object is possible"},
		"types of a property":        {`{"allOf":[` + obj(`{"type":"string"}`) + `,{"properties":{"a":{"type":"integer"}}}]}`, "/allOf/1/properties/a/type: allows integer where only string is possible"},
		"length":                     {obj(`{"type":"string","minLength":5,"maxLength":2}`), "/properties/a/minLength: 5 is more than the maxLength of 2; \"a\" is required by /"},
		"range":                      {obj(`{"type":"number","minimum":2,"maximum":1}`), "/properties/a/minimum: 2 is more than the maximum of 1"},
		"range of none":              {obj(`{"type":"number","minimum":2,"exclusiveMaximum":2}`), "/properties/a/minimum: 2 is not less than the exclusiveMaximum of 2"},
		"range without its ends":     {obj(`{"type":"integer","exclusiveMinimum":1.5,"exclusiveMaximum":1.5}`), "/properties/a/exclusiveMinimum: 3/2 is not less than the exclusiveMaximum of 3/2"},
		"range above its end":        {obj(`{"type":"integer","exclusiveMinimum":3,"maximum":2}`), "/properties/a/exclusiveMinimum: 3 is more than the maximum of 2"},
		"items":                      {obj(`{"type":"array","minItems":3,"maxItems":2}`), "/minItems: 3 is more than the maxItems of 2"},
		"a constant of another type": {obj(`{"const":"x","type":"integer"}`), "/const"},
		"values of another type":     {obj(`{"enum":["x",null],"type":["integer","array"]}`), "/properties/a/enum: allows null or string where only integer or array is possible"},
		"values against a constant":  {obj(`{"enum":["x","y"],"const":1}`), "/properties/a/enum: allows string where only integer is possible"},
		"deep inside":                {obj(obj(obj(`false`))), "/properties/a/properties/a/properties/a: false allows no value"},
		"by a pattern of names":      {`{"required":["abc"],"patternProperties":{"^a":false}}`, "/patternProperties/^a: false allows no value"},
		"by reference":               {`{"$ref":"#/definitions/a","definitions":{"a":{"$ref":"#/definitions/b"},"b":{"type":"null"}}}`, "/definitions/b/type"},
		"itself":                     {`{"$ref":"#"}`, "/: it refers to itself endlessly"},
		"itself by all":              {`{"allOf":[{"$ref":"#"}]}`, "refers to itself"},
		"contains itself":            {`{"required":["next"],"properties":{"next":{"$ref":"#"}},"type":"object"}`, "would have to contain another value of the same kind"},

		"nothing said":            {`{}`, ""},
		"an object or a text":     {`{"type":["string","object"]}`, ""},
		"items of an object":      {`{"items":false,"minItems":5,"minLength":9,"maxLength":1,"pattern":"(","minimum":3,"maximum":1}`, ""},
		"optional, false":         {`{"properties":{"a":false}}`, ""},
		"beside a reference":      {`{"$ref":"#/definitions/d","const":1,"if":false,"else":false,"contains":false,"propertyNames":false,"definitions":{"d":{"required":["a"]}}}`, ""},
		"a list, ended":           {`{"required":["next"],"properties":{"next":{"anyOf":[{"type":"null"},{"$ref":"#"}]}}}`, ""},
		"a list, empty":           {`{"required":["all"],"properties":{"all":{"type":"array","items":{"$ref":"#"}}}}`, ""},
		"a tree":                  {`{"type":"object","properties":{"left":{"$ref":"#"},"right":{"$ref":"#"}}}`, ""},
		"by a pattern":            {`{"required":["abc"],"patternProperties":{"^a":{}},"additionalProperties":false}`, ""},
		"numbers with fractions":  {obj(`{"type":"number","minimum":1.2,"maximum":1.8}`), ""},
		"one is an integer":       {obj(`{"type":"integer","const":1.0}`), ""},
		"types that share":        {obj(`{"allOf":[{"type":"number"},{"type":["integer","string"]}]}`), ""},
		"a type not denied":       {obj(`{"type":"number","not":{"type":"integer"}}`), ""},
		"fewer cases":             {obj(`{"oneOf":[false,{"type":"string"}]}`), ""},
		"a dependency not needed": {`{"dependencies":{"a":false}}`, ""},
		"contains and tuple":      {obj(`{"type":"array","items":[{"type":"string"}],"contains":{"type":"integer"}}`), ""},
		"contains two":            {obj(`{"type":"array","allOf":[{"contains":{"const":1}},{"contains":{"const":2}}]}`), ""},
		"else without if":         {`{"else":false,"then":false}`, ""},
		"if false":                {`{"if":false,"then":false}`, ""},
		"unique, many":            {obj(`{"type":"array","minItems":4,"uniqueItems":true,"items":{"type":["boolean","string"]}}`), ""},
		"a password":              {obj(`{"type":"string","pattern":"^(?=.*[A-Z])(?=.*[a-z])(?=.*\\d)(?=.*[!@#$%]).{12,}$"}`), ""},
		"not found, in choices":   {obj(`{"type":"string","anyOf":[{"type":"integer"},false]}`), ""},
		"not found, denied":       {obj(`{"not":{}}`), ""},
		"a multiple far away":     {obj(`{"type":"number","multipleOf":1e-9,"exclusiveMinimum":1e9}`), ""},
		"counts beyond all":       {obj(`{"type":"string","maxLength":9223372036854775808}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			text := strings.Replace(tt.schema, `"pattern":"("`, `"pattern":"x"`, 1)
			_, err := CompileForObjects([]byte(text))
			if tt.says == "" {
				is.NoErr(err)
				return
			}
			is.True(err != nil)
			if !strings.Contains(err.Error(), tt.says) || !strings.HasPrefix(err.Error(), "no JSON object can meet it: /") {
				t.Errorf("says %q, want %q", err, tt.says)
			}
		})
	}
}

// TestHardSchemas checks that schemas designed to be hard take limited time.
func TestHardSchemas(t *testing.T) {
	t.Parallel()
	// list returns n texts with commas between them. The format gets the index and the next one.
	list := func(format string, n int) string {
		texts := make([]string, n)
		for i := range texts {
			texts[i] = strings.NewReplacer("NEXT", strconv.Itoa(i+1), "N", strconv.Itoa(i)).Replace(format)
		}
		return strings.Join(texts, ",")
	}
	for name, text := range map[string]string{
		"many values":             `{"required":["a"],"properties":{"a":{"enum":[` + list("N", 8000) + `],"minimum":100000}}}`,
		"many required":           `{"required":[` + list(`"pN"`, 2000) + `],"patternProperties":{` + list(`"^(?i)qN$":false`, 1500) + `}}`,
		"required in each other":  `{"$ref":"#/definitions/d0","definitions":{` + list(`"dN":{"type":"object","required":["a","b"],"properties":{"a":{"$ref":"#/definitions/dNEXT"},"b":{"$ref":"#/definitions/dNEXT"}}}`, 300) + `,"d300":{}}}`,
		"required in two schemas": `{"allOf":[{"$ref":"#/definitions/d0"},{"$ref":"#/definitions/d1"}],"definitions":{` + list(`"dN":{"type":"object","required":["a","b"],"properties":{"a":{"$ref":"#/definitions/dNEXT"},"b":{"$ref":"#/definitions/d0"}}}`, 300) + `,"d300":{}}}`,
		"slow patterns":           `{"required":["` + strings.Repeat("a", 40) + `!"],"patternProperties":{` + list(`"^(a+)+N$":false`, 100) + `}}`,
		"parentheses":             `{"properties":{"a":{"pattern":"` + strings.Repeat("(", 30_000) + strings.Repeat(")", 30_000) + `"}}}`,
		"repetitions":             `{"required":["a"],"properties":{"a":{"type":"string","pattern":"^((a{1000}){1000}){1000}$"}}}`,
		"tiny steps":              `{"required":["a"],"properties":{"a":{"type":"number","multipleOf":1e-400,"minimum":1e-399,"maximum":1e400}}}`,
		"a chain":                 `{"$ref":"#/definitions/d0","definitions":{` + list(`"dN":{"$ref":"#/definitions/dNEXT"}`, 1300) + `,"d1300":{}}}`,
		"many subschemas":         `{"allOf":[` + list(`{}`, 20_000) + `]}`,
		"many schemas":            `{"allOf":[` + list(`{}`, 4_900) + `]}`,
		"not not":                 strings.Repeat(`{"not":`, 30) + `{}` + strings.Repeat(`}`, 30),
		"all of each other":       `{"definitions":{"a":{"anyOf":[{"$ref":"#/definitions/b"},{"$ref":"#/definitions/a"}]},"b":{"anyOf":[{"$ref":"#/definitions/a"},{}]}},"properties":{"x":{"$ref":"#/definitions/a"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			soon(t, "compiling", func() {
				_, err := CompileForObjects([]byte(text))
				t.Logf("%.200v", err)
			})
		})
	}
}

// FuzzSchema compiles schemas and checks values. Neither may panic or take long. No schema may be
// rejected if a value meets it.
func FuzzSchema(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"$ref":"#"}}}`), []byte(`{"a":{}}`))
	f.Add([]byte(`{"$id":"x","allOf":[{"$ref":"#/definitions/a"}],"definitions":{"a":{"patternProperties":{"^(?=a)":false}}}}`), []byte(`{"b":[1,{"a":2}]}`))
	f.Add([]byte(`{"dependencies":{"a":["b"]},"propertyNames":{"pattern":"a"},"multipleOf":0.1,"contains":{},"items":[{},{}]}`), []byte(`{"a":1.1e3}`))
	f.Add([]byte(`{"required":["x"],"properties":{"x":{"type":"string","pattern":"^(a+)+\\u{61}[^\\]]$","format":"regex"}},"if":{},"then":{"minProperties":2}}`), []byte(`{"x":"(("}`))
	f.Add([]byte(`{"required":["a"],"properties":{"a":{"enum":[1,1.5,"b"],"type":["integer","string"]}},"minProperties":1,"maxProperties":1}`), []byte(`{"a":1.0}`))
	f.Add([]byte(`{"allOf":[{"type":["object","null"]},{"required":["a"],"additionalProperties":false,"properties":{"a":{"minimum":1,"exclusiveMaximum":2}}}]}`), []byte(`{"a":"x"}`))
	f.Fuzz(func(t *testing.T, raw, answer []byte) {
		soon(t, "it", func() {
			s, err := Compile(raw)
			if err != nil {
				return
			}
			fits := s.CheckObject(answer) == nil
			if _, err := CompileForObjects(raw); err != nil && fits {
				t.Fatalf("%s is refused (%v), but met by %s", raw, err, answer)
			}
			_ = CheckForeign(raw, MaxDepth)
		})
	})
}
