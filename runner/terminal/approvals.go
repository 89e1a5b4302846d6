package terminal

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"journeyman/store"
)

// A Question is a tool call that waits for the person at the terminal.
type Question struct {
	ApprovalID string
	ToolName   string
	Input      json.RawMessage // the call's arguments
}

// maxShown bounds what is shown of the arguments of a call to decide on, in
// characters: who cannot see all of it is told so.
const maxShown = 4000

// maxAnswer bounds a line that is read as an answer, in bytes.
const maxAnswer = 64 << 10

// answers are the lines that a person types. The goroutine that waits for the next
// one ends with the input: nothing else ends a read from a terminal.
type answers struct {
	in    io.Reader
	lines chan string // nil before the first question; closed at the end of the input
}

// next waits for a line; ok is false at the end of the input.
func (a *answers) next(ctx context.Context) (line string, ok bool, err error) {
	if a.lines == nil {
		a.lines = make(chan string)
		go func() {
			defer close(a.lines)
			sc := bufio.NewScanner(a.in)
			sc.Buffer(nil, maxAnswer)
			for sc.Scan() {
				a.lines <- sc.Text()
			}
		}()
	}
	select {
	case line, ok = <-a.lines:
		return line, ok, nil
	case <-ctx.Done():
		return "", false, ctx.Err()
	}
}

// ask has the person at the terminal decide on a call. Where nobody is there, it is
// denied.
func (t *Task) ask(ctx context.Context, taskID string, q Question) error {
	d := store.Decision{Reason: "nobody was there to approve it"}
	if t.Stdin != nil {
		if t.answers == nil {
			t.answers = &answers{in: t.Stdin}
		}
		t.Progress.question(q)
		line, ok, err := t.answers.next(ctx)
		if err != nil {
			return err
		}
		if !ok {
			fmt.Fprintln(t.Progress.W)
		} else {
			d = decision(line)
		}
	}
	_, err := t.Runner.DecideApproval(ctx, t.caller, taskID, q.ApprovalID, d)
	if store.IsKind(err, store.Conflict) {
		return nil // decided elsewhere, or the turn has ended
	}
	return err
}

// decision reads an answer: y approves, and all else denies, with its words as the
// reason.
func decision(line string) store.Decision {
	line = strings.TrimSpace(line)
	switch strings.ToLower(line) {
	case "y", "yes":
		return store.Decision{Approved: true}
	case "", "n", "no":
		return store.Decision{}
	}
	r := []rune(line)
	return store.Decision{Reason: string(r[:min(len(r), store.MaxReason)])}
}

// question shows a call to decide on, all of it: what is not seen is not approved.
func (p *Progress) question(q Question) {
	input := printable(string(q.Input))
	if r := []rune(input); len(r) > maxShown {
		input = string(r[:maxShown]) + fmt.Sprintf("… (%d more characters)", len(r)-maxShown)
	}
	p.line(fmt.Sprintf("%s wants to run: %s", p.paint("33", printable(q.ToolName)), input))
	fmt.Fprint(p.W, "Run it? y, or n, or why not: ")
}
