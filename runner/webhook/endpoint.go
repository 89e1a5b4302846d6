package webhook

import "time"

// batch is the number of deliveries that an endpoint may send before it must give up its slot.
const batch = 32

// An endpoint is a worker's webhook that has pending deliveries.
type endpoint struct {
	workerID string
	busy     bool // it waits for a slot or holds one, so no other slot may serve it
	added    bool // a delivery was added after its slot read the due ones
	failing  bool // its last attempt failed
}

// A queue holds the endpoints that wait for a slot, first come first served.
type queue struct {
	slots   int // maximum concurrent attempts
	taken   int // slots in use
	waiting []*endpoint
}

// added makes a worker's new delivery due now. The store's writer calls it after each commit of a
// delivery.
func (d *Dispatcher) added(workerID string) { d.expect(workerID, d.now()) }

// expect schedules the worker's deliveries for the given time. If another node is the leader, that one
// finds them by Poll.
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

// schedule puts an endpoint into its queue at the given time. A superfluous timer does no harm: it
// finds nothing to send. d.mu is held.
func (d *Dispatcher) schedule(e *endpoint, due time.Time) {
	wait := due.Sub(d.now())
	switch {
	case d.open.Err() != nil || !d.cfg.Store.Leads(): // the leader finds the delivery by Poll
	case e.busy:
		e.added = true
	case wait <= 0:
		d.enqueue(e)
	case wait <= d.pollPause(): // later deliveries get a timer when Poll runs again
		time.AfterFunc(wait, func() { d.expect(e.workerID, due) })
	}
}

// enqueue appends an endpoint to its queue and takes a free slot for it. d.mu is held.
func (d *Dispatcher) enqueue(e *endpoint) {
	q := &d.working
	if e.failing {
		q = &d.failing
	}
	e.busy = true
	q.waiting = append(q.waiting, e)
	// Otherwise a slot in use takes the endpoint when its current one is done.
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
	e.added = false // deliveries added until now are among those that the slot will read
	return e
}

// forget leaves the deliveries of an endpoint to another node.
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
	full := d.cfg.Store.Room() != nil // recording an attempt needs disk space for its request and response
	failing, err := e.failing, error(nil)
	if !full {
		failing, err = d.deliver(e)
	}
	var due time.Time
	var more bool
	if err == nil {
		due, more, err = d.cfg.Store.WorkerDelivery(d.ctx, e.workerID)
	}
	if full {
		due = d.now().Add(roomPause) // they stay in the queue
	}
	if err != nil {
		if d.ctx.Err() == nil {
			d.cfg.Log.Error("deliver", "worker", e.workerID, "err", err)
		}
		due, more = d.now().Add(pollEvery), true // wait before the next try, because the database fails
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	// Under the lock: a delivery added now either sets e.added or schedules the endpoint.
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
