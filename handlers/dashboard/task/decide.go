package task

import (
	"net/http"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/serve"
	"journeyman/store"
	"journeyman/store/db"
)

// decideRoutes registers the page of the links in mails. The reader decides without signing in, as
// the user to whom the mail was sent. Opening the page decides nothing, because mail scanners open
// every link.
func (d *Pages) decideRoutes() {
	d.Open("GET", "/decide/:token", frame.Blank(d.showDecision))
	d.Open("POST", "/decide/:token", frame.Submitted(d.decideByLink, d.showDecision))
}

// A decisionPage is the data of the page of a link.
type decisionPage struct {
	Form    *frame.Form
	Link    store.DecisionLink
	Block   approvalBlock
	Decided string // the text of the decision; "" while the approval is pending
}

// Pending reports whether there is something to decide.
func (p decisionPage) Pending() bool { return p.Link.Approval.Status == store.ApprovalPending }

// decisionLink returns the link of a request. Wrong links are not counted, because a signature
// cannot be guessed. A limit by network would also lock out everybody behind one proxy.
func (d *Pages) decisionLink(w http.ResponseWriter, r *frame.Request) (store.DecisionLink, error) {
	// The address is a secret, which no other page may get.
	w.Header().Set("Referrer-Policy", "no-referrer")
	return d.Store.DecisionLink(r.Context(), r.Params.ByName("token"), serve.ClientAddr(r.Request))
}

func (d *Pages) showDecision(w http.ResponseWriter, r *frame.Request, status int, f *frame.Form) error {
	l, err := d.decisionLink(w, r)
	if err != nil {
		return err
	}
	if f == nil {
		f = frame.NewForm(nil)
	}
	p := decisionPage{Form: f, Link: l}
	if p.Block, err = d.newApprovalBlock(r, l.Approval, decideBytes); err != nil {
		return err
	}
	// The forms are sent to this page: the address of the task would need a session.
	p.Block.Action = ""
	if !p.Pending() {
		p.Decided = decisionText(r.Lang, l.Approval)
	}
	return d.Render(w, r, status, "decide.html", r.T("Decide"), p)
}

// decideByLink decides as the user of a link. If the approval is decided already, it redirects
// to the page, which shows the decision.
func (d *Pages) decideByLink(w http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	l, err := d.decisionLink(w, r)
	if err != nil {
		return "", err
	}
	decision, _, err := decisionOf(f, l.Approval)
	if err != nil {
		return "", err
	}
	_, err = d.Runner.DecideApproval(r.Context(), l.Caller, l.Task.ID, l.Approval.ID, l.Decision(decision))
	if db.IsKind(err, db.Conflict) {
		err = nil // the page names the person who has decided
	}
	return r.URL.Path, err
}

// decisionOf returns the decision of a form about an approval, and the key of the message
// that confirms it. The pressed button determines the decision.
func decisionOf(f *frame.Form, a store.Approval) (d store.Decision, message string, err error) {
	d.Reason = f.Get("reason")
	switch {
	case f.Get("decision") == "approve":
		d.Approved = true
		return d, "call-approved", nil
	case f.Get("decision") == "deny":
		return d, "call-denied", nil
	case f.Values.Has("choice"):
		d.Answer = a.Question.Choice(f.Get("choice"))
	case f.Values.Has("answer"):
		d.Answer = f.Text("answer")
	default:
		return d, "", db.Errorf(db.Invalid, "the decision must be approve or deny, or an answer")
	}
	// An empty choice means a number without a choice, so it is refused like an empty
	// text.
	if db.IsBlank(d.Answer) {
		var wrong db.Fields
		wrong.Add("answer", "must not be empty")
		return d, "", wrong.Err()
	}
	return d, "question-answered", nil
}
