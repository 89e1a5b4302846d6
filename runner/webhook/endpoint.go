package webhook

import (
	"context"
	"errors"
	"time"

	"journeyman/store"
)

// batch is how many deliveries an endpoint may make before others get its slot.
const batch = 32

// An endpoint is a worker's webhook while it has deliveries to make.
type endpoint struct {
	workerID string
	busy     bool // it waits for a slot or has one, so no other slot may serve it
	added    bool // a delivery was added after its slot read the due ones
	failing  bool // its last attempt failed
}

// A queue holds the endpoints that wait for a slot, first come first served.
type queue struct {
	slots   int // attempts at once
	taken   int // slots in use
	waiting []*endpoint
}

// added is called after the commit of every new delivery, by the store's writer.
func (d *Dispatcher) added(workerID string) { d.expect(workerID, d.now()) }

// expect makes the worker's deliveries at the given time.
func (d *Dispatcher) expect(workerID string, due time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.endpoints[workerID]
	if e == nil {
		e = &endpoint{workerID: workerID}
		d.endpoints[workerID] = e
	}
	d.schedule(e, due)
}

// schedule puts an endpoint into its queue at the given time. One timer too many does
// no harm: it finds nothing to send. d.mu is held.
func (d *Dispatcher) schedule(e *endpoint, due time.Time) {
	wait := due.Sub(d.now())
	switch {
	case d.begins.Err() != nil:
	case e.busy:
		e.added = true
	case wait <= 0:
		d.enqueue(e)
	case wait <= lookEvery: // Look finds the deliveries that are due later before then
		time.AfterFunc(wait, func() { d.expect(e.workerID, due) })
	}
}

// enqueue has an endpoint served as soon as a slot is free. d.mu is held.
func (d *Dispatcher) enqueue(e *endpoint) {
	q := &d.working
	if e.failing {
		q = &d.failing
	}
	e.busy = true
	q.waiting = append(q.waiting, e)
	// Otherwise a running slot takes the endpoint when its own one is done.
	if q.taken < q.slots {
		q.taken++
		d.running.Go(func() {
			for e := d.next(q); e != nil; e = d.next(q) {
				d.serve(e)
			}
		})
	}
}

// next takes the first endpoint out of a queue. It frees the caller's slot and
// returns nil if none waits or the dispatcher stops.
func (d *Dispatcher) next(q *queue) *endpoint {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(q.waiting) == 0 || d.begins.Err() != nil {
		q.taken--
		return nil
	}
	e := q.waiting[0]
	q.waiting = q.waiting[1:]
	e.added = false // deliveries that were added until now are read with the due ones
	return e
}

// serve makes a batch of an endpoint's deliveries and schedules the others.
func (d *Dispatcher) serve(e *endpoint) {
	full := d.cfg.Store.Room() != nil // an attempt is stored with its request and response
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
		due, more = d.now().Add(lookEvery), true // the database fails, so the next try waits
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	// Under the lock: a delivery that is added now either sets added or schedules.
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

// deliver makes the due deliveries of an endpoint one after the other, up to a batch
// and until one fails. failing reports whether the endpoint's last attempt failed.
func (d *Dispatcher) deliver(e *endpoint) (failing bool, err error) {
	failing = e.failing
	due, err := d.cfg.Store.DueDeliveries(d.ctx, e.workerID, batch)
	if err != nil || len(due) == 0 {
		return failing, err
	}
	// The next attempt is made while the last one is recorded, because the commit waits for the
	// disk.
	recorded := make(chan error, 1) // always holds, or will hold, the result of the last one
	recorded <- nil
	defer func() { err = errors.Join(err, <-recorded) }()
	for _, del := range due {
		// A person may have changed or removed the webhook since the batch was read.
		if d.cfg.Store.Writable() != nil {
			return failing, nil // in maintenance nothing is sent
		}
		del, ok, err := d.cfg.Store.CurrentDelivery(d.ctx, del)
		if err != nil || d.begins.Err() != nil {
			return failing, err
		}
		if !ok {
			continue
		}
		a := d.attempt(del)
		if d.ctx.Err() != nil {
			return failing, nil // the program stops: the endpoint has not failed
		}
		d.logAttempt(del, a)
		if err := <-recorded; err != nil {
			recorded <- nil
			return failing, err
		}
		go func() {
			_, err := d.cfg.Store.RecordAttempt(context.WithoutCancel(d.ctx), del, a) // it was made: Stop is no reason
			recorded <- err
		}()
		if failing = !a.Success; failing {
			break
		}
	}
	return failing, nil
}

// attempt makes the body of a delivery and sends it. A body that cannot be made
// counts as a failed attempt, so that the delivery does not hold up the next one.
func (d *Dispatcher) attempt(del store.Delivery) store.Attempt {
	body, err := d.views.Delivery(d.ctx, del)
	if err == nil {
		return d.send(d.ctx, del, body)
	}
	if d.ctx.Err() == nil {
		d.cfg.Log.Error("build the body of a delivery", "delivery", del.ID, "worker", del.WorkerID, "err", err)
	}
	return store.Attempt{ErrorMessage: "the body could not be made", StartedAt: d.now(),
		Retry: d.retry(del.Attempts, nil)}
}
