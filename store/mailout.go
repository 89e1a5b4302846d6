package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// queueReply adds a reply to the outbox in the transaction that ends a turn, if a mail
// started the turn. The reply answers the newest mail of the turn. That mail may be an answer
// to a question of the turn. A silent task gets no reply: see speaks.
func (s *Effects) queueReply(tx db.Tx, t Turn) error {
	if t.TriggeredBy != people.TriggerEmail {
		return nil
	}
	now := s.db.Millis()
	s.db.Notify(tx, t.OrganizationID, db.ChangedOutbox)
	_, err := tx.Exec(`INSERT INTO outbound_emails (id, kind, organization_id, worker_id, turn_num, inbound_num,
			recipient, subject, status, attempts, next_attempt_at, error_message, created_at, size)
		SELECT ?, 'reply', organization_id, worker_id, turn_num, num, reply_to, NULL, 'queued', 0, ?, '', ?, 0
		FROM inbound_emails WHERE turn_num = ? AND reply_to <> '' AND `+speaks+` ORDER BY num DESC LIMIT 1`,
		db.NewID("msg", s.db.Now()), now, now, t.Num, t.taskNum)
	return err
}

// The kinds of mail in the outbox.
const (
	ReplyAnswer   = "reply"    // answers the mail that started a turn
	ReplyQuestion = "question" // asks the question of a turn
	ReplyApproval = "approval" // asks for the approvals that the calls of a turn need
	ReplyAlert    = "alert"    // reports alerts to a member
	ReplyNotice   = "notice"   // says that there will be no answer, because nothing verifies the author
)

// The limits of notices. Anybody can cause one to an address of somebody else.
const (
	noticeTime = 24 * time.Hour // at most one to the senders of a network
	maxNotices = 100            // within noticeTime, of the whole server
	maxRelayed = maxNotices / 2 // of these, to authors whose network sends mail of everybody
)

// queueNotice adds a notice to the author of a mail to the outbox, within the limits. If mail of everybody comes
// from the network, the author counts instead of it.
func (s *Effects) queueNotice(ctx context.Context, tx db.Tx, e Email, author string) error {
	network, since := cmp.Or(e.network, author), s.db.Now().Add(-noticeTime).UnixMilli()
	networks, err := db.All(ctx, tx, db.ScanString, `SELECT network FROM outbound_emails INDEXED BY outbound_emails_notices
		WHERE network IS NOT NULL AND created_at > ? LIMIT ?`, since, maxNotices)
	if err != nil || len(networks) == maxNotices || slices.Contains(networks, network) {
		return err
	}
	networks = slices.DeleteFunc(networks, func(n string) bool { return !strings.Contains(n, "@") })
	if e.network == "" && len(networks) >= maxRelayed {
		return nil
	}
	_, err = tx.Exec(`INSERT INTO outbound_emails (id, kind, organization_id, worker_id, network, recipient, subject,
			status, attempts, next_attempt_at, error_message, created_at, size)
		VALUES (?1, 'notice', ?2, ?3, ?4, ?5, NULL, 'queued', 0, ?6, '', ?6, 0)`,
		db.NewID("msg", s.db.Now()), e.OrgID, e.WorkerID, network, author, s.db.Millis())
	return err
}

// A Reply is a mail in the outbox that is due, with the records that its text needs.
type Reply struct {
	Email
	Kind    string
	UserID  string // the member who is asked; '' if the mail goes to the author of Inbound
	Turn    Turn
	Inbound Email        // the mail that it answers; zero if it answers none
	Asks    []Approval   // the pending approvals that it asks for
	Alert   AlertMessage // for an alert, which has no turn

	// Unreadable is not nil if one of the records above cannot be read although the database works. Such
	// a reply cannot be composed.
	Unreadable error

	inboundNum, approvalNum, alertNum int64 // 0 for none
}

const replyColumns = outboundColumns + `, kind, coalesce(user_id, ''), coalesce(inbound_num, 0),
	coalesce(approval_num, 0), coalesce(alert_num, 0)`

func scanReply(row db.Scanner) (r Reply, err error) {
	err = row.Scan(append(r.Email.columns(), &r.Kind, &r.UserID, &r.inboundNum, &r.approvalNum, &r.alertNum)...)
	return r, err
}

