package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"journeyman/runner/tool"
	"journeyman/store"
)

// maxApprovals bounds the calls of one step that people are asked about.
const maxApprovals = 32

// approvalWait is how long a turn rests before it is given up.
const approvalWait = 7 * 24 * time.Hour

// errRests ends the work on a turn for as long as it waits for people.
var errRests = errors.New("the turn rests until its tool calls are decided on")

// approvals are what must be asked before the calls of a step may run. Calls that
// fail without running need none.
func (r *Runner) approvals(w *work, st store.Step) []store.Approval {
	var list []store.Approval
	for _, c := range toolCalls(st) {
		if len(list) < maxApprovals && w.asksFor(c.ToolName) && inputError(c.Input) == "" && r.tool(w, c.ToolName) != nil {
			list = append(list, store.Approval{ID: store.NewID("apr", r.cfg.Now()), Step: st.Seq, Call: c.n, ToolName: c.ToolName,
				ToolCallID: c.CallID, Input: c.Input, Status: store.ApprovalPending, CreatedAt: r.cfg.Now()})
		}
	}
	return list
}

// asksFor reports whether calls of a tool need approval. The tools of other people's
// servers may be named as models know them, or as the worker is offered them: a name
// that is taken and asks for nothing would be believed to protect.
func (w *work) asksFor(name string) bool {
	named := func(name string) bool { return slices.Contains(w.claim.Settings.ApprovalTools, name) }
	return named(name) || slices.ContainsFunc(w.offered.Tools, func(o tool.Offered) bool {
		return o.Name == name && (named(o.Server) || named(o.Server+"."+o.Tool))
	})
}

// tellAsking has the model know which of its tools ask first.
func (w *work) tellAsking() {
	if len(w.claim.Settings.ApprovalTools) == 0 {
		return
	}
	w.tools = slices.Clone(w.tools) // others share them
	for i, t := range w.tools {
		if w.asksFor(t.Name) {
			w.tools[i].Description += " A person decides on each call before it runs, and may deny it."
		}
	}
}

// awaitDecisions fails with errRests where people have to decide on calls of the
// step: the turn is not this runner's any more.
func (r *Runner) awaitDecisions(ctx context.Context, w *work, st *store.Step) error {
	pending := func(a store.Approval) bool { return a.Status == store.ApprovalPending }
	if !slices.ContainsFunc(st.Approvals, pending) {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var approvals []store.Approval
	var rests bool
	err := r.persist(func(ctx context.Context) (err error) {
		approvals, rests, err = r.cfg.Store.RestTurn(ctx, w.claim, st.Seq, r.cfg.Now().Add(approvalWait))
		return err
	})
	switch {
	case errors.Is(err, store.ErrAbortRequested): // whoever asked for it may not have come to cancel ctx yet
		w.live.cancel(errAborted)
		return errAborted
	case err != nil:
		return fmt.Errorf("rest: %w", err)
	case rests:
		w.live.rests = true
		return errRests
	}
	st.Approvals = approvals
	w.live.decided(approvals)
	r.feedRing(w.live)
	return nil
}

// finishDecided runs a call that was approved, or tells the model that it was not.
func (r *Runner) finishDecided(ctx context.Context, w *work, st *store.Step, c toolCall, a store.Approval) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if a.Status != store.ApprovalApproved {
		out, err := callOutput(nil, tool.Errorf("%s", deniedText(a)))
		if err != nil {
			return err
		}
		call := store.Call{Step: st.Seq, Seq: c.n, State: store.CallFailed, Output: out, StartedAt: r.cfg.Now()}
		return r.journalCall(w, st, call, &host{r: r, w: w})
	}
	begun := a.BegunAt != nil
	if !begun {
		// From here on nobody may believe that the call has not begun.
		err := r.persist(func(ctx context.Context) error { return r.cfg.Store.BeginApproved(ctx, w.claim, a.ID) })
		if err != nil {
			return fmt.Errorf("begin approved call: %w", err)
		}
	}
	return r.finishCall(ctx, w, st, c, begun)
}

// deniedText is what the model hears of a call that was denied.
func deniedText(a store.Approval) string {
	if a.Reason == "" {
		return "a person has denied this call"
	}
	return "a person has denied this call: " + a.Reason
}

