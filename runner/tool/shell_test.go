//go:build unix

package tool

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/sandbox"
)

// unconfined returns the tool with a shell that works on every machine. The sandbox package
// tests the confinement.
func unconfined(t *testing.T) Tool {
	t.Helper()
	s, err := sandbox.NewShell(sandbox.Confinement{}, sandbox.ShellConfig{Unsafe: true})
	is.New(t).NoErr(err)
	return Shell(s)
}

func TestShell(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ input, want string }{
		"output":     {`{"command":"echo one; echo two >&2; exit 3"}`, `{"exitCode":3,"output":"one\ntwo\n"}`},
		"script":     {`{"command":"a=1\nb=2\necho $((a+b))"}`, `{"exitCode":0,"output":"3\n"}`},
		"time-out":   {`{"command":"echo a; sleep 1000","timeoutSeconds":1}`, `{"exitCode":137,"output":"a\n","stopped":"it was killed after 1 seconds"}`},
		"terminal":   {`{"command":"printf 'a\\033[1m\\000\\r\\n'"}`, `{"exitCode":0,"output":"a` + "\ufffd" + `[1m` + "\ufffd" + `\r\n"}`},
		"workspace":  {`{"command":"cat given"}`, `{"exitCode":0,"output":"<given>"}`},
		"no secrets": {`{"command":"env | grep -c GOCACHE"}`, `{"exitCode":1,"output":"0\n"}`},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			h := newTurn(t, sandbox.Limits{})
			h.put(t, "given", "<given>")
			out, err := unconfined(t).Run(t.Context(), h, json.RawMessage(tt.input))
			is.NoErr(err)
			is.Equal(string(out), tt.want)
		})
	}
}

func TestShellRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ input, says string }{
		"nothing":     {`{"command":"  "}`, "cannot be empty"},
		"missing":     {`{}`, "command is required"},
		"NUL":         {`{"command":"a\u0000"}`, "NUL"},
		"too long":    {`{"command":"` + strings.Repeat("x", sandbox.MaxScript+1) + `"}`, "command can have 32768 characters"},
		"too large":   {`{"command":"` + strings.Repeat("ä", sandbox.MaxScript-1) + `"}`, "write a long script to a file"},
		"too patient": {`{"command":"true","timeoutSeconds":601}`, "at most 600"},
		"impatient":   {`{"command":"true","timeoutSeconds":0}`, "at least 1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := unconfined(t).Run(t.Context(), newTurn(t, sandbox.Limits{}), json.RawMessage(tt.input))
			says(t, err, tt.says)
		})
	}
}

// TestShellOutput fills a result with the characters that take the most space in JSON.
func TestShellOutput(t *testing.T) {
	t.Parallel()
	for _, fill := range []string{`\\033`, `\\\"`, `\\n`, `\\377`} {
		is := is.New(t)
		out, err := unconfined(t).Run(t.Context(), newTurn(t, sandbox.Limits{}),
			json.RawMessage(`{"command":"printf '`+fill+`%.0s' $(seq 200000)"}`))
		is.NoErr(err)
		is.True(json.Valid(out))
		is.True(len(out) < 256<<10) // limit of a tool result
		is.True(strings.Contains(string(out), "bytes left out"))
	}
}
