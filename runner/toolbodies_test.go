package runner_test

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/dial"
	"journeyman/runner/model"
	"journeyman/runner/tool"
)

// TestToolBodies makes each provider send all tools of this program. If BODIES is a folder, the test stores the bodies
// there, where CI compiles the schemas with a grammar engine.
func TestToolBodies(t *testing.T) {
	t.Parallel()
	dir := cmp.Or(os.Getenv("BODIES"), t.TempDir())
	docs := tool.Documents{}
	search, err := tool.WebSearch(tool.SearchConfig{Key: "k"})
	is.New(t).NoErr(err)
	var tools []model.Tool
	for _, one := range append(tool.All(docs), tool.Shell(nil), tool.WebFetch(docs, dial.Guard{}, ""), search) {
		s := one.Spec()
		tools = append(tools, model.Tool{Name: s.Name, Description: s.Description, InputSchema: s.InputSchema})
	}
	for name, file := range map[string]string{"openai:m": "chat", "anthropic:claude-sonnet-5-5": "anthropic"} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			p := newWire(t, func(asked) said { return said{text: "done"} })
			req := model.Request{Tools: tools, MaxTokens: 100,
				Messages: []model.Message{{Role: model.RoleUser, Parts: []model.Part{{Type: model.PartText, Text: "go"}}}}}
			_, err := p.openModel(t, name).Generate(context.Background(), req, func(model.Delta) {})
			is.NoErr(err)
			raw := p.seen()[0].raw
			is.Equal(p.seen()[0].tools, len(tools))
			for _, refused := range []string{`"maxLength":2000`, `"maxLength":1999`, `"maxLength":2001`, `"pattern":"`} {
				is.True(!strings.Contains(string(raw), refused))
			}
			is.True(json.Valid(raw))
			is.NoErr(os.WriteFile(filepath.Join(dir, file+"-own_tools.json"), raw, 0o600))
		})
	}
}

// TestFittedCalls checks that a tool of this program runs with values that a model wrote in another form.
func TestFittedCalls(t *testing.T) {
	t.Parallel()
	for input, says := range map[string]string{
		`{"path":".","depth":"2"}`:                    "",
		`{"path":null,"depth":"","glob":null}`:        "",
		`{"path":".","depth":"two"}`:                  "depth must be a whole number, not a string",
		"```json\n{\"path\":\".\",\"depth\":2,}\n```": "",
	} {
		t.Run(input, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			heard := ""
			m := asksThen(func(req model.Request) string {
				heard = req.Messages[len(req.Messages)-1].Parts[0].Text
				return "done"
			}, "list_files", input)
			f := newFixture(t, withModel(m), withTools(tool.All(tool.Documents{})...))
			is.Equal(f.wait(f.accept("go")).OutputText, "done")
			is.True(strings.Contains(heard, says))
			is.Equal(strings.Contains(heard, "must be"), strings.Contains(says, "must be"))
		})
	}
}
