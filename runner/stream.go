package runner

import (
	"context"
	"errors"
	"time"

	"journeyman/store"
)

// ErrStreamClosed ends a stream because the service stops.
var ErrStreamClosed = errors.New("the service stops")

// A Stream gives the events of a task's turns, or of one turn. It belongs to one
// goroutine.
type Stream struct {
	r       *Runner
	taskNum int64
	single  bool // only the turn it began with
	turn    store.Turn
	reader  reader
	ended   bool
}

// TaskStream gives the whole of a task as events: the turns so far, then what is
// running or queued as it happens. Its end is that of the last turn. With
// lastEventID, the id of an event of this task, it gives what follows that; with
// another id, everything.
func (r *Runner) TaskStream(ctx context.Context, taskNum int64, lastEventID string) (*Stream, error) {
	turns, err := r.cfg.Store.Turns(ctx, taskNum)
	if err != nil {
		return nil, err
	}
	s := &Stream{r: r, taskNum: taskNum, reader: reader{r: r}}
	if len(turns) == 0 {
		s.ended = true
		return s, nil
	}
	s.turn = turns[0]
	if p, ok := parsePosition(lastEventID); ok {
		for _, t := range turns {
			if t.Num == p.turn {
				s.turn, s.reader.at = t, p
			}
		}
	}
	return s, nil
}

// TurnStream gives the events of one turn, without the user's message.
func (r *Runner) TurnStream(t store.Turn) *Stream {
	return &Stream{r: r, single: true, turn: t, reader: reader{r: r, words: true, at: position{turn: t.Num, step: startStep, slot: slotUserMessage}}}
}

// Next waits for events. done says that there are no more after these. It fails
// when ctx ends and with ErrStreamClosed when the service stops.
func (s *Stream) Next(ctx context.Context) (events []Event, done bool, err error) {
	for !s.ended {
		// Whatever changes after this look closes one of the channels.
		v, changed, leave, err := s.r.look(ctx, s.turn)
		if err != nil {
			return nil, false, err
		}
		events = append(events, s.reader.read(v)...)
		if s.reader.done() {
			leave()
			if err := s.advance(ctx); err != nil {
				return nil, false, err
			}
			continue
		}
		if len(events) > 0 {
			leave()
			return events, false, nil
		}
		err = s.r.await(ctx, changed)
		leave()
		if err != nil {
			return nil, false, err
		}
	}
	return events, true, nil
}

// advance goes on to the task's next turn.
func (s *Stream) advance(ctx context.Context) error {
	if s.ended = s.single; s.ended {
		return nil
	}
	next, err := s.r.cfg.Store.TurnAfter(ctx, s.taskNum, s.turn.Seq)
	if store.IsNotFound(err) {
		s.ended = true
		return nil
	}
	s.turn = next
	return err
}

// await returns at a change, or now and then without one: a turn may be changed by
// another process.
func (r *Runner) await(ctx context.Context, changed <-chan struct{}) error {
	poll := time.NewTimer(pollEvery)
	defer poll.Stop()
	select {
	case <-changed:
		return nil
	case <-poll.C:
		return nil
	case <-r.streams.Done():
		return ErrStreamClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// look gives a turn as it is now: from memory while it is carried out here, else
// from the database. changed closes when it is different; leave must be called
// once nobody waits for that.
func (r *Runner) look(ctx context.Context, t store.Turn) (v view, changed <-chan struct{}, leave func(), err error) {
	watched := r.ended.watch(t.ID)
	leave = func() { r.ended.leave(t.ID, watched) }
	r.mu.Lock()
	lt := r.live[t.ID]
	r.mu.Unlock()
	if lt != nil {
		if v, changed, ok := lt.view(); ok {
			return v, changed, leave, nil
		}
	}
	if t, err = r.cfg.Store.Turn(ctx, t.ID); err == nil {
		v.turn = t
		if v.steps, err = r.cfg.Store.Journal(ctx, t.Num); err == nil {
			err = r.complete(ctx, &v)
		}
	}
	if err != nil {
		leave()
	}
	return v, watched, leave, err
}

// complete reads the files of a turn: what was attached and, at the end, what was
// published and used.
func (r *Runner) complete(ctx context.Context, v *view) error {
	files, err := r.cfg.Store.FilesByTurn(ctx, v.turn.Num)
	if err != nil {
		return err
	}
	v.attached = turnFiles(files, v.turn.Num, store.Attached)
	if !v.turn.Status.Ended() {
		return nil
	}
	v.files = turnFiles(files, v.turn.Num, store.Published)
	v.sources, err = r.cfg.Store.SourcesByTurn(ctx, v.turn.Num)
	return err
}
