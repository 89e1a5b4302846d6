package runner

import (
	"cmp"
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
	mu  sync.Mutex       // taken before a ring's
	m   map[string]*ring // by worker id
}

// A ring is the tail of a worker's events, in the order all its readers see.
type ring struct {
	readers int       // held: the rings' mu
	left    time.Time // when the last reader left; held: the rings' mu

	mu      sync.RWMutex
	running map[int64]*ringTurn // the turns under way, by num
	events  []ringEvent         // from head on
	head    int
	first   int64            // number of events[0]
	index   map[string]int64 // event id to number
	bytes   int
	changed chan struct{} // closed at the next event
}

// A ringTurn is a turn under way, and up to where the ring has it.
type ringTurn struct {
	at   position
	live *liveTurn // nil while it rests
	view view      // as it rests
}

// look gives the turn as it is.
func (rt *ringTurn) look() (view, bool) {
	if rt.live == nil {
		return rt.view, true
	}
	v, _, ok := rt.live.view()
	return v, ok
}

type ringEvent struct {
	Event
	at time.Time
}

// joinRing gives a worker's ring to a reader, who leaves it. Where there is none it is
// made, and begins after what the turns under way have done so far.
func (r *Runner) joinRing(workerID string) *ring {
	rs := &r.rings
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rg := rs.m[workerID]
	if rg == nil {
		rg = &ring{running: map[int64]*ringTurn{}, index: map[string]int64{}, changed: make(chan struct{})}
		rg.mu.Lock()
		defer rg.mu.Unlock()
		rs.m[workerID] = rg
		// Only now: a turn that is not among them finds the ring.
		for _, lt := range r.liveTurns(workerID) {
			if v, _, ok := lt.view(); ok {
				rd := reader{r: r}
				rd.read(v)
				rg.running[v.turn.Num] = &ringTurn{at: rd.at, live: lt}
			}
		}
	}
	rg.readers++
	return rg
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
	for rg.head < len(rg.events) && (rg.bytes > ringBytes || now.Sub(rg.events[rg.head].at) > ringAge) {
		e := &rg.events[rg.head]
		rg.bytes -= len(e.Data)
		delete(rg.index, e.ID)
		*e = ringEvent{}
		rg.head++
	}
	if rg.head > len(rg.events)/2 { // moving the rest is paid by what was dropped
		rg.events = slices.Delete(rg.events, 0, rg.head)
		rg.first += int64(rg.head)
		rg.head = 0
	}
}

// end is the number of the next event. Held: mu.
func (rg *ring) end() int64 { return rg.first + int64(len(rg.events)) }

// add takes new events in. Held: mu.
func (rg *ring) add(events []Event, now time.Time) {
	if len(events) == 0 {
		return
	}
	for _, e := range events {
		rg.index[e.ID] = rg.end()
		rg.events = append(rg.events, ringEvent{e, now})
		rg.bytes += len(e.Data)
	}
	rg.trim(now)
	close(rg.changed)
	rg.changed = make(chan struct{})
}

// feedRing gives the worker's ring what is new of a turn.
func (r *Runner) feedRing(lt *liveTurn) {
	rg := r.rings.get(lt.workerID)
	if rg == nil {
		return
	}
	rg.mu.Lock()
	defer rg.mu.Unlock()
	v, _, ok := lt.view()
	if !ok {
		return
	}
	rt := rg.turn(v.turn.Num)
	rt.live, rt.view = lt, view{}
	r.feed(rg, rt, v)
}

// turn is what the ring knows of a turn under way: from now on, something. Held: mu.
func (rg *ring) turn(num int64) *ringTurn {
	rt := rg.running[num]
	if rt == nil {
		rt = &ringTurn{}
		rg.running[num] = rt
	}
	return rt
}

// feed takes a turn as far as v knows it into the ring. Held: the ring's mu, which
// keeps the turns' events in the one order that all readers see.
func (r *Runner) feed(rg *ring, rt *ringTurn, v view) {
	rd := reader{r: r, at: rt.at, wide: true}
	events := rd.read(v)
	rt.at = rd.at
	rg.add(events, r.cfg.Now())
}

// forget is for a turn that is not carried out any more. One that rests goes on from
// where the ring has it.
func (rs *rings) forget(lt *liveTurn) {
	rg := rs.get(lt.workerID)
	if rg == nil {
		return
	}
	v, _, _ := lt.view()
	rg.mu.Lock()
	defer rg.mu.Unlock()
	rt := rg.running[v.turn.Num]
	switch {
	case rt == nil || rt.live != lt: // it is carried out again already
	case lt.rests:
		rt.live, rt.view = nil, v
	default:
		delete(rg.running, v.turn.Num)
	}
}

// feedResting gives the worker's ring a turn that rests. One that has gone on and
// ended meanwhile, the ring has told of.
func (r *Runner) feedResting(v view) {
	rg := r.rings.get(v.turn.WorkerID)
	if rg == nil {
		return
	}
	rg.mu.Lock()
	defer rg.mu.Unlock()
	if _, told := rg.index[firstID(v.turn)]; v.turn.Status.Ended() || told && rg.running[v.turn.Num] == nil {
		return
	}
	if rt := rg.turn(v.turn.Num); rt.live == nil {
		rt.view = v
		r.feed(rg, rt, v)
	}
}

// feedEnded gives the worker's ring a turn that ended without being carried out.
func (r *Runner) feedEnded(v view) {
	rg := r.rings.get(v.turn.WorkerID)
	if rg == nil {
		return
	}
	rg.mu.Lock()
	defer rg.mu.Unlock()
	rt := rg.running[v.turn.Num]
	if _, known := rg.index[firstID(v.turn)]; known && rt == nil {
		return
	}
	r.feed(rg, rg.turn(v.turn.Num), v)
	delete(rg.running, v.turn.Num)
}

// firstID is the id of a turn's first event.
func firstID(t store.Turn) string {
	return position{turn: t.Num, step: startStep, slot: slotUserMessage}.String()
}

// capture gives the turns under way as the ring has them now, in the order of their
// creation, and the number of the event that comes next.
func (r *Runner) capture(rg *ring) (views []view, next int64) {
	rg.mu.Lock()
	defer rg.mu.Unlock()
	for _, rt := range rg.running {
		v, _ := rt.look()
		r.feed(rg, rt, v) // so that what comes next begins where v ends
		views = append(views, v)
	}
	slices.SortFunc(views, func(a, b view) int { return cmp.Compare(a.turn.Num, b.turn.Num) })
	return views, rg.end()
}
