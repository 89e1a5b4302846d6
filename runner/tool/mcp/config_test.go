package mcp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
)

// environment returns the environment variables of these tests.
func environment(name string) string {
	return map[string]string{"TOKEN": "tok-12345678", "FOLDER": "/srv", "EVIL": "a\r\nX-Other: b"}[name]
}

func TestConfig(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	servers, err := parse([]byte(`{"mcpServers": {
		"web": {"type": "http", "url": "https://mcp.test/mcp?key=${TOKEN}", "headers": {"Authorization": "Bearer ${TOKEN}", "X-Team": "a"}, "timeoutSeconds": 1.5},
		"files": {"command": "npx", "args": ["-y", "server", "${FOLDER}/x", "${NONE:-there}"], "env": {"KEY": "${TOKEN}", "EMPTY": ""}, "cwd": "sub",
			"workers": "all", "tools": ["read"], "trustHints": true},
		"off": {"command": "x", "env": {"A": "${NOT_SET}"}, "disabled": true}
	}}`), environment)
	is.NoErr(err)
	is.Equal(servers, []Server{
		{Name: "files", Command: "npx", Args: []string{"-y", "server", "/srv/x", "there"}, Env: map[string]string{"KEY": "tok-12345678", "EMPTY": ""}, Dir: "sub",
			Timeout: time.Minute, AllWorkers: true, Tools: []string{"read"}, TrustHints: true, secrets: []string{"tok-12345678"}},
		{Name: "web", URL: "https://mcp.test/mcp?key=tok-12345678", Headers: map[string]string{"Authorization": "Bearer tok-12345678", "X-Team": "a"},
			Timeout: 1500 * time.Millisecond, secrets: servers[1].secrets},
	})
	is.Equal(servers[1].redact("Post https://mcp.test/mcp?key=tok-12345678: refused tok-12345678"),
		"Post https://mcp.test/mcp?key=[secret]: refused [secret]")
}

