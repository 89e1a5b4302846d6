package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/storetest"
)

// webhookChanges change the webhook of a delivery that is about to be sent, or the delivery itself.
var webhookChanges = map[string]struct {
	change func(f *fixture, d store.Delivery) error
	gone   bool // the delivery must not be sent any more
}{
	"set": {change: func(f *fixture, _ store.Delivery) error {
		_, err := f.SetWebhook(f.ctx(), f.owner.Caller, f.worker.ID, "https://b.example/")
		return err
	}},
	"renewed": {change: func(f *fixture, _ store.Delivery) error {
		_, _, err := f.RenewWebhook(f.ctx(), f.owner.Caller, f.worker.ID, store.IdempotencyKey{})
		return err
	}},
	"removed": {change: func(f *fixture, _ store.Delivery) error {
		_, err := f.RemoveWebhook(f.ctx(), f.owner.Caller, f.worker.ID)
		return err
	}, gone: true},
	"removed and set": {change: func(f *fixture, _ store.Delivery) error {
		_, err := f.RemoveWebhook(f.ctx(), f.owner.Caller, f.worker.ID)
		f.webhook("https://b.example/")
		return err
	}, gone: true},
	"sent by hand": {change: func(f *fixture, d store.Delivery) error {
		_, err := f.RecordAttempt(f.ctx(), d, store.Attempt{Manual: true, Success: true, ResponseStatus: 200})
		return err
	}, gone: true},
	"undone": {change: func(f *fixture, _ store.Delivery) error {
		undone := errors.New("undone")
		err := f.Write(f.ctx(), func(tx store.Tx) error {
			store.ChangeWebhooks(f.Store, tx)
			return undone
		})
		if !errors.Is(err, undone) {
			return errors.Join(err, errors.New("the write was not undone"))
		}
		return nil
	}},
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
			now, ok, err := f.CurrentDelivery(f.ctx(), d)
			is.NoErr(err)
			is.Equal(ok, !tt.gone)
			if !tt.gone {
				w, err := f.Webhook(f.ctx(), f.owner.Caller, f.worker.ID)
				is.NoErr(err)
				is.Equal(now.Webhook, w)
			}
		})
	}
}

// TestCurrentDeliveryDuringAChange reads deliveries during a write that changes their webhook. They
// must be read again after the commit.
func TestCurrentDeliveryDuringAChange(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.queuedDelivery()
	var d store.Delivery
	is.NoErr(f.Write(context.Background(), func(tx store.Tx) error {
		store.ChangeWebhooks(f.Store, tx)
		_, err := tx.Exec(`UPDATE webhooks SET url = 'https://b.example/'`)
		d = f.due()[0]
		is.Equal(d.Webhook.URL, "https://a.example/") // not committed yet
		return err
	}))
	now, ok, err := f.CurrentDelivery(f.ctx(), d)
	is.NoErr(err)
	is.True(ok)
	is.Equal(now.Webhook.URL, "https://b.example/")
}

// TestUnchangedDeliveryIsNotReadAgain counts the reads before an attempt.
func TestUnchangedDeliveryIsNotReadAgain(t *testing.T) {
	storetest.Embedded(t)
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	d := f.queuedDelivery()
	reads := f.EngineStats().Reads.Load()
	now, ok, err := f.CurrentDelivery(f.ctx(), d)
	is.NoErr(err)
	is.True(ok)
	is.Equal(now, d)
	is.Equal(f.EngineStats().Reads.Load(), reads)
}

// queuedDelivery ends a turn of a worker with a webhook, and returns the delivery.
func (f *fixture) queuedDelivery() store.Delivery {
	f.t.Helper()
	f.webhook("https://a.example/")
	f.startRunner("r")
	f.accept(f.turn())
	f.finish(f.claimOne("r"))
	return f.due()[0]
}
