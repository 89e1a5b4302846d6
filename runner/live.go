package runner

import (
	"context"
	"strings"
	"sync"

	"journeyman/runner/model"
	"journeyman/store"
)

// A liveTurn is what others may see of a turn while it is carried out here: the
// journal, and the step in progress, which is nowhere else.
type liveTurn struct {
	workerID string
	cancel   context.CancelCauseFunc

	mu      sync.Mutex
	known   view          // as far as the turn has come
	loaded  bool          // known is complete
	changed chan struct{} // closed at the next change

	feed sync.Mutex // held while the worker's ring is fed, so that it stays in order
	fed  position   // up to where the ring has it
}

func newLiveTurn(c store.Claim, cancel context.CancelCauseFunc) *liveTurn {
	return &liveTurn{workerID: c.WorkerID, cancel: cancel, known: view{turn: c.Turn}, changed: make(chan struct{})}
}

// update changes what can be seen and tells those who look.
func (l *liveTurn) update(fn func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fn()
	close(l.changed)
	l.changed = make(chan struct{})
}

// begin makes the turn visible, with what its earlier claims left.
func (l *liveTurn) begin(steps []store.Step, attached []store.File) {
	l.update(func() {
		l.known.steps, l.known.attached, l.loaded = append([]store.Step(nil), steps...), attached, true
	})
}

// beginStep replaces what an earlier try of the step had produced.
func (l *liveTurn) beginStep(st store.Step) { l.update(func() { l.known.current = &st }) }

// dropStep forgets the step in progress.
func (l *liveTurn) dropStep() { l.update(func() { l.known.current = nil }) }

// delta adds what the model has just produced to the step in progress.
func (l *liveTurn) delta(d model.Delta) {
	l.update(func() {
		st := l.known.current
		for len(st.Parts) <= d.Part {
			st.Parts = append(st.Parts, store.Part{Type: store.PartType(d.Type), CallID: d.CallID, ToolName: d.ToolName})
		}
		p := &st.Parts[d.Part]
		if p.Type == store.PartToolCall {
			p.Input = append(p.Input, d.Text...)
			return
		}
		p.Text += d.Text
	})
}

// journaled moves a step from in progress to the journal.
func (l *liveTurn) journaled(st store.Step) {
	st.Calls = nil // they follow by called
	l.update(func() {
		l.known.current = nil
		l.known.steps = append(l.known.steps, st)
	})
}

// called adds a tool call that has ended to the last step.
func (l *liveTurn) called(c store.Call) {
	l.update(func() {
		st := &l.known.steps[len(l.known.steps)-1]
		st.Calls = append(st.Calls, c)
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

// partial gives a copy of the step in progress.
func (l *liveTurn) partial() (store.Step, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known.current == nil {
		return store.Step{}, false
	}
	st := *l.known.current
	st.Parts = append([]store.Part(nil), st.Parts...)
	for i := range st.Parts {
		st.Parts[i].Text = strings.ToValidUTF8(st.Parts[i].Text, "\uFFFD")
	}
	return st, true
}

// view gives what can be seen of the turn, and the channel that closes when that
// changes. ok is false until the turn is loaded.
func (l *liveTurn) view() (v view, changed <-chan struct{}, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v = l.known
	v.steps = append([]store.Step(nil), v.steps...)
	if v.current != nil {
		st := *v.current
		st.Parts = append([]store.Part(nil), st.Parts...)
		v.current = &st
	}
	return v, l.changed, l.loaded
}
