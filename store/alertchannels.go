package store

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"journeyman/store/db"
	"journeyman/store/people"
)

// The limits of alerts.
const (
	MaxAlertChannels = 20   // of an organization
	MaxAlertURL      = 2048 // characters of a webhook's URL
	maxAlerts        = 100  // alerts of a channel that wait for a message
)

// An AlertTopic is a group of events that a channel can report.
type AlertTopic string

// The topics of alerts.
const (
	TopicFailed   AlertTopic = "failed"   // a task failed
	TopicWaiting  AlertTopic = "waiting"  // a task waits for a person
	TopicCap      AlertTopic = "cap"      // the credits of the month are nearly or fully used
	TopicDelivery AlertTopic = "delivery" // a webhook delivery or a mail was given up
	TopicBackup   AlertTopic = "backup"   // a backup of the server failed
	TopicDisk     AlertTopic = "disk"     // the server's disk is nearly full, or full
)

// AlertTopics returns all topics, in the order of the page.
func AlertTopics() []AlertTopic {
	return []AlertTopic{TopicFailed, TopicWaiting, TopicCap, TopicDelivery, TopicBackup, TopicDisk}
}

// An AlertFrequency is how often a channel sends a message.
type AlertFrequency string

// The frequencies of channels.
const (
	AlertNow    AlertFrequency = "now"
	AlertHourly AlertFrequency = "hour" // at each full hour, if there are alerts
	AlertDaily  AlertFrequency = "day"  // each morning in the server's time zone, if there are alerts
)

// AlertFrequencies returns all frequencies.
func AlertFrequencies() []AlertFrequency { return []AlertFrequency{AlertNow, AlertHourly, AlertDaily} }

// An AlertChannel brings alerts to a member by mail, or to a webhook.
type AlertChannel struct {
	ID             string
	OrganizationID string
	UserID         string // recipient of the mails; '' for a webhook
	Email          string // of the user
	Host           string // of the webhook; '' for mail
	Topics         []AlertTopic
	Frequency      AlertFrequency
	Paused         bool
	CreatedAt      time.Time
	Pending        int64         // events that no message has reported yet
	Last           *AlertMessage // the newest message; nil without one

	sentAt time.Time
	sealed []byte
}

// A NewAlertChannel is a channel to create. Either Email or URL is set.
type NewAlertChannel struct {
	Email     string // of a member of the organization
	URL       string // of a webhook. The caller has checked it
	Topics    []AlertTopic
	Frequency AlertFrequency
}

func (n NewAlertChannel) check(f *db.Fields) {
	f.Check(len(n.Topics) > 0, "topics", "must name at least one event")
	for i, t := range n.Topics {
		f.Check(slices.Contains(AlertTopics(), t) && !slices.Contains(n.Topics[:i], t), "topics",
			"must be different topics: failed, waiting, cap, delivery, backup or disk")
	}
	f.Check(slices.Contains(AlertFrequencies(), n.Frequency), "frequency", "must be now, hour or day")
	f.Check((n.Email == "") != (n.URL == ""), "to", "must be a member's email address, or a URL")
	db.CheckLine(f, "to", n.URL, MaxAlertURL)
}

const alertChannelColumns = `c.id, c.organization_id, coalesce(c.user_id, ''),
	coalesce((SELECT email FROM users WHERE id = c.user_id), ''), coalesce(c.host, ''), c.topics,
	c.frequency, c.paused, c.created_at, c.sent_at, c.sealed`

func scanAlertChannel(row db.Scanner) (a AlertChannel, err error) {
	var topics []byte
	err = row.Scan(&a.ID, &a.OrganizationID, &a.UserID, &a.Email, &a.Host, &topics, &a.Frequency, &a.Paused,
		db.AsTime(&a.CreatedAt), db.AsTime(&a.sentAt), &a.sealed)
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(topics, &a.Topics)
}

