package runner

import (
	"context"
	"slices"
	"time"

	"journeyman/runner/prompt"
	"journeyman/runner/sandbox"
	"journeyman/runner/schema"
	"journeyman/runner/stream"
	"journeyman/runner/trace"
	"journeyman/store"
)

// An execution is the state of a claimed turn while it runs. It belongs to one goroutine and
// has no lock. Other goroutines read the turn through live, and may call cancel.
type execution struct {
	claim  store.Claim
	ctx    context.Context // ends with cancel, and with the runner
	cancel context.CancelCauseFunc
	live   *stream.Live
	model  pricedModel // the model that is asked now
	chain  []candidate // models that may be asked, the first choice first
	asking int         // index of model in chain

	setup        *setup // of the runner, when the chain was opened
	modelChanges int64  // of the runner, when the chain was opened
	probes       bool   // model has failed before, and this turn tests whether it answers again
	tools        toolset
	schema       *schema.Schema // of the output; nil for free text
	team         *team          // nil for a turn that neither has a parent nor has run a worker
	ws           *sandbox.Workspace

	// The next request to the model.
	prompt   *prompt.Prompt
	rendered int           // number of steps that are in the prompt
	estimate int64         // tokens of the next request, not calibrated
	window   prompt.Window // of the model; narrower than the price table says after a refusal

	// The progress of the turn.
	steps        []store.Step // the journal
	resumed      bool         // an earlier claim wrote the last step: its tool calls may have been interrupted
	used         store.Usage
	lostUsage    store.Usage   // of the newest call that failed or was cut off; charged already
	worked       time.Duration // in earlier claims
	startedAt    time.Time     // of this claim
	stamped      time.Time     // the last result of stamp
	attempts     int64         // of the step in progress
	stepBegun    time.Time     // of the step in progress; zero between two steps
	stepSpan     *trace.Span   // of the step in progress; nil between two steps, and if nothing is traced
	repairs      int           // answers sent back because they broke the schema
	retriedEmpty bool          // after an empty answer
	limit        string        // the limit that the turn has reached: it makes one last call; "" for none
	published    bool          // a tool may have published a file
	finished     bool          // the turn's end is in the database

	// Model calls that have failed since the last successful one.
	failingSince *time.Time // time of the first of them; nil without one
	failedCalls  int64      // how many of them this claim has made
}

// A team holds the bounds that the turns above a turn set for it.
type team struct {
	rootID string
	time   time.Duration // the time that the turns above have left; 0 for no limit
	kept   int64         // nano-dollars that the turns above need for their last calls
}

// withLast returns steps and, unless it is nil, the step after them.
func withLast(steps []store.Step, last *store.Step) []store.Step {
	if last == nil {
		return steps
	}
	return append(slices.Clip(steps), *last) // Clip makes append copy: the journal must not grow
}

// renderSteps adds new steps to the prompt. Their tool calls must have ended, unless the turn
// is out of time and runs no more of them.
func (e *execution) renderSteps() {
	for ; e.rendered < len(e.steps); e.rendered++ {
		e.prompt.AddStep(e.steps[e.rendered])
	}
	e.estimate = e.prompt.Estimate()
}