// ClaimReplies returns up to n replies that are due, and counts an attempt for each. A
// reply whose result is not stored within lease is due again. It may then be sent twice,
// under one Message-ID, but is never lost. If the database fails, no reply is claimed.
func (s *Effects) ClaimReplies(ctx context.Context, n int, lease time.Duration) (replies []Reply, err error) {
	err = s.db.Write(ctx, func(tx db.Tx) (err error) {
		replies, err = s.claimReplies(ctx, tx, n, lease)
		return err
	})
	if err != nil {
		return nil, err // the claims of this call are undone
	}
	// The records are read after the claim, because the writer serves all other writes, too.
	for i := range replies {
		err := s.fillReply(ctx, &replies[i])
		if db.IsOfOneRow(err) { // it must not delay the other replies
			replies[i].Unreadable = err
			continue
		}
		if err != nil {
			return nil, errors.Join(err, s.unclaim(context.WithoutCancel(ctx), replies))
		}
	}
	return replies, nil
}

// claimReplies claims the replies that are due, and returns them without the records of fillReply.
func (s *Effects) claimReplies(ctx context.Context, tx db.Tx, n int, lease time.Duration) ([]Reply, error) {
	const due = ` FROM outbound_emails e INDEXED BY outbound_emails_due WHERE next_attempt_at <= ?
		ORDER BY next_attempt_at, num LIMIT ?`
	// The lease counts from the claim: it ends even if the process does.
	now := s.db.Now()
	end := db.FromMillis(now.Add(lease).UnixMilli())
	replies, err := db.All(ctx, tx, scanReply, `SELECT `+replyColumns+due, now.UnixMilli(), n)
	if err != nil || len(replies) == 0 {
		return nil, err
	}
	for i := range replies {
		replies[i].Attempts++
		replies[i].NextAttempt = &end
	}
	return replies, tx.ExecLater(`UPDATE outbound_emails SET attempts = attempts + 1, next_attempt_at = ?,
			claimed = 1
		WHERE num IN (SELECT num`+due+`)`, end.UnixMilli(), now.UnixMilli(), n)
}

