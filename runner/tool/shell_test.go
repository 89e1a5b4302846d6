//go:build unix

package tool

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/sandbox"
	"journeyman/runner/workspace"
	"journeyman/store/ordertest"
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
		"both":       {`{"command":"echo one; echo two >&2; echo three; exit 3"}`, "exit status: 3\nstdout:\none\nthree\nstderr:\ntwo\n"},
		"script":     {`{"command":"a=1\nb=2\necho $((a+b))"}`, "exit status: 0\nstdout:\n3\n"},
		"nothing":    {`{"command":"true"}`, "exit status: 0\n(no output)\n"},
		"errors":     {`{"command":"printf oh >&2; false"}`, "exit status: 1\nstderr:\noh\n"},
		"together":   {`{"command":"(echo one; echo two >&2; echo three) 2>&1"}`, "exit status: 0\nstdout:\none\ntwo\nthree\n"},
		"no newline": {`{"command":"printf a; printf b >&2"}`, "exit status: 0\nstdout:\na\nstderr:\nb\n"},
		"time-out": {`{"command":"echo a; sleep 1000","timeoutSeconds":1}`,
			"exit status: 137\nstopped: it was killed after 1 seconds\nstdout:\na\n"},
		"terminal":   {`{"command":"printf 'a\\033[1m\\000\\r\\n'"}`, "exit status: 0\nstdout:\na\ufffd[1m\ufffd\r\n"},
		"workspace":  {`{"command":"cat given"}`, "exit status: 0\nstdout:\n<given>\n"},
		"no secrets": {`{"command":"env | grep -c GOCACHE"}`, "exit status: 1\nstdout:\n0\n"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			h := newTurn(t, workspace.Limits{})
			h.put(t, "given", "<given>")
			out, err := unconfined(t).Run(t.Context(), h, json.RawMessage(tt.input))
			is.NoErr(err)
			var text string
			is.NoErr(json.Unmarshal(out, &text))
			is.Equal(text, tt.want)
		})
	}
}

// TestShellDescription checks that the description says what a command can reach.
func TestShellDescription(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	confined := sandbox.Confinement{Possible: true}
	s, err := sandbox.NewShell(confined, sandbox.ShellConfig{Unsafe: true}) // the flag changes nothing there
	is.NoErr(err)
	is.True(strings.Contains(Shell(s).Spec().Description, "no network but localhost"))
	is.True(strings.Contains(Shell(s).Spec().Description, "bash"))
	s, err = sandbox.NewShell(sandbox.Confinement{}, sandbox.ShellConfig{Unsafe: true})
	is.NoErr(err)
	unconfined := Shell(s).Spec().Description
	is.True(strings.Contains(unconfined, "not confined: it has the network"))
	is.True(!strings.Contains(unconfined, "no network"))
	is.True(!strings.Contains(unconfined, "bash"))

	// What it says is true.
	outside := filepath.Join(t.TempDir(), "outside")
	is.NoErr(os.WriteFile(outside, []byte("seen"), 0o600))
	out, err := Shell(s).Run(t.Context(), newTurn(t, workspace.Limits{}), json.RawMessage(`{"command":"cat '`+outside+`'"}`))
	is.NoErr(err)
	is.True(strings.Contains(string(out), "seen")) // a file outside of the workspace
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
			_, err := unconfined(t).Run(t.Context(), newTurn(t, workspace.Limits{}), json.RawMessage(tt.input))
			says(t, err, tt.says)
		})
	}
}

// TestShellOutput fills a result with the characters that take the most space in JSON.
func TestShellOutput(t *testing.T) {
	t.Parallel()
	for _, fill := range []string{`\\033`, `\\\"`, `\\n`, `\\377`} {
		is := is.New(t)
		out, err := unconfined(t).Run(t.Context(), newTurn(t, workspace.Limits{}),
			json.RawMessage(`{"command":"for to in 1 2; do printf '`+fill+`%.0s' $(seq 200000) >&$to; done"}`))
		is.NoErr(err)
		is.True(json.Valid(out))
		ordertest.Below(is, len(out), 256<<10) // limit of a tool result
		is.Equal(strings.Count(string(out), "bytes left out; to see them, write"), 2)
	}
}
