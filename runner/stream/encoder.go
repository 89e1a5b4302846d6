package stream

import (
	"journeyman/runner/view"
	"journeyman/store"
)

// A snapshot is the state of a turn at one moment. Snapshots share their slices, so the
// elements of these slices must not be changed.
type snapshot struct {
	turn     store.Turn
	steps    []store.Step  // the journal
	current  *store.Step   // the step in progress; nil without one
	children []store.Child // turns that its calls have started, in the order of their starts
	attached []store.File
	files    []store.File   // published files; empty until the turn has ended
	sources  []store.Source // sources of the answer; empty until the turn has ended
}

// An encoder returns the events between its position and a snapshot of a turn. From these events,
// clients build the same messages, at whatever position their streams were interrupted.
type encoder struct {
	views  view.Builder
	at     position // clients have received all events up to here
	wide   bool     // for a worker-wide stream: each chunk contains the ids of its task and turn
	replay bool     // for the replay of a worker-wide stream: the event ids end with replayMark
	byWord bool     // texts are sent word by word

	// sdk determines the chunks that show approvals: older versions reject a stream that contains
	// the chunks of newer ones. 0 is SDK5.
	sdk view.SDK

	// most limits the bytes of one call of encode, 0 for no limit. The next calls return the
	// remaining events. So a client that has stopped reading holds little memory.
	most int

	snap  snapshot // the snapshot being encoded
	out   []Event  // the events of snap so far
	bytes int      // total length of out
}

// encode returns the events between the encoder's position and the snapshot. It advances the
// position to the end of these events.
func (e *encoder) encode(s snapshot) []Event {
	e.snap = s
	e.encodeTurn()
	events := e.out
	e.snap, e.out, e.bytes = snapshot{}, nil, 0 // an idle stream keeps no turn in memory
	return events
}

// full reports whether the next chunks must wait for the next call of encode.
func (e *encoder) full() bool { return e.most > 0 && e.bytes >= e.most }

func (e *encoder) encodeTurn() {
	turn, steps := e.snap.turn, e.snap.steps
	if e.at.turn != turn.Num {
		e.at = position{turn: turn.Num, step: startStep}
	}
	if e.at.step == startStep {
		e.prologue()
		if e.at.slot < slotRunning {
			return // the turn has not begun
		}
	}
	// Before the steps: they are a new attempt, and clients must drop the old one first.
	if e.outdated() {
		e.restart()
	}
	// The step at the client's position is encoded again: putAt omits chunks that clients have.
	for i := max(e.at.step, 0); i < int64(len(steps)) && !e.full(); i++ {
		e.step(steps[i], false)
	}
	if e.snap.current != nil {
		e.step(*e.snap.current, true)
	}
	if w := turn.Wait; w != nil && w.For == store.WaitForModel {
		e.waiting(turn)
	}
	if turn.Status.Ended() && !e.done() {
		e.finishCutStep()
		e.epilogue()
	}
}

// done reports whether the whole turn has been encoded.
func (e *encoder) done() bool { return e.at.step == endStep && e.at.slot == slotFinalDone }

// outdated reports whether clients have received output of an attempt that is no longer valid.
func (e *encoder) outdated() bool {
	steps, current := e.snap.steps, e.snap.current
	switch at := e.at; {
	case at.step < 0 || at.step == endStep:
		return false
	case at.step < int64(len(steps)):
		return at.attempt != steps[at.step].Attempt
	case current != nil:
		return at.step == current.Seq && at.attempt != current.Attempt
	default: // for example, the turn has ended without the step
		return e.snap.turn.Status.Ended() && at.attempt != 0
	}
}

// restart withdraws the step at the client's position. It sets the position to the start of the
// step, so that the whole step is encoded again. Steps that continue one another are displayed
// as one step and withdrawn together.
func (e *encoder) restart() {
	steps := e.snap.steps
	first := store.ContinuedFrom(steps, int(min(e.at.step, int64(len(steps)))))
	// The position goes back to the start of the step, so that all of it is encoded again.
	e.at = position{turn: e.snap.turn.Num, step: int64(first)}
	switch {
	case first < len(steps):
		e.at.attempt = steps[first].Attempt
	case e.snap.current != nil:
		e.at.attempt = e.snap.current.Attempt
	}
	shown := 0 // how many steps before it clients have displayed
	for i := range first {
		if !store.Continues(steps, i) {
			shown++
		}
	}
	e.emit(restartChunk(shown))
}

// place returns the position of a slot in a step.
func (e *encoder) place(st store.Step, slot, offset int64) position {
	return position{e.snap.turn.Num, st.Seq, st.Attempt, slot, offset}
}

