package runner

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"journeyman/runner/tool"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
)

const (
	maxApprovals = 32                 // calls of one step that people may have to decide on
	approvalWait = 7 * 24 * time.Hour // how long a turn waits for decisions before it ends
	maxExpired   = 100                // turns that end in one write: other writes wait for it
)

// approvals returns the approvals that the calls of a step need. A call that would fail before it
// runs needs no approval.
func (r *Runner) approvals(e *execution, st store.Step) (list []store.Approval) {
	questions := 0
	for _, c := range st.ToolCalls() {
		kind := e.tools.Asks(c)
		if kind == store.KindQuestion {
			questions++
		}
		// Calls beyond the limits get no approval. They fail later, with an error that tells the
		// model why.
		if kind == "" || len(list) == maxApprovals || questions > tool.MaxQuestions {
			continue
		}
		list = append(list, store.Approval{ID: db.NewID("apr", r.cfg.Now()), Kind: kind, Step: st.Seq, Call: c.N,
			Status: store.ApprovalPending, CreatedAt: r.cfg.Now()}.Of(c))
	}
	return list
}

// answerTo returns the result of a call that asked a question. If nobody has answered, it returns
// an error that tells the model to continue without an answer.
func answerTo(a store.Approval) (json.RawMessage, error) {
	if a.Status == store.ApprovalCancelled {
		return nil, tool.Errorf("the question was not asked: the person has sent another message to this task before " +
			"it, which is the next instruction. Finish this turn without an answer. If you still need one, ask after " +
			"that message")
	}
	if a.Status != store.ApprovalAnswered {
		return nil, tool.Errorf("nobody answered within %d days: continue as well as you can without an answer, "+
			"and say what you have assumed", int(approvalWait.Hours()/24))
	}
	return json.Marshal(map[string]string{"answer": view.ValidText(a.Answer)})
}

// awaitDecisions suspends a turn if people must decide on calls of the step. Then the turn no longer
// belongs to this runner.
func (r *Runner) awaitDecisions(ctx context.Context, e *execution, st *store.Step) (outcome, error) {
	pending := func(a store.Approval) bool { return a.Status == store.ApprovalPending }
	if !slices.ContainsFunc(st.Approvals, pending) {
		return next, nil
	}
	if ctx.Err() != nil {
		return next, context.Cause(ctx)
	}
	// st may be out of date. SuspendTurn reads the decisions and suspends the turn in one
	// transaction. So SuspendTurn sees the last decision, or that decision finds a suspended turn
	// and resumes it.
	var approvals []store.Approval
	suspended, err := r.suspend(e, func(ctx context.Context) (suspended bool, err error) {
		approvals, suspended, err = r.cfg.Store.SuspendTurn(ctx, e.claim, st.Seq, r.cfg.Now().Add(approvalWait))
		return suspended, err
	})
	switch {
	case err != nil:
		return next, err
	case suspended:
		e.live.Suspended()
		return waits, nil
	}
	st.Approvals = approvals
	e.live.Decided(approvals)
	return next, nil
}

// suspend calls write, which suspends the turn in the store unless its wait is already over. It
// returns errAborted if the turn was cancelled meanwhile.
func (r *Runner) suspend(e *execution, write func(ctx context.Context) (bool, error)) (suspended bool, err error) {
	err = r.persist("suspend turn", func(ctx context.Context) (err error) {
		suspended, err = write(ctx)
		return err
	})
	if errors.Is(err, store.ErrAbortRequested) { // AbortTask has not cancelled ctx yet
		e.cancel(errAborted)
		return false, errAborted
	}
	return suspended, err
}

// DecideApproval approves or denies a tool call or answers a question, and notifies the watchers of
// the turn. It returns an error if the caller may not decide. After the last decision the turn
// continues. Store.Approvals lists the pending decisions.
func (r *Runner) DecideApproval(ctx context.Context, c people.Caller, taskID, id string, d store.Decision) (
	store.Approval, error) {
	a, err := r.cfg.Store.DecideApproval(ctx, c, taskID, id, d)
	if err != nil {
		return a, err
	}
	r.notifyDecided(ctx, a)
	return a, nil
}

// notifyDecided wakes the runner and notifies the watchers of a turn of a decision.
func (r *Runner) notifyDecided(ctx context.Context, a store.Approval) {
	r.notifyNodes()
	r.Wake() // the last decision has put the turn back into the queue
	if err := r.Streams.ApprovalDecided(ctx, a); err != nil {
		// The decision is committed, so the caller gets no error. Watchers get the decision when
		// the turn continues.
		r.cfg.Log.Error("announce a decision", "approval", a.ID, "err", err)
	}
}

// DecisionURL returns the address of a link that decides on an approval.
func (r *Runner) DecisionURL(token string) string { return r.views.DecisionURL(token) }

// PageURL returns the address of the page with the given path, for an organization.
func (r *Runner) PageURL(path, organizationID string) string {
	return r.views.PageURL(path, organizationID)
}

// AlertLines returns the sentences of a message to an alert channel.
func (r *Runner) AlertLines(m store.AlertMessage) []view.AlertLine { return r.views.AlertLines(m) }

// TaskURL returns the address of a task's page.
func (r *Runner) TaskURL(organizationID, id string) string {
	return r.views.TaskURL(organizationID, id)
}

// expireSuspended ends the turns that have waited too long. Turns that wait only for answers
// continue without them.
func (r *Runner) expireSuspended() {
	if r.cfg.Store.Gate.Writable() != nil {
		return // during maintenance no wait expires
	}
	turns, resumed, err := r.cfg.Store.ExpireSuspended(r.ctx, maxExpired)
	if err != nil {
		if r.ctx.Err() == nil {
			r.cfg.Log.Error("end turns whose approvals expired", "err", err)
		}
		return
	}
	// The ends are committed, so an error for one turn must not delay the watchers of the others.
	for _, t := range turns {
		if err := r.notifyEnded(r.ctx, t); err != nil && r.ctx.Err() == nil {
			r.cfg.Log.Error("announce the end of a turn whose approval expired", "turn", t.ID, "err", err)
		}
	}
	if len(turns)+resumed > 0 {
		r.WakeAll() // the next turns of these tasks may run now
	}
}
