package store

import (
	"context"
	"crypto/rand"
	"encoding/base64"

	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// A Webhook receives a delivery for each turn of a worker that ends. The URL is "" if the worker
// has no webhook.
type Webhook struct {
	URL           string
	Token         string // sent with each delivery
	SigningSecret string // signs the deliveries, and is never sent
}

// readWebhook returns the webhook of a worker, or the zero Webhook if there is none.
func readWebhook(ctx context.Context, q db.Querier, workerID string) (w Webhook, err error) {
	_, err = db.One(ctx, q, db.Into(&w.URL, &w.Token, &w.SigningSecret),
		`SELECT url, token, signing_secret FROM webhooks WHERE worker_id = ?`, workerID)
	return w, db.NoRow(err, nil)
}

// Webhook returns the webhook of a worker. It returns Forbidden unless the caller created
// the worker.
func (s *Effects) Webhook(ctx context.Context, c people.Caller, workerID string) (Webhook, error) {
	if _, err := workers.Own(ctx, s.db, c, workerID); err != nil {
		return Webhook{}, err
	}
	return readWebhook(ctx, s.db, workerID)
}

// renew sets a new token and a new secret.
func (w *Webhook) renew() {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails: it ends the program instead
	w.Token, w.SigningSecret = db.NewToken("whk_"), "whsec_"+base64.StdEncoding.EncodeToString(secret)
}

// SetWebhook sets the URL of a worker's webhook. A webhook that exists keeps its token and
// its secret. It returns Forbidden unless the caller created the worker. The caller has
// checked the URL.
func (s *Effects) SetWebhook(ctx context.Context, c people.Caller, workerID, url string) (w Webhook, err error) {
	err = s.db.Write(ctx, func(tx db.Tx) error {
		if _, err := workers.Own(ctx, tx, c, workerID); err != nil {
			return err
		}
		if w, err = readWebhook(ctx, tx, workerID); err != nil {
			return err
		}
		was := w.URL
		if was == "" {
			w.renew()
		}
		w.URL = url
		if err := s.putWebhook(tx, workerID, w); err != nil || was == url {
			return err
		}
		return s.people.Audit(tx, c, "webhook.set", workerID, map[string]any{"from": was, "to": url})
	})
	return w, err
}

func (s *Effects) putWebhook(tx db.Tx, workerID string, w Webhook) error {
	now := s.db.Millis()
	_, err := tx.Exec(`INSERT INTO webhooks (worker_id, url, token, signing_secret, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (worker_id) DO UPDATE SET url = excluded.url, token = excluded.token,
			signing_secret = excluded.signing_secret, updated_at = excluded.updated_at`, workerID, w.URL, w.Token, w.SigningSecret, now, now)
	return err
}

// RemoveWebhook removes the webhook of a worker and returns it. Pending deliveries are given up. It
// returns Forbidden unless the caller created the worker.
//
// It is locking, so that no delivery is missed. Writes that queue a delivery lock the webhook, and the
// DELETE waits for them. The next statement sees their deliveries. Writes that come later find no
// webhook.
func (s *Effects) RemoveWebhook(ctx context.Context, c people.Caller, workerID string) (was Webhook, err error) {
	err = s.db.Hot(ctx, true, func(tx db.Tx) error {
		if _, err := workers.Own(ctx, tx, c, workerID); err != nil {
			return err
		}
		if was, err = readWebhook(ctx, tx, workerID); err != nil || was.URL == "" {
			return err
		}
		n, err := tx.Exec(`DELETE FROM webhooks WHERE worker_id = ?`, workerID)
		if err != nil {
			return err
		}
		if n == 0 { // another caller has removed it meanwhile
			was = Webhook{}
			return nil
		}
		if err := giveUpDeliveries(tx, workerID); err != nil {
			return err
		}
		return s.people.Audit(tx, c, "webhook.remove", workerID, map[string]any{"url": was.URL})
	})
	return was, err
}

// giveUpDeliveries gives up the deliveries of a webhook that is removed: one that is set later must
// not get them.
func giveUpDeliveries(tx db.Tx, workerID string) error {
	_, err := tx.Exec(`UPDATE deliveries SET next_attempt_at = NULL WHERE worker_num = `+db.WorkerNum+`
		AND next_attempt_at IS NOT NULL`, workerID)
	return err
}

// RenewWebhook creates a new token and secret for a worker's webhook. If a request with the
// same key has done so before, it changes nothing, and replayed is true. It returns
// Forbidden unless the caller created the worker.
func (s *Effects) RenewWebhook(ctx context.Context, c people.Caller, workerID string,
	key db.IdempotencyKey) (w Webhook, replayed bool, err error) {
	err = s.db.Write(ctx, func(tx db.Tx) error {
		if _, err := workers.Own(ctx, tx, c, workerID); err != nil {
			return err
		}
		if w, err = configured(ctx, tx, workerID); err != nil {
			return err
		}
		id, err := s.db.FindResult(ctx, tx, key)
		if replayed = id != ""; err != nil || replayed {
			return err
		}
		w.renew()
		if err := s.putWebhook(tx, workerID, w); err != nil {
			return err
		}
		if err := s.people.Audit(tx, c, "webhook.renew", workerID, map[string]any{"url": w.URL}); err != nil {
			return err
		}
		return s.db.RememberIn(tx, key, workerID)
	})
	return w, replayed, err
}

// configured is like webhook, but returns a Conflict if there is none.
func configured(ctx context.Context, q db.Querier, workerID string) (Webhook, error) {
	w, err := readWebhook(ctx, q, workerID)
	if err == nil && w.URL == "" {
		return w, db.Errorf(db.Conflict, "the worker has no webhook")
	}
	return w, err
}
