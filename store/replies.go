package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"
)

// queueReply promises an answer to the mail that made a turn, in the transaction
// that ends the turn.
func (s *Store) queueReply(tx *Tx, t Turn) error {
	if t.TriggeredBy != TriggerEmail {
		return nil
	}
	now := s.millis()
	_, err := tx.Exec(`INSERT INTO outbound_emails (id, organization_id, worker_id, turn_num, inbound_num, recipient, subject, status, attempts,
			next_attempt_at, error_message, created_at, size)
		SELECT ?, organization_id, worker_id, turn_num, num, reply_to, '', 'queued', 0, ?, '', ?, 0
		FROM inbound_emails WHERE turn_num = ? AND reply_to <> ''`, NewID("msg", s.now()), now, now, t.Num)
	return err
}

// A Reply is an answer that is due, with what it is made of.
type Reply struct {
	Email
	Turn    Turn
	Inbound Email // what it answers
}

// ClaimReplies takes up to n replies that are due and counts an attempt for each.
// Where nobody tells how it went within lease, they are due again: a reply may then
// be sent twice, under one Message-ID, but is never lost.
func (s *Store) ClaimReplies(ctx context.Context, n int, lease time.Duration) ([]Reply, error) {
	var replies []Reply
	err := s.write(ctx, func(tx *Tx) error {
		now := s.now()
		nums, err := all(ctx, tx, scanInt, `SELECT num FROM outbound_emails INDEXED BY outbound_emails_due
			WHERE next_attempt_at <= ? ORDER BY next_attempt_at, num LIMIT ?`, now.UnixMilli(), n)
		if err != nil {
			return err
		}
		for _, num := range nums {
			_, err := tx.Exec(`UPDATE outbound_emails SET attempts = attempts + 1, next_attempt_at = ? WHERE num = ?`, now.Add(lease).UnixMilli(), num)
			if err != nil {
				return err
			}
			r, err := s.reply(ctx, tx, num)
			if err != nil {
				return err
			}
			replies = append(replies, r)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return replies, nil
}

func (s *Store) reply(ctx context.Context, q querier, num int64) (r Reply, err error) {
	if r.Email, err = one(ctx, q, scanEmail, `SELECT `+outboundColumns+` FROM outbound_emails e WHERE num = ?`, num); err != nil {
		return r, err
	}
	r.Inbound, err = one(ctx, q, scanEmail, `SELECT `+inboundColumns+` FROM inbound_emails e WHERE num =
		(SELECT inbound_num FROM outbound_emails WHERE num = ?)`, num)
	if err != nil {
		return r, err
	}
	r.Turn, err = one(ctx, q, scanTurn, `SELECT `+turnColumns+` FROM turns WHERE id = ?`, r.TurnID)
	return r, err
}

// RepliesDue says when the next reply is due; false where none waits.
func (s *Store) RepliesDue(ctx context.Context) (time.Time, bool, error) {
	next, err := one(ctx, s, scanInt, `SELECT next_attempt_at FROM outbound_emails INDEXED BY outbound_emails_due
		WHERE next_attempt_at IS NOT NULL ORDER BY next_attempt_at LIMIT 1`)
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, false, nil
	}
	return fromMillis(next), err == nil, err
}

// ComposeReply keeps a reply as it will be sent, on every attempt.
func (s *Store) ComposeReply(ctx context.Context, r *Reply, subject string, raw []byte) error {
	src, err := s.keepSource(raw)
	if err != nil {
		return err
	}
	err = s.write(ctx, func(tx *Tx) error {
		_, err := tx.Exec(`UPDATE outbound_emails SET subject = ?, size = ?, source_sha256 = ?, source = ? WHERE num = ?`,
			subject, src.size, src.sha256, src.bytes, r.num)
		return err
	})
	r.Subject, r.Size = subject, src.size
	r.sourceSHA256, _ = src.sha256.(string)
	return err
}

// EndReply says what became of a reply: EmailSent, EmailKept or EmailFailed, and
// why it failed.
func (s *Store) EndReply(ctx context.Context, r Reply, status EmailStatus, reason string) error {
	return s.write(ctx, func(tx *Tx) error {
		var sent any
		if status == EmailSent {
			sent = s.millis()
		}
		_, err := tx.Exec(`UPDATE outbound_emails SET status = ?, error_message = ?, next_attempt_at = NULL, sent_at = ? WHERE num = ? AND status = 'queued'`,
			status, reason, sent, r.num)
		return err
	})
}

// RetryReply has a reply that could not be sent tried again at a time.
func (s *Store) RetryReply(ctx context.Context, r Reply, at time.Time, reason string) error {
	return s.write(ctx, func(tx *Tx) error {
		_, err := tx.Exec(`UPDATE outbound_emails SET next_attempt_at = ?, error_message = ? WHERE num = ? AND status = 'queued'`,
			at.UnixMilli(), reason, r.num)
		return err
	})
}

// BounceReply notes on the reply of a worker's that one of the ids names that it
// came back.
func (s *Store) BounceReply(ctx context.Context, workerID string, messageIDs []string, reason string) error {
	return s.write(ctx, func(tx *Tx) error {
		for _, id := range messageIDs {
			local, _, _ := strings.Cut(id, "@")
			n, err := tx.Exec(`UPDATE outbound_emails SET status = 'bounced', error_message = ?, next_attempt_at = NULL
				WHERE id = ? AND worker_id = ? AND status IN ('sent', 'queued')`, reason, strings.ToLower(local), workerID)
			if err != nil || n > 0 {
				return err
			}
		}
		return nil
	})
}
