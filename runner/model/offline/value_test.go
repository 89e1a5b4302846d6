package offline

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/model"
	"journeyman/runner/schema"
)

// answerTo requests a value and checks that the value meets the schema.
func answerTo(t *testing.T, text, input string) string {
	t.Helper()
	res, err := generate(t, model.Request{OutputSchema: json.RawMessage(text), Messages: []model.Message{user(input)}})
	if err != nil {
		t.Fatal(err)
	}
	answer := joinText(res.Parts, model.PartText)
	compiled, err := schema.CompileForObjects([]byte(text))
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	if err := compiled.CheckObject([]byte(answer)); err != nil {
		t.Errorf("%s does not match the schema: %v", answer, err)
	}
	return answer
}

// object returns the schema of an object that requires all its properties.
func object(properties string) string {
	var names map[string]any
	if err := json.Unmarshal([]byte("{"+properties+"}"), &names); err != nil {
		panic(err)
	}
	return `{"type":"object","required":` + string(marshalJSON(slices.Sorted(maps.Keys(names)))) + `,"properties":{` + properties + `}}`
}

func TestValuesFromTheInput(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ schema, input, want string }{
		"labels":             {object(`"customerName":{"type":"string"},"city":{"type":"string"}`), "Customer name: Ada Byron, city: Bath.\nthanks", `{"city":"Bath","customerName":"Ada Byron"}`},
		"label in quotes":    {object(`"title":{"type":"string"}`), `title = "A, b; c" and more`, `{"title":"A, b; c"}`},
		"email and date":     {object(`"email":{"type":"string","format":"email"},"due":{"type":"string","format":"date"}`), "Mail joe.b@x.example by May 3rd, 2026.", `{"due":"2026-05-03","email":"joe.b@x.example"}`},
		"dates by label":     {object(`"start":{"type":"string","format":"date"},"end":{"type":"string","format":"date"}`), "End: 5.6.2026\nStart: 2026-05-01", `{"end":"2026-06-05","start":"2026-05-01"}`},
		"date-time":          {object(`"at":{"type":"string","format":"date-time"}`), "Be there 2026-05-03 17:30", `{"at":"2026-05-03T17:30:00Z"}`},
		"other formats":      {object(`"ip":{"type":"string","format":"ipv4"},"ref":{"type":"string","format":"uuid"},"page":{"type":"string","format":"uri"}`), "10.0.0.7 see https://a.example/b, 123e4567-e89b-12d3-a456-426614174000", `{"ip":"10.0.0.7","page":"https://a.example/b","ref":"123e4567-e89b-12d3-a456-426614174000"}`},
		"numbers":            {object(`"age":{"type":"integer"},"total":{"type":"number"},"bedrooms":{"type":"integer"}`), "Age: 42, total: 1,299.50 euros, bedrooms: 3", `{"age":42,"bedrooms":3,"total":1299.50}`},
		"the only number":    {object(`"answer":{"type":"integer"}`), "It must be 12 then", `{"answer":12}`},
		"enum":               {object(`"priority":{"enum":["low","high"]},"kind":{"enum":["bug","feature_request"]}`), "A feature request, high priority", `{"kind":"feature_request","priority":"high"}`},
		"enum by label":      {object(`"from":{"enum":["Rome","Oslo"]},"to":{"enum":["Rome","Oslo"]}`), "to: Rome; from: Oslo", `{"from":"Oslo","to":"Rome"}`},
		"booleans":           {object(`"urgent":{"type":"boolean"},"paid":{"type":"boolean"},"signed":{"type":"boolean"},"new":{"type":"boolean"}`), "This is urgent. Paid: false. Signed: yes", `{"new":false,"paid":false,"signed":true,"urgent":true}`},
		"pattern":            {object(`"sku":{"type":"string","pattern":"^[A-Z]{3}-\\d{4}$"}`), "We need ABC-1234, soon.", `{"sku":"ABC-1234"}`},
		"list":               {object(`"toppings":{"type":"array","items":{"type":"string"}}`), "toppings: ham, cheese and olives", `{"toppings":["ham","cheese","olives"]}`},
		"list without twins": {object(`"toppings":{"type":"array","uniqueItems":true,"items":{"type":"string"}}`), "toppings: ham, figs, ham", `{"toppings":["ham","figs"]}`},
		"list of enum":       {object(`"days":{"type":"array","items":{"enum":["mon","tue","wed"]}}`), "On Tue and Mon", `{"days":["mon","tue"]}`},
		"list of numbers":    {object(`"scores":{"type":"array","items":{"type":"integer"}}`), "scores: 3, 5 and 8", `{"scores":[3,5,8]}`},
		"list of addresses":  {object(`"emails":{"type":"array","items":{"type":"string"}}`), "a@x.org, b@x.org, a@x.org", `{"emails":["a@x.org","b@x.org"]}`},
		"bullets":            {object(`"steps":{"type":"array","items":{"type":"string"}}`), "Do:\n- cut\n- glue", `{"steps":["cut","glue"]}`},
		"bullets of things":  {object(`"items":{"type":"array","items":` + object(`"quantity":{"type":"integer"},"item":{"type":"string"}`) + `}`), "- 2 apples\n- 3 pears", `{"items":[{"item":"2 apples","quantity":2},{"item":"3 pears","quantity":3}]}`},
		"nested":             {object(`"buyer":` + object(`"email":{"type":"string","format":"email"}`)), "from a@x.org", `{"buyer":{"email":"a@x.org"}}`},
		"nullable":           {object(`"email":{"type":["string","null"],"format":"email"},"age":{"anyOf":[{"type":"null"},{"type":"integer"}]}`), "nobody", `{"age":null,"email":null}`},
		"optional left out":  {`{"type":"object","properties":{"email":{"type":"string","format":"email"},"age":{"type":"integer"}}}`, "I am 30 years of age: 30", `{"age":30}`},
		"default":            {object(`"unit":{"type":"string","default":"kg"},"n":{"type":"integer","default":4},"b":{"type":"boolean","default":true}`), "-", `{"b":true,"n":4,"unit":"kg"}`},
		"only text":          {object(`"greeting":{"type":"string"}`), "hello there", `{"greeting":"hello there"}`},
		"not known":          {object(`"country":{"type":"string"},"street":{"type":"string"}`), "hello there", `{"country":"unknown","street":"unknown"}`},
		"worker":             {object(`"instructions":{"type":"string"},"title":{"type":"string"},"summary":{"type":"string"}`), "an agent that sorts support mails", `{"instructions":"You are an agent that sorts support mails.\n\nWork only from what you are given or find with your tools. Say plainly what is missing or uncertain. Keep the answer short and to the point.","summary":"an agent that sorts support mails","title":"Agent Sorts Support Mails"}`},
		"kind by const":      {`{"oneOf":[` + object(`"kind":{"const":"dog"},"name":{"type":"string"}`) + `,` + object(`"kind":{"const":"cat"},"lives":{"type":"integer"}`) + `]}`, "a cat with 9 lives", `{"kind":"cat","lives":9}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is.New(t).Equal(answerTo(t, tt.schema, tt.input), tt.want)
		})
	}
}

// TestValuesThatMeetTheSchema checks schemas that are hard to meet if the input contains no
// values for them.
func TestValuesThatMeetTheSchema(t *testing.T) {
	t.Parallel()
	for name, schema := range map[string]string{
		"lengths":          object(`"a":{"type":"string","minLength":12},"b":{"type":"string","maxLength":2},"c":{"type":"string","maxLength":0}`),
		"ranges":           object(`"a":{"type":"integer","minimum":7},"b":{"type":"number","exclusiveMinimum":1,"maximum":1.5},"c":{"type":"integer","maximum":-3},"d":{"type":"number","exclusiveMaximum":0,"minimum":-0.1}`),
		"multiples":        object(`"a":{"type":"number","multipleOf":0.01,"minimum":0.015},"b":{"type":"integer","multipleOf":2.5,"minimum":1},"c":{"type":"integer","multipleOf":7,"exclusiveMinimum":7},"d":{"type":"number","multipleOf":3,"maximum":-1}`),
		"big numbers":      object(`"a":{"type":"integer","minimum":123456789012345678901234567890},"b":{"type":"number","minimum":1e300}`),
		"patterns":         object(`"a":{"type":"string","pattern":"^[a-f0-9]{8}$"},"b":{"type":"string","pattern":"^(foo|bar)+\\.x?$"},"c":{"type":"string","pattern":"\\d+"},"d":{"type":"string","pattern":"^.{3,}$","minLength":9},"e":{"type":"string","pattern":"^\\+?[1-9]\\d{1,14}$"}`),
		"formats":          object(`"a":{"type":"string","format":"email"},"b":{"type":"string","format":"date-time"},"c":{"type":"string","format":"ipv6"},"d":{"type":"string","format":"hostname"},"e":{"type":"string","format":"time"},"f":{"type":"string","format":"uuid"},"g":{"type":"string","format":"regex"},"h":{"type":"string","format":"uri-reference"},"i":{"type":"string","format":"json-pointer"},"j":{"type":"string","format":"made-up"}`),
		"arrays":           object(`"a":{"type":"array","minItems":3,"items":{"type":"integer","minimum":5}},"b":{"type":"array","minItems":2,"uniqueItems":true,"items":{"type":"string"}},"c":{"type":"array","minItems":3,"uniqueItems":true,"items":{"type":"integer"}},"d":{"type":"array","minItems":2,"uniqueItems":true,"items":{"enum":[1,2]}},"e":{"type":"array","items":[{"type":"string"},{"const":2}]},"f":{"type":"array","contains":{"const":5}},"g":{"type":"array","minItems":2,"uniqueItems":true,"items":{"type":"boolean"}},"h":{"type":"array","maxItems":0}`),
		"references":       `{"definitions":{"p":{"type":"object","required":["x"],"properties":{"x":{"$ref":"#/definitions/n"}}},"n":{"type":"integer","minimum":3}},"type":"object","required":["a","b"],"properties":{"a":{"$ref":"#/definitions/p"},"b":{"type":"array","minItems":1,"items":{"$ref":"#/definitions/p"}}}}`,
		"recursion":        `{"type":"object","required":["v"],"properties":{"v":{"type":"string"},"next":{"$ref":"#"},"all":{"type":"array","items":{"$ref":"#"}}}}`,
		"all of":           `{"type":"object","allOf":[{"required":["a"],"properties":{"a":{"type":"integer","minimum":2}}},{"required":["b"],"properties":{"a":{"minimum":5},"b":{"type":"boolean"}}}]}`,
		"any of":           object(`"a":{"anyOf":[{"type":"string","minLength":3},{"type":"integer"}]},"b":{"oneOf":[{"type":"integer","multipleOf":2},{"type":"integer","multipleOf":3,"minimum":9}]}`),
		"one of exactly":   object(`"a":{"oneOf":[{"type":"integer"},{"type":"number","minimum":5}]}`),
		"only the second":  object(`"a":{"oneOf":[{"type":"string","not":{}},{"type":"integer"}]}`),
		"if then":          `{"type":"object","properties":{"a":{"enum":["x","y"]}},"required":["a"],"if":{"properties":{"a":{"const":"x"}}},"then":{"required":["b"]},"else":{"required":["c"]}}`,
		"dependencies":     `{"type":"object","required":["a"],"properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"dependencies":{"a":["b"]}}`,
		"unlisted":         `{"type":"object","required":["x","y"],"additionalProperties":{"type":"integer","minimum":1}}`,
		"many":             `{"type":"object","minProperties":3}`,
		"no type":          `{"properties":{"a":{"minimum":3},"b":{"items":{}},"c":{"required":["d"]}},"required":["a","b","c"]}`,
		"const":            object(`"a":{"const":{"deep":[1,null]}},"b":{"enum":[null]},"c":{"enum":[3.5]}`),
		"closed":           `{"type":"object","additionalProperties":false,"properties":{"a":{"type":"null"}},"required":["a"]}`,
		"slash in a name":  `{"definitions":{"a/b~c":{"type":"integer"}},"type":"object","required":["x"],"properties":{"x":{"$ref":"#/definitions/a~1b~0c"}}}`,
		"reference inward": `{"type":"object","required":["a","b"],"properties":{"a":{"type":"array","items":[{"type":"integer"}]},"b":{"$ref":"#/properties/a/items/0"}}}`,
		"integer with dot": object(`"a":{"type":"integer","minimum":1.5}`),
		"types":            object(`"a":{"type":["integer","string"],"minimum":3,"minLength":2}`),
		"anything":         `{}`,
		"anything, titled": `{"title":"Anything","description":"At all."}`,
		"object or text":   `{"type":["string","object"],"minProperties":1}`,
		"only by name":     `{"propertyNames":{"pattern":"^x-[0-9]+$"},"minProperties":2}`,
		"lookaheads":       object(`"a":{"type":"string","pattern":"^(?=.*[A-Z])(?=.*\\d)[A-Za-z\\d]{8,}$"},"b":{"type":"string","pattern":"^(?!unknown).+$"}`),
		"a case that ends": `{"anyOf":[{"required":["a"],"properties":{"a":false}},{"required":["b"],"properties":{"b":{"oneOf":[{"type":"integer","maximum":3},{"type":"integer","minimum":1}]}}}]}`,
		"unless":           `{"not":{"required":["a"]},"anyOf":[{"required":["a"]},{"required":["c"],"not":{"properties":{"c":{"type":"string"}}}}]}`,
		"by pattern":       `{"patternProperties":{"^n_":{"type":"integer"}},"additionalProperties":false,"minProperties":3}`,
		"dependent":        `{"required":["a"],"dependencies":{"a":{"properties":{"b":{"const":4}},"required":["b"]}}}`,
		"min of max":       object(`"a":{"allOf":[{"maxLength":5},{"maxLength":3}],"type":"string"}`),
	} {
		for _, input := range []string{"", "Two words, 7 and -3: yes! a@b.example 2026-02-30"} {
			t.Run(name+"/"+input, func(t *testing.T) {
				t.Parallel()
				answerTo(t, schema, input)
			})
		}
	}
}

func TestValueFromAFile(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	req := plainRequest("Extract the data from harbour.md and save it as data.json")
	req.OutputSchema = json.RawMessage(object(`"sentences":{"type":"array","items":{"type":"string"},"maxItems":1},"title":{"type":"string"}`))
	w := newWorld(t)
	answer, calls := w.converse(t, req)
	is.Equal(len(calls), 3)
	is.Equal(answer+"\n", w.files["data.json"]) // only the value
	var got struct{ Sentences []string }
	is.NoErr(json.Unmarshal([]byte(answer), &got))
	is.Equal(got.Sentences, []string{telling1})
}

func TestHostileSchemas(t *testing.T) {
	t.Parallel()
	doubled := `{"definitions":{`
	for i := range 24 {
		next := string(rune('a' + i + 1))
		doubled += `"` + string(rune('a'+i)) + `":{"properties":{"x":{"$ref":"#/definitions/` + next + `"},"y":{"$ref":"#/definitions/` + next + `"}},"required":["x","y"]},`
	}
	doubled += `"y":{}},"$ref":"#/definitions/a"}`
	for name, schema := range map[string]string{
		"not JSON":        `{`,
		"not an object":   `true`,
		"remote":          `{"$ref":"http://127.0.0.1:1/x"}`,
		"a file":          `{"$ref":"file:///etc/passwd"}`,
		"itself":          `{"$ref":"#"}`,
		"all of itself":   `{"allOf":[{"$ref":"#"},{"$ref":"#"}]}`,
		"any of itself":   `{"anyOf":[{"$ref":"#"},{"$ref":"#"},{"$ref":"#"}]}`,
		"needs itself":    `{"type":"object","required":["a","b"],"properties":{"a":{"$ref":"#"},"b":{"$ref":"#"}}}`,
		"impossible":      `{"type":"string","minLength":5,"maxLength":2}`,
		"false":           `{"properties":{"a":false},"required":["a"]}`,
		"huge exponent":   `{"type":"number","minimum":1e999999999}`,
		"huge minimum":    `{"type":"array","minItems":1e9}`,
		"huge string":     `{"type":"string","minLength":1e12}`,
		"huge repetition": `{"type":"string","pattern":"^((a{1000}){1000}){1000}$"}`,
		"bad words":       `{"type":5,"properties":[],"required":"x","enum":{},"items":7,"minimum":"a","pattern":3,"allOf":{},"anyOf":[]}`,
		"deep":            strings.Repeat(`{"properties":{"a":`, 500) + `{}` + strings.Repeat(`},"required":["a"]}`, 500),
		"wide":            `{"anyOf":[` + strings.Repeat(`{"anyOf":[{},{},{}]},`, 2000) + `{}]}`,
		"doubled":         doubled,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := generate(t, model.Request{OutputSchema: json.RawMessage(schema), Messages: []model.Message{user("x: 1")}})
			is := is.New(t)
			is.NoErr(err)
			is.True(json.Valid([]byte(joinText(res.Parts, model.PartText)))) // the best guess, within the limits
			is.True(len(joinText(res.Parts, model.PartText)) < 2<<20)
		})
	}
}

func FuzzValue(f *testing.F) {
	f.Add([]byte(object(`"a":{"type":"string","pattern":"^[a-z]+$"},"n":{"type":"number","multipleOf":0.1}`)), "a: b, n 5", "read")
	f.Add([]byte(`{"anyOf":[{"$ref":"#/definitions/x"}],"definitions":{"x":{"type":"array","items":{"enum":[1,"b"]}}}}`), "- b\n- c", "")
	f.Add([]byte(`{"type":"object","minProperties":2,"if":{},"then":{"required":["q"]}}`), "q is 3 May 2026 10:00", "x")
	f.Fuzz(func(t *testing.T, schema []byte, input, read string) {
		turn := &turn{req: &model.Request{OutputSchema: schema}, input: input}
		first := turn.structured(read)
		if !json.Valid([]byte(first)) || first != turn.structured(read) {
			t.Fatalf("%q, then another", first)
		}
	})
}

func TestMarshalledTextIsPlain(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	is.True(bytes.Equal(marshalJSON("<&>"), []byte(`"<&>"`)))
}
