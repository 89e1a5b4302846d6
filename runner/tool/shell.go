package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"journeyman/runner/sandbox"
)

type shell struct{ shell *sandbox.Shell }

// Shell gives the tool shell, which runs its commands with s.
func Shell(s *sandbox.Shell) Tool { return shell{s} }

// Spec describes shell.
func (t shell) Spec() Spec {
	return Spec{
		Name: "shell",
		Description: `Run a shell command (bash where there is one, else sh) in the workspace and give its output, standard
output and error together, and its exit code. Its working folder is the workspace; /tmp is empty at the start and gone at
the end, and so is every process that is left. It has no network, no input and no terminal, and sees nothing of the
machine but its programs. Of a long output the middle is left out: write it to a file and search that. For reading,
writing and searching files prefer the tools made for it.`,
		InputSchema: json.RawMessage(`{
  "type": "object",
  "properties": {
    "command": {"type": "string", "description": "The command, which may be a script of several lines"},
    "timeoutSeconds": {"type": "integer", "minimum": 1, "maximum": 600,
      "description": "Seconds after which it is killed; default 60"}
  },
  "required": ["command"],
  "additionalProperties": false
}`),
	}
}

// A commandResult is what shell answers.
type commandResult struct {
	ExitCode int    `json:"exitCode"`
	Output   string `json:"output"`
	LeftOut  int64  `json:"leftOut,omitempty"` // bytes left out of Output
	Stopped  string `json:"stopped,omitempty"` // why the command was killed, if it was
}

// Run runs a command.
func (t shell) Run(ctx context.Context, host Host, input json.RawMessage) (json.RawMessage, error) {
	a := parse(input)
	most := int(sandbox.MaxTimeout / time.Second)
	c := sandbox.Command{Script: a.text("command", true, sandbox.MaxScript)}
	seconds := a.number("timeoutSeconds", int(sandbox.DefaultTimeout/time.Second), 1)
	if seconds > most {
		a.wrong("timeoutSeconds must be at most %d", most)
	}
	if err := a.err(); err != nil {
		return nil, err
	}
	c.Timeout = time.Duration(seconds) * time.Second
	r, err := t.shell.Run(ctx, host.Workspace(), c)
	if err != nil {
		return nil, told(err)
	}
	return result(commandResult{ExitCode: r.ExitCode, Output: printable(r.Output), LeftOut: r.LeftOut, Stopped: whyStopped(r.Stopped, c.Timeout)})
}

// whyStopped tells a model why its command was killed.
func whyStopped(s sandbox.Stop, timeout time.Duration) string {
	switch s {
	case "":
		return ""
	case sandbox.StopTimeout:
		return fmt.Sprintf("it was killed after %d seconds", int(timeout.Seconds()))
	case sandbox.StopMemory:
		return "it was killed because it took too much memory"
	case sandbox.StopDisk:
		return "it was killed because its files took too much room, or were too many"
	}
	return "it was killed"
}

// printable replaces characters that mean something to a terminal alone. As JSON
// they would take six times their room.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}
