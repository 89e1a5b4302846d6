package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"journeyman/runner/stream"
	"journeyman/store"
	"journeyman/store/visible"
)

const (
	spinEvery     = 120 * time.Millisecond
	spinnerFrames = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
	maxDetail     = 60 // characters of a tool call's arguments
)

// Progress shows a turn while it runs: one line for each tool call and, on a
// terminal, a spinner with the current activity.
type Progress struct {
	W     io.Writer
	Live  bool // W is a terminal: show a spinner
	Color bool

	// Ask decides about a tool call that needs approval, or answers a question. An error of
	// Ask ends Follow. When Ask is nil, Follow only waits.
	Ask func(ctx context.Context, q Question) error

	started  time.Time
	frame    int                 // index into spinnerFrames
	activity string              // shown beside the spinner
	calls    map[string]toolCall // by id
	count    int                 // of calls so far; a repeated id counts again
}

// A toolCall is a call that the stream has announced.
type toolCall struct {
	number int // counted from 1
	input  json.RawMessage
}

// A chunk holds the fields of a stream chunk that progress shows.
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
		Question   string               `json:"question"`
		Choices    []string             `json:"choices"`
		Status     store.ApprovalStatus `json:"status"`
	} `json:"data"`
}

// Follow shows a turn until the turn has ended.
func (p *Progress) Follow(ctx context.Context, s *stream.Stream) error {
	p.started, p.calls, p.activity = time.Now(), map[string]toolCall{}, "thinking"
	defer p.clear()
	for {
		events, done, err := p.next(ctx, s)
		for _, e := range events {
			var c chunk
			if json.Unmarshal(e.Data, &c) != nil { // chunks always unmarshal
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
		// The deadline of next only means that it is time for the spinner.
		case done || err != nil && !errors.Is(err, context.DeadlineExceeded):
			return err
		}
		p.spin()
	}
}

// next waits for events. On a terminal it returns early, with DeadlineExceeded, so that the spinner
// moves.
func (p *Progress) next(ctx context.Context, s *stream.Stream) ([]stream.Event, bool, error) {
	if !p.Live {
		return s.Next(ctx)
	}
	wait, cancel := context.WithTimeout(ctx, spinEvery)
	defer cancel()
	return s.Next(wait)
}

// decide calls Ask for a call that waits for an approval or for an answer.
func (p *Progress) decide(ctx context.Context, c chunk) error {
	if p.Ask == nil || c.Data.ApprovalID == "" || c.Data.Status != store.ApprovalPending {
		return nil
	}
	q := Question{ApprovalID: c.Data.ApprovalID, ToolName: c.Data.ToolName, Input: p.calls[c.Data.ToolCallID].input}
	if c.Type == "data-waiting" {
		q.Asks = &store.Question{Text: c.Data.Question, Choices: c.Data.Choices}
	}
	return p.Ask(ctx, q)
}

// show prints the tool call of a chunk and remembers the activity.
func (p *Progress) show(c chunk) {
	name := printable(c.ToolName)
	switch c.Type {
	case "reasoning-start":
		p.activity = "thinking"
	case "text-start":
		p.activity = "writing"
	case "tool-input-available", "tool-input-error":
		// A model may repeat an id: the later call replaces the earlier one.
		p.count++
		p.calls[c.ToolCallID], p.activity = toolCall{number: p.count, input: c.Input}, name
		p.line(strings.TrimRight(fmt.Sprintf("%2d  %-14s %s", p.count, name, detail(c.Input)), " "))
	case "tool-output-available":
		p.activity = "thinking"
	}
	if c.Type == "tool-output-error" || c.Type == "tool-input-error" {
		p.activity = "thinking"
		p.line(fmt.Sprintf("%2d  %s", p.calls[c.ToolCallID].number, p.paint("31", "failed: "+printable(c.ErrorText))))
	}
}

// detail returns the argument of a call that says most: the path, the command, the address, the
// query or the pattern. Without one, it returns the start of all arguments.
func detail(input json.RawMessage) string {
	var fields map[string]any
	if json.Unmarshal(input, &fields) == nil {
		for _, name := range []string{"path", "command", "url", "query", "pattern"} {
			if value, ok := fields[name].(string); ok {
				return shorten(printable(value), maxDetail)
			}
		}
		if len(fields) == 0 {
			return ""
		}
	}
	return shorten(printable(string(input)), maxDetail)
}

// shorten returns s cut to limit characters, with an ellipsis where it was cut.
func shorten(s string, limit int) string {
	if r := []rune(s); len(r) > limit {
		return string(r[:limit-1]) + "…"
	}
	return s
}

// printable returns a text on one line, with escapes for the characters that control a terminal or
// reorder text. Models and servers write the text, and neither may control the terminal.
func printable(s string) string { return visible.Line(s) }

// Printable is like printable, but keeps line breaks, tabs and emoji.
func Printable(s string) string { return visible.Running(s) }

// line prints a line in the place of the spinner.
func (p *Progress) line(s string) {
	p.clear()
	fmt.Fprintln(p.W, s)
}

// spin draws the next frame of the spinner.
func (p *Progress) spin() {
	if p.Live {
		frames := []rune(spinnerFrames)
		p.frame = (p.frame + 1) % len(frames)
		fmt.Fprintf(p.W, "\r%s %s %s\x1b[K",
			p.paint("36", string(frames[p.frame])), p.activity, time.Since(p.started).Round(time.Second))
	}
}

// clear removes the spinner.
func (p *Progress) clear() {
	if p.Live {
		fmt.Fprint(p.W, "\r\x1b[K")
	}
}

// paint returns s in an ANSI color where the output has colors.
func (p *Progress) paint(color, s string) string {
	if !p.Color {
		return s
	}
	return "\x1b[" + color + "m" + s + "\x1b[0m"
}
