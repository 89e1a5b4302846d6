package store

import (
	"context"
	"encoding/json"
	"time"

	"journeyman/store/db"
)

// An AlertItem is what a message says about one event at one worker.
type AlertItem struct {
	Event    string    `json:"event"`
	Count    int64     `json:"count"`
	WorkerID string    `json:"workerId,omitempty"`
	Worker   string    `json:"worker,omitempty"` // its title
	TaskID   string    `json:"taskId,omitempty"` // the newest task
	Task     string    `json:"task,omitempty"`   // its title
	FirstAt  time.Time `json:"firstAt"`
	LastAt   time.Time `json:"lastAt"`
}

// An AlertMessage is a message of a channel.
type AlertMessage struct {
	num            int64
	ID             string // the same on every attempt
	ChannelID      string // '' if the channel was removed
	OrganizationID string
	Organization   string // its name
	Host           string // of the webhook
	Test           bool
	Items          []AlertItem
	Status         string // queued, sent or failed; of a mail also kept or bounced
	Attempts       int64
	Answer         string // answer to the last attempt, or the reason why there was none
	CreatedAt      time.Time
	NextAttempt    *time.Time // nil unless it is tried again

	mailed       bool
	emailStatus  EmailStatus
	emailReason  string
	emailAttempt *time.Time
	sealed       []byte
}

// ofAlertEmail ends the selection of a column of a message's mail in the outbox.
const ofAlertEmail = ` FROM outbound_emails WHERE alert_num = m.num)`

const selectAlertMessage = `SELECT m.num, m.id, coalesce(m.channel_id, ''), m.organization_id, o.name,
		coalesce(c.host, ''), m.test, m.items, m.status, m.attempts, m.answer, m.created_at, m.next_attempt_at,
		m.status = 'mailed', coalesce((SELECT status` + ofAlertEmail + `, ''),
		coalesce((SELECT error_message` + ofAlertEmail + `, ''),
		(SELECT next_attempt_at` + ofAlertEmail + `, c.sealed
	FROM alert_messages m CROSS JOIN organizations o ON o.id = m.organization_id
		LEFT JOIN alert_channels c ON c.id = m.channel_id `

func scanAlertMessage(row db.Scanner) (m AlertMessage, err error) {
	var items []byte
	err = row.Scan(&m.num, &m.ID, &m.ChannelID, &m.OrganizationID, &m.Organization, &m.Host, &m.Test, &items, &m.Status,
		&m.Attempts, &m.Answer, db.AsTime(&m.CreatedAt), db.AsTimeOrNil(&m.NextAttempt), &m.mailed, &m.emailStatus,
		&m.emailReason, db.AsTimeOrNil(&m.emailAttempt), &m.sealed)
	if err != nil {
		return m, err
	}
	if m.mailed {
		m.Status, m.Answer, m.NextAttempt = string(m.emailStatus), m.emailReason, m.emailAttempt
	}
	return m, json.Unmarshal(items, &m.Items)
}

// Mailed reports whether the message goes through the outbox.
func (m AlertMessage) Mailed() bool { return m.mailed }

// lastAlertMessage returns the newest message of a channel, or nil.
func (s *Effects) lastAlertMessage(ctx context.Context, channelID string) (*AlertMessage, error) {
	m, err := db.One(ctx, s.db, scanAlertMessage, selectAlertMessage+`WHERE m.channel_id = ? ORDER BY m.num DESC LIMIT 1`,
		channelID)
	if err != nil {
		return nil, db.NoRow(err, nil)
	}
	return &m, nil
}
