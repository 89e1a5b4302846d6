package stream

import (
	"sync"
	"time"

	"journeyman/store"
)

// Limits within which a worker-wide stream resumes exactly.
const (
	RingAge   = 5 * time.Minute
	RingBytes = 4 << 20

	// nodeRingAge replaces RingAge among nodes. A ring without watchers must be dropped before its worker
	// can move to another node. If the worker returned later, the ring would lack that node's events.
	nodeRingAge = 30 * time.Second
)

// A ring holds the recent events of a worker, in one order for all watchers. A worker has a
// ring while somebody watches the worker, and for RingAge afterwards, or nodeRingAge among nodes.
type ring struct {
	watchers int       // guarded by the mu of the hub
	left     time.Time // when the last watcher left; guarded by the mu of the hub
	guest    bool      // see Hub.Guest; guarded by the mu of the hub

	mu      sync.RWMutex        // guards the fields below, except wakeUp
	turns   map[int64]*ringTurn // the unfinished turns, by num
	events  []ringEvent
	first   int64            // number of events[0]
	index   map[string]int64 // number of an event by its id
	bytes   int              // total length of all events
	changed signal           // fires when an event is added, and when the ring is over
	over    bool             // no further event follows: see Hub.Leave
	wakeUp  *alarm
}

type ringEvent struct {
	Event
	at time.Time
}

// A ringTurn is a turn that has not ended.
type ringTurn struct {
	at   position // the ring has all events up to here
	live *Live    // nil while the turn is suspended
	snap snapshot // the turn's state while it is suspended
}

// trim drops the oldest events beyond the limits. The caller holds mu.
func (rg *ring) trim(now time.Time) {
	for len(rg.events) > 0 && (rg.bytes > RingBytes || now.Sub(rg.events[0].at) > RingAge) {
		rg.bytes -= len(rg.events[0].Data)
		delete(rg.index, string(rg.events[0].ID))
		rg.events[0] = ringEvent{} // release its memory now: append moves the other elements only later
		rg.events = rg.events[1:]
		rg.first++
	}
}

// end returns the number of the next event. The caller holds mu.
func (rg *ring) end() int64 { return rg.first + int64(len(rg.events)) }

// add appends events and wakes the watchers. The caller holds mu.
func (rg *ring) add(events []Event, now time.Time) {
	if len(events) == 0 {
		return
	}
	for _, e := range events {
		rg.index[string(e.ID)] = rg.end()
		rg.events = append(rg.events, ringEvent{e, now})
		rg.bytes += len(e.Data)
	}
	rg.trim(now)
	rg.changed.fire(rg.wakeUp)
}

// from returns at most n events, beginning with the given number. ok is false if the ring has
// already dropped some of them.
func (rg *ring) from(number int64, n int) (events []Event, ok bool) {
	rg.mu.RLock()
	defer rg.mu.RUnlock()
	if number < rg.first {
		return nil, false
	}
	list := rg.events[number-rg.first:]
	events = make([]Event, min(len(list), n))
	for i := range events {
		events[i] = list[i].Event
	}
	return events, true
}

// watch returns a channel that closes when the ring has the event with the given number. The
// caller calls leave when it no longer waits.
func (rg *ring) watch(number int64) (changed <-chan struct{}, leave func()) {
	rg.mu.Lock()
	defer rg.mu.Unlock()
	w := rg.changed.watch()
	if number < rg.end() || rg.over { // the event was added before the lock was taken
		rg.changed.leave(w)
		close(w.changed)
	}
	return w.changed, func() {
		rg.mu.Lock()
		defer rg.mu.Unlock()
		rg.changed.leave(w)
	}
}

// isOver reports whether no further event follows: see Hub.Leave.
func (rg *ring) isOver() bool {
	rg.mu.RLock()
	defer rg.mu.RUnlock()
	return rg.over
}

// numberOf returns the number of the event with an id.
func (rg *ring) numberOf(id string) (number int64, ok bool) {
	rg.mu.RLock()
	defer rg.mu.RUnlock()
	number, ok = rg.index[id]
	return number, ok
}

// turn returns the entry of a turn. It creates a missing entry. The caller holds mu.
func (rg *ring) turn(num int64) *ringTurn {
	rt := rg.turns[num]
	if rt == nil {
		rt = &ringTurn{}
		rg.turns[num] = rt
	}
	return rt
}

// endedBefore reports whether a turn has ended: the ring has received events of the turn, but
// has no entry for it. The caller holds mu.
func (rg *ring) endedBefore(t store.Turn) bool {
	_, begun := rg.index[firstID(t)]
	return begun && rg.turns[t.Num] == nil
}

// firstID returns the id of a turn's first event.
func firstID(t store.Turn) string {
	return position{turn: t.Num, step: startStep, slot: slotUserMessage}.String()
}
