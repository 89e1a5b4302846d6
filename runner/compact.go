package runner

import (
	"context"
	"errors"
	"fmt"

	"journeyman/runner/model"
	"journeyman/runner/prompt"
	"journeyman/store"
)

// restoreCompactions applies the compactions of earlier claims and turns of the task to the prompt.
// It narrows the windows of models that have refused requests as too long.
func (r *Runner) restoreCompactions(ctx context.Context, e *execution) error {
	c := e.claim
	for i := range e.chain {
		m := &e.chain[i]
		m.Window = prompt.Window{Size: r.Models.ContextWindow(m.Priced), MaxOutput: int64(m.MaxOutput())}
	}
	defer func() { e.model, e.window = e.chain[0].Priced, e.chain[0].Window }() // until chooseModel
	if c.Seq == 0 && c.Claims <= 1 {
		return nil // no earlier turn or claim
	}
	made, err := r.cfg.Store.Compactions(ctx, c)
	if err != nil {
		return fmt.Errorf("read compactions: %w", err)
	}
	for _, m := range made {
		if m.Kind == store.CompactionOmission && m.TurnNum != c.Num {
			continue // an omission replaces a failed summary; this turn may be able to write it
		}
		e.prompt.Restore(m)
		if m.TurnNum == c.Num { // the times of steps do not include summaries
			e.worked += m.CompletedAt.Sub(m.StartedAt)
		}
		for i := range e.chain {
			if m.Refused && m.Model == e.chain[i].Name() {
				e.chain[i].Window.Remember(m.Room)
			}
		}
	}
	return nil
}

// makeRoom compacts the conversation until it fits into the window of the turn's model. refusal is
// the error of a provider that refused the request as too long, or nil before the call. makeRoom returns
// refusal if nothing can be left out.
func (r *Runner) makeRoom(ctx context.Context, e *execution, refusal error) error {
	e.renderSteps()
	before, made := e.prompt.Calibrated(e.estimate), false
	if refused, ok := errors.AsType[*model.Error](refusal); ok {
		// The provider's count is more precise than the estimate: always compact.
		e.window.Refuse(before, refused)
		r.learnWindow(e, refused.Window)
	} else if before <= e.window.Room() {
		return nil
	}
	compactor := prompt.NewCompactor(e.prompt, e.window)
	// Each proposal is journaled before the next one, so a crash repeats at most one summary.
	for p := range compactor.Proposals() {
		if err := r.compact(ctx, e, compactor, p, refusal != nil); err != nil {
			return err
		}
		made = true
	}
	e.estimate = e.prompt.Estimate()
	after := e.prompt.Calibrated(e.estimate)
	e.log.Info("conversation shortened", "model", e.model.Name(), "room", e.window.Room(), "before", before,
		"after", after, "refused", refusal != nil)
	if !made {
		return refusal
	}
	return nil
}

// compact applies a proposal and journals it. After a crash, the next claim reads it from the
// journal and does not pay for the summary again.
func (r *Runner) compact(ctx context.Context, e *execution, c *prompt.Compactor, p prompt.Proposal,
	refused bool) error {
	m, started := p.Compaction, r.cfg.Now()
	if p.Summary != nil {
		a, err := r.summarise(ctx, e, *p.Summary)
		if err != nil {
			return err
		}
		defer a.Reserved.Settle() // once the cost is in the database
		text := ""
		if a.resp.Finish != model.FinishRefused {
			text = store.AnswerText([]store.Step{a.step})
		}
		m = p.Summarised(text)
		m.Usage = a.step.Usage
	}
	// Apply must precede the journal, because it computes the tokens after the compaction. If the
	// write fails, the execution ends.
	m = c.Apply(m)
	m.TurnNum, m.Step, m.Model, m.Refused = e.claim.Num, int64(len(e.steps)), e.model.Name(), refused
	m.StartedAt, m.CompletedAt = started, r.cfg.Now()
	e.used = e.used.Add(m.Usage)
	return r.persist("journal compaction", func(ctx context.Context) error {
		return r.cfg.Store.JournalCompaction(ctx, e.claim, m)
	})
}

// summarise asks the model to write a summary. The answer is empty if the turn must keep its credits
// for its own answer, or if the provider refuses the request for its length or content. A note instead of the
// summary is better than a failed turn.
func (r *Runner) summarise(ctx context.Context, e *execution, req model.Request) (a answer, err error) {
	c := modelCall{req: req, estimate: prompt.EstimateRequest(req), summary: true}
	err = r.retry(ctx, e, func() (err error) {
		a, err = r.call(ctx, e, c)
		if me, ok := errors.AsType[*model.Error](err); ok && (me.TooLong() || me.Filtered()) {
			e.logCall("the model writes no summary", err)
			a, err = answer{}, nil
		}
		if err == nil && a.made {
			a.step = r.asStep(a.step, a.resp, e.model)
		}
		return err
	})
	return a, err
}