// unclaim undoes claims whose records could not be read. No attempt was made. If another process has
// claimed a reply since, its claim stays.
func (s *Effects) unclaim(ctx context.Context, replies []Reply) error {
	return s.db.Write(ctx, func(tx db.Tx) error {
		for _, r := range replies {
			err := tx.ExecLater(`UPDATE outbound_emails SET attempts = attempts - 1, claimed = 0, next_attempt_at = ?
				WHERE num = ? AND claimed = 1 AND attempts = ?`, s.db.Millis(), r.num, r.Attempts)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// ReleaseReplies makes the replies due that a dead process has claimed, and returns their number.
// Only the leader claims replies. So when a process becomes the leader, or has the database alone and
// starts, every claim belongs to an earlier leader. Call ReleaseReplies before the first ClaimReplies. A
// reply whose sending was recorded stays sent.
func (s *Effects) ReleaseReplies(ctx context.Context) (int64, error) {
	return s.db.Exec(ctx, `UPDATE outbound_emails INDEXED BY outbound_emails_due SET claimed = 0, next_attempt_at = ?
		WHERE next_attempt_at IS NOT NULL AND claimed = 1`, s.db.Millis())
}

// fillReply reads the records that the text of a reply needs. They are read at each attempt: a late
// retry must not ask about decided calls.
func (s *Effects) fillReply(ctx context.Context, r *Reply) (err error) {
	if r.alertNum != 0 {
		r.Alert, err = db.One(ctx, s.db, scanAlertMessage, selectAlertMessage+`WHERE m.num = ?`, r.alertNum)
		return err
	}
	if r.Kind == ReplyNotice {
		return nil
	}
	if r.approvalNum != 0 {
		if r.Asks, err = asked(ctx, s.db, r.approvalNum, r.UserID); err != nil {
			return err
		}
	}
	if r.inboundNum != 0 { // a mail to a member may answer no mail
		r.Inbound, err = db.One(ctx, s.db, scanEmail, `SELECT `+inboundColumns+` FROM inbound_emails e WHERE num = ?`,
			r.inboundNum)
		if err = db.NoRow(err, nil); err != nil {
			return err
		}
	}
	r.Turn, err = db.One(ctx, s.db, scanTurn, `SELECT `+turnColumns+` FROM turns WHERE id = ?`, r.TurnID)
	return err
}

// RepliesDue returns the time when the next reply is due, or false if none waits.
func (s *Effects) RepliesDue(ctx context.Context) (at time.Time, ok bool, err error) {
	_, err = db.One(ctx, s.db, db.Into(db.AsTime(&at)), `SELECT next_attempt_at
		FROM outbound_emails INDEXED BY outbound_emails_due
		WHERE next_attempt_at IS NOT NULL ORDER BY next_attempt_at LIMIT 1`)
	return at, err == nil, db.NoRow(err, nil)
}

// ComposeReply stores the composed reply, so that every attempt sends the same mail.
func (s *Effects) ComposeReply(ctx context.Context, r *Reply, subject string, raw []byte) error {
	src, err := s.keepSource(ctx, raw)
	if err != nil {
		return err
	}
	err = s.db.Write(ctx, func(tx db.Tx) error { return composeReply(tx, *r, subject, src) })
	r.Subject, r.Size = subject, src.size
	r.sourceSHA256, _ = src.sha256.(string)
	return err
}

// KeepReply stores the composed reply and the result EmailKept, in one transaction.
func (s *Effects) KeepReply(ctx context.Context, r Reply, subject string, raw []byte) error {
	src, err := s.keepSource(ctx, raw)
	if err != nil {
		return err
	}
	return s.db.Write(ctx, func(tx db.Tx) error {
		if err := composeReply(tx, r, subject, src); err != nil {
			return err
		}
		_, err := s.endReply(tx, r, EmailKept, "")
		return err
	})
}

func composeReply(tx db.Tx, r Reply, subject string, src source) error {
	return tx.ExecLater(`UPDATE outbound_emails SET subject = ?, size = ?, source_sha256 = ?, source = ?
		WHERE num = ?`, subject, src.size, src.sha256, src.bytes, r.num)
}

// EndReply stores the result of a reply: EmailSent, EmailKept, or EmailFailed with the reason.
func (s *Effects) EndReply(ctx context.Context, r Reply, status EmailStatus, reason string) error {
	return s.db.Write(ctx, func(tx db.Tx) error {
		_, err := s.endReply(tx, r, status, reason)
		return err
	})
}

// GiveUpReply stores that a reply cannot be sent, and raises an alert. For an alert mail it raises
// none, and for a notice neither: anybody can cause notices to addresses that do not exist.
func (s *Effects) GiveUpReply(ctx context.Context, r Reply, reason string) error {
	return s.db.Write(ctx, func(tx db.Tx) error {
		ended, err := s.endReply(tx, r, EmailFailed, reason)
		if err != nil || !ended || r.Kind == ReplyAlert || r.Kind == ReplyNotice {
			return err
		}
		return s.raiseAlert(ctx, tx, alertEvent{TopicDelivery, EventMailLost, r.OrgID, r.WorkerID, r.Turn.taskNum})
	})
}

// endReply stores the result of a reply. It reports false if the reply has ended before.
func (s *Effects) endReply(tx db.Tx, r Reply, status EmailStatus, reason string) (bool, error) {
	var sent any
	if status == EmailSent {
		sent = s.db.Millis()
	}
	// A mail to a member may hold a link that decides for that member. Its source is deleted
	// as soon as nothing will send it again.
	s.db.Notify(tx, r.OrgID, db.ChangedOutbox)
	n, err := tx.Exec(`UPDATE outbound_emails SET status = ?1, error_message = ?2, next_attempt_at = NULL,
			claimed = 0, sent_at = ?3, source = iif(user_id IS NULL, source, NULL),
			source_sha256 = iif(user_id IS NULL, source_sha256, NULL)
		WHERE num = ?4 AND status = 'queued'`, status, reason, sent, r.num)
	if n > 0 {
		tx.OnCommit(func() { s.counters.end(status) })
	}
	return n > 0, err
}

// RetryReply schedules the next attempt of a reply that could not be sent. It changes nothing if the
// claim of r is over.
func (s *Effects) RetryReply(ctx context.Context, r Reply, at time.Time, reason string) error {
	return s.db.Write(ctx, func(tx db.Tx) error {
		n, err := tx.Exec(`UPDATE outbound_emails SET next_attempt_at = ?, claimed = 0, error_message = ?
			WHERE num = ? AND status = 'queued' AND claimed = 1 AND attempts = ?`,
			at.UnixMilli(), reason, r.num, r.Attempts)
		if n > 0 {
			s.db.Notify(tx, r.OrgID, db.ChangedOutbox)
			tx.OnCommit(func() { s.counters.EmailsRetried.Add(1) })
		}
		return err
	})
}

// BounceReply sets the status of a worker's reply to bounced. It is the first reply that one of the
// message ids names.
func (s *Effects) BounceReply(ctx context.Context, w workers.Worker, messageIDs []string, reason string) error {
	return s.db.Write(ctx, func(tx db.Tx) error {
		s.db.Notify(tx, w.OrganizationID, db.ChangedOutbox)
		return bounce(tx, messageIDs, reason, `worker_id = ?`, w.ID)
	})
}

// BounceAlert sets the status of an alert to bounced. It is the first alert that one of the message
// ids names.
func (s *Effects) BounceAlert(ctx context.Context, messageIDs []string, reason string) error {
	return s.db.Write(ctx, func(tx db.Tx) error { return bounce(tx, messageIDs, reason, `kind = ?`, "alert") })
}

// maxBounceReason is how many characters of the reason of a bounce are stored. Anybody may have written it.
const maxBounceReason = 1000

// bounce sets the status of the first mail that one of the message ids names, among those for which a
// condition with the given value is true.
func bounce(tx db.Tx, messageIDs []string, reason, condition, value string) error {
	reason = db.FirstRunes(reason, maxBounceReason)
	for _, id := range messageIDs {
		local, _, _ := strings.Cut(id, "@")
		n, err := tx.Exec(`UPDATE outbound_emails SET status = 'bounced', error_message = ?, next_attempt_at = NULL,
				claimed = 0
			WHERE id = ? AND `+condition+` AND status IN ('sent', 'queued')`, reason, strings.ToLower(local), value)
		if err != nil || n > 0 {
			return err
		}
	}
	return nil
}

// SendAgain makes a reply due at once, and sets its attempts to 0. The status of the reply must be
// queued, failed, bounced or kept. SendAgain returns a Conflict for a reply that was sent, for a
// received mail, and for an archived task or a deleted worker. It returns Forbidden for a Member.
func (s *Effects) SendAgain(ctx context.Context, c people.Caller, id string) (e Email, err error) {
	err = s.db.Write(ctx, func(tx db.Tx) error {
		if err := people.RoleNow(ctx, tx, &c); err != nil {
			return err
		}
		if e, err = visibleEmail(ctx, tx, c, id); err != nil {
			return err
		}
		if err := c.Allow(people.ManageMail); err != nil {
			return err
		}
		if e.Direction == Outbound && e.TurnID != "" {
			task, err := db.One(ctx, tx, db.ScanInt, `SELECT task_num FROM turns WHERE id = ?`, e.TurnID)
			if err == nil {
				err = mustSpeak(ctx, tx, task)
			}
			if err != nil {
				return err
			}
		}
		// The attempts count from 0, so the reply gets as many retries as a new one.
		n, err := tx.Exec(`UPDATE outbound_emails SET status = 'queued', next_attempt_at = ?, attempts = 0, claimed = 0
			WHERE id = ? AND status IN ('queued', 'failed', 'bounced', 'kept')`, s.db.Millis(), id)
		switch {
		case err != nil:
			return err
		case n == 0:
			return db.Errorf(db.Conflict, "a mail with the status %s cannot be sent again", e.Status)
		}
		if e, err = visibleEmail(ctx, tx, c, id); err != nil {
			return err
		}
		s.db.Notify(tx, c.OrganizationID, db.ChangedOutbox)
		return s.people.Audit(tx, c, "email.retry", e.ID, map[string]any{"to": e.To, "worker": e.WorkerID})
	})
	return e, err
}
