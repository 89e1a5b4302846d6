package command

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"journeyman/store"
	"journeyman/store/db"
)

// A Question is a tool call that waits for a decision or an answer of the person at the
// terminal.
type Question struct {
	ApprovalID string
	ToolName   string
	Input      json.RawMessage // the call's arguments
	Asks       *store.Question // the question to answer; nil if the call is to be approved or denied
}

const (
	maxShown  = 4000     // characters of a call's arguments that a question shows
	maxAnswer = 64 << 10 // bytes of a line that the person types
)

// answers reads the lines that a person types. Its goroutine ends only at the end of the input,
// because nothing else interrupts a read from a terminal.
type answers struct {
	in    io.Reader
	lines chan string // nil before the first question; closed at the end of the input
}

// next waits for the next line. It returns false at the end of the input.
func (a *answers) next(ctx context.Context) (line string, ok bool, err error) {
	if a.lines == nil {
		a.lines = make(chan string)
		go func() {
			// The channel has no buffer: a line typed early waits for its question.
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

// ask asks the person at the terminal about a call and saves the decision. Without a person, ask
// denies the call, or answers the worker that nobody is there.
func (t *Task) ask(ctx context.Context, taskID string, q Question) error {
	// Without a person the turn must still continue, or the command would never end.
	d := store.Decision{Reason: "nobody was there to approve it"}
	if q.Asks != nil {
		d = store.Decision{Answer: "Nobody is there to answer: go on without an answer."}
	}
	if t.Stdin == nil && q.Asks != nil {
		t.Progress.line("It asks: " + t.Progress.shown(q.Asks.Text) +
			"\n(nobody can answer here: run this on a terminal, or send the instruction to a server)")
	}
	if t.Stdin != nil {
		if t.answers == nil {
			t.answers = &answers{in: t.Stdin}
		}
		line, ok, err := t.typed(ctx, q)
		if err != nil {
			return err
		}
		if !ok { // the person has closed the input: the call is denied
			fmt.Fprintln(t.Progress.W)
		} else if d = decision(line); q.Asks != nil {
			d = store.Decision{Answer: db.FirstRunes(q.Asks.Match(line), store.MaxAnswer)}
		}
	}
	_, err := t.Runner.DecideApproval(ctx, t.caller, taskID, q.ApprovalID, d)
	if db.IsKind(err, db.Conflict) {
		return nil // somebody else has decided, or the turn has ended
	}
	return err
}

// typed shows a question and returns the line that the person types. It asks again after
// an empty answer to a question of the worker.
func (t *Task) typed(ctx context.Context, q Question) (line string, ok bool, err error) {
	for {
		t.Progress.question(q)
		line, ok, err = t.answers.next(ctx)
		if err != nil || !ok || q.Asks == nil || !db.IsBlank(line) {
			return strings.ReplaceAll(line, "\x00", ""), ok, err
		}
	}
}

// decision returns the decision that a typed line means. "y" and "yes" approve. Any other line
// denies, and a line with more than a "no" becomes the reason.
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

// question prints a call and asks for approval, or prints a question of the worker. It prints
// how many characters it leaves out, so that nobody approves arguments without knowing it.
func (p *Progress) question(q Question) {
	if q.Asks == nil {
		p.line(fmt.Sprintf("%s wants to run: %s", p.paint("33", printable(q.ToolName)), p.shown(string(q.Input))))
		fmt.Fprint(p.W, "Run it? Answer y, n, or the reason to deny it: ")
		return
	}
	p.line(p.paint("33", "It asks: ") + p.shown(q.Asks.Text))
	for i, c := range q.Asks.Choices {
		p.line(fmt.Sprintf("  %d. %s", i+1, p.shown(c)))
	}
	if len(q.Asks.Choices) > 0 {
		fmt.Fprint(p.W, "Your answer, a number or a text: ")
		return
	}
	fmt.Fprint(p.W, "Your answer: ")
}

// shown returns the first maxShown characters of a model's text, without characters that
// control a terminal.
func (p *Progress) shown(text string) string {
	text = printable(text)
	if r := []rune(text); len(r) > maxShown {
		text = string(r[:maxShown]) + fmt.Sprintf("… (%d more characters)", len(r)-maxShown)
	}
	return text
}
