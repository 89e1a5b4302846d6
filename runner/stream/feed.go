package stream

import (
	"cmp"
	"slices"
)

// ring returns the ring of a worker, or nil if the worker has no ring.
func (h *Hub) ring(workerID string) *ring {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rings[workerID]
}

// joinRing returns the ring of a worker for a new watcher. The watcher must call leaveRing. A
// new ring begins at the current positions of the running turns.
func (h *Hub) joinRing(workerID string) *ring {
	h.mu.Lock() // held until the watcher is counted: Prune must not drop the ring before
	defer h.mu.Unlock()
	rg := h.rings[workerID]
	if rg == nil {
		rg = &ring{turns: map[int64]*ringTurn{}, index: map[string]int64{}, wakeUp: &h.wakeUp}
		rg.mu.Lock()
		defer rg.mu.Unlock()
		h.rings[workerID] = rg
		// A turn that is not loaded yet joins the ring when it is loaded.
		for _, l := range h.live {
			if l.workerID != workerID {
				continue
			}
			// A turn that has ended stays in live until it is closed. It has no more events.
			if s, ok := l.look(); ok && !s.turn.Status.Ended() {
				e := encoder{views: h.views}
				e.encode(s) // moves e.at to the end of the snapshot; the past events are not used
				rg.turns[s.turn.Num] = &ringTurn{at: e.at, live: l}
			}
		}
	}
	rg.watchers++
	return rg
}

func (h *Hub) leaveRing(rg *ring) {
	h.mu.Lock()
	defer h.mu.Unlock()
	rg.watchers--
	rg.left = h.now()
}

// Prune drops expired rings that nobody watches, and expired events.
func (h *Hub) Prune() {
	h.mu.Lock()
	defer h.mu.Unlock()
	age := RingAge
	if h.store.Shared() {
		age = nodeRingAge
	}
	for id, rg := range h.rings {
		if rg.watchers == 0 && h.now().Sub(rg.left) > age {
			delete(h.rings, id)
			continue
		}
		rg.mu.Lock()
		rg.trim(h.now())
		rg.mu.Unlock()
	}
}

// feed adds the new events of a turn to the ring. The caller holds the ring's mu, so that the
// events of all turns have one order.
func (h *Hub) feed(rg *ring, rt *ringTurn, s snapshot) {
	e := encoder{views: h.views, at: rt.at, wide: true}
	events := e.encode(s)
	rt.at = e.at
	rg.add(events, h.now())
}

// inRing calls do with the ring of a worker while it holds the ring's mu. Without a ring,
// inRing does nothing.
func (h *Hub) inRing(workerID string, do func(rg *ring)) {
	if rg := h.ring(workerID); rg != nil {
		rg.mu.Lock()
		defer rg.mu.Unlock()
		do(rg)
	}
}

// feedLive adds the new events of a turn that this process executes.
func (h *Hub) feedLive(l *Live) {
	h.inRing(l.workerID, func(rg *ring) {
		// The snapshot is taken with the ring locked, so that the ring never goes backwards.
		if s, ok := l.look(); ok {
			rt := rg.turn(s.turn.Num)
			rt.live, rt.snap = l, snapshot{}
			h.feed(rg, rt, s)
		}
	})
}

// feedSuspended adds the new events of a suspended turn. If the turn is executed again
// meanwhile, it does nothing: the new execution adds the events itself.
func (h *Hub) feedSuspended(s snapshot) {
	h.inRing(s.turn.WorkerID, func(rg *ring) {
		if s.turn.Status.Ended() || rg.endedBefore(s.turn) {
			return
		}
		if rt := rg.turn(s.turn.Num); rt.live == nil {
			rt.snap = s
			h.feed(rg, rt, s)
		}
	})
}

// feedEnded adds the end of a turn that ended while nobody executed it.
func (h *Hub) feedEnded(s snapshot) {
	h.inRing(s.turn.WorkerID, func(rg *ring) {
		if !rg.endedBefore(s.turn) {
			h.feed(rg, rg.turn(s.turn.Num), s)
			delete(rg.turns, s.turn.Num)
		}
	})
}

// release removes the entry of a turn that is no longer executed. The entry of a suspended turn
// stays, because the turn will continue from the ring's position.
func (h *Hub) release(l *Live) {
	h.inRing(l.workerID, func(rg *ring) {
		s, _ := l.look()
		rt := rg.turns[s.turn.Num]
		switch {
		case rt == nil || rt.live != l: // the turn is already executed again
		case l.suspended:
			rt.live, rt.snap = nil, s
		default:
			delete(rg.turns, s.turn.Num)
		}
	})
}

// unfinished returns snapshots of the unfinished turns, oldest first, and the number of the ring's
// next event. Each snapshot ends where the ring's next event of its turn begins.
func (h *Hub) unfinished(rg *ring) (snaps []snapshot, next int64) {
	rg.mu.Lock()
	defer rg.mu.Unlock()
	for _, rt := range rg.turns {
		s := rt.snap
		if rt.live != nil {
			s, _ = rt.live.look()
		}
		h.feed(rg, rt, s) // so that the next event continues exactly where the snapshot ends
		snaps = append(snaps, s)
	}
	slices.SortFunc(snaps, func(a, b snapshot) int { return cmp.Compare(a.turn.Num, b.turn.Num) })
	return snaps, rg.end()
}
