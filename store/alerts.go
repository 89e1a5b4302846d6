package store

import (
	"context"
	"slices"
	"time"

	"journeyman/store/db"
	"journeyman/store/gate"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// This file stores the alerts that channels have to report. Each row is written in the
// transaction of its event, so no crash loses one.

// The events of alerts.
const (
	EventTaskFailed   = "task.failed"
	EventTaskWaiting  = "task.waiting"
	EventCapNear      = "cap.near"
	EventCapReached   = "cap.reached"
	EventDeliveryLost = "delivery.lost"
	EventMailLost     = "mail.lost"
	EventBackupFailed = "backup.failed"
	EventDiskLow      = "disk.low"
	EventDiskFull     = "disk.full"
	EventDiskOK       = "disk.ok" // ends an alert of disk.low or disk.full
	EventTest         = "test"    // of a test message alone
)

const (
	// alertDelay delays a message of a channel that sends at once, so that one message reports
	// events that happen together, such as the failures of many tasks.
	alertDelay = 5 * time.Second

	alertInterval       = time.Minute      // between two messages of a channel that sends at once
	alertRepeatInterval = 10 * time.Minute // between two messages about the same event and worker
	alertHour           = 8                // hour of a daily message

	// A cap counts as reached at 99 percent. Each call reserves its highest price, so the last
	// credits are never spent.
	capNear, capReached = 0.80, 0.99
)

// An alertEvent is an event that channels of an organization report.
type alertEvent struct {
	topic          AlertTopic
	event          string
	organizationID string
	workerID       string // '' without one
	taskNum        int64  // 0 without one
}

// raiseAlert adds an event to those channels of the organization that report its topic.
func (s *Effects) raiseAlert(ctx context.Context, tx db.Tx, o alertEvent) error {
	channels, err := db.All(ctx, tx, scanAlertChannel, `SELECT `+alertChannelColumns+` FROM alert_channels c
		WHERE c.organization_id = ? AND c.paused = 0`, o.organizationID)
	if err != nil {
		return err
	}
	for _, a := range channels {
		if !slices.Contains(a.Topics, o.topic) {
			continue
		}
		may, err := channelSees(ctx, tx, a, o.workerID)
		if err == nil && may {
			err = s.addAlert(ctx, tx, a, o)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// channelSees reports whether a channel may report about a worker. A mail to a member reports only
// about workers that the member may see. A webhook reports about all workers, because the members
// who set it up may see all of them.
func channelSees(ctx context.Context, tx db.Tx, a AlertChannel, workerID string) (bool, error) {
	if a.UserID == "" || workerID == "" {
		return true, nil
	}
	c := people.Caller{OrganizationID: a.OrganizationID, UserID: a.UserID}
	if err := people.RoleNow(ctx, tx, &c); err != nil || c.Role == "" {
		return false, err
	}
	w, err := db.One(ctx, tx, workers.ScanRunnable, workers.SelectRunnable, workerID)
	if err == nil {
		_, err = workers.Allow(ctx, tx, c, w)
	}
	if db.IsKind(err, db.Forbidden) {
		return false, nil
	}
	return err == nil, err
}

func (s *Effects) addAlert(ctx context.Context, tx db.Tx, a AlertChannel, o alertEvent) error {
	if db.IsLocking(tx) {
		return db.ErrSerialize // a locking write could miss rows that others add, and exceed the limit below
	}
	// Only events of workers can add an unlimited number of rows. Beyond the limit, further events of a kind
	// share one row, which names no worker.
	rows, err := db.One(ctx, tx, db.ScanInt, `SELECT count(*) FROM alerts WHERE channel_id = ?1
		AND NOT EXISTS (SELECT 1 FROM alerts WHERE channel_id = ?1 AND event = ?2 AND worker_id = ?3)`,
		a.ID, o.event, o.workerID)
	if err != nil {
		return err
	}
	if rows >= maxAlerts {
		o.workerID, o.taskNum = "", 0
	}
	now := s.db.Now()
	_, err = tx.Exec(`INSERT INTO alerts (channel_id, event, worker_id, count, task_num, first_at, last_at, due_at)
		VALUES (?1, ?2, ?3, 1, ?4, ?5, ?5, ?6)
		ON CONFLICT (channel_id, event, worker_id) DO UPDATE SET count = alerts.count + 1,
			task_num = excluded.task_num, last_at = excluded.last_at,
			first_at = CASE WHEN alerts.count = 0 THEN excluded.first_at ELSE alerts.first_at END,
			due_at = coalesce(alerts.due_at, max(excluded.due_at,
				CASE WHEN alerts.sent_at <= ?5 THEN alerts.sent_at ELSE 0 END + ?7))`,
		a.ID, o.event, o.workerID, db.Nullable(o.taskNum), now.UnixMilli(), s.alertTime(a, now).UnixMilli(),
		alertRepeatInterval.Milliseconds())
	return err
}

// alertTime returns the time at which a channel reports an event of the given time.
func (s *Effects) alertTime(a AlertChannel, at time.Time) time.Time {
	local := at.In(s.zone)
	y, m, d := local.Date()
	switch a.Frequency {
	case AlertHourly:
		// Some time zones differ from UTC by half an hour, so the full hour is computed in local time.
		past := time.Duration(local.Minute())*time.Minute + time.Duration(local.Second())*time.Second +
			time.Duration(local.Nanosecond())
		return local.Add(time.Hour - past)
	case AlertDaily:
		morning := time.Date(y, m, d, alertHour, 0, 0, 0, s.zone)
		if !morning.After(at) {
			morning = time.Date(y, m, d+1, alertHour, 0, 0, 0, s.zone)
		}
		return morning
	}
	due := at.Add(alertDelay)
	// A message from the future was made before the clock was set back.
	if next := a.sentAt.Add(alertInterval); next.After(due) && !a.sentAt.After(at) {
		return next
	}
	return due
}

// alertEnd raises the alert of a turn that has failed. A turn that another turn has started
// raises none: its parent gets the failure and may handle it.
func (s *Effects) alertEnd(ctx context.Context, tx db.Tx, t Turn) error {
	if t.Status != Failed || t.Depth > 0 {
		return nil
	}
	return s.raiseAlert(ctx, tx, alertEvent{TopicFailed, EventTaskFailed, t.OrganizationID, t.WorkerID, t.taskNum})
}

// alertCap raises an alert if a change makes the spending of the month exceed capNear or capReached
// of the cap.
func (s *Effects) alertCap(ctx context.Context, tx db.Tx, c people.CapChange) error {
	passed := func(share float64) bool {
		return share <= shareOf(c.Spent, c.Cap) && shareOf(c.SpentBefore, c.Before) < share
	}
	switch {
	case passed(capReached):
		return s.raiseAlert(ctx, tx, alertEvent{TopicCap, EventCapReached, c.OrganizationID, "", 0})
	case passed(capNear):
		return s.raiseAlert(ctx, tx, alertEvent{TopicCap, EventCapNear, c.OrganizationID, "", 0})
	}
	return nil
}

// shareOf returns the share of a cap that is spent: 0 without a cap.
func shareOf(spent int64, limit *float64) float64 {
	if limit == nil {
		return 0
	}
	if *limit <= 0 {
		return 1
	}
	return db.Credits(spent) / *limit
}

// AlertBackup raises the alert of a failed backup of the server, in the channels of every
// organization.
func (s *Effects) AlertBackup(ctx context.Context) error {
	return s.alertServer(gate.DuringMaintenance(ctx), TopicBackup, EventBackupFailed)
}

// alertDisk raises or ends the alert about the level of the server's disk, in the channels of every organization.
func (s *Effects) alertDisk(ctx context.Context, level gate.DiskLevel) error {
	event := map[gate.DiskLevel]string{gate.DiskOK: EventDiskOK, gate.DiskLow: EventDiskLow, gate.DiskFull: EventDiskFull}[level]
	return s.alertServer(ctx, TopicDisk, event)
}

// alertServer raises an alert about the whole server, in the channels of every organization.
func (s *Effects) alertServer(ctx context.Context, topic AlertTopic, event string) error {
	return s.db.Write(ctx, func(tx db.Tx) error {
		organizations, err := db.All(ctx, tx, db.ScanString, `SELECT id FROM organizations ORDER BY id`)
		for _, id := range organizations {
			if err == nil {
				err = s.raiseAlert(ctx, tx, alertEvent{topic, event, id, "", 0})
			}
		}
		return err
	})
}
