package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/matryer/is"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"journeyman/store/storetest"
)

func TestResultIsTextOrStructured(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newPool(t, quick, a("good"))
	is.Equal(f.must("good", "readable", `{}`), `"The sky is blue.\nThe file has 2 lines."`) // the text is complete
	is.Equal(f.must("good", "summary", `{}`), `{"names":["Ada","Alan"]}`)                   // the text is not
	contains(t, f.must("good", "audio", `{}`), "cannot hear")
}

func TestTextOrStructured(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a page of words. ", 1765) // 30,005 bytes, like a file
	for name, tt := range map[string]struct {
		text       string
		structured any
		failed     bool
		want       string
	}{
		"the same as JSON":    {`{ "n": 1 }`, map[string]any{"n": 1.0}, false, `{"n":1}`},
		"JSON of another age": {`{"n":2}`, map[string]any{"n": 1.0}, false, `{"n":1}`},
		"a long file":         {long, map[string]any{"content": long}, false, long},
		"a number is missing": {"ok", map[string]any{"n": 17.0, "s": "ok"}, false, `{"n":17,"s":"ok"}`},
		"no text":             {"", []any{"x"}, false, `["x"]`},
		"empty structure":     {"done", map[string]any{}, false, "done"},
		"a failure":           {"no such file", map[string]any{"code": 5.0}, true, "no such file"},
		"too much to compare": {strings.Repeat("1 ", 1<<20), slices.Repeat([]any{1.0}, 100), false, `[1` + strings.Repeat(",1", 99) + `]`},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			r, err := readResult(&sdk.CallToolResult{IsError: tt.failed, StructuredContent: tt.structured,
				Content: []sdk.Content{&sdk.TextContent{Text: tt.text}}})
			is.NoErr(err)
			is.True(r.text == "" || r.structured == nil) // never both
			is.Equal(r.text+string(r.structured), tt.want)
		})
	}
}

func TestResources(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newPool(t, quick, a("good"), a("resources"))
	names, _ := f.offered("good", "resources")
	is.True(slices.Contains(names, "resources__read_resource"))
	is.True(!slices.Contains(names, "good__read_resource")) // the server has none
	read := func(server, input string) (string, error) {
		o := f.find(server).resourceTool()
		out, err := f.Tool(o).Run(t.Context(), f, json.RawMessage(input))
		return string(out), err
	}
	out, err := read("resources", `{"uri":"note:///a"}`)
	is.NoErr(err)
	is.Equal(out, `"buy milk"`)
	out, err = read("resources", `{"uri":"note:///p"}`)
	is.NoErr(err)
	contains(t, out, "mcp/resources/read_resource-")
	out, err = read("resources", `{}`)
	is.NoErr(err)
	contains(t, out, `Resource \"notes\" (text/plain): note:///a`)
	for input, says := range map[string]string{
		`{"uri":"relative"}`: "absolute URI", `{"uri":1}`: "must be a string", `{"uri":"note:///none"}`: "refused",
		`{"uri":"x:` + strings.Repeat("a", maxURI) + `"}`: "absolute URI",
	} {
		_, err = read("resources", input)
		is.True(err != nil) // the resource does not exist
		contains(t, err.Error(), says)
	}

	out = f.must("good", "links", `{}`)
	contains(t, out, `Resource \"notes\" (text/plain, 12 bytes): note:///a b`)
	contains(t, out, "embedded")
	f.find("good").live.changed.Store(true) // or after a minute
	names, _ = f.offered("good")
	is.True(slices.Contains(names, "good__read_resource")) // because a result linked one
}

// TestLimit lets a call report progress in a world whose clock moves by itself. The reports restart the timeout,
// but not the limit of the whole call.
func TestLimit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pause time.Duration // between two reports
		times int
		ends  error
		after time.Duration
	}{
		"no report":        {0, 0, errTimeout, 2 * time.Second},
		"silence at last":  {1500 * time.Millisecond, 3, errTimeout, 6500 * time.Millisecond},
		"a late report":    {3 * time.Second, 3, errTimeout, 2 * time.Second},
		"reports for long": {1500 * time.Millisecond, 100, errTooLong, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				is := is.New(t)
				begun := time.Now()
				s := &server{Server: Server{Timeout: 2 * time.Second}, pool: &Pool{cfg: Config{Timing: Timing{Longest: 10 * time.Second}}}}
				ctx, l := s.withLimit(t.Context())
				defer l.stop()
				var after time.Duration
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					<-ctx.Done()
					after = time.Since(begun)
				}()
				for range tt.times {
					time.Sleep(tt.pause) // the clock of the test is not that of the machine
					l.extend()
				}
				<-ended
				is.Equal(context.Cause(ctx), tt.ends)
				is.Equal(after, tt.after)
			})
		})
	}
}

// TestProgressExtendsTheTime makes calls that report progress, and one that is silent. The pauses are short, so that
// only a machine that stands still for seconds is late.
func TestProgressExtendsTheTime(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	short := quick
	short.Longest = 7 * time.Second
	program, shared := a("good"), good()
	program.Timeout = 5 * time.Second
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return shared }, nil)
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	t.Cleanup(srv.CloseClientConnections)
	web := Server{Name: "web", URL: srv.URL, Timeout: 5 * time.Second}
	for _, s := range []Server{program, web} {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newPool(t, short, s)
			f.offered(s.Name)
			is.Equal(f.must(s.Name, "progress", `{"times":6,"pause":10}`), `"arrived"`)
			contains(t, f.refused(s.Name, "progress", `{"times":200,"pause":50}`), "reported progress for 7s")
			contains(t, f.refused(s.Name, "progress", `{"times":1,"pause":8000}`), "did not answer within 5s")
			// The handler over HTTP may go on when its client has left, and the server waits for it at the end.
		})
	}
}

func TestToolsThatNeedTasks(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newPool(t, quick, a("tasks"))
	names, note := f.offered("tasks")
	is.Equal(names, []string{"tasks__fine", "tasks__either"})
	contains(t, note, "tasks.build (it only works as a task)")
	contains(t, f.log.String(), "only works as a task")
}

func TestToolsThatNeedTasksOverHTTP(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(w http.ResponseWriter, message string){
		"json": func(w http.ResponseWriter, message string) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, strings.ReplaceAll(message, "{", "{\n"))
		},
		"events": func(w http.ResponseWriter, message string) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "event: message\ndata: "+message+"\n\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var req struct {
					ID     json.RawMessage
					Method string
				}
				_ = json.NewDecoder(r.Body).Decode(&req)
				result := `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"h","version":"1"}}`
				if req.Method == "tools/list" {
					result = hostileTools("tasks")
				}
				if req.ID == nil {
					w.WriteHeader(http.StatusAccepted)
					return
				}
				write(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, result))
			}))
			t.Cleanup(srv.Close)
			f := newPool(t, quick, Server{Name: "web", URL: srv.URL, Timeout: time.Minute})
			names, note := f.offered("web")
			is.Equal(names, []string{"web__fine", "web__either"})
			contains(t, note, "web.build (it only works as a task)")
		})
	}
}
