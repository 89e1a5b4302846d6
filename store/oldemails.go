package store

import (
	"context"
	"time"
)

// The mails that have a source and are older than a time, oldest first. Each
// pruning leaves none of those it was given, so the next one goes on.
const (
	oldInbound = `SELECT num FROM inbound_emails INDEXED BY inbound_emails_by_age
		WHERE created_at < ? AND (source IS NOT NULL OR source_sha256 IS NOT NULL) ORDER BY created_at LIMIT ?`
	oldOutbound = `SELECT num FROM outbound_emails INDEXED BY outbound_emails_by_age
		WHERE created_at < ? AND status <> 'queued' AND (source IS NOT NULL OR source_sha256 IS NOT NULL) ORDER BY created_at LIMIT ?`
)

// PruneEmails forgets mails older than age, at most limit of each direction: those
// that started no work as a whole, and the sources of the others and of replies. The
// rows of these stay: an answer that comes later finds its task by them. It says how
// many it has forgotten.
func (s *Store) PruneEmails(ctx context.Context, age time.Duration, limit int) (n int64, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		before := s.now().Add(-age).UnixMilli()
		n = 0
		for _, forget := range []string{
			`DELETE FROM inbound_emails WHERE status <> 'accepted' AND num IN (` + oldInbound + `)`,
			`UPDATE inbound_emails SET source = NULL, source_sha256 = NULL WHERE status = 'accepted' AND num IN (` + oldInbound + `)`,
			`UPDATE outbound_emails SET source = NULL, source_sha256 = NULL WHERE num IN (` + oldOutbound + `)`,
		} {
			forgotten, err := tx.Exec(forget, before, limit)
			if err != nil {
				return err
			}
			n += forgotten
		}
		return nil
	})
	return n, err
}