func TestInvalidConfigs(t *testing.T) {
	t.Parallel()
	server := func(fields string) string { return `{"mcpServers": {"s": {` + fields + `}}}` }
	for text, says := range map[string]string{
		``:                            "breaks off",
		`{`:                           "breaks off",
		`[]`:                          "must be a JSON object",
		`null`:                        "must be a JSON object",
		`{"mcpServers": {}} x`:        "more after",
		`{"mcpServers": {}} {}`:       "more after",
		`{}`:                          "mcpServers is missing",
		`{"servers": {}}`:             `unknown field "servers"`,
		`{"mcpServers": []}`:          "mcpServers: must be a JSON object",
		`{"mcpServers": {"a b": {}}}`: `server "a b": a name has`,
		`{"mcpServers": {"a.b": {}}}`: `server "a.b": a name has`,
		`{"mcpServers": {"": {}}}`:    `server "": a name has`,
		`{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}`:          `"a" is given twice`,
		`{"mcpServers": {"s": 1}}`:                                                `server "s": must be a JSON object`,
		server(``):                                                                `server "s": needs either command or url`,
		server(`"command": "x", "url": "http://a"`):                               "needs either command or url",
		server(`"comand": "x"`):                                                   `unknown field "comand"`,
		server(`"command": "x", "command": "y"`):                                  `"command" is given twice`,
		server(`"command": ["x"]`):                                                "command: must be a string",
		server(`"command": " "`):                                                  "command: must not be empty",
		server(`"command": null`):                                                 "command: must be a string",
		server(`"command": "x", "args": "y"`):                                     "args: must be a list of strings",
		server(`"command": "x", "args": [1]`):                                     "args: must be a list of strings",
		server(`"command": "x", "env": {"A": 1}`):                                 "env: A: must be a string",
		server(`"command": "x", "env": {"A=B": "1"}`):                             `env: "A=B" cannot be`,
		server(`"command": "x", "env": {"A": "${NOT_SET}"}`):                      `env.A: the environment variable "NOT_SET" is not set`,
		server(`"command": "x", "args": ["a\u0000"]`):                             "args[0]: must not hold a NUL",
		server(`"command": "x", "headers": {}`):                                   "headers: does not fit",
		server(`"url": "http://a", "args": []`):                                   "args: does not fit",
		server(`"url": "ftp://a"`):                                                "url: must be an http",
		server(`"url": "http://"`):                                                "url: must be an http",
		server(`"url": "http://a", "type": "sse"`):                                "old transport",
		server(`"url": "http://a", "type": "stdio"`):                              "does not fit",
		server(`"url": "http://a", "headers": {"A b": "c"}`):                      `headers: "A b" cannot be set`,
		server(`"url": "http://a", "headers": {"host": "c"}`):                     `headers: "host" cannot be set`,
		server(`"url": "http://a", "headers": {"A": "${EVIL}"}`):                  "headers.A: has a character",
		server(`"command": "x", "timeoutSeconds": 0`):                             "timeoutSeconds: must be above 0",
		server(`"command": "x", "timeoutSeconds": 1e9`):                           "timeoutSeconds: must be above 0",
		server(`"command": "x", "timeoutSeconds": "1"`):                           "timeoutSeconds: must be a number",
		server(`"command": "x", "workers": "some"`):                               `workers: must be "all"`,
		server(`"command": "x", "workers": ""`):                                   `workers: must be "all"`,
		server(`"command": "x", "tools": [""]`):                                   "tools: a name must not be empty",
		server(`"command": "x", "disabled": "yes"`):                               "disabled: must be true or false",
		server(`"command": "x", "args": [` + strings.Repeat(`"",`, 1001) + `""]`): "more than 1000",
	} {
		servers, err := parse([]byte(text), environment)
		if err == nil {
			t.Errorf("%s: taken for %v", text, servers)
			continue
		}
		contains(t, err.Error(), says)
		is.New(t).True(!strings.Contains(err.Error(), "tok-12345678"))
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "mcp.json")
	none, err := Load("", dir, environment)
	is.NoErr(err)
	is.Equal(len(none), 0)
	_, err = Load(path, dir, environment)
	is.True(os.IsNotExist(err)) // a file with an explicit path must exist
	is.NoErr(os.WriteFile(path, []byte(`{"mcpServers": {"s": {"command": "./x", "cwd": "tools"}}}`), 0o600))
	servers, err := Load("", dir, environment)
	is.NoErr(err)
	is.Equal(servers[0].Dir, filepath.Join(dir, "tools"))
	is.NoErr(os.WriteFile(path, []byte(`{"mcpServers": {"s": {}}}`), 0o600))
	_, err = Load("", dir, environment)
	is.Equal(err.Error(), path+`: server "s": needs either command or url`)
	is.NoErr(os.WriteFile(path, make([]byte, maxConfig+1), 0o600))
	_, err = Load("", dir, environment)
	contains(t, err.Error(), "more than 1048576 bytes")
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte(`{"mcpServers": {"a": {"command": "x", "args": ["${A}"], "env": {"K": "${TOKEN}"}, "tools": ["t"]}, "b": {"url": "http://x/?k=${TOKEN}", "headers": {"A": "b"}}}}`))
	f.Add([]byte(`{"mcpServers": {"a": {"command": "${", "cwd": "}", "timeoutSeconds": 1e-300}}}`))
	f.Add([]byte(`{"mcpServers": {"a": null}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		servers, err := parse(raw, environment)
		if err != nil {
			if strings.Contains(err.Error(), "tok-12345678") {
				t.Errorf("the error tells a secret: %v", err)
			}
			return
		}
		for _, s := range servers {
			if !validName.MatchString(s.Name) || s.stdio() == (s.URL != "") || s.Timeout < 0 || s.Timeout > maxTimeout {
				t.Errorf("taken: %+v", s)
			}
			_ = s.redact(s.URL)
		}
	})
}

// TestKindredSecrets conceals a secret that begins with another one.
func TestKindredSecrets(t *testing.T) {
	t.Parallel()
	s := Server{}
	s.addSecret("token-1")
	s.addSecret("token-1-of-production")
	is.New(t).Equal(s.redact("token-1-of-production, token-1"), "[secret], [secret]")
}
