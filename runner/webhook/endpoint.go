package webhook

import "time"

// batch is the largest number of deliveries that an endpoint gets before another one takes its slot.
const batch = 32

// An endpoint is a worker's webhook that has pending deliveries.
type endpoint struct {
	workerID string
	busy     bool // it waits for a slot or has one, so it must not enter a queue again
	added    bool // a delivery was added after the slot had read the due deliveries
	failing  bool // its last attempt failed
}

// A queue holds the endpoints that wait for a slot, in the order in which they entered.
type queue struct {
	slots   int // maximum concurrent attempts
	taken   int // slots in use
	waiting []*endpoint
}

// added schedules the deliveries of a worker for now. The store calls it after each commit of a
// delivery, so it must not block.
func (d *Dispatcher) added(workerID string) { d.expect(workerID, d.now()) }

// expect schedules the worker's deliveries for the given time. If another node is the leader, expect
// does nothing, because the leader finds them in a poll.
func (d *Dispatcher) expect(workerID string, due time.Time) {
	if !d.cfg.Store.Leads() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.endpoints[workerID]
	if e == nil {
		e = &endpoint{workerID: workerID}
		d.endpoints[workerID] = e
	}
	d.schedule(e, due)
}

// schedule puts an endpoint into its queue at the given time. It may start several timers for one
// endpoint. That is harmless, because a slot that finds no due delivery sends nothing. The caller
// holds d.mu.
func (d *Dispatcher) schedule(e *endpoint, due time.Time) {
	wait := due.Sub(d.now())
	switch {
	case d.open.Err() != nil || !d.cfg.Store.Leads(): // the next start or the leader sends them
	case e.busy:
		e.added = true
	case wait <= 0:
		d.enqueue(e)
	case wait <= d.pollPause(): // later deliveries get their timer in a later poll
		time.AfterFunc(wait, func() { d.expect(e.workerID, due) })
	}
}

// enqueue appends an endpoint to its queue, and starts a slot if one is free. The caller holds d.mu.
func (d *Dispatcher) enqueue(e *endpoint) {
	q := &d.working
	if e.failing {
		q = &d.failing
	}
	e.busy = true
	q.waiting = append(q.waiting, e)
	// If all slots are in use, the next one that is done with its endpoint takes this one.
	if q.taken < q.slots {
		q.taken++
		d.running.Go(func() {
			for e := d.next(q); e != nil; e = d.next(q) {
				d.serve(e)
			}
		})
	}
}

// next removes and returns the first endpoint of a queue. If the queue is empty or the dispatcher
// stops, it frees the caller's slot and returns nil.
func (d *Dispatcher) next(q *queue) *endpoint {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(q.waiting) == 0 || d.open.Err() != nil {
		q.taken--
		return nil
	}
	e := q.waiting[0]
	q.waiting = q.waiting[1:]
	e.added = false // the slot will read all deliveries that were added before now
	return e
}

// forget removes an endpoint, because another node sends its deliveries.
func (d *Dispatcher) forget(e *endpoint) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.endpoints, e.workerID)
}

// serve sends a batch of an endpoint's deliveries and schedules the remaining ones.
func (d *Dispatcher) serve(e *endpoint) {
	if !d.cfg.Store.Leads() {
		d.forget(e)
		return
	}
	full := d.cfg.Store.Gate.Room() != nil // the record of an attempt needs disk space for the request and the response
	failing, err := e.failing, error(nil)
	if !full {
		failing, err = d.deliver(e)
	}
	var due time.Time
	var more bool
	if err == nil {
		due, more, err = d.cfg.Store.Effects.WorkerDelivery(d.ctx, e.workerID)
	}
	if full {
		due = d.now().Add(roomPause) // the deliveries stay in the database
	}
	if err != nil {
		if d.ctx.Err() == nil {
			d.cfg.Log.Error("deliver", "worker", e.workerID, "err", err)
		}
		due, more = d.now().Add(pollEvery), true // the database fails: pause before the next try
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	// Read and change the endpoint under one lock. A delivery that is added before it sets e.added,
	// and one that is added after it schedules the endpoint.
	e.busy, e.failing = false, failing
	if e.added && err == nil {
		if more = true; !full {
			due = d.now()
		}
	}
	if more {
		d.schedule(e, due)
	} else {
		delete(d.endpoints, e.workerID)
	}
}
