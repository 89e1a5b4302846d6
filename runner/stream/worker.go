package stream

import (
	"context"
	"slices"
	"time"

	"journeyman/store"
	"journeyman/store/db"
)

// A WorkerStream returns the events of all turns of a worker as they happen. It belongs
// to one goroutine, which closes it.
type WorkerStream struct {
	hub      *Hub
	workerID string
	ring     *ring
	next     int64    // number of the ring's next event
	past     []replay // replays, to be returned before that event
}

// A replay returns events from before the stream began.
type replay func(ctx context.Context) ([]Event, error)

const (
	maxReplayed = 200              // maximum number of turns that a restarted stream replays
	nodesDiffer = 30 * time.Second // maximum difference between the clocks of two nodes
)

// Worker returns the worker-wide stream. If lastEventID is the id of an event, the stream
// continues after that event. If the ring has dropped that event, the stream begins with
// data-restart and replays the turns since then. Without an id, it begins with the unfinished
// turns.
func (h *Hub) Worker(ctx context.Context, workerID, lastEventID string) (*WorkerStream, error) {
	s := &WorkerStream{hub: h, workerID: workerID, ring: h.joinRing(workerID)}
	if last, ok := s.ring.numberOf(lastEventID); ok {
		s.next = last + 1
		return s, nil
	}
	// Both results come from one call, under one lock. So no event is missing, and none is sent twice.
	var unfinished []snapshot
	unfinished, s.next = h.unfinished(s.ring)
	if lastEventID != "" {
		if err := s.restart(ctx, lastEventID, unfinished); err != nil {
			s.Close()
			return nil, err
		}
	}
	for _, snap := range unfinished {
		s.past = append(s.past, func(context.Context) ([]Event, error) { return s.whole(snap), nil })
	}
	return s, nil
}

// Close releases the stream.
func (s *WorkerStream) Close() { s.hub.leaveRing(s.ring) }

// restart prepares the replay for a client that cannot continue exactly: data-restart, then the
// turns that have ended since the client's last event. The unfinished turns follow.
func (s *WorkerStream) restart(ctx context.Context, lastEventID string, unfinished []snapshot) error {
	turns, err := s.hub.store.TurnsSince(ctx, s.workerID, 0, maxReplayed)
	if err != nil || len(turns) == 0 {
		return err
	}
	last, _ := parsePosition(lastEventID)
	in, since := turns[0], time.Time{} // unknown id: replay everything
	for _, t := range turns {
		if t.Num == last.turn {
			in, since = t, t.CreatedAt // the client has received the turns that ended before this time
		}
	}
	if s.hub.store.Shared() {
		since = since.Add(-nodesDiffer) // CompletedAt may be a time of another node's clock
	}
	if in.Num != last.turn {
		last = position{turn: in.Num, step: startStep, slot: slotUserMessage} // a client may return with this id
	}
	c := dataChunk("restart", struct{}{})
	c.TaskID, c.TurnID = in.TaskID, in.ID
	event := NewEvent(last.String()+replayMark, c.marshal())
	s.past = []replay{func(context.Context) ([]Event, error) { return []Event{event}, nil }}
	for _, t := range turns {
		follows := func(snap snapshot) bool { return snap.turn.Num == t.Num }
		missed := t.Status.Ended() && !t.CompletedAt.Before(since)
		// Skip turns that follow anyway, as unfinished turns or from the ring: no turn is sent twice.
		if missed && !slices.ContainsFunc(unfinished, follows) && !s.inRing(t) {
			s.past = append(s.past, s.replayOf(t))
		}
	}
	return nil
}

// replayOf returns the replay of a turn that has ended, read from the store.
func (s *WorkerStream) replayOf(t store.Turn) replay {
	return func(ctx context.Context) ([]Event, error) {
		snap, err := s.hub.stored(ctx, t.ID)
		if err != nil {
			return nil, err
		}
		return s.whole(snap), nil
	}
}

// inRing reports whether the ring will deliver all events of a turn.
func (s *WorkerStream) inRing(t store.Turn) bool {
	number, ok := s.ring.numberOf(firstID(t))
	return ok && number >= s.next
}

// Next waits for events. done is always false: new turns may always follow. It returns an error
// when ctx ends, and ErrClosed when the service stops or after Leave. If the client is too slow, it
// returns a db.Error of kind Busy. It never returns events together with an error.
func (s *WorkerStream) Next(ctx context.Context) (events []Event, done bool, err error) {
	for len(s.past) > 0 {
		events, err := s.past[0](ctx)
		if err != nil {
			return nil, false, err
		}
		if s.past = s.past[1:]; len(events) > 0 {
			return events, false, nil
		}
	}
	for {
		events, ok := s.ring.from(s.next, manyEvents)
		if !ok { // the ring never waits for a slow client, so it has dropped these events
			return nil, false, db.Errorf(db.Busy, "the reader is too slow for the stream")
		}
		if len(events) > 0 {
			s.next += int64(len(events))
			return events, false, nil
		}
		if s.ring.isOver() {
			return nil, false, ErrClosed
		}
		changed, leave := s.ring.watch(s.next)
		err := s.hub.await(ctx, changed)
		leave()
		if err != nil {
			return nil, false, err
		}
	}
}

// whole returns all events of a turn so far.
func (s *WorkerStream) whole(snap snapshot) []Event {
	e := encoder{views: s.hub.views, wide: true, replay: true}
	return e.encode(snap)
}
