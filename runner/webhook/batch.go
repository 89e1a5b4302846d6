package webhook

import (
	"context"
	"errors"
	"sync/atomic"

	"journeyman/store"
)

// deliver sends the due deliveries of an endpoint one after the other. It ends after a batch or
// after the first failure. failing reports whether the endpoint's last attempt failed.
func (d *Dispatcher) deliver(e *endpoint) (failing bool, err error) {
	failing = e.failing
	due, err := d.cfg.Store.Effects.DueDeliveries(d.ctx, e.workerID, batch)
	if err != nil || len(due) == 0 {
		return failing, err
	}
	records := d.record()
	defer func() { err = errors.Join(err, records.close()) }()
	for _, del := range due {
		// A user may have changed or removed the webhook since the batch was read.
		if d.cfg.Store.Gate.Writable() != nil || !d.cfg.Store.Leads() || records.failed.Load() {
			return failing, nil // nothing is sent during maintenance, or by two nodes
		}
		del, ok, err := d.cfg.Store.Effects.CurrentDelivery(d.ctx, del)
		if err != nil || d.open.Err() != nil {
			return failing, err
		}
		if !ok {
			continue
		}
		a := d.attempt(del)
		if d.ctx.Err() != nil {
			return failing, nil // Stop interrupted the attempt, so the endpoint has not failed
		}
		d.logAttempt(del, a)
		records.made <- store.MadeAttempt{Delivery: del, Attempt: a}
		if failing = !a.Success; failing {
			break
		}
	}
	return failing, nil
}

// attempt sends a delivery. A body that cannot be built counts as a failed attempt, so that it does
// not block the next delivery.
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

// maxQueued is the largest number of attempts that wait while others are being recorded. So at most
// 2 * (maxQueued + 1) attempts at an endpoint are made again after a crash.
const maxQueued = 7

// A recorder stores the attempts at one endpoint in their order. A commit waits for the disk.
// Attempts that end during a commit share the next one.
type recorder struct {
	made   chan store.MadeAttempt
	done   chan error  // receives the result of run
	failed atomic.Bool // an attempt could not be recorded, so it will be made again
}

// record starts a recorder.
func (d *Dispatcher) record() *recorder {
	r := &recorder{made: make(chan store.MadeAttempt, maxQueued), done: make(chan error, 1)}
	go func() { r.done <- r.run(d.cfg.Store, context.WithoutCancel(d.ctx)) }() // ends with close
	return r
}

// run records attempts until close. Its context outlives Stop, because attempts that were made must
// be recorded. After the first error, run records nothing more.
func (r *recorder) run(s *store.Store, ctx context.Context) (err error) {
	for first := range r.made {
		list := []store.MadeAttempt{first}
		for len(r.made) > 0 {
			list = append(list, <-r.made)
		}
		if err == nil {
			err = s.Effects.RecordAttempts(ctx, list)
			r.failed.Store(err != nil)
		}
	}
	return err
}

// close waits until all attempts are recorded.
func (r *recorder) close() error {
	close(r.made)
	return <-r.done
}
