//go:build linux

package command_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/storetest"
)

// toolServer writes a configuration with the server of serveTools into dir, where the program looks
// for it. block writes to the file mark.
func toolServer(t *testing.T, dir, seconds string) (mark string) {
	t.Helper()
	is := is.New(t)
	mark = filepath.Join(t.TempDir(), "mark")
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"local": map[string]any{"command": os.Args[0], "workers": "all",
		"env": map[string]string{"MCP_SERVER_OF_A_TEST": seconds, "BLOCKED": mark}}}})
	is.NoErr(err)
	is.NoErr(os.MkdirAll(dir, 0o700))
	is.NoErr(os.WriteFile(filepath.Join(dir, "mcp.json"), config, 0o600))
	return mark
}

func TestKillEndsToolServers(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir, seconds := t.TempDir(), fmt.Sprintf("1101.%d", os.Getpid())
	mark := toolServer(t, dir, seconds)
	s := serve(t, dir)
	v := s.mustPost(t, "/api/tasks", map[string]any{"input": offlineScript(`tool local__echo {"n":1}`, "say {{last}}")})
	is.Equal(v.OutputText, `echo of {"n":1}`)
	v = s.mustPost(t, "/api/tasks", map[string]any{"input": offlineScript("tool local__block {}", "say it said {{last}}")}, "Prefer", "respond-async")
	storetest.Eventually(t, "the call", func() bool { data, _ := os.ReadFile(mark); return len(data) > 0 })
	is.Equal(sleepers(t, seconds), 1)
	s.kill()
	storetest.Eventually(t, "the end of all that it had started", func() bool { return sleepers(t, seconds) == 0 })

	s = serve(t, dir)
	v = s.ended(t, v)
	is.True(strings.Contains(v.OutputText, "may have taken effect"))
	data, err := os.ReadFile(mark)
	is.NoErr(err)
	is.Equal(string(data), "run\n") // the tool ran once
}

func TestStopEndsToolServers(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir, seconds := t.TempDir(), fmt.Sprintf("1102.%d", os.Getpid())
	mark := toolServer(t, dir, seconds)
	s := serve(t, dir, "--grace", "100ms")
	s.mustPost(t, "/api/tasks", map[string]any{"input": offlineScript("tool local__block {}")}, "Prefer", "respond-async")
	storetest.Eventually(t, "the call", func() bool { data, _ := os.ReadFile(mark); return len(data) > 0 })
	s.stop(t)
	is.Equal(sleepers(t, seconds), 0)
}

func TestBadToolServerConfigStopsStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	is.New(t).NoErr(os.Chmod(dir, 0o700)) // for a folder that is open to others, the program would print a second line
	path := filepath.Join(dir, "mcp.json")
	is.New(t).NoErr(os.WriteFile(path, []byte(`{"mcpServers": {"files": {"command": "x", "env": {"KEY": "${NOT_SET_HERE}"}}}}`), 0o600))
	p := invocation{}.start(t, "--data", dir, "--addr", "127.0.0.1:0")
	p.exitedWith(t, 1, `--mcp: `+path+`: server "files": env.KEY: the environment variable "NOT_SET_HERE" is not set`)
	p = invocation{}.start(t, "--data", dir, "--mcp", filepath.Join(dir, "none.json"), "mcp")
	p.exitedWith(t, 1, "none.json: no such file")
}

func TestListOfToolServers(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir, seconds := t.TempDir(), fmt.Sprintf("1104.%d", os.Getpid())
	toolServer(t, dir, seconds)
	p := invocation{}.run(t, "--data", dir, "mcp")
	is.Equal(p.wait(t), 0)
	is.True(strings.Contains(p.stdout.String(), "2 tools\n"))
	is.True(strings.Contains(p.stdout.String(), "local.echo   local__echo   Says its arguments again."))
	is.Equal(sleepers(t, seconds), 0)
	p = invocation{}.run(t, "--data", t.TempDir(), "mcp")
	is.True(strings.Contains(p.stdout.String(), "no MCP servers are configured"))
}
