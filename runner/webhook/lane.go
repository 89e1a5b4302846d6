package webhook

import (
	"context"
	"fmt"
	"sync"

	"journeyman/store"
)

// A prepared delivery has the body to send.
type prepared struct {
	store.Delivery
	body []byte
	err  error
}

// An outcome is an attempt that was made.
type outcome struct {
	delivery store.Delivery
	attempt  store.Attempt
}

// deliver makes the due deliveries of a lane one after the other, up to a batch and
// until one fails. While one is on its way the next body is made, and what has been
// sent is written down. failing says that the last attempt failed, this time or the
// time before.
func (d *Dispatcher) deliver(l *lane) (failing bool, err error) {
	due, err := d.cfg.Store.DueDeliveries(d.ctx, l.workerID, laneBatch)
	if err != nil || len(due) == 0 {
		return l.failing, err
	}
	ctx, stop := context.WithCancel(d.ctx)
	bodies := make(chan prepared)
	made := make(chan outcome, laneBatch)
	var helpers sync.WaitGroup
	helpers.Go(func() { d.prepare(ctx, due, bodies) })
	var recording error
	helpers.Go(func() { recording = d.record(made) })
	failing, err = d.sendAll(bodies, made)
	stop()
	close(made)
	helpers.Wait()
	if err == nil {
		err = recording
	}
	return failing, err
}

// sendAll sends bodies until one fails.
func (d *Dispatcher) sendAll(bodies <-chan prepared, made chan<- outcome) (failed bool, err error) {
	for p := range bodies {
		if d.begins.Err() != nil {
			return false, nil
		}
		// The webhook may have been changed or removed since.
		current, ok, err := d.cfg.Store.CurrentDelivery(d.ctx, p.Delivery)
		if err != nil {
			return false, err
		}
		if !ok {
			continue
		}
		a := d.attemptPrepared(current, p)
		if d.ctx.Err() != nil {
			return false, nil // cut off by the end of the program: no failure of the endpoint's
		}
		made <- outcome{current, a}
		if !a.Success {
			return true, nil
		}
	}
	return false, nil
}

// attemptPrepared is attempt for a body that perhaps could not be made: such a
// delivery must not stand in the way of the next.
func (d *Dispatcher) attemptPrepared(del store.Delivery, p prepared) store.Attempt {
	if p.err == nil {
		return d.attempt(d.ctx, del, p.body)
	}
	if d.ctx.Err() == nil {
		d.cfg.Log.Error("make the body of a delivery", "delivery", del.ID, "err", p.err)
	}
	return store.Attempt{ErrorMessage: "the body could not be made", StartedAt: d.now(), Retry: d.retry(del, nil)}
}

// prepare makes the bodies of deliveries in their order.
func (d *Dispatcher) prepare(ctx context.Context, due []store.Delivery, bodies chan<- prepared) {
	defer close(bodies)
	for _, del := range due {
		p := prepared{Delivery: del}
		p.body, p.err = d.cfg.Body(ctx, del)
		select {
		case bodies <- p:
		case <-ctx.Done():
			return
		}
	}
}

// record writes outcomes down as they come, those that wait together.
func (d *Dispatcher) record(made <-chan outcome) error {
	var failure error
	for o := range made {
		deliveries, attempts := []store.Delivery{o.delivery}, []store.Attempt{o.attempt}
		for range len(made) { // nobody else takes them
			o := <-made
			deliveries, attempts = append(deliveries, o.delivery), append(attempts, o.attempt)
		}
		// The attempts were made, whatever happens to this program.
		if _, err := d.cfg.Store.RecordAttempts(context.WithoutCancel(d.ctx), attempts, deliveries); err != nil {
			failure = fmt.Errorf("write down attempts: %w", err)
		}
	}
	return failure
}
