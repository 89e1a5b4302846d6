package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"errors"
)

// A Webhook is where a worker tells of turns that have ended. Its URL is ” where
// none is configured.
type Webhook struct {
	URL           string
	Token         string // sent along in the clear
	SigningSecret string // never sent
}

func scanWebhook(row scanner) (w Webhook, err error) {
	err = row.Scan(&w.URL, &w.Token, &w.SigningSecret)
	return w, err
}

func (s *Store) webhook(ctx context.Context, q querier, workerID string) (Webhook, error) {
	w, err := one(ctx, q, scanWebhook, `SELECT url, token, signing_secret FROM webhooks WHERE worker_id = ?`, workerID)
	if errors.Is(err, sql.ErrNoRows) {
		return Webhook{}, nil
	}
	return w, err
}

// Webhook gives the webhook of a worker; only the worker's creator may ask.
func (s *Store) Webhook(ctx context.Context, c Caller, workerID string) (Webhook, error) {
	if _, err := s.ownWorker(ctx, s, c, workerID); err != nil {
		return Webhook{}, err
	}
	return s.webhook(ctx, s, workerID)
}

// renew gives a webhook a token and a secret that nobody knows.
func (w *Webhook) renew() {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails: it ends the program instead
	w.Token, w.SigningSecret = newSecret("whk_"), "whsec_"+base64.StdEncoding.EncodeToString(secret)
}

// SetWebhook configures the webhook of a worker; only the worker's creator may.
// Another URL keeps token and secret. The caller has checked the URL.
func (s *Store) SetWebhook(ctx context.Context, c Caller, workerID, url string) (w Webhook, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		if _, err := s.ownWorker(ctx, tx, c, workerID); err != nil {
			return err
		}
		if w, err = s.webhook(ctx, tx, workerID); err != nil {
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
		return s.audit(tx, c, "webhook.set", workerID, map[string]any{"from": was, "to": url})
	})
	return w, err
}

func (s *Store) putWebhook(tx *Tx, workerID string, w Webhook) error {
	now := s.millis()
	_, err := tx.Exec(`INSERT INTO webhooks (worker_id, url, token, signing_secret, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET url = excluded.url, token = excluded.token, signing_secret = excluded.signing_secret,
			updated_at = excluded.updated_at`, workerID, w.URL, w.Token, w.SigningSecret, now, now)
	return err
}

// RemoveWebhook takes the webhook of a worker away, and gives it as it was; only
// the worker's creator may. Deliveries that have not arrived are given up.
func (s *Store) RemoveWebhook(ctx context.Context, c Caller, workerID string) (was Webhook, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		if _, err := s.ownWorker(ctx, tx, c, workerID); err != nil {
			return err
		}
		if was, err = s.webhook(ctx, tx, workerID); err != nil || was.URL == "" {
			return err
		}
		if _, err := tx.Exec(`DELETE FROM webhooks WHERE worker_id = ?`, workerID); err != nil {
			return err
		}
		if _, err := tx.Exec(`UPDATE deliveries SET next_attempt_at = NULL WHERE worker_id = ? AND next_attempt_at IS NOT NULL`, workerID); err != nil {
			return err
		}
		return s.audit(tx, c, "webhook.remove", workerID, map[string]any{"url": was.URL})
	})
	return was, err
}

// RenewWebhook gives the webhook of a worker another token and secret; only the
// worker's creator may. A request made before, as once tells, changes nothing.
func (s *Store) RenewWebhook(ctx context.Context, c Caller, workerID string, once Once) (w Webhook, replayed bool, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		if _, err := s.ownWorker(ctx, tx, c, workerID); err != nil {
			return err
		}
		if w, err = s.configured(ctx, tx, workerID); err != nil {
			return err
		}
		id, err := s.lookup(ctx, tx, once)
		if replayed = id != ""; err != nil || replayed {
			return err
		}
		w.renew()
		if err := s.putWebhook(tx, workerID, w); err != nil {
			return err
		}
		if err := s.audit(tx, c, "webhook.renew", workerID, map[string]any{"url": w.URL}); err != nil {
			return err
		}
		return s.remember(tx, once, workerID)
	})
	return w, replayed, err
}

// configured is webhook for what needs one.
func (s *Store) configured(ctx context.Context, q querier, workerID string) (Webhook, error) {
	w, err := s.webhook(ctx, q, workerID)
	if err == nil && w.URL == "" {
		return w, Errorf(Conflict, "the worker has no webhook")
	}
	return w, err
}
