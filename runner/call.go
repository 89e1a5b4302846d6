package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"journeyman/runner/tool"
	"journeyman/runner/view"
	"journeyman/runner/workspace"
	"journeyman/store"
	"journeyman/store/db"
)

// maxToolOutput limits the result of a tool, in bytes.
const maxToolOutput = 256 << 10

// maxParallel limits the calls of a turn that run in parallel.
const maxParallel = 8

// finishCalls runs the tool calls of the last step that have no result in the journal. It first
// runs the calls that need no approval. The others run after people have decided.
func (r *Runner) finishCalls(ctx context.Context, e *execution) (outcome, error) {
	// Only the first round of a claim can find calls that an earlier claim has begun.
	cut := e.resumed
	e.resumed = false
	if len(e.steps) == 0 || !wantsTools(e.steps[len(e.steps)-1]) {
		return next, nil
	}
	st := &e.steps[len(e.steps)-1]
	// Run these calls before waiting for people, because the wait may take days.
	if out, err := r.runCalls(ctx, e, st, openCalls(*st, false), cut); err != nil || out != next {
		return out, err
	}
	if out, err := r.awaitDecisions(ctx, e, st); err != nil || out != next {
		return out, err
	}
	// cut is false: the approval of each call records whether the call has begun.
	return r.runCalls(ctx, e, st, openCalls(*st, true), false)
}

// openCalls returns the calls of a step that have not ended: those that need approval, or
// the others.
func openCalls(st store.Step, approval bool) []store.ToolCall {
	return slices.DeleteFunc(st.ToolCalls(), func(c store.ToolCall) bool {
		_, asks := st.Approval(c.N)
		_, ended := st.Call(c.N)
		return ended || asks != approval
	})
}

// runCalls runs calls of a step in their order. Successive calls run in parallel if their tools
// permit that. Any other call runs alone, after all calls before it. cut means that an earlier
// claim may have been interrupted while calls of the step were running.
func (r *Runner) runCalls(ctx context.Context, e *execution, st *store.Step, calls []store.ToolCall, cut bool) (
	outcome, error) {
	for i, c := range calls {
		calls[i] = e.tools.Fitted(c)
	}
	for len(calls) > 0 {
		n := e.tools.Parallel(calls)
		later, err := r.runBatch(ctx, e, st, calls[:n], cut)
		if err != nil {
			return next, err
		}
		// Later calls cannot have begun, because they wait for the calls before them.
		calls, cut = calls[n:], false
		if len(later) == 0 {
			continue
		}
		if out, err := r.awaitChildren(ctx, e, later); err != nil || out != next {
			return out, err
		}
		// The child turns have ended, so the repeated calls return the results.
		for _, run := range slices.Backward(later) {
			calls = slices.Insert(calls, 0, run.ToolCall)
		}
	}
	return next, nil
}

// errOtherFailed cancels the context of a batch of parallel calls after one of them has ended the
// turn.
var errOtherFailed = errors.New("another call has failed")

// runBatch runs calls in parallel and journals each call when it ends. It returns after all calls
// that it started have ended. later holds the calls whose results come from other turns.
func (r *Runner) runBatch(ctx context.Context, e *execution, st *store.Step, calls []store.ToolCall, cut bool) (
	later []*callRun, failed error) {
	batch, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	fail := func(err error) {
		if failed == nil { // later errors are only consequences of the cancellation
			failed = err
		}
		stop(errOtherFailed)
	}
	// Tools run in their own goroutines. Only this goroutine writes to the journal and to e.
	ended := make(chan *callRun, len(calls))
	for begun, running := 0, 0; ; {
		for begun < len(calls) && running < maxParallel && batch.Err() == nil {
			// Calls begin in their order. So after a crash, only the first maxParallel calls
			// without a result can have begun.
			run, err := r.beginCall(batch, e, st, calls[begun], cut && begun < maxParallel)
			begun++
			if err != nil {
				fail(err)
				break
			}
			running++
			go func() { r.runTool(batch, run); ended <- run }()
		}
		if running == 0 {
			break
		}
		run := <-ended // also after a failure: a tool must not act after its turn has ended
		running--
		waits, err := r.endCall(batch, e, st, run)
		if err != nil {
			fail(err)
		}
		if waits {
			later = append(later, run)
		}
	}
	if failed != nil {
		return nil, failed
	}
	// The results are in the journal, so a cancellation or the time limit may now end the turn.
	return later, context.Cause(ctx)
}

