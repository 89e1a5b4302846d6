package runner

import (
	"context"
	"slices"
	"sync"

	"journeyman/runner/model"
	"journeyman/store"
)

// A liveTurn is what others may see of a turn while it is carried out here: the
// journal, and the step in progress, which is nowhere else.
type liveTurn struct {
	workerID string
	cancel   context.CancelCauseFunc
	rests    bool // the turn was given up; of the goroutine that carries it out

	mu      sync.Mutex
	known   view          // as far as the turn has come; what its slices hold never changes, so views share it
	parts   []*growing    // of the step in progress
	loaded  bool          // known is complete
	changed chan struct{} // closed at the next change
	seen    bool          // somebody has changed
}

func newLiveTurn(c store.Claim, cancel context.CancelCauseFunc) *liveTurn {
	return &liveTurn{workerID: c.WorkerID, cancel: cancel, known: view{turn: c.Turn}, changed: make(chan struct{})}
}

// update changes what can be seen and tells those who look.
func (l *liveTurn) update(fn func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fn()
	if l.seen {
		close(l.changed)
		l.changed, l.seen = make(chan struct{}), false
	}
}

// begin makes the turn visible, with what its earlier claims left.
func (l *liveTurn) begin(steps []store.Step, attached []store.File) {
	l.update(func() {
		l.known.steps, l.known.attached, l.loaded = slices.Clone(steps), attached, true
	})
}

// beginStep replaces what an earlier try of the step had produced.
func (l *liveTurn) beginStep(st store.Step) {
	l.update(func() { l.known.current, l.parts = &st, nil })
}

// maxParts bounds the parts of one step that are shown while they are made.
const maxParts = 10_000

// delta adds what the model has just produced to the step in progress.
func (l *liveTurn) delta(d model.Delta) {
	if d.Part < 0 || d.Part >= maxParts {
		return
	}
	l.update(func() {
		st := *l.known.current
		st.Parts = slices.Clone(st.Parts)
		for len(st.Parts) < d.Part {
			l.endPart(&st)
			st.Parts = append(st.Parts, store.Part{Type: store.PartReasoning}) // nothing is told of it, so it is empty
			l.parts = append(l.parts, &growing{})
		}
		if len(st.Parts) == d.Part {
			l.endPart(&st)
			st.Parts = append(st.Parts, newPart(st, model.Part{Type: d.Type, CallID: d.CallID, ToolName: d.ToolName}))
			l.parts = append(l.parts, &growing{})
		}
		l.parts[d.Part].add(&st.Parts[d.Part], d.Text)
		l.known.current = &st
	})
}

// endPart completes the last part of the step in progress: another begins, or
// there will be none.
func (l *liveTurn) endPart(st *store.Step) {
	if i := len(st.Parts) - 1; i >= 0 {
		l.parts[i].end(&st.Parts[i])
	}
}

// journaled moves a step from in progress to the journal.
func (l *liveTurn) journaled(st store.Step) {
	st.Calls = nil // they follow by called
	l.update(func() {
		l.known.current, l.parts = nil, nil
		l.known.steps = append(l.known.steps, st)
	})
}

// called adds a tool call that has ended to the last step.
func (l *liveTurn) called(c store.Call) {
	l.update(func() {
		steps := slices.Clone(l.known.steps)
		st := &steps[len(steps)-1]
		st.Calls = append(slices.Clip(st.Calls), c)
		l.known.steps = steps
	})
}

// decided gives the last step the decisions on its calls.
func (l *liveTurn) decided(approvals []store.Approval) {
	l.update(func() {
		steps := slices.Clone(l.known.steps)
		steps[len(steps)-1].Approvals = approvals
		l.known.steps = steps
	})
}

// end gives the turn as it is in the database at its end.
func (l *liveTurn) end(v view) {
	l.update(func() {
		v.steps, v.attached = l.known.steps, l.known.attached
		l.known = v
	})
}

// close wakes those who look one last time: from now on they look in the database.
func (l *liveTurn) close() { l.update(func() {}) }

// shown gives the parts of the step in progress as readers have them.
func (l *liveTurn) shown() []store.Part {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known.current == nil {
		return nil
	}
	return l.known.current.Parts
}

// partial gives the step in progress as it would be kept.
func (l *liveTurn) partial() (store.Step, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known.current == nil {
		return store.Step{}, false
	}
	st := *l.known.current
	st.Parts = slices.Clone(st.Parts)
	l.endPart(&st)
	return st, true
}

// view gives what can be seen of the turn, and the channel that closes when that
// changes. ok is false until the turn is loaded.
func (l *liveTurn) view() (v view, changed <-chan struct{}, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = true
	return l.known, l.changed, l.loaded
}
