package store

import (
	"context"
	"time"

	"journeyman/store/cron"
	"journeyman/store/db"
)

// UseEnvelopes sets the functions for turns that are accepted from now on. Without it,
// envelopes are empty.
func (s *Store) UseEnvelopes(e Envelopes) { s.envelopes.Store(&e) }

// look returns a listing of the folder in which a new turn will probably work. The method
// envelope, which runs in the transaction, drops the listing if the turn gets another folder.
func (s *Store) look(ctx context.Context, n NewTurn) Listing {
	if s.envelopes.Load() == nil {
		return Listing{}
	}
	t := Turn{WorkerID: n.WorkerID, OwnFolder: n.Caller.Stranger()}
	if n.TaskID != "" || n.Continue {
		task, w, err := s.existing(ctx, s.db, n)
		if err != nil {
			return Listing{} // the transaction returns the same error
		}
		t.WorkerID, t.TaskID, t.OwnFolder = w.ID, task.ID, t.OwnFolder || task.OwnFolder
	}
	if t.OwnFolder && t.TaskID == "" {
		return Listing{} // the folder is new
	}
	return s.lookAt(t.Folder())
}

// lookAt returns a listing of a folder. The worker's id becomes part of a path and may come
// from a client. So lookAt returns no listing for an id that the server did not form.
func (s *Store) lookAt(f Folder) Listing {
	e := s.envelopes.Load()
	if e == nil || !db.IsServerID("wrk", f.WorkerID) {
		return Listing{}
	}
	return e.Look(f)
}

// envelope returns the envelope of a turn that is about to be inserted.
func (s *Store) envelope(ctx context.Context, tx db.Tx, n NewTurn, t Turn) (string, error) {
	e := s.envelopes.Load()
	if e == nil {
		return "", nil
	}
	o := EnvelopeFacts{Turn: t, At: t.CreatedAt.In(s.zone), Channel: n.Channel, Asker: n.asker, Mail: n.Mail,
		Schedule: n.schedule, Attachments: n.Attachments}
	if o.Channel == "" {
		o.Channel = Channel(t.TriggeredBy)
	}
	if o.Schedule != nil {
		o.At = t.CreatedAt.In(s.zoneOf(*o.Schedule))
	}
	// The listing was made before the transaction. It must never show another folder than
	// the turn's own, such as the shared one to a stranger.
	if n.workspace.Folder == t.Folder() {
		o.Workspace = n.workspace
	}
	if t.CreatedByUserID != "" {
		_, err := db.One(ctx, tx, db.Into(&o.AuthorName, &o.AuthorEmail), `SELECT name, email FROM users WHERE id = ?`,
			t.CreatedByUserID)
		if err != nil {
			return "", err
		}
	}
	return e.Compose(o), nil
}

// zoneOf returns the time zone of a schedule: the one that its cron expression names, else
// the server's.
func (s *Store) zoneOf(c Schedule) *time.Location {
	if c.When.Type == CronType {
		if expr, err := cron.Parse(c.When.Cron, s.zone); err == nil {
			return expr.Zone()
		}
	}
	return s.zone
}