// beginCall prepares a tool call. It does not run the tool if the call is refused, or if an
// interrupted call must not be repeated.
func (r *Runner) beginCall(ctx context.Context, e *execution, st *store.Step, c store.ToolCall, cut bool) (
	*callRun, error) {
	run := &callRun{ToolCall: c, host: &toolHost{r: r, e: e, at: e.stamp(r.cfg.Now()),
		place: store.CallPlace{Turn: e.claim.Turn, RunnerID: e.claim.RunnerID, Step: st.Seq, Call: c.N}},
		row: store.Call{Step: st.Seq, Seq: c.N, State: store.CallCompleted, StartedAt: r.cfg.Now()}}
	if a, asked := st.Approval(c.N); asked {
		if a.Kind == store.KindQuestion { // the answer is the result, so no tool runs
			run.row.Output, run.err = answerTo(a)
			return run, nil
		}
		if run.err = denial(a); run.err != nil {
			return run, nil
		}
		cut = a.StartedAt != nil
		if !cut {
			// The mark is committed before the call runs. After a crash, a marked call may not have
			// run, but every call that has run is marked.
			err := r.persist("begin approved call", func(ctx context.Context) error {
				return r.cfg.Store.BeginApproved(ctx, e.claim, a.ID)
			})
			if err != nil {
				return nil, err
			}
		}
	}
	t, err := r.callable(e, *st, c)
	if err == nil && e.team != nil && e.tools.IsRemote(c.ToolName) {
		// Before a crash or a suspension, the call may have started a turn through this server's
		// own /mcp. Then it is not sent again, and the result of that turn is its result.
		child, found, err := r.cfg.Store.ChildOf(ctx, run.host.place)
		if err != nil {
			return nil, fmt.Errorf("read child: %w", err)
		}
		if found {
			t = laterResult{child}
		}
	}
	switch {
	case err != nil:
		run.err = err
		return run, nil
	case cut && !t.Spec().Repeatable:
		run.row.State = store.CallInterrupted
		run.err = tool.Errorf(
			"the service stopped during this call, which may have taken effect: check before repeating it")
		return run, nil
	}
	run.tool, run.err = t, r.retryWhileExhausted(ctx, e, func() error { return r.openWorkspace(e) })
	return run, nil
}

// denial returns the error for a call without approval, or nil for an approved call.
func denial(a store.Approval) error {
	if a.Status == store.ApprovalApproved {
		return nil
	}
	why := "a person has denied this call"
	if a.Reason != "" {
		why += ": " + a.Reason
	}
	return tool.Errorf("%s", why)
}

// callable returns the tool of a call, or an error that tells the model why the call must not run.
func (r *Runner) callable(e *execution, st store.Step, c store.ToolCall) (tool.Tool, error) {
	// The text of this error tells the model to write less, which InputError alone does not.
	if st.Finish == store.FinishContinued && view.InputError(c.Input) != "" {
		return nil, tool.Errorf("%s", callCutOff)
	}
	t, err := e.tools.Check(c)
	if err != nil {
		return nil, err
	}
	// The step was journaled without an approval for this call: see maxApprovals.
	if _, asked := st.Approval(c.N); !asked && e.tools.NeedsApproval(c.ToolName, c.Input) {
		return nil, tool.Errorf("at most %d calls at once may wait for approval: ask for this one later", maxApprovals)
	}
	return t, nil
}

// endCall journals a tool call that has ended. The model gets the text of a *tool.Error or a
// *workspace.Error. Any other error ends the turn. If later is true, the result will come from
// another turn, and endCall journals nothing.
func (r *Runner) endCall(ctx context.Context, e *execution, st *store.Step, run *callRun) (later bool, err error) {
	// The first child makes this turn a root, whose budget is then shared with its team.
	if e.team == nil && (run.host.started || e.tools.IsRemote(run.ToolName)) {
		if err := r.loadTeam(ctx, e); err != nil && ctx.Err() == nil {
			return false, fmt.Errorf("read team: %w", err)
		}
	}
	if errors.Is(run.err, tool.ErrLater) {
		if later, err = r.waits(ctx, run); later || err != nil {
			return later, err
		}
	}
	call, err := run.row, run.err
	if err != nil && call.State != store.CallInterrupted {
		call.State = store.CallFailed
		if run.tool != nil && ctx.Err() != nil {
			// When the runner stops or loses its lease, the call gets no result. The next claim repeats the
			// call, or reports the interruption to the model.
			if interrupted(ctx) {
				return false, context.Cause(ctx)
			}
			call.State = store.CallInterrupted
			err = tool.Errorf("the call was cut off and may have taken effect: %s", context.Cause(ctx))
		}
	}
	if call.Output, err = callOutput(call.Output, err); err != nil {
		return false, fmt.Errorf("tool %s: %w", run.ToolName, err)
	}
	if call.State == store.CallInterrupted {
		// The call may be incomplete, so none of its files, sources and images are published.
		run.host.files, run.host.sources, run.host.images = nil, nil, nil
	}
	return false, r.journalCall(e, st, call, run.host)
}

