package runner

import (
	"context"
	"slices"
	"sync"
	"time"

	"journeyman/store"
)

// What a worker-wide stream can be resumed within.
const (
	ringAge   = 5 * time.Minute
	ringBytes = 4 << 20
)

// rings hold the recent events of workers whose whole stream somebody reads, or
// read within ringAge.
type rings struct {
	now func() time.Time
	mu  sync.Mutex
	m   map[string]*ring // by worker id
}

// A ring is the tail of a worker's events, in the order all its readers see.
type ring struct {
	mu      sync.Mutex
	events  []ringEvent
	first   int64            // number of events[0]
	index   map[string]int64 // event id to number
	bytes   int
	changed chan struct{} // closed at the next event
	muted   bool          // while it is being set up: what comes is not new to anybody
	readers int
	left    time.Time // when the last reader left
}

type ringEvent struct {
	Event
	at time.Time
}

// join gives a worker's ring, made where there is none: fresh then says that it
// has to be unmuted.
func (rs *rings) join(workerID string) (rg *ring, fresh bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.m == nil {
		rs.m = map[string]*ring{}
	}
	rg = rs.m[workerID]
	if fresh = rg == nil; fresh {
		rg = &ring{index: map[string]int64{}, changed: make(chan struct{}), muted: true}
		rs.m[workerID] = rg
	}
	rg.readers++
	return rg, fresh
}

func (rs *rings) leave(rg *ring) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rg.readers--
	rg.left = rs.now()
}

func (rs *rings) get(workerID string) *ring {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.m[workerID]
}

// prune forgets rings without readers, and events that are too old.
func (rs *rings) prune() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for id, rg := range rs.m {
		if rg.readers == 0 && rs.now().Sub(rg.left) > ringAge {
			delete(rs.m, id)
			continue
		}
		rg.mu.Lock()
		rg.trim(rs.now())
		rg.mu.Unlock()
	}
}

// trim drops events from the front. Held: mu.
func (rg *ring) trim(now time.Time) {
	n := 0
	for n < len(rg.events) && (rg.bytes > ringBytes || now.Sub(rg.events[n].at) > ringAge) {
		rg.bytes -= len(rg.events[n].Data)
		if id := rg.events[n].ID; rg.index[id] == rg.first+int64(n) {
			delete(rg.index, id)
		}
		n++
	}
	rg.events = slices.Delete(rg.events, 0, n)
	rg.first += int64(n)
}

// feedRing gives the worker's ring what is new of a turn.
func (r *Runner) feedRing(lt *liveTurn) {
	rg := r.rings.get(lt.workerID)
	if rg == nil {
		return
	}
	lt.feed.Lock()
	defer lt.feed.Unlock()
	v, _, ok := lt.view()
	if !ok {
		return
	}
	rd := reader{r: r, at: lt.fed, wide: true}
	events := rd.read(v)
	lt.fed = rd.at
	rg.add(events, r.cfg.Now())
}

// feedEnded gives the worker's ring a turn that ended without being carried out.
func (r *Runner) feedEnded(t store.Turn) {
	if rg := r.rings.get(t.WorkerID); rg != nil {
		rd := reader{r: r, wide: true}
		rg.add(rd.read(view{turn: t}), r.cfg.Now())
	}
}

func (rg *ring) add(events []Event, now time.Time) {
	if len(events) == 0 {
		return
	}
	rg.mu.Lock()
	defer rg.mu.Unlock()
	if rg.muted {
		return
	}
	for _, e := range events {
		rg.index[e.ID] = rg.first + int64(len(rg.events))
		rg.events = append(rg.events, ringEvent{e, now})
		rg.bytes += len(e.Data)
	}
	rg.trim(now)
	close(rg.changed)
	rg.changed = make(chan struct{})
}

// A WorkerStream gives the events of all turns of a worker as they happen. It
// belongs to one goroutine and must be closed.
type WorkerStream struct {
	r        *Runner
	workerID string
	ring     *ring
	next     int64              // number of the next event
	restart  []Event            // to be given first
	passed   map[int64]position // what the restart gave of turns still running, by turn num
}

