// Package terminal shows the work of the runner to a person at a terminal, or as
// plain lines in a pipe. It imports runner and store, reads streams, and changes
// nothing but what that person decides.
package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"journeyman/runner"
	"journeyman/store"
)

const (
	spinEvery = 120 * time.Millisecond
	maxDetail = 60 // characters of a tool call's arguments
)

var frames = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// Progress writes what a turn does as it does it: a line a tool call, and on a
// terminal what it is at just now.
type Progress struct {
	W     io.Writer
	Live  bool // W is a terminal: show a spinner
	Color bool

	// Ask decides on a tool call that needs approval; nobody is asked where nil. Its
	// error ends Follow.
	Ask func(ctx context.Context, q Question) error

	begun time.Time
	frame int
	now   string         // what it is at
	calls map[string]int // tool calls under way, by id, to their number
	count int
	input map[string]json.RawMessage // arguments of tool calls, by id
}

// A chunk is what matters here of the stream's.
type chunk struct {
	Type       string          `json:"type"`
	ToolCallID string          `json:"toolCallId"`
	ToolName   string          `json:"toolName"`
	Input      json.RawMessage `json:"input"`
	ErrorText  string          `json:"errorText"`
	Data       struct {
		ApprovalID string               `json:"approvalId"`
		ToolCallID string               `json:"toolCallId"`
		ToolName   string               `json:"toolName"`
		Status     store.ApprovalStatus `json:"status"`
	} `json:"data"`
}

// Follow shows a turn until it has ended.
func (p *Progress) Follow(ctx context.Context, s *runner.Stream) error {
	p.begun, p.calls, p.now, p.input = time.Now(), map[string]int{}, "thinking", map[string]json.RawMessage{}
	defer p.clear()
	for {
		events, done, err := p.next(ctx, s)
		for _, e := range events {
			var c chunk
			if json.Unmarshal(e.Data, &c) != nil { // our own chunks do not fail
				continue
			}
			p.show(c)
			if err := p.decide(ctx, c); err != nil {
				return err
			}
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case done || err != nil && !errors.Is(err, context.DeadlineExceeded):
			return err
		}
		p.spin()
	}
}

// next waits for events, on a terminal only until the spinner has to turn.
func (p *Progress) next(ctx context.Context, s *runner.Stream) ([]runner.Event, bool, error) {
	if !p.Live {
		return s.Next(ctx)
	}
	wait, cancel := context.WithTimeout(ctx, spinEvery)
	defer cancel()
	return s.Next(wait)
}

// decide has a call that needs approval decided on.
func (p *Progress) decide(ctx context.Context, c chunk) error {
	if p.Ask == nil || c.Type != "data-approval" || c.Data.Status != store.ApprovalPending {
		return nil
	}
	return p.Ask(ctx, Question{ApprovalID: c.Data.ApprovalID, ToolName: c.Data.ToolName, Input: p.input[c.Data.ToolCallID]})
}

func (p *Progress) show(c chunk) {
	name := printable(c.ToolName)
	switch c.Type {
	case "reasoning-start":
		p.now = "thinking"
	case "text-start":
		p.now = "writing"
	case "tool-input-available", "tool-input-error":
		p.count++
		p.calls[c.ToolCallID], p.input[c.ToolCallID] = p.count, c.Input
		p.now = name
		p.line(fmt.Sprintf("%2d  %-14s %s", p.count, name, detail(c.Input)))
	case "tool-output-available":
		p.now = "thinking"
	}
	if c.Type == "tool-output-error" || c.Type == "tool-input-error" {
		p.now = "thinking"
		p.line(fmt.Sprintf("%2d  %s", p.calls[c.ToolCallID], p.paint("31", "failed: "+printable(c.ErrorText))))
	}
}

// detail is the beginning of a call's arguments.
func detail(input json.RawMessage) string {
	var fields map[string]any
	if json.Unmarshal(input, &fields) == nil {
		if path, ok := fields["path"].(string); ok {
			return shorten(printable(path))
		}
	}
	return shorten(printable(string(input)))
}

func shorten(s string) string {
	if r := []rune(s); len(r) > maxDetail {
		return string(r[:maxDetail-1]) + "…"
	}
	return s
}

// printable takes out what could steer the terminal, or show a text in another order
// than it has: it comes from a model.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if steers(r) {
			return ' '
		}
		return r
	}, s)
}

// Printable takes out what printable does, and keeps line breaks and tabs.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && steers(r) {
			return -1
		}
		return r
	}, s)
}

// steers is true of control characters, and of those that set the direction of
// writing or break lines.
func steers(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

func (p *Progress) line(s string) {
	p.clear()
	fmt.Fprintln(p.W, s)
}

func (p *Progress) spin() {
	if p.Live {
		p.frame++
		fmt.Fprintf(p.W, "\r%s %s %s\x1b[K", p.paint("36", frames[p.frame%len(frames)]), p.now, time.Since(p.begun).Round(time.Second))
	}
}

func (p *Progress) clear() {
	if p.Live {
		fmt.Fprint(p.W, "\r\x1b[K")
	}
}

func (p *Progress) paint(color, s string) string {
	if !p.Color {
		return s
	}
	return "\x1b[" + color + "m" + s + "\x1b[0m"
}

// PrintKeys writes a table of API keys.
func PrintKeys(w io.Writer, keys []store.Key) {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tNAME\tKEY\tUSER\tROLE\tCREATED\tLAST USED\tSTATE")
	for _, k := range keys {
		used, state := "never", "active"
		if k.LastUsedAt != nil {
			used = k.LastUsedAt.Format(time.RFC3339)
		}
		switch {
		case k.RevokedAt != nil:
			state = "revoked"
		case k.ExpiresAt != nil:
			state = "expires " + k.ExpiresAt.Format(time.RFC3339)
		}
		fmt.Fprintf(t, "%s\t%s\t%s…\t%s\t%s\t%s\t%s\t%s\n", k.ID, printable(k.Name), k.Prefix, printable(k.Email), k.Role,
			k.CreatedAt.Format(time.RFC3339), used, state)
	}
	_ = t.Flush() // writing to a terminal or pipe that is gone
}

// PrintUsers prints a table of users.
func PrintUsers(w io.Writer, users []store.User) {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tEMAIL\tNAME\tORGANIZATION\tROLE\tPASSWORD")
	for _, u := range users {
		password := "none"
		if u.HasPassword {
			password = "set"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", u.ID, printable(u.Email), printable(u.Name), printable(u.OrganizationName), u.Role, password)
	}
	_ = t.Flush() // writing to a terminal or pipe that is gone
}
