package stream

import (
	"context"

	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
)

// A Stream returns the events of one turn, or of all turns of a task. It belongs to one
// goroutine.
type Stream struct {
	hub     *Hub
	single  bool // the stream ends with its first turn
	turn    store.Turn
	encoder encoder
	ended   bool
}

// Task returns the stream of a whole task. It contains the turns so far, then the running and
// queued turns as they proceed. It ends with the last turn. If lastEventID is an event of this
// task, the stream continues after that event. Otherwise it begins with the first turn.
func (h *Hub) Task(ctx context.Context, task store.TaskRef, lastEventID string) (*Stream, error) {
	turns, err := h.store.Turns(ctx, task)
	if err != nil {
		return nil, err
	}
	s := &Stream{hub: h, encoder: encoder{views: h.views, most: manyBytes}}
	if len(turns) == 0 {
		s.ended = true
		return s, nil
	}
	s.turn = turns[0]
	if p, ok := parsePosition(lastEventID); ok {
		// The id of another task matches no turn of this one, so everything is sent.
		for _, t := range turns {
			if t.Num == p.turn {
				s.turn, s.encoder.at = t, p
			}
		}
	}
	return s, nil
}

// Turn returns the stream of one turn, for the client that sent its instruction. The stream
// does not repeat the instruction.
func (h *Hub) Turn(t store.Turn) *Stream {
	e := encoder{views: h.views, most: manyBytes, byWord: true,
		at: position{turn: t.Num, step: startStep, slot: slotUserMessage}}
	return &Stream{hub: h, single: true, turn: t, encoder: e}
}

// For sets the version of the AI SDK that reads the stream. The default is SDK5.
func (s *Stream) For(sdk view.SDK) *Stream {
	s.encoder.sdk = sdk
	return s
}

// Limits of one call of Next. The next call returns the remaining events.
const (
	manyEvents = 256
	manyBytes  = 256 << 10
)

// Next waits for events. done reports that these events are the last. Next returns an error
// when ctx ends, and ErrClosed when the service stops. It never returns events together with an
// error, so that no event is lost.
func (s *Stream) Next(ctx context.Context) (events []Event, done bool, err error) {
	for !s.ended && len(events) < manyEvents {
		more, idle, err := s.poll(ctx, len(events) > 0)
		events = append(events, more...)
		switch {
		case len(events) > 0 && (idle || err != nil):
			return events, false, nil // the next call gets the same error again
		case err != nil:
			return nil, false, err
		}
	}
	return events, s.ended, nil
}

// poll returns the new events of the turn, and switches to the next turn when it has ended. If
// there are no new events, poll waits for a change. hurry prevents that: the caller has events
// to return. idle means that there are no more events for now.
func (s *Stream) poll(ctx context.Context, hurry bool) (events []Event, idle bool, err error) {
	events, changed, leave, err := s.advance(ctx)
	if err != nil {
		return nil, false, err
	}
	defer leave()
	// The end is checked first: a client that returns with the id of the last event gets no
	// further event, only the end.
	switch {
	case s.encoder.done():
		return events, false, s.nextTurn(ctx)
	case len(events) > 0 || hurry:
		return events, true, nil
	}
	return nil, false, s.hub.await(ctx, changed)
}

// advance returns the new events of the turn. It is a separate method so that the snapshot is
// not on the stack of a waiting goroutine.
func (s *Stream) advance(ctx context.Context) (
	events []Event, changed <-chan struct{}, leave func(), err error) {
	snap, changed, leave, err := s.hub.look(ctx, s.turn.ID)
	if err == nil {
		events = s.encoder.encode(snap)
	}
	return events, changed, leave, err
}

// nextTurn switches to the next turn of the task.
func (s *Stream) nextTurn(ctx context.Context) error {
	if s.single {
		s.ended = true
		return nil
	}
	next, err := s.hub.store.NextTurn(ctx, s.turn)
	switch {
	case db.IsNotFound(err):
		s.ended = true
	case err != nil:
		return err
	default:
		s.turn = next
	}
	return nil
}
