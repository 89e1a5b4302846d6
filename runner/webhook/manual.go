package webhook

import (
	"context"

	"journeyman/store"
)

// Manual serves the requests of people about a worker's webhook: to set its URL, to test
// it, and to repeat a delivery. Only the worker's creator may make them.
type Manual struct {
	Store  *store.Store
	Sender interface {
		// CheckURL returns an error, for the author of the URL, if no webhook can have it.
		CheckURL(url string) error
		// Send makes one attempt at a delivery now and returns its row.
		Send(ctx context.Context, d store.Delivery) (store.Execution, error)
	}
}

// Check returns an error for people if a webhook cannot have that address.
func (m Manual) Check(url string) error { return m.Sender.CheckURL(url) }

// Set configures the webhook of a worker.
func (m Manual) Set(ctx context.Context, c store.Caller, workerID, url string) (store.Webhook, error) {
	if err := m.Sender.CheckURL(url); err != nil {
		return store.Webhook{}, store.Fields{{Path: "url", Message: err.Error()}}.Err()
	}
	return m.Store.SetWebhook(ctx, c, workerID, url)
}

// Test sends a sample and returns the row of the attempt. For a repeated request it
// returns the row of the first one, and true.
func (m Manual) Test(ctx context.Context, c store.Caller, workerID string, key store.IdempotencyKey) (
	e store.Execution, replayed bool, err error) {
	return m.send(ctx, c, workerID, key, func() (store.Delivery, error) {
		return m.Store.CreateTestDelivery(ctx, c, workerID)
	})
}

// Redeliver sends the delivery of an earlier attempt again, and returns what Test does.
func (m Manual) Redeliver(ctx context.Context, c store.Caller, workerID, executionID string, key store.IdempotencyKey) (
	e store.Execution, replayed bool, err error) {
	return m.send(ctx, c, workerID, key, func() (store.Delivery, error) {
		return m.Store.ExecutedDelivery(ctx, c, workerID, executionID)
	})
}

// send returns the row that an earlier request with the same key has made, if there is
// one. Otherwise it sends the delivery and remembers the row under the key.
func (m Manual) send(ctx context.Context, c store.Caller, workerID string, key store.IdempotencyKey,
	delivery func() (store.Delivery, error)) (
	e store.Execution, replayed bool, err error) {
	done, err := m.Store.Replay(ctx, key)
	if err != nil {
		return e, false, err
	}
	if done != "" {
		e, err = m.Store.Execution(ctx, c, workerID, done)
		return e, true, err
	}
	d, err := delivery()
	if err != nil {
		return e, false, err
	}
	if e, err = m.Sender.Send(ctx, d); err == nil {
		// As the attempt itself: without it, a repeated request sends twice.
		err = m.Store.Remember(store.DuringMaintenance(context.WithoutCancel(ctx)), key, e.ID)
	}
	return e, false, err
}
