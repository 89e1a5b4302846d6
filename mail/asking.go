package mail

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"strings"

	"journeyman/mail/message"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/visible"
)

// This file composes the mails with a worker's question, or with a request to decide on its tool
// calls.

// writeQuestion fills in reply as the mail with a question. It answers the author's mail, and the
// author's reply to it is the answer.
func (s *Server) writeQuestion(ctx context.Context, r store.Reply, reply *message.Reply) (err error) {
	if reply.Original, err = s.original(ctx, r); err != nil {
		return err
	}
	// Such a mail asks exactly one question. The caller has checked that the question still waits.
	q := r.Asks[0].Question
	var b strings.Builder
	b.WriteString(visible.Text(strings.TrimSpace(q.Text)) + "\n\n")
	for i, c := range q.Choices {
		fmt.Fprintf(&b, "%d. %s\n", i+1, visible.Line(message.OneLine(c)))
	}
	b.WriteString("\n---\n\n")
	if len(q.Choices) > 0 {
		b.WriteString("To answer, reply to this mail with a number or in your own words. The task waits until then.")
	} else {
		b.WriteString("To answer, reply to this mail. The task waits until then.")
	}
	reply.Text = b.String()
	reply.HTML = s.page(forTurn(ctx, r.Turn), reply.Text)
	return nil
}

// The limits of a mail with a request to a member.
const (
	requestCalls = 8    // calls that it shows
	requestInput = 2000 // characters of one call's arguments
	requestTitle = 150  // characters of a subject
)

// A request is the question or the approval that a mail asks for.
type request struct {
	Worker   string
	Task     string // its title
	TaskURL  string
	Calls    []requestedCall
	More     int // calls that are not shown
	Question bool
}

// A requestedCall is one call or question of a request.
type requestedCall struct {
	Tool    string
	Text    string // the arguments, or the question
	Choices []string
	Cut     bool // Text is only a beginning
	URL     string
}

// writeRequest fills in reply as the mail that asks a member about the calls of a turn, or about
// its question. Each call has a link with which the member decides without signing in.
func (s *Server) writeRequest(ctx context.Context, r store.Reply, reply *message.Reply) error {
	task, err := s.cfg.Store.TaskOfTurn(ctx, r.Turn)
	if err != nil {
		return err
	}
	req := request{Worker: visible.Line(message.OneLine(reply.FromName)), Task: visible.Line(message.OneLine(task.Title)),
		TaskURL: s.cfg.Runner.TaskURL(task.OrganizationID, task.ID), More: max(0, len(r.Asks)-requestCalls),
		Question: r.Kind == store.ReplyQuestion}
	for _, a := range r.Asks[:len(r.Asks)-req.More] {
		// The token is only for this recipient, so that the audit log names the person who decided.
		token, err := s.cfg.Store.DecisionToken(r.Turn, a, r.UserID)
		if err != nil {
			return err
		}
		req.Calls = append(req.Calls, requestOf(a, s.cfg.Runner.DecisionURL(token)))
	}
	what := "Approval needed: "
	if req.Question {
		what = "Question: "
	}
	// The mail is no reply, so it needs its own subject.
	reply.Title = what + db.FirstRunes(req.Task, requestTitle)
	reply.Text = req.text()
	var page bytes.Buffer
	if err := requestPage.Execute(&page, req); err != nil {
		return err
	}
	reply.HTML = page.String()
	return nil
}

// requestOf returns the call or question of an approval for a mail. A model wrote all of it,
// perhaps after it read a hostile page, so it must not imitate other parts of the mail, and its
// hidden characters are shown.
func requestOf(a store.Approval, url string) requestedCall {
	text := a.Question.Text
	if a.Kind != store.KindQuestion {
		text = string(a.Input)
		if lines, ok := view.Indent(a.Input); ok {
			text = lines
		}
	}
	text = visible.Text(text)
	c := requestedCall{Tool: visible.Line(a.ToolName), Text: db.FirstRunes(text, requestInput), URL: url}
	c.Cut = len(c.Text) < len(text)
	for _, choice := range a.Question.Choices {
		c.Choices = append(c.Choices, visible.Line(message.OneLine(choice)))
	}
	return c
}

// text returns the request as plain text.
func (r request) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "The worker %q needs your decision in the task %q.\n", r.Worker, r.Task)
	for _, c := range r.Calls {
		if r.Question {
			b.WriteString("\nIt asks:\n")
		} else {
			fmt.Fprintf(&b, "\nThe worker wants to call %s with:\n", c.Tool)
		}
		// Every line is indented, so that no line of the model can look like one of the server.
		b.WriteString("\n    " + strings.ReplaceAll(c.Text, "\n", "\n    ") + "\n")
		if c.Cut {
			b.WriteString("    (truncated: the page shows all of it)\n")
		}
		for i, choice := range c.Choices {
			fmt.Fprintf(&b, "    %d. %s\n", i+1, choice)
		}
		fmt.Fprintf(&b, "\nDecide here: %s\n", c.URL)
	}
	if r.More > 0 {
		fmt.Fprintf(&b, "\n%d more calls wait on the page of the task.\n", r.More)
	}
	fmt.Fprintf(&b, "\nEach link works once and decides on your behalf: do not share it. The task: %s\n", r.TaskURL)
	return b.String()
}

//go:embed request.html
var requestHTML string

// requestPage writes a request as HTML. It escapes the text of the model.
var requestPage = template.Must(template.New("request").Parse(requestHTML))