// AlertChannels returns the channels of the caller's organization, oldest first, each with its
// newest message. It returns Forbidden for a Member.
func (s *Effects) AlertChannels(ctx context.Context, c people.Caller) ([]AlertChannel, error) {
	if err := c.Allow(people.ManageAlerts); err != nil {
		return nil, err
	}
	list, err := db.All(ctx, s.db, scanAlertChannel, `SELECT `+alertChannelColumns+` FROM alert_channels c
		WHERE c.organization_id = ? ORDER BY c.id`, c.OrganizationID)
	if err != nil {
		return nil, err
	}
	for i := range list {
		a := &list[i]
		a.Pending, err = db.One(ctx, s.db, db.ScanInt, `SELECT coalesce(sum(count), 0) FROM alerts WHERE channel_id = ?`,
			a.ID)
		if err == nil {
			a.Last, err = s.lastAlertMessage(ctx, a.ID)
		}
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// readAlertChannel returns a channel of the caller's organization, for a change that the caller
// must still be permitted to make.
func readAlertChannel(ctx context.Context, tx db.Tx, c people.Caller, id string) (a AlertChannel, err error) {
	if err := people.AllowNow(ctx, tx, &c, people.ManageAlerts); err != nil {
		return a, err
	}
	a, err = db.One(ctx, tx, scanAlertChannel, `SELECT `+alertChannelColumns+` FROM alert_channels c
		WHERE c.id = ? AND c.organization_id = ?`, id, c.OrganizationID)
	return a, db.NoRecord(err, "alert channel")
}

// AddAlertChannel creates a channel. It returns Forbidden for a Member, Invalid if the user is
// not a member of the organization, and a Conflict if there are MaxAlertChannels already.
func (s *Effects) AddAlertChannel(ctx context.Context, c people.Caller, n NewAlertChannel) (a AlertChannel, err error) {
	var f db.Fields
	if n.check(&f); f.Err() != nil {
		return a, f.Err()
	}
	err = s.db.Write(ctx, func(tx db.Tx) error {
		if err := people.AllowNow(ctx, tx, &c, people.ManageAlerts); err != nil {
			return err
		}
		count, err := db.One(ctx, tx, db.ScanInt, `SELECT count(*) FROM alert_channels WHERE organization_id = ?`,
			c.OrganizationID)
		if err != nil {
			return err
		}
		if count >= MaxAlertChannels {
			return db.Errorf(db.Conflict, "there are %d alert channels, which is the limit: remove one first",
				count)
		}
		userID := ""
		if n.Email != "" {
			userID, err = db.One(ctx, tx, db.ScanString, `SELECT m.user_id FROM users u CROSS JOIN memberships m
				ON m.user_id = u.id AND m.organization_id = ? WHERE u.email = ?`, c.OrganizationID, n.Email)
			if err != nil {
				no := db.Fields{{Path: "to", Message: "must be the address of a member of the organization"}}
				return db.NoRow(err, no.Err())
			}
		}
		id := db.NewID("alc", s.db.Now())
		if err := s.insertAlertChannel(tx, c, id, userID, n); err != nil {
			return err
		}
		if a, err = readAlertChannel(ctx, tx, c, id); err != nil {
			return err
		}
		return s.auditAlerts(tx, c, "alerts.add", a)
	})
	return a, err
}

func (s *Effects) insertAlertChannel(tx db.Tx, c people.Caller, id, userID string, n NewAlertChannel) error {
	topics, err := json.Marshal(n.Topics)
	if err != nil {
		return err
	}
	var host, sealed any
	if n.URL != "" {
		u, err := url.Parse(n.URL)
		if err != nil || u.Host == "" {
			return db.Fields{{Path: "to", Message: "must be a URL such as https://example.com/hook"}}.Err()
		}
		// The purpose is the id, so a seal that is copied to another row opens nothing.
		bytes, err := s.seal.Seal("alert channel "+id, []byte(n.URL))
		if err != nil {
			return err
		}
		host, sealed = strings.ToLower(u.Host), bytes
	}
	_, err = tx.Exec(`INSERT INTO alert_channels (id, organization_id, user_id, host, sealed, topics, frequency, paused,
			created_at) VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?)`,
		id, c.OrganizationID, db.Nullable(userID), host, sealed, string(topics), n.Frequency, s.db.Millis())
	return err
}

// auditAlerts records a change of a channel. It names the host of a webhook, never its URL.
func (s *Effects) auditAlerts(tx db.Tx, c people.Caller, action string, a AlertChannel) error {
	detail := map[string]any{"topics": a.Topics, "frequency": a.Frequency}
	if a.UserID != "" {
		detail["user"] = a.Email
	} else {
		detail["host"] = a.Host
	}
	return s.people.Audit(tx, c, action, a.ID, detail)
}

// PauseAlertChannel pauses a channel, or resumes it. A paused channel collects no alerts, and
// drops those that it has not reported. It returns Forbidden for a Member.
func (s *Effects) PauseAlertChannel(ctx context.Context, c people.Caller, id string, paused bool) error {
	return s.db.Write(ctx, func(tx db.Tx) error {
		a, err := readAlertChannel(ctx, tx, c, id)
		if err != nil || a.Paused == paused {
			return err
		}
		action := "alerts.resume"
		if paused {
			action = "alerts.pause"
			if err := discardAlerts(tx, a.ID, "the channel was paused"); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(`UPDATE alert_channels SET paused = ? WHERE id = ?`, paused, a.ID); err != nil {
			return err
		}
		return s.auditAlerts(tx, c, action, a)
	})
}

// discardAlerts deletes the alerts that a channel has not reported yet. Its queued messages fail.
func discardAlerts(tx db.Tx, channelID, why string) error {
	for _, query := range []string{
		`DELETE FROM alerts WHERE ?1 <> '' AND channel_id = ?2`,
		`UPDATE outbound_emails SET status = 'failed', error_message = ?1, next_attempt_at = NULL, claimed = 0
			WHERE status = 'queued' AND alert_num IN (SELECT num FROM alert_messages WHERE channel_id = ?2)`,
		`UPDATE alert_messages SET status = 'failed', answer = ?1, next_attempt_at = NULL
			WHERE channel_id = ?2 AND status = 'queued'`,
	} {
		if _, err := tx.Exec(query, why, channelID); err != nil {
			return err
		}
	}
	return nil
}

// RemoveAlertChannel removes a channel and the alerts that it has not reported yet. It returns
// Forbidden for a Member.
func (s *Effects) RemoveAlertChannel(ctx context.Context, c people.Caller, id string) error {
	return s.db.Write(ctx, func(tx db.Tx) error {
		a, err := readAlertChannel(ctx, tx, c, id)
		if err != nil {
			return err
		}
		if err := deleteAlertChannel(tx, a.ID); err != nil {
			return err
		}
		return s.auditAlerts(tx, c, "alerts.remove", a)
	})
}

func deleteAlertChannel(tx db.Tx, id string) error {
	if err := discardAlerts(tx, id, "the channel was removed"); err != nil {
		return err
	}
	_, err := tx.Exec(`DELETE FROM alert_channels WHERE id = ?`, id)
	return err
}

// removeUserChannels removes the alert channels of a user who leaves an organization.
func removeUserChannels(ctx context.Context, tx db.Tx, organizationID, userID string) error {
	ids, err := db.All(ctx, tx, db.ScanString, `SELECT id FROM alert_channels WHERE organization_id = ? AND user_id = ?`,
		organizationID, userID)
	for _, id := range ids {
		if err == nil {
			err = deleteAlertChannel(tx, id)
		}
	}
	return err
}
