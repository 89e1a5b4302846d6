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

// WithApprovals has the stream say what the AI SDK 6 knows of approvals, in chunks that
// version 5 refuses.
func (s *Stream) WithApprovals() *Stream {
	s.reader.approvals = true
	return s
}

// Next waits for events. done says that there are no more after these. It fails
// when ctx ends and with ErrStreamClosed when the service stops; events and an error
// never come together, so that none is lost.
func (s *Stream) Next(ctx context.Context) (events []Event, done bool, err error) {
	for !s.ended && len(events) < manyEvents {
		// Whatever changes after this look closes one of the channels.
		v, changed, leave, err := s.r.look(ctx, s.turn)
		if err == nil {
			events = append(events, s.reader.read(v)...)
			switch {
			case s.reader.done():
				err = s.advance(ctx)
			case len(events) == 0:
				err = s.r.await(ctx, changed)
			default:
				leave()
				return events, false, nil
			}
			leave()
		}
		switch {
		case err != nil && len(events) > 0:
			return events, false, nil // the next call meets the error again
		case err != nil:
			return nil, false, err
		}
	}
	return events, s.ended, nil
}

// manyEvents are enough to give at once when a long task is replayed.
const manyEvents = 256

// advance goes on to the task's next turn.
func (s *Stream) advance(ctx context.Context) error {
	if s.ended = s.single; s.ended {
		return nil
	}
	next, err := s.r.cfg.Store.TurnAfter(ctx, s.taskNum, s.turn.Seq)
	switch {
	case store.IsNotFound(err):
		s.ended = true
	case err != nil:
		return err
	default:
		s.turn = next
	}
	return nil
}

// lookAgain is how long those who wait for a turn trust that they will be told.
const lookAgain = 30 * time.Second

// await returns at a change, or now and then without one.
func (r *Runner) await(ctx context.Context, changed <-chan struct{}) error {
	again := time.NewTimer(lookAgain)
	defer again.Stop()
	select {
	case <-changed:
		return nil
	case <-again.C:
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
	if v, changed, ok := r.lookLive(t.ID); ok {
		return v, changed, func() {}, nil
	}
	watched := r.ended.watch(t.ID)
	leave = func() { r.ended.leave(t.ID, watched) }
	if v, changed, ok := r.lookLive(t.ID); ok { // since then
		return v, changed, leave, nil
	}
	if v, err = r.lookUp(ctx, t.ID); err != nil {
		leave()
	}
	return v, watched, leave, err
}

func (r *Runner) lookLive(turnID string) (v view, changed <-chan struct{}, ok bool) {
	r.mu.Lock()
	lt := r.live[turnID]
	r.mu.Unlock()
	if lt == nil {
		return v, nil, false
	}
	return lt.view()
}

// lookUp gives a turn as the database has it. The turn's row comes first: whatever
// ended it wrote all the rest before.
func (r *Runner) lookUp(ctx context.Context, turnID string) (v view, err error) {
	if v.turn, err = r.cfg.Store.Turn(ctx, turnID); err != nil {
		return v, err
	}
	if v.steps, err = r.cfg.Store.Journal(ctx, v.turn.Num); err != nil {
		return v, err
	}
	return v, r.complete(ctx, &v)
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
