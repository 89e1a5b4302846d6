package store

import (
	"context"

	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// ImportWorker is CreateWorker for a worker that comes with schedules and the address of a
// webhook, or "" for none. It creates all of them or nothing. The caller has checked the
// address.
func (s *Store) ImportWorker(ctx context.Context, c people.Caller, n workers.NewWorker, schedules []NewSchedule,
	webhook string,
	key db.IdempotencyKey) (w workers.Worker, replayed bool, err error) {
	return db.CreateOnce(ctx, s.db, key, func(tx db.Tx, id string) (workers.Worker, error) {
		return workers.Visible(ctx, tx, c, id)
	}, func(tx db.Tx) (workers.Worker, string, error) {
		w, err := s.Workers.Insert(tx, c, n)
		if err != nil {
			return w, "", err
		}
		for _, sch := range schedules {
			sch.WorkerID = w.ID
			if _, err := s.createSchedule(ctx, tx, c, sch); err != nil {
				return w, "", err
			}
		}
		if webhook == "" {
			return w, w.ID, nil
		}
		hook := Webhook{URL: webhook}
		hook.renew() // the secrets of the exported webhook stay with its worker
		if err := s.Effects.putWebhook(tx, w.ID, hook); err != nil {
			return w, "", err
		}
		return w, w.ID, s.People.Audit(tx, c, "webhook.set", w.ID, map[string]any{"from": "", "to": webhook})
	})
}
