package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/store"
	"journeyman/store/workers"
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
			f.worker = f.newWorker(workers.NewWorker{Title: "Counter", OutputSchema: json.RawMessage(schema)})
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
			is.Equal(f.read(f.Streams.Turn(turn)).messages(), f.messages(turn)[1:])
		})
	}
}

// TestRepairsAfterKill checks that repairs before a crash of the process count after it.
func TestRepairsAfterKill(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dead := make(chan death, 1)
	m := says("bad")
	var f *fixture
	bad := m.fn
	m.fn = func(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		if stepOf(req) == 2 {
			dead <- f.die()
		}
		return bad(ctx, req, emit)
	}
	f = newFixture(t, withModel(m))
	f.worker = f.newWorker(workers.NewWorker{Title: "Counter", OutputSchema: json.RawMessage(`{"type":"object"}`)})
	turn := f.accept("go")
	g := f.after(until(t, dead, "the process dies"), withModel(says("bad")))
	g.start()
	turn = g.wait(turn)
	is.Equal(turn.Failure.Code, "schema_mismatch")
	is.Equal(turn.Usage.Steps, int64(4))
}

// TestCheckOutputSchema checks that clients get the errors of the schema compiler. The tests in
// runner/schema check each error.
func TestCheckOutputSchema(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	is.NoErr(runner.CheckOutputSchema(json.RawMessage(`{"properties":{"a":{"pattern":"^(?=a)"}}}`)))
	for text, says := range map[string]string{
		`{"required":"x"}`:                    "is not a Draft-07 JSON Schema: /required: got string, want array",
		`{"type":"string"}`:                   "no JSON object can meet it: /type: ",
		`{"$ref":"http://x.test/other.json"}`: "leaves the schema",
	} {
		err := runner.CheckOutputSchema(json.RawMessage(text))
		is.True(err != nil && strings.Contains(err.Error(), says))
	}
}

// TestSeveralSchemas checks that each turn uses the schema of its own worker.
func TestSeveralSchemas(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t, withModel(says(`{"a":1}`)))
	for i := range 3 {
		f.worker = f.newWorker(workers.NewWorker{Title: "W", OutputSchema: json.RawMessage(fmt.Sprintf(`{"title":"%d"}`, i))})
		for range 2 {
			is.Equal(string(f.run("go").StructuredOutput), `{"a":1}`)
		}
	}
}