// DecideApproval approves or denies a tool call for whoever may, as the store's
// DecideApproval says, has the turn go on after the last decision, and tells those
// who watch it. It is what every front door calls; Store.Approvals lists what there
// is to decide.
func (r *Runner) DecideApproval(ctx context.Context, c store.Caller, taskID, id string, d store.Decision) (store.Approval, error) {
	a, err := r.cfg.Store.DecideApproval(ctx, c, taskID, id, d)
	if err != nil {
		return a, err
	}
	r.Wake()
	r.ended.fire(a.TurnID) // those who stream it look again
	if r.rings.get(a.WorkerID) == nil {
		return a, nil
	}
	v, err := r.lookUp(ctx, a.TurnID)
	if err != nil {
		// The decision is made: who watches sees it when the turn goes on.
		r.cfg.Log.Error("tell of a decision", "approval", a.ID, "err", err)
		return a, nil
	}
	r.feedResting(v)
	return a, nil
}

// expireRests ends what has rested for too long.
func (r *Runner) expireRests() {
	turns, err := r.cfg.Store.ExpireRests(r.ctx, maxExpired)
	if err != nil {
		if r.ctx.Err() == nil {
			r.cfg.Log.Error("end turns that nobody decided on", "err", err)
		}
		return
	}
	for _, t := range turns {
		if err := r.tellEnded(r.ctx, t); err != nil && r.ctx.Err() == nil {
			r.cfg.Log.Error("tell of a turn that nobody decided on", "turn", t.ID, "err", err)
		}
	}
	if len(turns) > 0 {
		r.Wake() // what comes after them may run
	}
}

// maxExpired bounds the turns that are ended at once.
const maxExpired = 100

// A toolCall is one of a step's, with its number.
type toolCall struct {
	store.Part
	n int64
}

// toolCalls are a step's, in order.
func toolCalls(st store.Step) []toolCall {
	var list []toolCall
	for _, p := range st.Parts {
		if isCall(p) {
			list = append(list, toolCall{p, int64(len(list))})
		}
	}
	return list
}

// approvalData tells of an approval and its decision.
type approvalData struct {
	ApprovalID string               `json:"approvalId"`
	ToolCallID string               `json:"toolCallId"`
	ToolName   string               `json:"toolName"`
	Status     store.ApprovalStatus `json:"status"`
	Reason     string               `json:"reason,omitempty"`
}

func approvalChunk(a store.Approval, status store.ApprovalStatus, reason string) chunk {
	return chunk{Type: "data-approval", Transient: true, Data: approvalData{a.ID, a.ToolCallID, a.ToolName, status, mended(reason)}}
}

// requests gives what is asked about a step's calls.
func (rd *reader) requests(v view, st store.Step) {
	for _, a := range st.Approvals {
		at := position{v.turn.Num, st.Seq, st.Attempt, slotRequests + a.Call, 0}
		rd.putAt(v, at, approvalChunk(a, store.ApprovalPending, ""))
		if rd.approvals {
			at.offset = 1
			rd.putAt(v, at, chunk{Type: "tool-approval-request", ApprovalID: a.ID, ToolCallID: a.ToolCallID})
		}
	}
}

// decisions gives what was answered, in the order in which it was.
func (rd *reader) decisions(v view, st store.Step) {
	decided := slices.DeleteFunc(slices.Clone(st.Approvals), func(a store.Approval) bool { return !a.Decided() })
	slices.SortFunc(decided, func(a, b store.Approval) int { return int(a.Decision - b.Decision) })
	for _, a := range decided {
		rd.putAt(v, position{v.turn.Num, st.Seq, st.Attempt, slotDecisions + a.Decision, 0}, approvalChunk(a, a.Status, a.Reason))
	}
}

// A uiApproval is what readers of the AI SDK 6 keep of an approval in the part of
// its call.
type uiApproval struct {
	ID       string `json:"id"`
	Approved *bool  `json:"approved,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// approvalPart gives the part of a call the states and the approval that readers of
// the AI SDK 6 know. A call that ended without a decision was denied, for them.
func approvalPart(part uiPart, a store.Approval) uiPart {
	part.Approval = &uiApproval{ID: a.ID}
	approved := a.Status == store.ApprovalApproved
	ended := part.State != "input-available"
	switch {
	case approved && ended:
		part.Approval.Approved = &approved
		part.Approval.Reason = mended(a.Reason)
	case a.Decided() && !ended:
		part.State, part.Approval.Approved, part.Approval.Reason = "approval-responded", &approved, mended(a.Reason)
	case !ended:
		part.State = "approval-requested"
	default:
		part.Approval.Approved, part.Approval.Reason = &approved, mended(a.Reason)
		if !a.Decided() {
			part.Approval.Reason = part.ErrorText
		}
		part.State, part.ErrorText = "output-denied", ""
	}
	return part
}
