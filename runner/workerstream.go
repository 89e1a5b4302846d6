package runner

import (
	"context"
	"time"

	"journeyman/store"
)

// A WorkerStream gives the events of all turns of a worker as they happen. It
// belongs to one goroutine and must be closed.
type WorkerStream struct {
	r        *Runner
	workerID string
	ring     *ring
	next     int64    // number of the next event of the ring
	past     []replay // to be given before that
}

// A replay is something a reader is to be given whole.
type replay struct {
	event  *Event // this, or
	view   *view  // this turn, or
	turnID string // this one, which has ended
}

// maxRestart bounds how many turns a restarted stream tells of.
const maxRestart = 200

// WorkerStream begins a worker-wide stream: with the turns under way, whole, and what
// is new, or with lastEventID, what follows that event. Where that is not known
// exactly any more, it begins with data-restart and the whole messages of the turns
// since.
func (r *Runner) WorkerStream(ctx context.Context, workerID, lastEventID string) (*WorkerStream, error) {
	s := &WorkerStream{r: r, workerID: workerID, ring: r.joinRing(workerID)}
	s.ring.mu.RLock()
	seen, known := s.ring.index[lastEventID]
	s.ring.mu.RUnlock()
	if known {
		s.next = seen + 1
		return s, nil
	}
	var running []view
	running, s.next = r.capture(s.ring)
	if lastEventID == "" {
		for i := range running {
			s.past = append(s.past, replay{view: &running[i]})
		}
		return s, nil
	}
	if err := s.restart(ctx, lastEventID, running); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// liveTurns are the turns of a worker that are being carried out.
func (r *Runner) liveTurns(workerID string) []*liveTurn {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*liveTurn
	for _, lt := range r.live {
		if lt.workerID == workerID {
			list = append(list, lt)
		}
	}
	return list
}

// Close gives the stream up.
func (s *WorkerStream) Close() { s.r.rings.leave(s.ring) }

type wideRestart struct{}

// restart plans what a reader is told that cannot go on exactly: the turns since
// the event it has last, as far as the ring does not tell of them afterwards.
func (s *WorkerStream) restart(ctx context.Context, lastEventID string, running []view) error {
	p, _ := parsePosition(lastEventID)
	turns, err := s.r.cfg.Store.TurnsSince(ctx, s.workerID, 0, maxRestart)
	if err != nil {
		return err
	}
	if p.turn == 0 {
		p = position{turn: 1, step: startStep, slot: slotUserMessage} // a valid id, so that it can be come back with
	}
	data := encode(chunk{Type: "data-restart", Data: wideRestart{}, Transient: true})
	s.past = []replay{{event: &Event{ID: p.String() + replayMark, Data: data}}}
	captured := map[int64]bool{}
	for i := range running {
		captured[running[i].turn.Num] = true
	}
	since := begunBy(turns, p.turn)
	for _, t := range turns {
		if t.Status.Ended() && !t.CompletedAt.Before(since) && !captured[t.Num] && !s.comes(t) {
			s.past = append(s.past, replay{turnID: t.ID})
		}
	}
	for i := range running {
		s.past = append(s.past, replay{view: &running[i]})
	}
	return nil
}

// begunBy is a time by which the turn with that num had been accepted, and so no
// event of it was told. What ended before need not be told again.
func begunBy(turns []store.Turn, num int64) time.Time {
	for _, t := range turns {
		if t.Num == num {
			return t.CreatedAt
		}
	}
	return time.Time{}
}

// comes reports whether the ring tells of a turn from where the reader begins with
// it: then it has begun since.
func (s *WorkerStream) comes(t store.Turn) bool {
	s.ring.mu.RLock()
	defer s.ring.mu.RUnlock()
	n, ok := s.ring.index[firstID(t)]
	return ok && n >= s.next
}

// Next waits for events. It fails when ctx ends and with ErrStreamClosed when the
// service stops; events and an error never come together.
func (s *WorkerStream) Next(ctx context.Context) ([]Event, error) {
	for len(s.past) > 0 {
		events, err := s.replay(ctx, s.past[0])
		if err != nil {
			return nil, err
		}
		if s.past = s.past[1:]; len(events) > 0 {
			return events, nil
		}
	}
	for {
		events, changed, err := s.take()
		if err != nil || len(events) > 0 {
			return events, err
		}
		if err := s.r.await(ctx, changed); err != nil {
			return nil, err
		}
	}
}

func (s *WorkerStream) replay(ctx context.Context, past replay) ([]Event, error) {
	rd := reader{r: s.r, wide: true, replay: true}
	switch {
	case past.event != nil:
		return []Event{*past.event}, nil
	case past.view != nil:
		return rd.read(*past.view), nil
	}
	v, err := s.r.lookUp(ctx, past.turnID)
	if err != nil {
		return nil, err
	}
	return rd.read(v), nil
}

// take gives what the ring has, or the channel that closes when it has more. A
// reader too slow for the ring is cut off.
func (s *WorkerStream) take() ([]Event, <-chan struct{}, error) {
	s.ring.mu.RLock()
	defer s.ring.mu.RUnlock()
	from := s.next - s.ring.first
	if from < int64(s.ring.head) {
		return nil, nil, errBehind
	}
	list := s.ring.events[from:]
	events := make([]Event, min(len(list), manyEvents))
	for i := range events {
		events[i] = list[i].Event
	}
	s.next += int64(len(events))
	return events, s.ring.changed, nil
}

var errBehind = store.Errorf(store.Busy, "the reader is too slow for the stream")
