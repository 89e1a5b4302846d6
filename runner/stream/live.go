package stream

import (
	"context"
	"slices"
	"sync"

	"journeyman/runner/model"
	"journeyman/store"
)

// A Live is a turn that this process executes. The loop calls its methods from one goroutine,
// when the events happen. Only the Live holds the step in progress.
type Live struct {
	hub      *Hub
	turnID   string
	taskID   string
	workerID string

	organizationID string

	// Accessed only by the loop's goroutine.
	suspended bool
	unread    bool // the turn has ended, but its end could not be read, so the ring lacks it

	mu     sync.Mutex // guards the fields below
	known  snapshot
	parts  []*partBuilder // builders for the parts of the step in progress
	loaded bool           // known is complete
}

// Begin returns the Live of a turn whose execution begins. The caller closes it when the
// execution has ended.
func (h *Hub) Begin(t store.Turn) *Live {
	l := &Live{hub: h, turnID: t.ID, taskID: t.TaskID, workerID: t.WorkerID, organizationID: t.OrganizationID,
		known: snapshot{turn: t}}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.live[t.ID] = l
	return l
}

// Close ends the execution of the turn. From now on its watchers read the store.
func (l *Live) Close() {
	h := l.hub
	h.mu.Lock()
	if h.live[l.turnID] == l { // otherwise the turn was suspended, and another Live already executes it
		delete(h.live, l.turnID)
	}
	h.mu.Unlock()
	h.release(l)
	h.changed.fire(l.turnID) // watchers of this Live must read the turn again, from the store
	if l.unread {
		h.Leave(l.workerID) // now, because until here a new ring would begin with the state before the end
	}
}

// update changes the snapshot and notifies all watchers.
func (l *Live) update(change func()) {
	l.set(change)
	// After the unlock: feedLive locks the ring, which must be locked before l.
	l.hub.changed.fire(l.turnID)
	l.hub.feedLive(l)
}

// set changes the snapshot.
func (l *Live) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// Loaded makes the turn visible, with the steps of its earlier executions.
func (l *Live) Loaded(steps []store.Step, children []store.Child, attached []store.File) {
	l.update(func() {
		l.known.steps, l.known.children, l.known.attached = slices.Clone(steps), children, attached
		l.loaded = true
	})
}

// BeginStep begins a model call. It withdraws the output of an earlier attempt at the same step.
func (l *Live) BeginStep(st store.Step) {
	l.update(func() { l.known.current, l.parts = &st, nil })
}

// maxParts limits the parts of one step that are displayed while the model produces them.
const maxParts = 10_000

// Delta adds new output of the model to the step in progress.
func (l *Live) Delta(d model.Delta) {
	if d.Part >= 0 && d.Part < maxParts {
		l.update(func() { l.addDelta(d) })
	}
}

func (l *Live) addDelta(d model.Delta) {
	st := *l.known.current
	st.Parts = slices.Clone(st.Parts) // older snapshots share the old slice
	begin := func(p store.Part) {
		l.endPart(&st)
		st.Parts, l.parts = append(st.Parts, p), append(l.parts, &partBuilder{})
	}
	for len(st.Parts) < d.Part { // the model skipped a part number: add an empty part, which is not displayed
		begin(store.Part{Type: store.PartReasoning})
	}
	if len(st.Parts) == d.Part {
		begin(newPart(st, model.Part{Type: d.Type, CallID: d.CallID, ToolName: d.ToolName}))
	}
	l.parts[d.Part].add(&st.Parts[d.Part], d.Text)
	l.known.current = &st
}

// endPart completes the last part of the step in progress.
func (l *Live) endPart(st *store.Step) {
	if i := len(st.Parts) - 1; i >= 0 {
		l.parts[i].end(&st.Parts[i])
	}
}

// Matches reports whether parts continue the output that clients have received for the step in
// progress. Otherwise the step needs another attempt number, which withdraws that output.
func (l *Live) Matches(parts []store.Part) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Without a step in progress, no client has received deltas of it.
	return l.known.current == nil || extends(l.known.current.Parts, parts)
}

// Partial returns the step in progress in the form in which it is stored. ok is false without a
// step in progress.
func (l *Live) Partial() (st store.Step, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known.current == nil {
		return st, false
	}
	st = *l.known.current
	st.Parts = slices.Clone(st.Parts)
	// This also ends the part's builder, so no further delta may be added to the part.
	l.endPart(&st)
	return st, true
}

// Journaled moves the step in progress to the committed steps.
func (l *Live) Journaled(st store.Step) { l.update(func() { l.addStep(st) }) }

func (l *Live) addStep(st store.Step) {
	st.Calls = nil // CallEnded adds them one by one
	l.known.current, l.parts = nil, nil
	l.known.steps = append(l.known.steps, st)
}

// CallEnded adds the end of a tool call to the last step.
func (l *Live) CallEnded(c store.Call) {
	l.changeLast(func(st *store.Step) { st.Calls = append(slices.Clip(st.Calls), c) })
}

// childrenChanged replaces the list of child turns. It is called by the goroutine that starts
// or ends a child, not by the loop.
func (l *Live) childrenChanged(children []store.Child) {
	l.update(func() {
		// Two callers may arrive in the wrong order: keep the state of a child that has ended.
		for i, old := range l.known.children {
			if i < len(children) && old.Status.Ended() {
				children[i] = old
			}
		}
		if len(children) >= len(l.known.children) {
			l.known.children = children
		}
	})
}

// Decided adds the decisions on the tool calls of the last step.
func (l *Live) Decided(approvals []store.Approval) {
	l.changeLast(func(st *store.Step) { st.Approvals = approvals })
}

// changeLast changes a copy of the last committed step. Snapshots share the other steps.
func (l *Live) changeLast(change func(*store.Step)) {
	l.update(func() {
		l.known.steps = slices.Clone(l.known.steps)
		change(&l.known.steps[len(l.known.steps)-1])
	})
}

// Suspended marks the turn as waiting for people or for child turns. Nobody executes the turn
// until the wait is over.
func (l *Live) Suspended() { l.suspended = true }

// Waiting marks the turn as waiting for its model, and sends the reason to all watchers. It
// withdraws the output of the step in progress.
func (l *Live) Waiting(w store.Wait) {
	l.suspended = true
	l.update(func() { l.known.turn.Wait, l.known.current, l.parts = &w, nil, nil })
}

// Ended notifies all watchers that the end of the turn is committed. last is the step that was
// committed with it, nil without one. published reports whether the turn may have published
// files or used sources.
func (l *Live) Ended(ctx context.Context, t store.Turn, last *store.Step, published bool) error {
	// Deferred: a client that gets the result and then opens a stream must not see the turn end
	// again.
	defer l.hub.onEnd(EndedTurn{t.ID, t.WorkerID})
	defer l.hub.ended.fireWith(t.ID, l.conversation(t, last))
	if last != nil {
		l.set(func() { l.addStep(*last) })
	}
	end := snapshot{turn: t}
	// The stream contains the files before its end, so they are read before the end is
	// announced.
	if published {
		if err := l.hub.readFiles(ctx, &end); err != nil {
			l.unread = true
			return err
		}
	}
	l.update(func() {
		end.steps, end.children, end.attached = l.known.steps, l.known.children, l.known.attached
		l.known = end
	})
	return nil
}

// look returns the snapshot. ok is false until the turn is loaded.
func (l *Live) look() (s snapshot, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known, l.loaded
}
