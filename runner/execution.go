package runner

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"journeyman/runner/models"
	"journeyman/runner/prompt"
	"journeyman/runner/schema"
	"journeyman/runner/stream"
	"journeyman/runner/toolset"
	"journeyman/runner/trace"
	"journeyman/runner/workspace"
	"journeyman/store"
)

// An execution is the state of a claimed turn while it runs. Only one goroutine uses it, without a
// lock. Other goroutines read the turn through live, and may call cancel.
type execution struct {
	claim  store.Claim
	log    *slog.Logger    // adds the ids of the turn to each line
	ctx    context.Context // ends with cancel, and with the runner
	cancel context.CancelCauseFunc
	live   *stream.Live

	modelState
	nextRequest
	callState
	progress
	spending
}

// A modelState says which models a turn asks, and how they have failed it.
type modelState struct {
	model        models.Priced      // the model that is asked now
	chain        []models.Candidate // models that may be asked, in order of preference
	asking       int                // index of model in chain
	modelChanges int64              // the result of Models.Changes when the chain was opened
	probes       bool               // the model has failed before, and this turn tests whether it answers again
	failingSince *time.Time         // time of the first failed call since the last successful one; nil without one
	failedCalls  int64              // calls of this claim that have failed since then
}

// A nextRequest is what a turn sends to its model next.
type nextRequest struct {
	prompt   *prompt.Prompt
	rendered int            // number of steps that are in the prompt
	estimate int64          // tokens of the next request, not calibrated
	window   prompt.Window  // of the current model; a refusal narrows it
	begun    bool           // the latest model call has produced something
	schema   *schema.Schema // of the output; nil for free text
}

// A callState is what the tool calls of a turn share.
type callState struct {
	tools     toolset.Set
	ws        *workspace.Workspace // nil until a call needs it
	stamped   time.Time            // the last result of stamp
	published bool                 // a tool may have published a file
}

// A progress is what a turn has done so far.
type progress struct {
	steps        []store.Step  // the journal
	resumed      bool          // an earlier claim wrote the last step: its calls may be interrupted
	worked       time.Duration // in earlier claims
	startedAt    time.Time     // of this claim
	attempts     int64         // of the step in progress
	stepBegun    time.Time     // of the step in progress; zero between two steps
	stepSpan     *trace.Span   // of the step in progress; nil between two steps, and if nothing is traced
	repairs      int           // number of answers sent back because they did not match the schema
	retriedEmpty bool          // after an empty answer
	finished     bool          // the turn's end is in the database
}

// A spending is what a turn has used, and which limits of its budget it has reached.
type spending struct {
	used      store.Usage
	lostUsage store.Usage // of the newest call that failed or was interrupted; already charged
	team      *team       // nil if the turn has no parent and has not run a worker
	limit     string      // the limit that is reached: the turn makes its last call; "" for none
	last      lastCall
	outOfTime time.Time // end of the time budget; zero for none
}

// An outcome says what follows a step of a turn. Beside an error it has no meaning.
type outcome int

const (
	next  outcome = iota // the turn continues
	ended                // the turn's end is in the database
	waits                // the turn waits without a slot for people, a model or its children: the store queues it again
)

// A team holds the limits that result from the turns above a turn.
type team struct {
	rootID string
	time   time.Duration // the remaining time of the turns above; 0 for no limit
	kept   int64         // nano-dollars kept for the last calls of the turns above
}

// withLast returns steps, with *last appended if last is not nil.
func withLast(steps []store.Step, last *store.Step) []store.Step {
	if last == nil {
		return steps
	}
	return append(slices.Clip(steps), *last) // Clip makes append copy: e.steps must not change
}

// renderSteps adds new steps to the prompt. Their tool calls must have ended, except in a turn that
// is out of time and runs no more tools.
func (e *execution) renderSteps() {
	for ; e.rendered < len(e.steps); e.rendered++ {
		e.prompt.AddStep(e.steps[e.rendered])
	}
	e.estimate = e.prompt.Estimate()
}

// A lastCall is the call with which a turn ends at a limit of its budget, with its retries.
type lastCall struct {
	limit string    // that was reached; "" before the call
	end   time.Time // by which the call must have answered
}
