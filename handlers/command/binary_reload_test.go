package command_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/matryer/is"
)

// A reloadedServer is a server with every file that a reload reads. Its provider reports the keys
// of requests.
type reloadedServer struct {
	*instance
	t      *testing.T
	dir    string
	config string
	keys   chan string
}

func newReloadedServer(t *testing.T) *reloadedServer {
	t.Helper()
	r := &reloadedServer{t: t, dir: t.TempDir(), keys: make(chan string, 100)}
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.keys <- strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
		http.Error(w, `{"error":{"message":"no","type":"invalid_request_error"}}`, http.StatusBadRequest)
	}))
	t.Cleanup(provider.Close)
	r.write("key", "sk-first\n")
	r.write("token", "first-token\n")
	r.write("prices.json", `{}`)
	r.write("mcp.json", `{"mcpServers":{}}`)
	r.config = fmt.Sprintf("log-level: info\nlog-format: json\nmax-files: 20\nprices: %s\nmcp: %s\nmetrics-token-file: %s\n",
		r.path("prices.json"), r.path("mcp.json"), r.path("token"))
	r.write("config", r.config)
	c := invocation{env: []string{"OPENAI_API_KEY_FILE=" + r.path("key"), "OPENAI_BASE_URL=" + provider.URL,
		"JOURNEYMAN_CONFIG=" + r.path("config")}}
	r.instance = c.serve(t, "", testKey, serveArgs(r.path("data"), "--model", "openai:x")...)
	return r
}

func (r *reloadedServer) path(name string) string { return filepath.Join(r.dir, name) }

func (r *reloadedServer) write(name, content string) {
	r.t.Helper()
	if err := os.WriteFile(r.path(name), []byte(content), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// reload runs the command.
func (r *reloadedServer) reload() *program {
	return invocation{}.run(r.t, "reload", "--data", r.path("data"))
}

// asked returns the key of the provider request for a task.
func (r *reloadedServer) asked() string {
	r.t.Helper()
	r.mustPost(r.t, "/api/tasks", map[string]any{"input": "hello"})
	return <-r.keys
}

// measured returns the status of a request for metrics.
func (r *reloadedServer) measured(token string) int {
	r.t.Helper()
	a, err := r.send(r.t.Context(), http.MethodGet, "/metrics", nil, "Authorization", "Bearer "+token)
	if err != nil {
		r.t.Fatal(err)
	}
	return a.status
}

// TestReload changes every file. The reload names the changes, and the flags that need a restart.
func TestReload(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	r := newReloadedServer(t)
	is.Equal(r.reload().stdout.String(), "nothing has changed\n")
	is.Equal(r.asked(), "sk-first")
	is.Equal(r.measured("first-token"), http.StatusOK)

	r.write("key", "sk-second\n")
	r.write("token", "second-token\n")
	r.write("prices.json", `{"openai:x": {"input": 1, "output": 2}}`)
	r.write("mcp.json", `{"mcpServers":{"files":{"command":"/bin/false"}}}`)
	r.write("config", strings.Replace(strings.Replace(r.config, "info", "debug", 1), "20", "30", 1))
	is.Equal(r.reload().stdout.String(), "reloaded: prices, OPENAI_API_KEY, MCP servers (files), log-level, metrics-token"+
		"; these flags need a restart: max-files\n")
	is.Equal(r.asked(), "sk-second")
	is.Equal(r.measured("first-token"), http.StatusUnauthorized)
	is.Equal(r.measured("second-token"), http.StatusOK)
	r.await(t, r.stderr, regexp.MustCompile(`"level":"DEBUG"`))
	r.await(t, r.stderr, regexp.MustCompile(`"flags":\["max-files"\]`))

	r.write("key", "sk-third\n")
	r.signal(t, syscall.SIGHUP)
	r.await(t, r.stderr, regexp.MustCompile(`"msg":"reloaded","changed":\["OPENAI_API_KEY"\]`))
	is.Equal(r.asked(), "sk-third")
	r.stop(t)
	for _, secret := range []string{"sk-first", "sk-second", "sk-third", "first-token", "second-token"} {
		is.True(!strings.Contains(r.stderr.String(), secret)) // no value is logged
	}
}

// TestRefusedReload changes several files, one of which is invalid: nothing is reloaded.
func TestRefusedReload(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	r := newReloadedServer(t)
	r.write("key", "sk-second\n")
	r.write("token", "second-token\n")
	for _, tt := range []struct{ file, content, says string }{
		{"prices.json", `{"openai:x": {"input": -1, "output": 2}}`, `prices\.json: model "openai:x": a price is 0 to`},
		{"mcp.json", `{"mcpServers":{"files":{}}}`, `mcp\.json: server "files": needs either command or url`},
		{"config", "log-level: loud\n", `config: line 1: log-level: must be one of debug, info, warn, error`},
		{"token", "\n", `--metrics-token-file: \S+token is empty`},
		{"key", "", `OPENAI_API_KEY_FILE: \S+key is empty`},
		{"key", "sk-with a space\n", `OPENAI_API_KEY contains a character that is not valid in a key`},
	} {
		good, err := os.ReadFile(r.path(tt.file))
		is.NoErr(err)
		r.write(tt.file, tt.content)
		p := r.reload()
		is.Equal(p.cmd.ProcessState.ExitCode(), 1)
		if !regexp.MustCompile(`nothing was reloaded: .*` + tt.says).MatchString(p.stderr.String()) {
			t.Errorf("%s: %q does not say %q", tt.file, p.stderr, tt.says)
		}
		is.Equal(r.measured("first-token"), http.StatusOK)
		r.write(tt.file, string(good))
	}
	is.Equal(r.asked(), "sk-first")
	is.Equal(r.reload().stdout.String(), "reloaded: OPENAI_API_KEY, metrics-token\n")
	r.stop(t)
	is.True(!strings.Contains(r.stderr.String(), "with a space"))
}

func TestReloadWithoutAServer(t *testing.T) {
	t.Parallel()
	invocation{}.start(t, "reload", "--data", t.TempDir()).exitedWith(t, 1, "no server answers on the data folder")
}