// put adds a chunk at a slot of a step, unless clients have received it.
func (e *encoder) put(st store.Step, slot int64, c chunk) { e.putAt(e.place(st, slot, 0), c) }

// putOutside adds a chunk at a slot before the first step or after the last one. It omits a
// chunk that clients have received.
func (e *encoder) putOutside(step, slot int64, c chunk) {
	e.putAt(position{turn: e.snap.turn.Num, step: step, slot: slot}, c)
}

// putAt adds a chunk that ends at p, unless clients have received it.
func (e *encoder) putAt(p position, c chunk) {
	if p.compare(e.at) > 0 && !e.full() {
		e.at = p
		e.emit(c)
	}
}

// emit adds a chunk whose id is the encoder's position.
func (e *encoder) emit(c chunk) {
	id := e.at.String()
	if e.replay {
		id += replayMark
	}
	if e.wide {
		c.TaskID, c.TurnID = e.snap.turn.TaskID, e.snap.turn.ID
	}
	data := c.marshal()
	e.bytes += len(data)
	e.out = append(e.out, NewEvent(id, data))
}

// prologue encodes the events before the first step.
func (e *encoder) prologue() {
	turn := e.snap.turn
	e.putOutside(startStep, slotUserMessage, dataChunk("user-message", e.views.UserMessage(turn, e.snap.attached)))
	if turn.Ready { // otherwise the status of the task depends on an earlier turn
		e.putOutside(startStep, slotPending, statusChunk(store.Pending))
	}
	if turn.StartedAt == nil && !turn.Status.Ended() {
		return
	}
	e.putOutside(startStep, slotStart, chunk{Type: "start", MessageID: view.AnswerID(turn),
		MessageMetadata: view.StartMetadata(turn)})
	if turn.StartedAt != nil {
		e.putOutside(startStep, slotRunning, statusChunk(store.Running))
	} else if e.at.slot < slotRunning { // the turn was cancelled in the queue
		e.at = position{turn: turn.Num, step: startStep, slot: slotRunning}
	}
}

// waiting adds the chunk that reports that the turn waits for its model. The chunk is no part
// of the message and follows all output of the step in progress. When the turn continues,
// another attempt at the step replaces that output.
func (e *encoder) waiting(turn store.Turn) {
	// The attempts of each claim start at Claims<<8, so that later attempts differ from this
	// one.
	p := position{turn: turn.Num, step: int64(len(e.snap.steps)), attempt: turn.Claims << 8,
		slot: slotWaiting, offset: turn.Claims}
	e.putAt(p, outageChunk(turn))
}

// finishCutStep finishes the last step of a turn if its text was cut off. The next step, which
// would have continued the text, was never made.
func (e *encoder) finishCutStep() {
	steps := e.snap.steps
	n := len(steps)
	if !store.Continues(steps, n) {
		return
	}
	last := steps[n-1]
	if cut, ok := store.CutText(steps, n); ok {
		e.endCutText(last, cut)
	}
	e.put(last, slotFinishStep, chunk{Type: "finish-step"})
}

// epilogue encodes the events after the last step.
func (e *encoder) epilogue() {
	turn := e.snap.turn
	if len(e.snap.steps) == 0 { // clients expect at least one part in each message
		e.putOutside(endStep, slotEmptyStep, chunk{Type: "start-step"})
		e.putOutside(endStep, slotEmptyEnd, chunk{Type: "finish-step"})
	}
	for i, s := range e.snap.sources {
		c := chunk{Type: "source-url", SourceID: s.ID, URL: s.URL, Title: s.Title}
		e.putOutside(endStep, slotSources+int64(i), c)
	}
	for i, f := range e.snap.files {
		e.putOutside(endStep, slotFiles+int64(i), chunk{Type: "file", URL: e.views.FileURL(f), MediaType: f.MediaType})
	}
	e.putOutside(endStep, slotUsage, dataChunk("usage", view.UsageOf(turn)))
	e.putOutside(endStep, slotStatus, statusChunk(turn.TaskStatus))
	switch turn.Status {
	case store.Failed:
		e.putOutside(endStep, slotError, failureChunk(turn.Failure))
	case store.Aborted:
		e.putOutside(endStep, slotError, chunk{Type: "abort"})
	}
	e.putOutside(endStep, slotFinish, chunk{Type: "finish", FinishReason: finishReason(turn, e.snap.steps),
		MessageMetadata: view.EndMetadata(turn)})
	if !e.full() {
		e.at.slot = slotFinalDone
	}
}
