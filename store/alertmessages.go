package store

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/visible"
)

// AlertMessage returns the newest message of a channel of the caller's organization. It
// returns Forbidden for a Member, and NotFound if there is none.
func (s *Effects) AlertMessage(ctx context.Context, c people.Caller, channelID string) (AlertMessage, error) {
	if err := c.Allow(people.ManageAlerts); err != nil {
		return AlertMessage{}, err
	}
	m, err := s.lastAlertMessage(ctx, channelID)
	if err != nil {
		return AlertMessage{}, err
	}
	if m == nil || m.OrganizationID != c.OrganizationID {
		return AlertMessage{}, db.Errorf(db.NotFound, "no alert channel has that id, or it has sent no message")
	}
	return *m, nil
}

// AlertsDue returns the time at which the next message must be made or sent. ok is false if no
// alert and no message waits.
func (s *Effects) AlertsDue(ctx context.Context) (at time.Time, ok bool, err error) {
	for _, query := range []string{
		`SELECT due_at FROM alerts INDEXED BY alerts_due WHERE due_at IS NOT NULL ORDER BY due_at LIMIT 1`,
		`SELECT next_attempt_at FROM alert_messages INDEXED BY alert_messages_due
			WHERE next_attempt_at IS NOT NULL ORDER BY next_attempt_at LIMIT 1`,
	} {
		var due time.Time
		_, err := db.One(ctx, s.db, db.Into(db.AsTime(&due)), query)
		if db.NoRow(err, nil) != nil {
			return at, false, err
		}
		if err == nil && (!ok || due.Before(at)) {
			at, ok = due, true
		}
	}
	return at, ok, nil
}