// journalCall writes a tool call that has ended to the journal, and adds it to the turn. The call's
// files and sources in h are committed in the same transaction.
func (r *Runner) journalCall(e *execution, st *store.Step, call store.Call, h *toolHost) error {
	call.CompletedAt, call.Images = completedAfter(*st, r.cfg.Now()), h.images
	// If the result comes from another turn, count the time that the turn worked, not the wait.
	if h.took > 0 {
		call.StartedAt = call.CompletedAt.Add(-h.took)
	}
	// Read it once: a write that is repeated must not store other numbers than those in memory.
	err := r.persist("read what the team has used", func(ctx context.Context) (err error) {
		call.Spent, err = r.spentAfter(ctx, e, call)
		return err
	})
	if err != nil {
		return err
	}
	err = r.persist("journal tool call", func(ctx context.Context) error {
		return r.cfg.Store.JournalCall(ctx, e.claim, call, h.files, h.sources)
	})
	if err != nil {
		return err
	}
	// Only after the commit: watchers must not see a result that a crash would undo.
	st.Calls = append(st.Calls, call)
	e.used.ToolCost += call.Cost
	e.published = e.published || len(h.files)+len(h.sources) > 0
	e.live.CallEnded(call)
	return nil
}

// completedAfter returns the end time of a call: now, or later if a call of the step has that time.
// So the times keep the order in which watchers see the ends, at the journal's precision of a
// millisecond.
func completedAfter(st store.Step, now time.Time) time.Time {
	now = now.Truncate(time.Millisecond)
	for _, c := range st.Calls {
		if !c.CompletedAt.Before(now) {
			now = c.CompletedAt.Truncate(time.Millisecond).Add(time.Millisecond)
		}
	}
	return now
}

// runTool runs the tool of a call, unless the call must not run. A panic of the tool makes
// only this call fail.
func (r *Runner) runTool(ctx context.Context, run *callRun) {
	if run.tool == nil || run.err != nil {
		return
	}
	if run.err = r.mayAct(ctx, run.host.e); run.err != nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			run.host.e.log.Error("tool panicked", "tool", run.ToolName, "panic", p, "stack", string(debug.Stack()))
			run.err = tool.Errorf("the tool failed")
		}
	}()
	ctx, ended := r.beginTool(ctx, run)
	defer ended()
	out, err := r.runPatiently(ctx, run)
	// Remove secrets here: every result passes through this function before anybody reads it.
	switch {
	case err != nil:
		run.err = run.host.e.tools.Secrets.ScrubError(err)
	case len(out) > maxToolOutput:
		run.err = tool.Errorf("the result has %d bytes, more than the %d a tool may give", len(out), maxToolOutput)
	case !json.Valid(out):
		run.err = errors.New("its result is not JSON")
	default:
		// Cleaned here, so that the journal, streams and messages contain the same bytes.
		run.row.Output = view.CleanOutput(run.host.e.tools.Secrets.Scrub(out))
	}
}

// mayAct returns an error if a tool of an execution must not begin now. Opening the workspace may have
// taken very long: another runner may have the turn, and this runner may have a new lease.
func (r *Runner) mayAct(ctx context.Context, e *execution) error {
	if !r.holdsLease() {
		r.fence() // cancels ctx, so the call gets no result
	}
	if e.claim.RunnerID != r.ID() {
		e.cancel(errLeaseLost)
	}
	return context.Cause(ctx)
}

// callOutput returns the output of a call for the journal: its result, or an error message for the
// model. It returns any other error unchanged.
func callOutput(out json.RawMessage, err error) (json.RawMessage, error) {
	if te, ok := errors.AsType[*tool.Error](err); ok {
		return json.Marshal(view.ValidText(te.Message))
	}
	if se, ok := errors.AsType[*workspace.Error](err); ok {
		return json.Marshal(view.ValidText(se.Message))
	}
	if full, ok := errors.AsType[*db.Error](err); ok && full.Kind == db.Full {
		return json.Marshal(full.Message)
	}
	return out, err
}

// stamp returns now, or a later time that is greater than all results before. Source ids contain
// these times, so sources are listed in the order in which their calls began.
func (e *execution) stamp(now time.Time) time.Time {
	if last := e.stamped.Add(time.Millisecond); now.Before(last) {
		now = last
	}
	e.stamped = now
	return now
}
