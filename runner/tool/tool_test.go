package tool

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"journeyman/runner/dial"
	"journeyman/runner/workspace"
)

// A turn is a Host with a real workspace. It only records the published files.
type turn struct {
	ws        *workspace.Workspace
	dir       string
	titles    []string
	sources   []string // address and title
	images    []string
	published error    // error of Publish, if not nil
	hosts     []string // permitted hosts; nil for all
}

func (h *turn) Workspace() *workspace.Workspace { return h.ws }

func (h *turn) Publish(_ context.Context, path, title string) (File, error) {
	if h.published != nil {
		return File{}, h.published
	}
	e, err := h.ws.Stat(path)
	if err != nil {
		return File{}, err
	}
	h.titles = append(h.titles, title)
	return File{Path: path, MediaType: workspace.MediaType(path, nil), Size: e.Size, URL: "http://localhost/" + path}, nil
}

func (h *turn) ShowImage(ctx context.Context, path string, data []byte) (Picture, error) {
	p, err := testDocuments.Picture(ctx, data)
	if err == nil {
		h.images = append(h.images, path+" "+p.MediaType)
	}
	return p, err
}

func (h *turn) CheckHost(host string) error {
	if h.hosts != nil && !slices.Contains(h.hosts, host) {
		return Errorf("%s is not permitted", host)
	}
	return nil
}

func (h *turn) Secret(name, host string) (string, error) {
	if name != "KEY" || host != "127.0.0.1" {
		return "", Errorf("the secret %s may not be sent to %s", name, host)
	}
	return "value of the key", nil
}

// RunWorker and CallToken are not used by the tools under test.
func (h *turn) RunWorker(context.Context, Errand) (json.RawMessage, error) { return nil, nil }
func (h *turn) CallToken() (string, error)                                 { return "", nil }

func (h *turn) Hide(text string) string {
	return strings.ReplaceAll(text, "value of the key", "[secret:KEY]")
}

func (h *turn) AddSource(url, title string) { h.sources = append(h.sources, url+" "+title) }

func newTurn(t testing.TB, limits workspace.Limits) *turn {
	t.Helper()
	dir := t.TempDir()
	ws, err := workspace.Open(dir, limits)
	is.New(t).NoErr(err)
	t.Cleanup(func() { ws.Close() })
	return &turn{ws: ws, dir: dir}
}

// put writes a file without a tool.
func (h *turn) put(t testing.TB, path, data string) {
	t.Helper()
	full := filepath.Join(h.dir, path)
	is.New(t).NoErr(errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, []byte(data), 0o644)))
}

func (h *turn) get(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(h.dir, path))
	is.New(t).NoErr(err)
	return string(data)
}

// call runs a tool with arguments that it converts to JSON.
func (h *turn) call(t testing.TB, name string, args any) (string, error) {
	t.Helper()
	input, err := json.Marshal(args)
	is.New(t).NoErr(err)
	return h.run(t, name, string(input))
}

// does calls a tool that must succeed, and returns its result.
func (h *turn) does(t testing.TB, name string, args any) string {
	t.Helper()
	out, err := h.call(t, name, args)
	is.New(t).NoErr(err)
	return out
}

// refuses calls a tool that must return an error with a text to the model.
func (h *turn) refuses(t testing.TB, name string, args any, text string) {
	t.Helper()
	_, err := h.call(t, name, args)
	says(t, err, text)
}

func (h *turn) run(t testing.TB, name, input string) (string, error) {
	t.Helper()
	tools := All(testDocuments)
	i := slices.IndexFunc(tools, func(t Tool) bool { return t.Spec().Name == name })
	out, err := tools[i].Run(t.Context(), h, json.RawMessage(input))
	if err == nil && !json.Valid(out) {
		t.Fatalf("%s gave %q, no JSON", name, out)
	}
	return string(out), err
}

// says checks that err is an *Error for the model and contains that.
func says(t testing.TB, err error, that string) {
	t.Helper()
	var told *Error
	if !errors.As(err, &told) || !strings.Contains(told.Message, that) {
		t.Fatalf("got %v, want an *Error with %q", err, that)
	}
}

type object = map[string]any

func TestNames(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var names []string
	for _, tool := range every(t) {
		names = append(names, tool.Spec().Name)
	}
	slices.Sort(names)
	is.Equal(names, slices.Sorted(slices.Values(Names()))) // rules may contain any of these names
}

// every returns all tools, including those that need more than a workspace.
func every(t *testing.T) []Tool {
	t.Helper()
	search, err := WebSearch(SearchConfig{Key: "k"})
	is.New(t).NoErr(err)
	return append(All(testDocuments), Shell(nil), WebFetch(testDocuments, dial.Guard{}, ""), search)
}

func TestSpecs(t *testing.T) {
	t.Parallel()
	for _, tool := range every(t) {
		spec := tool.Spec()
		t.Run(spec.Name, func(t *testing.T) {
			is := is.New(t)
			is.True(spec.Description != "")
			is.Equal(spec.Repeatable, spec.Name != "edit_file" && spec.Name != "shell")

			doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(spec.InputSchema)))
			is.NoErr(err)
			c := jsonschema.NewCompiler()
			c.DefaultDraft(jsonschema.Draft7)
			is.NoErr(c.AddResource("mem:///tool.json", doc))
			_, err = c.Compile("mem:///tool.json")
			is.NoErr(err)
			is.Equal(doc.(object)["type"], "object")
			is.Equal(doc.(object)["additionalProperties"], false)
		})
	}
}

