package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/store"
)

func TestStructuredOutput(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}},"additionalProperties":false}`
	good, bad := `{"n": 1}`, `{"n": "one"}`
	for name, tt := range map[string]struct {
		answers []string
		steps   int64
		fails   bool
		want    string
	}{
		"at once":           {[]string{good}, 1, false, `{"n": 1}`},
		"second try":        {[]string{bad, good}, 2, false, `{"n": 1}`},
		"third try":         {[]string{bad, "no JSON", good}, 3, false, `{"n": 1}`},
		"last try":          {[]string{bad, "[]", `{}`, good}, 4, false, `{"n": 1}`},
		"never":             {[]string{bad, bad, bad, bad, good}, 4, true, ""},
		"fenced":            {[]string{"```json\n{\"n\": 1}\n```"}, 1, false, `{"n": 1}`},
		"fenced, with talk": {[]string{"Here it is:\n```\n{\"n\": 1}\n```\nAnything else?"}, 1, false, `{"n": 1}`},
		"fence not closed":  {[]string{"```json\n{\"n\": 1}"}, 1, false, `{"n": 1}`},
		"not an object":     {[]string{`[1]`, `"x"`, `null`, good}, 4, false, `{"n": 1}`},
		"empty":             {[]string{"", good}, 2, false, `{"n": 1}`},
		"a hostile number":  {[]string{`{"n": 1e1000000000}`, good}, 2, false, `{"n": 1}`},
		"more than one":     {[]string{good + good, good}, 2, false, `{"n": 1}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			m := says(tt.answers...)
			f := newFixture(t, withModel(m))
			f.worker = f.newWorker(store.NewWorker{Title: "Counter", OutputSchema: json.RawMessage(schema)})
			turn := f.run("go")
			is.Equal(turn.Usage.Steps, tt.steps)
			is.Equal(string(turn.StructuredOutput), tt.want)
			is.Equal(turn.OutputText, tt.answers[tt.steps-1])
			is.Equal(turn.Status == store.Failed, tt.fails)
			if tt.fails {
				is.Equal(turn.Failure.Code, "schema_mismatch")
				is.True(strings.Contains(turn.Failure.Message, "/n"))
			}
			for i, req := range m.seen() {
				is.Equal(string(req.OutputSchema), schema)
				if i > 0 { // the errors go back to the model
					last := req.Messages[len(req.Messages)-1]
					is.True(strings.Contains(last.Parts[0].Text, "does not fit the output schema"))
				}
			}
			is.Equal(f.read(f.TurnStream(turn)).messages(), f.messages(turn)[1:])
		})
	}
}

// Repairs are counted over a death of the process.
func TestRepairsOverDeath(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dead := make(chan *fixture, 1)
	m := says("bad")
	var f *fixture
	bad := m.fn
	m.fn = func(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		if stepOf(req) == 2 {
			dead <- f.crash(withModel(says("bad")))
		}
		return bad(ctx, req, emit)
	}
	f = newFixture(t, withModel(m))
	f.worker = f.newWorker(store.NewWorker{Title: "Counter", OutputSchema: json.RawMessage(`{"type":"object"}`)})
	turn := f.accept("go")
	g := until(t, dead, "the process dies")
	g.start()
	turn = g.wait(turn)
	is.Equal(turn.Failure.Code, "schema_mismatch")
	is.Equal(turn.Usage.Steps, int64(4))
}

func TestCheckOutputSchema(t *testing.T) {
	t.Parallel()
	nested := strings.Repeat(`{"properties":{"a":`, 20) + `{}` + strings.Repeat(`}}`, 20)
	var doubling strings.Builder // each definition refers to the next twice
	doubling.WriteString(`{"$ref":"#/definitions/d0","definitions":{"d40":{}`)
	for i := range 40 {
		fmt.Fprintf(&doubling, `,"d%d":{"allOf":[{"$ref":"#/definitions/d%d"},{"$ref":"#/definitions/d%d"}]}`, i, i+1, i+1)
	}
	doubling.WriteString(`}}`)
	for name, tt := range map[string]struct {
		schema string
		says   string // '' for a good one
	}{
		"empty":                {`{}`, ""},
		"usual":                {`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"$ref":"#/definitions/a"}},"definitions":{"a":{"type":"string","format":"date"}}}`, ""},
		"https $schema":        {`{"$schema":"https://json-schema.org/draft-07/schema"}`, ""},
		"with an $id":          {`{"$id":"https://x.test/person.json","properties":{"a":{"$ref":"#/definitions/a"}},"definitions":{"a":{}}}`, ""},
		"itself by its $id":    {`{"$id":"https://x.test/person.json","properties":{"a":{"$ref":"https://x.test/person.json#/definitions/a"}},"definitions":{"a":{}}}`, ""},
		"an anchor":            {`{"properties":{"a":{"$ref":"#here"}},"definitions":{"a":{"$id":"#here"}}}`, ""},
		"$defs":                {`{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{}}}`, ""},
		"into a list":          {`{"anyOf":[{"type":"object"},{}],"properties":{"a":{"$ref":"#/anyOf/1"}}}`, ""},
		"escaped pointer":      {`{"properties":{"a":{"$ref":"#/definitions/a~1b%25"}},"definitions":{"a/b%":{}}}`, ""},
		"recursive":            {`{"properties":{"left":{"$ref":"#"},"right":{"$ref":"#"}}}`, ""},
		"property named $ref":  {`{"properties":{"$ref":{"type":"string"},"$schema":{"type":"string"},"default":{"type":"string"}}}`, ""},
		"$ref in a default":    {`{"properties":{"a":{"default":{"$ref":"http://x.test"},"enum":[{"$ref":"http://x.test"}]}}}`, ""},
		"boolean":              {`true`, "must be a JSON object"},
		"not JSON":             {`{`, "must be JSON"},
		"two":                  {`{}{}`, "must be JSON"},
		"another draft":        {`{"$schema":"https://json-schema.org/draft/2020-12/schema"}`, "must be of Draft-07"},
		"another draft within": {`{"properties":{"a":{"$id":"http://x.test/a","$schema":"https://json-schema.org/draft/2020-12/schema"}}}`, "Draft-07"},
		"an own dialect":       {`{"$schema":"http://x.test/schema"}`, "must be of Draft-07"},
		"remote":               {`{"$ref":"http://x.test/a.json"}`, "leaves the schema"},
		"a file":               {`{"$ref":"file:///etc/passwd"}`, "leaves the schema"},
		"relative":             {`{"properties":{"a":{"$ref":"other.json"}}}`, "leaves the schema"},
		"to nowhere":           {`{"$ref":"#/definitions/none"}`, "none"},
		"anchor to nowhere":    {`{"$ref":"#none"}`, "none"},
		"unknown type":         {`{"type":"thing"}`, "type"},
		"bad pattern":          {`{"pattern":"("}`, "pattern"},
		"a huge number":        {`{"minimum":1e1000000000}`, "number"},
		"a huge exponent":      {`{"minimum":1e99999999999999999999}`, "number"},
		"a long number":        {`{"minimum":` + strings.Repeat("1", 2000) + `}`, "number"},
		"deep":                 {nested, "nested"},
		"large":                {`{"title":"` + strings.Repeat("x", 70000) + `"}`, "at most 65536 bytes"},
		"doubling":             {doubling.String(), "too many checks"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			begun := time.Now()
			err := runner.CheckOutputSchema(json.RawMessage(tt.schema))
			is.True(time.Since(begun) < 60*time.Second)
			if tt.says == "" {
				is.NoErr(err)
				return
			}
			is.True(err != nil)
			if !strings.Contains(err.Error(), tt.says) || len(err.Error()) > 10000 {
				t.Errorf("says %.300s, want %s", err, tt.says)
			}
		})
	}
}

func TestCheckAnswer(t *testing.T) {
	t.Parallel()
	nest := func(open, close string, n int) string {
		return strings.Repeat(open, n) + "1" + strings.Repeat(close, n)
	}
	twice := `{"properties":{"x":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}`
	for name, tt := range map[string]struct{ schema, answer, says string }{
		"fits":               {`{"required":["a"]}`, `{"a":1}`, ""},
		"recursive":          {`{"properties":{"x":{"$ref":"#"}}}`, nest(`{"x":`, `}`, 100), ""},
		"doubles with depth": {twice, nest(`{"x":`, `}`, 60), "too many values"},
		"but may be shallow": {twice, nest(`{"x":`, `}`, 10), ""},
		"too deep":           {`{}`, nest(`{"x":`, `}`, 2000), "nested too deep"},
		"too long":           {`{"properties":{"x":{"items":{"type":"integer"}}}}`, `{"x":[1` + strings.Repeat(",1", 300_000) + `]}`, "too many values"},
		"many problems":      {`{"additionalProperties":{"type":"string"}}`, `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1}`, "and 2 more"},
		"a long problem":     {`{"additionalProperties":false}`, `{"` + strings.Repeat("x", 10000) + `":1}`, "additional"},
		"a huge number":      {`{"properties":{"x":{"items":{"minimum":0}}}}`, `{"x":[1e999999,1e999999]}`, "number"},
		"many huge numbers":  {`{"properties":{"x":{"uniqueItems":true}}}`, `{"x":[1e9999999999` + strings.Repeat(",1e9999999999", 50) + `]}`, "number"},
		"refers to itself":   {`{"$ref":"#"}`, `{}`, "too many"},
		"formats":            {`{"properties":{"d":{"format":"date"}}}`, `{"d":"2026-02-30"}`, "date"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			begun := time.Now()
			problem, err := runner.CheckAnswer(json.RawMessage(tt.schema), tt.answer)
			is.NoErr(err)
			is.True(time.Since(begun) < 60*time.Second)
			is.Equal(problem == "", tt.says == "")
			if !strings.Contains(problem, tt.says) || len(problem) > 10000 {
				t.Errorf("says %.300s, want %s", problem, tt.says)
			}
		})
	}
}

// More schemas than are kept compiled do no harm.
func TestManySchemas(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t, withModel(says(`{"a":1}`)))
	for i := range 3 {
		f.worker = f.newWorker(store.NewWorker{Title: "W", OutputSchema: json.RawMessage(fmt.Sprintf(`{"title":"%d"}`, i))})
		for range 2 {
			is.Equal(string(f.run("go").StructuredOutput), `{"a":1}`)
		}
	}
}
