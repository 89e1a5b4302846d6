package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"journeyman/runner/budget"
	"journeyman/runner/model"
	"journeyman/runner/prompt"
	"journeyman/runner/schema"
	"journeyman/store"
)

// run loads a claimed turn, and runs it until it ends or waits. It returns nil then, and otherwise the reason why
// the turn cannot go on. If it panics, only this turn fails.
func (r *Runner) run(ctx context.Context, e *execution) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if e.model.Model != nil {
				r.Models.Outages.Leave(e.model.ID, e.claim.ID) // a probe blocks all other turns
			}
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	// The chain comes first: readConversation adapts the prompt to its models.
	var noModel error
	e.modelChanges = r.Models.Changes() // before the chain, so that no change is missed
	e.chain, noModel = r.Models.Chain(ctx, e.claim.OrganizationID, e.claim.Settings.Model)
	if err := cmp.Or(r.load(ctx, e), noModel); err != nil {
		return err // load a turn without a model too, so that its end keeps its earlier output
	}
	if err := r.restoreCompactions(ctx, e); err != nil {
		return err
	}
	// After restoreCompactions, which sets the model: the tools depend on its window and on its
	// support for images.
	if err := r.loadToolset(ctx, e); err != nil {
		return err
	}
	defer r.endStep(e)
	return r.loop(ctx, e)
}

// load reads the state from which the turn continues: the journal of its earlier claims, and the
// earlier turns of its task.
func (r *Runner) load(ctx context.Context, e *execution) (err error) {
	c := e.claim
	if c.AbortRequested {
		e.cancel(errAborted)
	}
	if c.OutputSchema != nil {
		if e.schema, err = schema.Compile(c.OutputSchema); err != nil {
			return fmt.Errorf("compile output schema: %w", err)
		}
	}
	// In its first claim, a root turn has no children. endCall loads the team at the first child.
	if c.Claims > 1 || c.Depth > 0 {
		if err := r.loadTeam(ctx, e); err != nil {
			return fmt.Errorf("read team: %w", err)
		}
	}
	var children []store.Child
	if c.Claims > 1 {
		if children, err = r.cfg.Store.Children(ctx, c.Turn); err != nil {
			return fmt.Errorf("read children: %w", err)
		}
		if e.steps, err = r.cfg.Store.Journal(ctx, c.Turn); err != nil {
			return fmt.Errorf("read journal: %w", err)
		}
		e.used, e.worked, e.failingSince = c.Usage, store.Worked(e.steps), c.FailingSince
		// These counters apply to the whole turn, so each claim restores them from the journal.
		for _, st := range e.steps {
			switch {
			case st.Feedback == askAnswer:
				e.retriedEmpty = true
			case isMistake(st): // counted in a row, not in the turn
			case st.Feedback != "" && st.Finish != store.FinishContinued:
				e.repairs++
			}
			e.published = e.published || len(st.Calls) > 0
		}
		e.resumed = len(e.steps) > 0
	}
	var attached []store.File
	if attached, err = r.readConversation(ctx, e); err != nil {
		return fmt.Errorf("read conversation: %w", err)
	}
	// Calibrate with the steps of this turn last, because the newest call counts most.
	for _, st := range e.steps {
		e.prompt.Calibrate(st)
	}
	// Until this call, watchers read the turn from the store.
	e.live.Loaded(e.steps, children, attached)
	return nil
}

// readConversation adds the conversation of the task to the prompt. The last message is the turn's
// own instruction. readConversation returns the files attached to it.
func (r *Runner) readConversation(ctx context.Context, e *execution) ([]store.File, error) {
	c := e.claim
	e.prompt = prompt.New(c, r.filesOf(e))
	e.prompt.Hints = true
	for _, m := range e.chain {
		// A model in this process parses tool results as data, and hints in them would break that.
		e.prompt.Hints = e.prompt.Hints && !model.Local(m.Model)
		e.prompt.Marks = e.prompt.Marks || !model.Local(m.Model)
		_, name, _ := strings.Cut(m.Name(), ":")
		e.prompt.Models = append(e.prompt.Models, name)
	}
	if c.Seq > 0 {
		conv, err := r.cfg.Store.Conversation(ctx, c)
		if err != nil {
			return nil, err
		}
		for _, t := range conv.Turns {
			if t.Seq < c.Seq { // a later turn has no answer yet, and must not change this one
				e.prompt.AddInstruction(t, store.TurnFiles(conv.Files, t.Num, store.Attached))
				e.prompt.AddSteps(t, conv.Steps[t.Num])
			}
		}
	}
	var attached []store.File
	if c.HasFiles {
		files, err := r.cfg.Store.FilesByTurn(ctx, c.Turn)
		if err != nil {
			return nil, err
		}
		attached = store.TurnFiles(files, c.Num, store.Attached)
	}
	e.prompt.AddInstruction(c.Turn, attached)
	return attached, nil
}

// errOutOfTime is the cause of contexts that end with the time budget.
var errOutOfTime = errors.New("the time budget is used up")

// loop is the agent loop. It alternates between tool calls and model calls, until an answer, a
// limit or a failure. It returns nil if the turn's end is in the database, or if the turn waits.
func (r *Runner) loop(turn context.Context, e *execution) error {
	ctx, limit := turn, r.timeLimit(e)
	if limit != 0 {
		var cancel context.CancelFunc
		// The work of earlier claims counts. The times in the queue and of suspensions do not.
		e.outOfTime = time.Now().Add(max(limit-e.worked, 0))
		ctx, cancel = context.WithDeadlineCause(turn, e.outOfTime, errOutOfTime)
		defer cancel()
	}
	for {
		var out outcome
		var err error
		// Run tools first: after a restart the journal may end with calls that have no result.
		if e.limit != budget.LimitTime { // a turn that is out of time runs no more tools
			out, err = r.finishCalls(ctx, e)
		}
		if err == nil && out == next {
			out, err = r.step(ctx, e)
		}
		switch {
		case err == nil && out == next:
		case err == nil:
			return nil
		case errors.Is(err, errLastCall):
			return r.conclude(e, r.partialStep(e), budgetEnd(e.last.limit))
		// A lost turn belongs to another execution. This execution must not write any more, even if the
		// time is over.
		case !errors.Is(context.Cause(ctx), errOutOfTime) || errors.Is(err, store.ErrClaimLost):
			return err
		case e.limit == budget.LimitTime: // even the last call took too long
			return r.conclude(e, r.partialStep(e), budgetEnd(budget.LimitTime))
		default: // the time is over: one more call writes the answer
			e.limit = budget.LimitTime
			// The new context derives from turn, because ctx has ended. A cancellation still ends
			// it.
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(turn, wrapUp(limit), errOutOfTime)
			defer cancel()
		}
	}
}
