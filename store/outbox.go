package store

import "context"

// SendAgain has a reply sent as soon as may be: one that waits for its next attempt,
// or that has failed, bounced or been kept for want of a relay. One that was sent is
// a Conflict, as a mail that came in is. A Member is Forbidden.
func (s *Store) SendAgain(ctx context.Context, c Caller, id string) (e Email, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		if e, err = s.visibleEmail(ctx, tx, c, id); err != nil {
			return err
		}
		if err := c.Allow(ManageMail); err != nil {
			return err
		}
		// With its attempts counted anew, it is tried for as long as a new one.
		n, err := tx.Exec(`UPDATE outbound_emails SET status = 'queued', next_attempt_at = ?, attempts = 0 WHERE id = ?
			AND status IN ('queued', 'failed', 'bounced', 'kept')`, s.millis(), id)
		switch {
		case err != nil:
			return err
		case n == 0:
			return Errorf(Conflict, "the mail is not to be sent: its status is %s", e.Status)
		}
		if e, err = s.visibleEmail(ctx, tx, c, id); err != nil {
			return err
		}
		return s.audit(tx, c, "email.retry", e.ID, map[string]any{"to": e.To, "worker": e.WorkerID})
	})
	return e, err
}