// TestRequired checks each tool against its own schema. A call without arguments must report
// all required properties. Each property must have the type in the schema.
func TestRequired(t *testing.T) {
	t.Parallel()
	for _, tool := range every(t) {
		spec := tool.Spec()
		t.Run(spec.Name, func(t *testing.T) {
			is := is.New(t)
			var schema struct {
				Required   []string
				Properties map[string]struct{ Type string }
			}
			is.NoErr(json.Unmarshal(spec.InputSchema, &schema))
			h := newTurn(t, workspace.Limits{})
			for _, name := range schema.Required {
				for _, input := range []string{
					"", "null", "{}", `{"` + name + `":null}`, `{"` + strings.ToUpper(name) + `":"x"}`,
				} {
					_, err := tool.Run(t.Context(), h, json.RawMessage(input))
					says(t, err, name+" is required")
				}
			}
			for name, property := range schema.Properties {
				wrong := map[string]string{"string": "7", "integer": `"7"`, "boolean": `"true"`, "array": "{}", "object": "[]"}[property.Type]
				is.True(wrong != "")
				_, err := tool.Run(t.Context(), h, json.RawMessage(`{"`+name+`":`+wrong+`}`))
				says(t, err, name+" must be ")
			}
		})
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	h := newTurn(t, workspace.Limits{})
	h.put(t, "f", "1\n2\n3\n")
	for name, tt := range map[string]struct{ input, says string }{
		"list":   {`["f"]`, "must be a JSON object"},
		"string": {`"f"`, "must be a JSON object"},
		"broken": {`{"path":`, "must be a JSON object"},
		"two at once": {`{"path":7,"offset":"x"}`, "path must be a string, not a number; " +
			"offset must be a whole number, not a string"},
		"fraction":         {`{"path":"f","offset":1.5}`, "offset must be a whole number"},
		"zero":             {`{"path":"f","offset":0}`, "offset must be at least 1"},
		"negative":         {`{"path":"f","limit":-1}`, "limit must be at least 1"},
		"huge":             {`{"path":"f","limit":1e300}`, "limit must be a whole number"},
		"beyond numbers":   {`{"path":"f","limit":1e999}`, "limit must be a whole number"},
		"path is a list":   {`{"path":["f"]}`, "path must be a string, not a list"},
		"path is true":     {`{"path":true}`, "path must be a string, not true or false"},
		"path is empty":    {`{"path":""}`, "path: a path cannot be empty"},
		"path leads out":   {`{"path":"../f"}`, "path: \"../f\" leads outside the workspace"},
		"path is absolute": {`{"path":"/etc/passwd"}`, "path: \"/etc/passwd\" is absolute"},
		"path has a NUL":   {`{"path":"f\u0000"}`, "control characters"},
		"half a character": {`{"path":"\ud800"}`, "no file or folder"},
		"folder":           {`{"path":"."}`, "workspace itself"},
		"missing":          {`{"path":"g"}`, `no file or folder "g"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := h.run(t, "read_file", tt.input)
			says(t, err, tt.says)
		})
	}
	is := is.New(t)
	for _, input := range []string{
		`{"path":"f"}`, ` {"path":"./f","limit":null,"extra":{}} `, `{"path":"f","offset":1.0,"limit":2e3}`,
	} {
		_, err := h.run(t, "read_file", input)
		is.NoErr(err)
	}
}

func TestPublishFile(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, workspace.Limits{})
	h.put(t, "a&b.txt", "hello")
	out := h.does(t, "publish_file", object{"path": "a&b.txt", "title": "Greeting"})
	is.Equal(out, `{"path":"a&b.txt","mediaType":"text/plain","size":5,"url":"http://localhost/a&b.txt"}`)
	is.Equal(h.titles, []string{"Greeting"})

	h.refuses(t, "publish_file", object{"path": "a&b.txt", "title": strings.Repeat("é", maxTitle+1)},
		"title can have 200 characters and has 201")
	h.refuses(t, "publish_file", object{"path": "missing"}, "no file")
	h.refuses(t, "publish_file", object{"path": "../x"}, "outside")

	h.published = errors.New("disk")
	_, err := h.call(t, "publish_file", object{"path": "a&b.txt"})
	is.Equal(err, h.published) // an internal error, not for the model
}

func TestUpdatePlan(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, workspace.Limits{})
	out, err := h.run(t, "update_plan", `{"items":[{"text":"read <it>","state":"done"},{"text":"write","state":"in_progress"},{"text":"send"}]}`)
	is.NoErr(err)
	is.Equal(out, `{"items":[{"text":"read <it>","state":"done"},{"text":"write","state":"in_progress"},{"text":"send","state":"pending"}]}`)
	out, err = h.run(t, "update_plan", `{"items":[]}`)
	is.NoErr(err)
	is.Equal(out, `{"items":[]}`)

	items := func(n, length int) object {
		var list []object
		for range n {
			list = append(list, object{"text": strings.Repeat("é", length)})
		}
		return object{"items": list}
	}
	h.does(t, "update_plan", items(50, 500))
	h.refuses(t, "update_plan", items(51, 1), "items can have 50 entries and has 51")
	h.refuses(t, "update_plan", items(2, 501), "items[1].text can have 500 characters and has 501")
	for input, want := range map[string]string{
		`{"items":["x"]}`:                         "items[0] must be an object, not a string",
		`{"items":[null]}`:                        "items[0] must be an object, not null",
		`{"items":[{"state":"done"}]}`:            "items[0].text is required",
		`{"items":[{"text":""}]}`:                 "items[0].text must not be empty",
		`{"items":[{"text":"x","state":"Done"}]}`: "items[0].state must be pending, in_progress or done",
		`{"items":[{"text":"x","state":1}]}`:      "items[0].state must be a string, not a number",
		`{"items":{}}`:                            "items must be a list, not an object",
	} {
		_, err := h.run(t, "update_plan", input)
		says(t, err, want)
	}
}
