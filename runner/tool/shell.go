package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode"

	"journeyman/runner/sandbox"
	"journeyman/runner/workspace"
)

type shell struct {
	shell *sandbox.Shell
}

// Shell returns the tool shell, which runs commands with s.
func Shell(s *sandbox.Shell) Tool { return shell{s} }

// Programs starts each well-known program once and returns those that have started. It may take
// half a minute.
func (t shell) Programs(ctx context.Context) (started []string, err error) {
	dir, err := os.MkdirTemp("", "journeyman-programs-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ws, err := workspace.Open(dir, workspace.Limits{FileSize: 1 << 20, Files: 1000})
	if err != nil {
		return nil, err
	}
	defer ws.Close()
	return t.shell.StartedPrograms(ctx, ws)
}

// Spec describes shell.
func (t shell) Spec() Spec {
	name, reach := "bash, or sh", `It has no network but localhost, no input and no terminal; /tmp and processes
end with it.`
	if t.shell != nil && !t.shell.Confined() {
		name, reach = "sh", `It is not confined: it has the network, and the files and rights of this service's user.
It has no input and no terminal. Processes of its group end with it; files in /tmp stay.`
	}
	return Spec{
		Name: "shell",
		Description: `Run a shell command (` + name + `) in the workspace, and give its exit status, stdout and
stderr (add 2>&1 to see both in order). ` + reach + ` The middle of a long output is left out.
Prefer the file tools for reading and writing.`,
		InputSchema: objectSchema(`
    "command": {"type": "string", "description": "May be a script of several lines"},
    "timeoutSeconds": {"type": "integer", "minimum": 1, "maximum": 600,
      "description": "Default 60"}`,
			"command"),
	}
}

// Run runs a command.
func (t shell) Run(ctx context.Context, host Host, input json.RawMessage) (json.RawMessage, error) {
	a := parse(input)
	// The Shell also rejects a longer timeout, but this error contains the argument's name.
	most := int(sandbox.MaxTimeout / time.Second)
	c := sandbox.Command{Script: a.text("command", true, sandbox.MaxScript)}
	seconds := a.number("timeoutSeconds", int(sandbox.DefaultTimeout/time.Second), 1)
	if seconds > most {
		a.wrong("timeoutSeconds must be at most %d", most)
	}
	if err := a.err(); err != nil {
		return nil, err
	}
	// The Shell checks the script and the workspace. explain converts its errors to errors for
	// the model.
	c.Timeout = time.Duration(seconds) * time.Second
	r, err := t.shell.Run(ctx, host.Workspace(), c)
	if err != nil {
		return nil, explainFor("command", err)
	}
	return result(commandText(r, c.Timeout))
}

// commandText returns the result of a command as text: the exit status and remarks, a line each,
// and then what the command wrote to its two outputs.
func commandText(r sandbox.Result, timeout time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "exit status: %d\n", r.ExitCode)
	if r.Stopped != "" {
		fmt.Fprintf(&b, "stopped: %s\n", whyStopped(r.Stopped, timeout))
	}
	if r.Note != "" {
		fmt.Fprintf(&b, "note: %s\n", r.Note)
	}
	if r.Output == "" && r.Errors == "" {
		b.WriteString("(no output)\n")
	}
	for _, out := range []struct{ name, text string }{{"stdout", r.Output}, {"stderr", r.Errors}} {
		if out.text == "" {
			continue
		}
		fmt.Fprintf(&b, "%s:\n%s", out.name, printable(out.text))
		if !strings.HasSuffix(out.text, "\n") {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// whyStopped explains to the model why its command was killed.
func whyStopped(s sandbox.Stop, timeout time.Duration) string {
	switch s {
	case "":
		return ""
	case sandbox.StopTimeout:
		return fmt.Sprintf("it was killed after %d seconds", int(timeout.Seconds()))
	case sandbox.StopMemory:
		return "it was killed because it took too much memory, or the machine had little left"
	case sandbox.StopDisk:
		return "it was killed because its files took too much room, or were too many"
	case sandbox.StopKilled:
		return "it was killed by something else: perhaps the machine had no memory left"
	}
	return "it was killed"
}

// printable replaces control characters that only terminals interpret. Each of them would take
// six bytes in a request.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}
