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
	"journeyman/store/ordertest"
)

// answerTo requests a value and checks that the value meets the schema, or is {}.
func answerTo(t *testing.T, text, input string) string {
	t.Helper()
	res := answered(t, model.Request{OutputSchema: json.RawMessage(text), Messages: []model.Message{user(input)}})
	answer := res.Parts[len(res.Parts)-1].Text // a note may precede it
	compiled, err := schema.CompileForObjects([]byte(text))
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	if err := compiled.CheckObject([]byte(answer)); err != nil && answer != "{}" {
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
		"email and date":     {object(`"email":{"type":"string","format":"email"},"due":{"type":"string","format":"date"}`), "Mail joe.b@x.example by 2026-05-03.", `{"due":"2026-05-03","email":"joe.b@x.example"}`},
		"dates by label":     {object(`"start":{"type":"string","format":"date"},"end":{"type":"string","format":"date"}`), "End: 2026-06-05\nStart: on 2026-05-01, Friday", `{"end":"2026-06-05","start":"2026-05-01"}`},
		"date-time":          {object(`"at":{"type":"string","format":"date-time"}`), "Be there 2026-05-03T17:30:00Z!", `{"at":"2026-05-03T17:30:00Z"}`},
		"other formats":      {object(`"ip":{"type":"string","format":"ipv4"},"ref":{"type":"string","format":"uuid"},"page":{"type":"string","format":"uri"}`), "10.0.0.7 see https://a.example/b, 123e4567-e89b-12d3-a456-426614174000", `{"ip":"10.0.0.7","page":"https://a.example/b","ref":"123e4567-e89b-12d3-a456-426614174000"}`},
		"numbers":            {object(`"age":{"type":"integer"},"total":{"type":"number"},"bedrooms":{"type":"integer"}`), "Age: 42, total: 1,299.50 euros, bedrooms: 3", `{"age":42,"bedrooms":3,"total":1299.50}`},
		"enum":               {object(`"priority":{"enum":["low","high"]},"kind":{"enum":["bug","feature_request"]}`), "A feature request, high priority", `{"kind":"feature_request","priority":"high"}`},
		"enum by label":      {object(`"from":{"enum":["Rome","Oslo"]},"to":{"enum":["Rome","Oslo"]}`), "to: Rome; from: Oslo", `{"from":"Oslo","to":"Rome"}`},
		"booleans":           {object(`"urgent":{"type":"boolean"},"paid":{"type":"boolean"},"signed":{"type":"boolean"}`), "Paid: false. Signed is yes", `{"paid":false,"signed":true,"urgent":false}`},
		"pattern":            {object(`"sku":{"type":"string","pattern":"^[A-Z]{3}-\\d{4}$"}`), "We need ABC-1234, soon.", `{"sku":"ABC-1234"}`},
		"list":               {object(`"toppings":{"type":"array","items":{"type":"string"}}`), "toppings: ham, cheese and olives", `{"toppings":["ham","cheese","olives"]}`},
		"list without twins": {object(`"toppings":{"type":"array","uniqueItems":true,"items":{"type":"string"}}`), "toppings: ham, figs, ham", `{"toppings":["ham","figs"]}`},
		"list of enum":       {object(`"days":{"type":"array","items":{"enum":["mon","tue","wed"]}}`), "On Tue and Mon", `{"days":["mon","tue"]}`},
		"list of numbers":    {object(`"scores":{"type":"array","items":{"type":"integer"}}`), "scores: 3, 5 and 8", `{"scores":[3,5,8]}`},
		"nested":             {object(`"buyer":` + object(`"email":{"type":"string","format":"email"}`)), "from a@x.org", `{"buyer":{"email":"a@x.org"}}`},
		"nullable":           {object(`"email":{"type":["string","null"],"format":"email"},"age":{"anyOf":[{"type":"null"},{"type":"integer"}]}`), "nobody", `{"age":null,"email":null}`},
		"optional left out":  {`{"type":"object","properties":{"email":{"type":"string","format":"email"},"age":{"type":"integer"}}}`, "I am 30 years of age: 30", `{"age":30}`},
		"default":            {object(`"unit":{"type":"string","default":"kg"},"n":{"type":"integer","default":4},"b":{"type":"boolean","default":true}`), "-", `{"b":true,"n":4,"unit":"kg"}`},
		"words for labels":   {object(`"total":{"type":"number"},"dueDate":{"type":"string"}`), "The total is 3. The due date = Friday", `{"dueDate":"Friday","total":3}`},
		"alternatives":       {`{"definitions":{"n":{"type":"integer"}},"required":["a","b"],"properties":{"a":{"$ref":"#/definitions/n"},"b":{"anyOf":[{"type":"string","format":"email"},{"type":"null"}]}}}`, "a: 4; b: a@x.example", `{"a":4,"b":"a@x.example"}`},
		"all parts":          {`{"allOf":[{"required":["a"],"properties":{"a":{"type":"string"}}},{"properties":{"b":{"type":"string"}}}]}`, "a is one, b is two", `{"a":"one","b":"two"}`},
		"number as text":     {object(`"code":{"type":"string"}`), "code: 007", `{"code":"007"}`},
		"no values":          {object(`"email":{"type":"string","format":"email"}`), "hello there", `{}`},
		"too few items":      {object(`"days":{"type":"array","minItems":2,"items":{"enum":["mon","tue"]}}`), "On Tue", `{}`},
		"not known":          {object(`"country":{"type":"string"},"street":{"type":"string"}`), "hello there", `{"country":"unknown","street":"unknown"}`},
		"whole text":         {object(`"instructions":{"type":"string","maxLength":300},"title":{"type":"string","maxLength":100},"summary":{"type":"string","maxLength":80}`), "an agent that sorts mail " + strings.Repeat("and mail ", 10), `{"instructions":"an agent that sorts mail and mail and mail and mail and mail and mail and mail and mail and mail and mail and mail","summary":"an agent that sorts mail and mail and mail and mail and mail and mail and mail…","title":"an agent that sorts mail and mail and mail and mail and mail and mail and mail…"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is.New(t).Equal(answerTo(t, tt.schema, tt.input), tt.want)
		})
	}
}

// TestValueThatDoesNotFit checks that {} comes with a note, which the runner keeps as text.
func TestValueThatDoesNotFit(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	rules := json.RawMessage(object(`"email":{"type":"string","format":"email"}`))
	res := answered(t, model.Request{OutputSchema: rules, Messages: []model.Message{user("hello there")}})
	is.Equal(spell(res.Parts), "text:"+noValue+" text:{}")
}

func TestValueFromAFile(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	req := plainRequest("Extract the data from harbour.md and save it as data.json")
	req.OutputSchema = json.RawMessage(object(`"summary":{"type":"string"},"cost":{"type":"integer"}`))
	w := newWorld(t)
	answer, calls := w.converse(t, req)
	is.Equal(len(calls), 3)
	is.Equal(answer+"\n", w.files["data.json"]) // only the value
	var got struct{ Summary string }
	is.NoErr(json.Unmarshal([]byte(answer), &got))
	is.True(strings.HasPrefix(got.Summary, telling1))
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
			is.True(json.Valid([]byte(res.Parts[len(res.Parts)-1].Text)))
			ordertest.Below(is, len(joinText(res.Parts, model.PartText)), 2<<20)
		})
	}
}

func FuzzValue(f *testing.F) {
	f.Add([]byte(object(`"a":{"type":"string","pattern":"^[a-z]+$"},"n":{"type":"number","multipleOf":0.1}`)), "a: b, n 5", "read")
	f.Add([]byte(`{"anyOf":[{"$ref":"#/definitions/x"}],"definitions":{"x":{"type":"array","items":{"enum":[1,"b"]}}}}`), "- b\n- c", "")
	f.Add([]byte(`{"type":"object","minProperties":2,"if":{},"then":{"required":["q"]}}`), "q is 3 May 2026 10:00", "x")
	f.Fuzz(func(t *testing.T, rules []byte, input, read string) {
		turn := &turn{req: &model.Request{OutputSchema: rules}, input: input}
		first, note := turn.structured(read)
		again, _ := turn.structured(read)
		if !json.Valid([]byte(first)) || first != again {
			t.Fatalf("%q, then %q", first, again)
		}
		if compiled, err := schema.Compile(rules); err == nil && note == "" && compiled.CheckObject([]byte(first)) != nil {
			t.Fatalf("%q does not meet the schema", first)
		}
	})
}

func TestMarshalledTextIsPlain(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	is.True(bytes.Equal(marshalJSON("<&>"), []byte(`"<&>"`)))
}