// MakeAlertMessages makes the messages of at most limit channels that are due, and returns
// their number. A message for a member goes to the outbox in the same transaction.
func (s *Effects) MakeAlertMessages(ctx context.Context, limit int) (n int, err error) {
	err = s.db.Write(ctx, func(tx db.Tx) error {
		for n = 0; n < limit; n++ {
			a, err := db.One(ctx, tx, scanAlertChannel, `SELECT `+alertChannelColumns+`
				FROM alerts l INDEXED BY alerts_due CROSS JOIN alert_channels c ON c.id = l.channel_id
				WHERE l.due_at <= ? ORDER BY l.due_at LIMIT 1`, s.db.Millis())
			if err != nil {
				return db.NoRow(err, nil)
			}
			if err := s.makeAlertMessage(ctx, tx, a); err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}

// makeAlertMessage makes a message of a channel from its due alerts. While an older message of the
// channel is queued, the alerts wait, so that an endpoint that does not answer collects no rows.
func (s *Effects) makeAlertMessage(ctx context.Context, tx db.Tx, a AlertChannel) error {
	now := s.db.Millis()
	next, err := db.One(ctx, tx, db.ScanInt, `SELECT next_attempt_at FROM alert_messages
		WHERE channel_id = ? AND status = 'queued' ORDER BY num DESC LIMIT 1`, a.ID)
	if err == nil {
		_, err = tx.Exec(`UPDATE alerts SET due_at = ? WHERE channel_id = ? AND due_at <= ?`, max(next, now+1),
			a.ID, now)
		return err
	}
	if db.NoRow(err, nil) != nil {
		return err
	}
	items, err := alertItems(ctx, tx, a, now)
	if err != nil {
		return err
	}
	if err := markReported(tx, a, now); err != nil || len(items) == 0 {
		return err
	}
	_, err = s.insertAlertMessage(tx, a, items, false, now)
	return err
}

// markReported marks the due alerts of a channel as reported.
func markReported(tx db.Tx, a AlertChannel, now int64) error {
	// The row of an older report is deleted, so that the next such event is reported at once.
	for _, change := range []struct {
		query string
		at    int64
	}{
		{`DELETE FROM alerts WHERE ?1 >= sent_at AND channel_id = ?2 AND due_at IS NULL`,
			now - alertRepeatInterval.Milliseconds()},
		{`UPDATE alerts SET count = 0, due_at = NULL, task_num = NULL, sent_at = ?1
			WHERE channel_id = ?2 AND due_at <= ?1`, now},
		{`UPDATE alert_channels SET sent_at = ?1 WHERE id = ?2`, now},
	} {
		if _, err := tx.Exec(change.query, change.at, a.ID); err != nil {
			return err
		}
	}
	return nil
}

// alertItems returns the alerts that a channel has to report now, the oldest first.
func alertItems(ctx context.Context, tx db.Tx, a AlertChannel, now int64) (items []AlertItem, err error) {
	list, err := db.All(ctx, tx, scanAlertItem, `SELECT l.event, l.count, l.worker_id, coalesce(w.title, ''),
			coalesce(k.id, ''), coalesce(k.title, ''), l.first_at, l.last_at
		FROM alerts l LEFT JOIN workers w ON w.id = l.worker_id LEFT JOIN tasks k ON k.num = l.task_num
		WHERE l.channel_id = ? AND l.due_at <= ? ORDER BY l.event, l.worker_id`, a.ID, now)
	for _, item := range list {
		if err != nil {
			return nil, err
		}
		// A member may have lost sight of a worker since the event, which can be a day ago.
		may := false
		if may, err = channelSees(ctx, tx, a, item.WorkerID); may {
			items = append(items, item)
		}
	}
	return items, err
}

func scanAlertItem(row db.Scanner) (i AlertItem, err error) {
	err = row.Scan(&i.Event, &i.Count, &i.WorkerID, &i.Worker, &i.TaskID, &i.Task, db.AsTime(&i.FirstAt),
		db.AsTime(&i.LastAt))
	i.Worker, i.Task = alertTitle(i.Worker), alertTitle(i.Task)
	return i, err
}

// maxAlertTitle is how many characters of a title a message holds.
const maxAlertTitle = 120

// alertTitle returns a title as one short line. A stranger may have written it, so its
// hidden characters are shown: they could change how the rest of a message looks.
func alertTitle(title string) string {
	line := visible.Running(strings.Join(strings.Fields(title), " "))
	if short := db.FirstRunes(line, maxAlertTitle); short != line {
		return short + "…"
	}
	return line
}

// insertAlertMessage stores a message. It goes to the outbox if the channel is a member's, and
// otherwise waits until next.
func (s *Effects) insertAlertMessage(tx db.Tx, a AlertChannel, items []AlertItem, test bool,
	next int64) (num int64, err error) {
	text, err := json.Marshal(items)
	if err != nil {
		return 0, err
	}
	status, due, now := "queued", any(next), s.db.Millis()
	if a.UserID != "" {
		status, due = "mailed", nil
	}
	num, err = tx.Insert(`INSERT INTO alert_messages (id, channel_id, organization_id, test, items, status, attempts,
			next_attempt_at, answer, created_at) VALUES (?, ?, ?, ?, ?, ?, 0, ?, '', ?)`,
		db.NewID("alm", s.db.Now()), a.ID, a.OrganizationID, test, string(text), status, due, now)
	if err != nil || a.UserID == "" {
		return num, err
	}
	_, err = tx.Exec(`INSERT INTO outbound_emails (id, kind, organization_id, alert_num, recipient, subject, status,
			attempts, next_attempt_at, error_message, created_at, size)
		VALUES (?1, 'alert', ?2, ?3, ?4, NULL, 'queued', 0, ?5, '', ?5, 0)`,
		db.NewID("msg", s.db.Now()), a.OrganizationID, num, a.Email, now)
	return num, err
}

// ClaimAlertMessages returns up to n messages to webhooks that are due, and counts an attempt
// for each. A message whose result is not stored within lease is due again: it may arrive
// twice, under one id, but is never lost.
func (s *Effects) ClaimAlertMessages(ctx context.Context, n int, lease time.Duration) (list []AlertMessage, err error) {
	err = s.db.Write(ctx, func(tx db.Tx) error {
		now := s.db.Now()
		list, err = db.All(ctx, tx, scanAlertMessage, selectAlertMessage+`WHERE m.num IN (SELECT num
			FROM alert_messages INDEXED BY alert_messages_due WHERE next_attempt_at <= ?
			ORDER BY next_attempt_at, num LIMIT ?) /* ORDER BY m.num */`, now.UnixMilli(), n)
		for i := range list {
			if err != nil {
				return err
			}
			list[i].Attempts++
			_, err = tx.Exec(`UPDATE alert_messages SET attempts = attempts + 1, tried_at = ?, next_attempt_at = ?
				WHERE num = ?`, now.UnixMilli(), now.Add(lease).UnixMilli(), list[i].num)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// AlertURL returns the URL of the webhook that a message goes to. It returns a Conflict if the
// channel was removed, or if the key file has changed.
func (s *Effects) AlertURL(m AlertMessage) (string, error) {
	if m.sealed == nil {
		return "", db.Errorf(db.Conflict, "the channel was removed")
	}
	url, err := s.seal.Unseal("alert channel "+m.ChannelID, m.sealed)
	return string(url), err
}

// EndAlertMessage stores the answer to an attempt at a message. After a failure, retry is the
// time of the next attempt; the zero time gives the message up.
func (s *Effects) EndAlertMessage(ctx context.Context, m AlertMessage, sent bool, answer string,
	retry time.Time) error {
	status := "failed"
	switch {
	case sent:
		status = "sent"
	case !retry.IsZero():
		status = "queued"
	}
	return s.db.Write(ctx, func(tx db.Tx) error {
		_, err := tx.Exec(`UPDATE alert_messages SET status = ?, answer = ?, next_attempt_at = ?
			WHERE num = ? AND status = 'queued'`, status, answer, db.NullMillis(retry), m.num)
		if err != nil || status == "queued" {
			return err
		}
		return s.rescheduleAlerts(ctx, tx, m.ChannelID)
	})
}

// rescheduleAlerts makes the alerts of a channel due at the next time of its frequency. They may have
// been delayed because a message was queued.
func (s *Effects) rescheduleAlerts(ctx context.Context, tx db.Tx, channelID string) error {
	a, err := db.One(ctx, tx, scanAlertChannel, `SELECT `+alertChannelColumns+` FROM alert_channels c WHERE c.id = ?`,
		channelID)
	if err != nil {
		return db.NoRow(err, nil)
	}
	due := s.alertTime(a, s.db.Now()).UnixMilli()
	_, err = tx.Exec(`UPDATE alerts SET due_at = max(?1, iif(sent_at <= ?4, sent_at, 0) + ?2)
		WHERE channel_id = ?3 AND due_at > ?1`, due, alertRepeatInterval.Milliseconds(), channelID, s.db.Millis())
	return err
}

// TestAlertChannel makes a test message of a channel. The caller sends the message of a
// webhook itself, within lease; the outbox sends a mail. TestAlertChannel returns Forbidden
// for a Member.
func (s *Effects) TestAlertChannel(ctx context.Context, c people.Caller, id string,
	lease time.Duration) (m AlertMessage, err error) {
	err = s.db.Write(ctx, func(tx db.Tx) error {
		a, err := readAlertChannel(ctx, tx, c, id)
		if err != nil {
			return err
		}
		// Without this check, tests to one member could fill the outbox.
		waits, err := db.One(ctx, tx, db.ScanBool, `SELECT EXISTS (SELECT 1 FROM alert_messages WHERE channel_id = ?
			AND created_at > ? AND test = 1)`, a.ID, s.db.Now().Add(-testInterval).UnixMilli())
		if err != nil {
			return err
		}
		if waits {
			return &db.Error{Kind: db.Limited, Message: "the channel was tested a moment ago: wait some seconds",
				RetryAfter: testInterval}
		}
		now := s.db.Now()
		at := db.FromMillis(now.UnixMilli())
		items := []AlertItem{{Event: EventTest, Count: 1, FirstAt: at, LastAt: at}}
		num, err := s.insertAlertMessage(tx, a, items, true, now.Add(lease).UnixMilli())
		if err != nil {
			return err
		}
		if m, err = db.One(ctx, tx, scanAlertMessage, selectAlertMessage+`WHERE m.num = ?`, num); err != nil {
			return err
		}
		return s.auditAlerts(tx, c, "alerts.test", a)
	})
	return m, err
}

// testInterval is the minimum time between two tests of a channel.
const testInterval = 5 * time.Second

// PruneAlerts deletes messages that are older than age, with their mails, and old marks of
// reported alerts. It deletes at most limit of each, and returns the number of deleted
// messages.
func (s *Effects) PruneAlerts(ctx context.Context, age time.Duration, limit int) (n int64, err error) {
	err = s.db.Write(ctx, func(tx db.Tx) error {
		before := s.db.Now().Add(-age).UnixMilli()
		const old = `(SELECT num FROM alert_messages WHERE num > 0 ORDER BY num LIMIT ?2)`
		_, err := tx.Exec(`DELETE FROM outbound_emails WHERE created_at < ?1 AND status <> 'queued'
			AND alert_num IN `+old, before, limit)
		if err != nil {
			return err
		}
		n, err = tx.Exec(`DELETE FROM alert_messages WHERE created_at < ?1 AND status <> 'queued' AND num IN `+old+`
			AND NOT EXISTS (SELECT 1 FROM outbound_emails WHERE alert_num = alert_messages.num)`, before, limit)
		if err != nil {
			return err
		}
		_, err = tx.Exec(`DELETE FROM alerts WHERE due_at IS NULL AND sent_at < ?`, before)
		return err
	})
	return n, err
}
