package webhook

import (
	"context"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/gate"
	"journeyman/store/people"
)

// Manual carries out a user's requests for a worker's webhook: setting its URL, testing it, and
// repeating a delivery. Only the worker's creator may make them.
type Manual struct {
	Store  *store.Store
	Sender interface {
		// CheckURL returns an error for the user if the URL is not allowed for a webhook.
		CheckURL(url string) error
		// Send makes one attempt at a delivery immediately and returns its row.
		Send(ctx context.Context, d store.Delivery) (store.Execution, error)
	}
}

// Check returns an error for the user if the URL is not allowed for a webhook.
func (m Manual) Check(url string) error { return m.Sender.CheckURL(url) }

// Set configures the webhook of a worker.
func (m Manual) Set(ctx context.Context, c people.Caller, workerID, url string) (store.Webhook, error) {
	if err := m.Sender.CheckURL(url); err != nil {
		return store.Webhook{}, db.Fields{{Path: "url", Message: err.Error()}}.Err()
	}
	return m.Store.Effects.SetWebhook(ctx, c, workerID, url)
}

// Test sends a sample delivery and returns the row of the attempt. If the idempotency key was used
// before, it returns the row of the first request, and true.
func (m Manual) Test(ctx context.Context, c people.Caller, workerID string, key db.IdempotencyKey) (
	e store.Execution, replayed bool, err error) {
	return m.send(ctx, c, workerID, key, func() (store.Delivery, error) {
		return m.Store.Effects.CreateTestDelivery(ctx, c, workerID)
	})
}

// Redeliver sends the delivery of an earlier attempt again. It returns the same values as Test.
func (m Manual) Redeliver(ctx context.Context, c people.Caller, workerID, executionID string, key db.IdempotencyKey) (
	e store.Execution, replayed bool, err error) {
	return m.send(ctx, c, workerID, key, func() (store.Delivery, error) {
		return m.Store.Effects.ExecutedDelivery(ctx, c, workerID, executionID)
	})
}

// send returns the row of an earlier request with the same key, if there is one. Otherwise it sends
// the delivery and stores the row's id under the key.
func (m Manual) send(ctx context.Context, c people.Caller, workerID string, key db.IdempotencyKey,
	delivery func() (store.Delivery, error)) (
	e store.Execution, replayed bool, err error) {
	done, err := m.Store.Replay(ctx, key)
	if err != nil {
		return e, false, err
	}
	if done != "" {
		e, err = m.Store.Effects.Execution(ctx, c, workerID, done)
		return e, true, err
	}
	d, err := delivery()
	if err != nil {
		return e, false, err
	}
	if e, err = m.Sender.Send(ctx, d); err == nil {
		// Store the key even during maintenance or after a disconnect, as for the attempt itself.
		// Otherwise a repeated request would send twice.
		err = m.Store.Remember(gate.DuringMaintenance(context.WithoutCancel(ctx)), key, e.ID)
	}
	return e, false, err
}
