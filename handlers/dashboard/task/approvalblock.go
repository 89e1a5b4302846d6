package task

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/show"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/visible"
)

// An approvalBlock is a tool call that waits for a decision or an answer.
type approvalBlock struct {
	store.Approval
	Heading     string       // the question about the call
	Body        callBody     // the question or the call, formatted for people
	Consequence string       // of an approval
	Arguments   show.Excerpt // raw; for a question, its text
	Action      string       // address to which its forms are sent; "" for the address of the page
	N, Of       int          // its place among the waiting calls of the task; 0 on other pages
	lasting     bool         // a decision may apply to the rest of the task
}

// ElementID returns the id of the element.
func (b approvalBlock) ElementID() string { return "approval-" + b.ID }

// IsQuestion reports whether the call asks a person a question.
func (b approvalBlock) IsQuestion() bool { return b.Kind == store.KindQuestion }

// MayAllowRestOfTask reports whether the form has a button that allows the tool for the rest of the
// task.
func (b approvalBlock) MayAllowRestOfTask() bool {
	return b.lasting && !b.IsQuestion() && b.MayDecide && b.Action != ""
}

// Choices returns the labels of a question's buttons. A button sends its number.
func (b approvalBlock) Choices() []string {
	list := make([]string, len(b.Question.Choices))
	for i, c := range b.Question.Choices {
		list[i] = show.Ellipsis(visible.Line(c), choiceOnButton)
	}
	return list
}

// newApprovalBlock returns the block of an approval. Each of its texts takes at most most bytes of
// HTML, and links to the whole text.
func (d *Pages) newApprovalBlock(r *frame.Request, a store.Approval, most int) (approvalBlock, error) {
	turn, err := d.Store.Turn(r.Context(), a.TurnID)
	if err != nil {
		return approvalBlock{}, err
	}
	raw := fmt.Sprintf("%s/raw/%d/%d/calls/%d", view.TaskPath(a.TaskID), turn.Seq, a.Step, a.Call)
	b := approvalBlock{Approval: a,
		Action: view.TaskPath(a.TaskID) + "/approvals/" + a.ID, lasting: turn.MayAllowRestOfTask()}
	source := visible.Text(a.Question.Text)
	if !b.IsQuestion() {
		source = visible.Text(show.JSON(a.Input))
		maker := bodyMaker{lang: r.Lang, most: most, whole: raw}
		b.Body = maker.body(a.ToolName, a.Input, nil, false)
	}
	b.Arguments = show.ExcerptOf(source, most).At(raw + "/input")
	b.Heading, b.Consequence = headingOf(r, b), consequenceOf(r, b)
	return b, nil
}

// headingOf returns the question that an approval asks.
func headingOf(r *frame.Request, b approvalBlock) string {
	if b.IsQuestion() {
		return r.T("A question")
	}
	path := visible.Line(show.ArgumentsOf(b.Input).Text("path"))
	switch b.ToolName {
	case "shell":
		return r.T("Run this command?")
	case "write_file":
		return r.T("Write %s?", path)
	case "edit_file":
		return r.T("Change %s?", path)
	case "publish_file":
		return r.T("Publish %s?", path)
	case "web_fetch":
		return r.T("Fetch this address?")
	case "run_worker":
		return r.T("Start this worker?")
	}
	if b.Body.Letter != nil {
		return r.T("Send this mail?")
	}
	return r.T("Allow %s?", b.ToolName)
}

// consequenceOf returns the effect of an approved call outside of the conversation.
func consequenceOf(r *frame.Request, b approvalBlock) string {
	switch b.ToolName {
	case "shell":
		return r.T("The command runs in the worker's sandbox and can change the files of the workspace.")
	case "write_file":
		return r.T("This call replaces the file if it exists.")
	case "edit_file":
		return r.T("This call changes the file in the workspace.")
	case "publish_file":
		return r.T("Everybody who may see the worker can open the file.")
	case "web_fetch", "web_search":
		return r.T("The request sends the address and its headers to another server.")
	case "run_worker":
		return r.T("The call starts a task with its own costs.")
	}
	// Only the tools of other servers have this in their names.
	server, _, remote := strings.Cut(b.ToolName, "__")
	switch {
	case b.IsQuestion(), !remote:
		return ""
	case b.Body.Letter != nil:
		return r.T("The mail leaves this server and cannot be recalled.")
	}
	return r.T("The tool runs on the server %s. Its effects there may be permanent.", server)
}

// The limits of approvals on the page of a task. Users must not decide on arguments that they
// cannot see. So the page shows where an argument is truncated, and links to the whole.
const (
	approvalsShown = 6        // waiting approvals on the page
	bodyBytes      = 2 << 10  // HTML of the question or the call, on the page of the task
	decideBytes    = 32 << 10 // the same on the page of a link
	choiceOnButton = 60       // characters of an answer to choose
)

// pendingOf returns the waiting approvals of a task, the oldest first.
func (d *Pages) pendingOf(r *frame.Request, taskID string) ([]store.Approval, error) {
	list, _, err := d.Store.Approvals(r.Context(), r.Who.Caller,
		store.ApprovalQuery{TaskID: taskID, Limit: frame.ApprovalsOfTask})
	list = slices.DeleteFunc(list, func(a store.Approval) bool { return a.Status != store.ApprovalPending })
	slices.Reverse(list)
	return list, err
}

// asks returns the pieces of a turn's waiting approvals, in the element with the id parent.
func (b *turnBuilder) asks(list []store.Approval, parent string) (pieces []piece, err error) {
	m := pieceMaker{b: b, root: parent}
	for i, a := range list[:min(len(list), approvalsShown)] {
		block, err := b.d.newApprovalBlock(b.r, a, bodyBytes)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			m.list = append(m.list, piece{ID: "asked", Parent: parent, HTML: `<span class="anchor" id="asked"></span>`})
		}
		block.N, block.Of = i+1, len(list)
		if err := m.own(block.ElementID(), "asked", block); err != nil {
			return nil, err
		}
		last := &m.list[len(m.list)-1]
		last.HTML = template.HTML(show.Hidden(string(last.HTML), visible.Text)) //nolint:gosec // made by a template
	}
	if more := len(list) - approvalsShown; more > 0 {
		err = m.own("more-asked", "more-asked", more)
	}
	return m.list, err
}
