package store_test

import (
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
)

// webhookChanges change the webhook of a delivery that is about to be sent, or the delivery itself.
var webhookChanges = map[string]struct {
	change func(f *fixture, d store.Delivery) error
	gone   bool // the delivery must not be sent any more
}{
	"set": {change: func(f *fixture, _ store.Delivery) error {
		return errOf(f.Effects.SetWebhook(f.ctx(), f.owner.Caller, f.worker.ID, "https://b.example/"))
	}},
	"renewed": {change: func(f *fixture, _ store.Delivery) error {
		return errOf(f.Effects.RenewWebhook(f.ctx(), f.owner.Caller, f.worker.ID, db.IdempotencyKey{}))
	}},
	"removed": {change: func(f *fixture, _ store.Delivery) error {
		return errOf(f.Effects.RemoveWebhook(f.ctx(), f.owner.Caller, f.worker.ID))
	}, gone: true},
	"removed and set": {change: func(f *fixture, _ store.Delivery) error {
		_, err := f.Effects.RemoveWebhook(f.ctx(), f.owner.Caller, f.worker.ID)
		f.webhook("https://b.example/")
		return err
	}, gone: true},
	"sent by hand": {change: func(f *fixture, d store.Delivery) error {
		return errOf(f.Effects.RecordAttempt(f.ctx(), d, store.Attempt{Manual: true, Success: true, ResponseStatus: 200}))
	}, gone: true},
}

// TestCurrentDelivery changes a webhook after its deliveries were read. The next attempt must use what
// the change has stored.
func TestCurrentDelivery(t *testing.T) {
	t.Parallel()
	for name, tt := range webhookChanges {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t)
			d := f.queuedDelivery()
			is.NoErr(tt.change(f, d))
			now, ok, err := f.Effects.CurrentDelivery(f.ctx(), d)
			is.NoErr(err)
			is.Equal(ok, !tt.gone)
			if !tt.gone {
				w, err := f.Effects.Webhook(f.ctx(), f.owner.Caller, f.worker.ID)
				is.NoErr(err)
				is.Equal(now.Webhook, w)
			}
		})
	}
}

// queuedDelivery ends a turn of a worker with a webhook, and returns the delivery.
func (f *fixture) queuedDelivery() store.Delivery {
	f.t.Helper()
	f.webhook("https://a.example/")
	f.finish(running(f))
	return f.due()[0]
}