// maxRestart bounds how many turns a restarted stream tells of.
const maxRestart = 200

// WorkerStream begins a worker-wide stream: with what is new or, with
// lastEventID, what follows that event. Where that is not known exactly any more,
// it begins with data-restart and the whole messages of the turns since.
func (r *Runner) WorkerStream(ctx context.Context, workerID, lastEventID string) (*WorkerStream, error) {
	rg, fresh := r.rings.join(workerID)
	if fresh {
		r.unmute(workerID, rg)
	}
	s := &WorkerStream{r: r, workerID: workerID, ring: rg}
	s.ring.mu.Lock()
	seen, known := s.ring.index[lastEventID]
	s.next = s.ring.first + int64(len(s.ring.events))
	if known {
		s.next = seen + 1
	}
	s.ring.mu.Unlock()
	if known || lastEventID == "" {
		return s, nil
	}
	if err := s.again(ctx, lastEventID); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// unmute lets a fresh ring take events, from what running turns do next.
func (r *Runner) unmute(workerID string, rg *ring) {
	r.mu.Lock()
	var running []*liveTurn
	for _, lt := range r.live {
		if lt.workerID == workerID {
			running = append(running, lt)
		}
	}
	r.mu.Unlock()
	for _, lt := range running {
		r.feedRing(lt)
	}
	rg.mu.Lock()
	rg.muted = false
	rg.mu.Unlock()
}

// Close gives the stream up.
func (s *WorkerStream) Close() { s.r.rings.leave(s.ring) }

type wideRestart struct{}

// again gathers whole messages from the turn of an event on.
func (s *WorkerStream) again(ctx context.Context, lastEventID string) error {
	p, ok := parsePosition(lastEventID)
	if !ok {
		p.turn = 1
	}
	turns, err := s.r.cfg.Store.TurnsSince(ctx, s.workerID, p.turn, maxRestart)
	if err != nil {
		return err
	}
	s.passed = map[int64]position{}
	s.restart = []Event{{ID: lastEventID, Data: encode(chunk{Type: "data-restart", Data: wideRestart{}, Transient: true})}}
	if !ok {
		s.restart[0].ID = position{turn: 1, slot: 1}.String()
	}
	for _, t := range turns {
		v, _, leave, err := s.r.look(ctx, t)
		if err != nil {
			return err
		}
		leave()
		rd := reader{r: s.r, wide: true}
		s.restart = append(s.restart, rd.read(v)...)
		s.passed[t.Num] = rd.at
	}
	return nil
}

// Next waits for events. It fails when ctx ends and with ErrStreamClosed when the
// service stops.
func (s *WorkerStream) Next(ctx context.Context) ([]Event, error) {
	if len(s.restart) > 0 {
		events := s.restart
		s.restart = nil
		return events, nil
	}
	for {
		events, changed, err := s.take(ctx)
		if err != nil || len(events) > 0 {
			return events, err
		}
		if err := s.r.await(ctx, changed); err != nil {
			return nil, err
		}
	}
}

const takeAtOnce = 256

// take gives what the ring has, or the channel that closes when it has more. A
// reader too slow for the ring begins again.
func (s *WorkerStream) take(ctx context.Context) ([]Event, <-chan struct{}, error) {
	s.ring.mu.Lock()
	defer s.ring.mu.Unlock()
	from := s.next - s.ring.first
	if from < 0 {
		return nil, nil, errBehind
	}
	var events []Event
	for _, e := range s.ring.events[from:] {
		s.next++
		if s.isNew(e.Event) {
			events = append(events, e.Event)
		}
		if len(events) == takeAtOnce {
			break
		}
	}
	return events, s.ring.changed, ctx.Err()
}

// isNew is false for what a restart gave already.
func (s *WorkerStream) isNew(e Event) bool {
	if s.passed == nil {
		return true
	}
	p, ok := parsePosition(e.ID)
	if !ok {
		return true
	}
	at, told := s.passed[p.turn]
	return !told || p.compare(at) > 0 || p.step == at.step && p.attempt != at.attempt
}

var errBehind = store.Errorf(store.Busy, "the reader is too slow for the stream")
