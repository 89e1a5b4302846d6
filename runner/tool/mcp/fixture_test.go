package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
	"journeyman/runner/workspace"
	"journeyman/store/storetest"
)

// TestMain makes the test program also run as the keeper of a server, or as a server.
func TestMain(m *testing.M) {
	sandbox.BeFilter(os.Args, tool.Filters())
	switch {
	case sandbox.IsChild(os.Args):
		sandbox.Child()
	case len(os.Args) == 3 && os.Args[1] == "serve":
		os.Exit(serve(os.Args[2]))
	}
	storetest.SideBySide(6)
	os.Exit(m.Run())
}

// quick is the timing of tests: short pauses, and long limits.
var quick = Timing{Connect: time.Minute, Toolset: time.Minute, Backoff: time.Millisecond, Leave: 100 * time.Millisecond,
	Answer: 2 * time.Second}

// a returns a server that is this program in a mode of serve.
func a(mode string) Server {
	return Server{Name: mode, Command: os.Args[0], Args: []string{"serve", mode}, Timeout: time.Minute}
}

// A fixture is a pool and a workspace.
type fixture struct {
	*Pool
	t   *testing.T
	log *storetest.Log
	ws  *workspace.Workspace

	secrets map[string]string // secrets of the turn
	images  []string          // media types of the images in results
}

func newPool(t *testing.T, timing Timing, servers ...Server) *fixture {
	t.Helper()
	slices.SortFunc(servers, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	return newPoolWith(t, Config{Timing: timing}, servers...)
}

func newPoolWith(t *testing.T, cfg Config, servers ...Server) *fixture {
	t.Helper()
	f := &fixture{t: t, log: &storetest.Log{}}
	cfg.Log, cfg.Version = slog.New(slog.NewTextHandler(f.log, nil)), "1"
	f.Pool = New(servers, cfg)
	t.Cleanup(f.Stop)
	var err error
	f.ws, err = workspace.Open(filepath.Join(t.TempDir(), "ws"), workspace.Limits{})
	is.New(t).NoErr(err)
	t.Cleanup(func() { _ = f.ws.Close() })
	return f
}

// Workspace implements tool.Host.
func (f *fixture) Workspace() *workspace.Workspace { return f.ws }

// Publish fails: tools of MCP servers do not call it.
func (f *fixture) Publish(context.Context, string, string) (tool.File, error) {
	return tool.File{}, errors.New("not here")
}

// CheckHost does nothing: tools of MCP servers do not call it.
func (f *fixture) CheckHost(string) error { return nil }

// Secret returns a secret of the turn.
func (f *fixture) Secret(name, _ string) (string, error) {
	value, ok := f.secrets[name]
	if !ok {
		return "", tool.Errorf("there is no secret %q", name)
	}
	return value, nil
}

// ShowImage records the type of an image.
func (f *fixture) ShowImage(ctx context.Context, _ string, data []byte) (tool.Picture, error) {
	p, err := tool.NewDocuments(sandbox.NewFilterPool()).Picture(ctx, data)
	f.images = append(f.images, p.MediaType)
	return p, err
}

// RunWorker does nothing: tools of MCP servers do not call it.
func (f *fixture) RunWorker(context.Context, tool.Errand) (json.RawMessage, error) { return nil, nil }

// CallToken returns a token that tests can recognize.
func (f *fixture) CallToken() (string, error) { return "token of the call", nil }

// Hide hides the values of the secrets.
func (f *fixture) Hide(text string) string {
	for name, value := range f.secrets {
		text = strings.ReplaceAll(text, value, "[secret:"+name+"]")
	}
	return text
}

// AddSource does nothing: tools of MCP servers do not call it.
func (f *fixture) AddSource(string, string) {}

// offered returns the names of the wanted tools, and the note.
func (f *fixture) offered(wanted ...string) ([]string, string) {
	f.t.Helper()
	o := f.Toolset(f.t.Context(), wanted, f.Secret)
	var names []string
	for _, t := range o.Tools {
		names = append(names, t.Name)
	}
	return names, o.Note
}

// call calls a tool by the server's name for it, like a turn with that tool.
func (f *fixture) call(ctx context.Context, server, name, input string) (string, error) {
	o := tool.RemoteTool{Server: server, Tool: name}
	o.Name = modelName(server, name)
	out, err := f.Tool(o).Run(ctx, f, json.RawMessage(input))
	return string(out), err
}

// must calls a tool and checks that the call succeeds.
func (f *fixture) must(server, name, input string) string {
	f.t.Helper()
	out, err := f.call(f.t.Context(), server, name, input)
	if err != nil {
		f.t.Fatalf("%s.%s: %v\n%s", server, name, err, f.log)
	}
	return out
}

// refused calls a tool that must fail, and returns the error for the model.
func (f *fixture) refused(server, name, input string) string {
	f.t.Helper()
	out, err := f.call(f.t.Context(), server, name, input)
	var refusal *tool.Error
	if !errors.As(err, &refusal) {
		f.t.Fatalf("%s.%s: want an error for the model, got %q, %v\n%s", server, name, out, err, f.log)
	}
	return refusal.Message
}

func contains(t *testing.T, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		is.New(t).Equal(text, "... "+part+" ...") // the failure shows both texts
	}
}
