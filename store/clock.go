package store

import (
	"context"
	"fmt"
	"time"

	"journeyman/store/db"
)

// frequentInterval separates frequent schedules from others. Only frequent ones continue at once
// after the clock was set back. Others would run twice at the same clock time, and people would
// notice that.
const frequentInterval = time.Hour

// ClockSetBack corrects due times after the clock was set back by the duration by. Retries of
// deliveries, mails, alerts and model calls, and delayed schedules, become due earlier by this
// duration. Schedules that run more than once an hour, and intervals, continue from now. Other
// schedules wait for the first time at which they have not run yet. It returns the number of
// changed rows.
func (s *Store) ClockSetBack(ctx context.Context, by time.Duration) (n int64, err error) {
	if n, err = s.setBackRetries(ctx, by); err != nil {
		return n, err
	}
	moved, err := s.setBackSchedules(ctx, by)
	return n + moved, err
}

func (s *Store) setBackRetries(ctx context.Context, by time.Duration) (n int64, err error) {
	now, earlier := s.db.Millis(), by.Milliseconds()
	// The loop goes from worker to worker, as the index does, so no query reads the whole
	// table.
	for after := ""; ; {
		list, err := s.Effects.WaitingWorkers(ctx, after, 1000)
		if err != nil {
			return n, err
		}
		for _, w := range list {
			changed, err := s.db.Exec(ctx, `UPDATE deliveries INDEXED BY deliveries_due
				SET next_attempt_at = max(?1, next_attempt_at - ?2)
				WHERE worker_num = (SELECT num FROM workers WHERE id = ?3) AND next_attempt_at > ?1`,
				now, earlier, w.ID)
			if n += changed; err != nil {
				return n, fmt.Errorf("correct due times: %w", err)
			}
		}
		if len(list) == 0 {
			break
		}
		after = list[len(list)-1].ID
	}
	for _, query := range []string{
		`UPDATE outbound_emails INDEXED BY outbound_emails_due SET next_attempt_at = max(?1, next_attempt_at - ?2)
			WHERE next_attempt_at > ?1`,
		`UPDATE alerts INDEXED BY alerts_due SET due_at = max(?1, due_at - ?2) WHERE due_at > ?1`,
		`UPDATE alert_messages INDEXED BY alert_messages_due SET next_attempt_at = max(?1, next_attempt_at - ?2)
			WHERE next_attempt_at > ?1`,
		`UPDATE turns INDEXED BY turns_retrying SET retry_at = max(?1, retry_at - ?2) WHERE retry_at > ?1`,
	} {
		changed, err := s.db.Exec(ctx, query, now, earlier)
		if n += changed; err != nil {
			return n, fmt.Errorf("correct due times: %w", err)
		}
	}
	return n, nil
}

// setBackSchedules corrects schedules in batches, so that no write takes long. by is 0 if nobody
// knows how far the clock was set back.
func (s *Store) setBackSchedules(ctx context.Context, by time.Duration) (n int64, err error) {
	for after, moved := int64(0), int64(0); err == nil && after >= 0; n += moved {
		after, moved, err = s.setBackBatch(ctx, after, by)
	}
	return n, err
}

// setBackBatch corrects the schedules that follow a num. It returns the last num of the batch,
// or -1 after the last schedule.
func (s *Store) setBackBatch(ctx context.Context, after int64, by time.Duration) (last, moved int64, err error) {
	err = s.db.Write(ctx, func(tx db.Tx) error {
		last, moved = -1, 0
		rows, err := db.All(ctx, tx, scanSchedule, `SELECT `+scheduleColumns+` FROM schedules
			WHERE num > ? AND next_run_at IS NOT NULL AND paused = 0 ORDER BY num LIMIT ?`, after, realignBatch)
		if err != nil {
			return err
		}
		now := db.FromMillis(s.db.Millis())
		for _, c := range rows {
			last = c.num
			next, ok := s.soonerRun(&c, now, by)
			if !ok {
				continue
			}
			moved++
			_, err := tx.Exec(`UPDATE schedules SET next_run_at = ?, anchor_at = ? WHERE num = ?`,
				next.UnixMilli(), c.anchor.UnixMilli(), c.num)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return last, moved, err
}

// soonerRun returns the next time of a schedule after the clock was set back. ok is false if the
// next time stays as it is. An anchor that is now in the future is changed.
func (s *Store) soonerRun(c *Schedule, now time.Time, by time.Duration) (next time.Time, ok bool) {
	switch {
	case !c.NextRunAt.After(now), c.When.Type == Scheduled: // due, or a date that somebody chose
		return next, false
	case c.When.Type == Delayed:
		c.anchor = latest(now, c.anchor.Add(-by))
		return c.anchor, by > 0
	case c.When.Type == Interval && c.anchor.After(now):
		c.anchor = now
	}
	// An expression that has become invalid pauses the schedule when it fires.
	next, err := s.after(*c, now)
	if err != nil || !next.Before(c.NextRunAt) {
		return next, false
	}
	following, err := s.after(*c, next)
	return next, err == nil && (c.When.Type == Interval || following.Sub(next) < frequentInterval)
}

// setBackWhileDown reports whether the clock was set back while no process was running: a record
// has a time in the future. For a schedule that has never run, the newest schedule or turn shows
// this.
func (s *Store) setBackWhileDown(ctx context.Context) (back bool, err error) {
	return db.One(ctx, s.db, db.ScanBool, `SELECT
		EXISTS (SELECT 1 FROM schedules INDEXED BY schedules_by_last_run
			WHERE next_run_at IS NOT NULL AND last_run_at > ?1)
		OR coalesce((SELECT created_at FROM schedules WHERE num > 0 ORDER BY num DESC LIMIT 1), 0) > ?1
		OR coalesce((SELECT created_at FROM turns WHERE num > 0 ORDER BY num DESC LIMIT 1), 0) > ?1`,
		s.db.Now().Add(time.Minute).UnixMilli())
}

// RealignSchedules computes the next times of schedules again where they have become
// wrong: after a change of the default time zone, or after the clock was far ahead and
// was set back. It returns the number of these schedules.
func (s *Store) RealignSchedules(ctx context.Context) (n int, err error) {
	if back, err := s.setBackWhileDown(ctx); err != nil {
		return 0, err
	} else if back {
		// The duration is not known, so retries keep their times, and only schedules are corrected.
		moved, err := s.setBackSchedules(ctx, 0)
		if err != nil {
			return int(moved), err
		}
		n += int(moved)
	}
	const found = `SELECT ` + scheduleColumns + ` FROM schedules INDEXED BY `
	zone := s.zone.String()
	for _, find := range []struct {
		query string
		arg   any
	}{
		{found + `schedules_by_timezone WHERE next_run_at IS NOT NULL AND timezone < ? LIMIT ?`, zone},
		{found + `schedules_by_timezone WHERE next_run_at IS NOT NULL AND timezone > ? LIMIT ?`, zone},
		{found + `schedules_by_last_run WHERE next_run_at IS NOT NULL AND last_run_at > ? LIMIT ?`,
			s.db.Now().Add(wrongClock).UnixMilli()},
	} {
		moved, err := s.realignFound(ctx, find.query, find.arg)
		if n += moved; err != nil {
			return n, err
		}
	}
	return n, nil
}

// realignFound realigns the schedules that a query finds, in batches, so that no write takes long. It
// returns their number.
func (s *Store) realignFound(ctx context.Context, query string, arg any) (n int, err error) {
	moved := realignBatch
	for ; err == nil && moved == realignBatch; n += moved {
		err = s.db.Write(ctx, func(tx db.Tx) error {
			rows, err := db.All(ctx, tx, scanSchedule, query, arg, realignBatch)
			if err != nil {
				return err
			}
			moved = len(rows)
			return s.realign(tx, rows)
		})
	}
	return n, err
}

func (s *Store) realign(tx db.Tx, rows []Schedule) error {
	now := db.FromMillis(s.db.Millis())
	for _, c := range rows {
		if c.zone != "" {
			c.zone = s.zone.String()
		}
		var last any
		if c.LastRunAt != nil {
			last = min(c.LastRunAt.UnixMilli(), now.UnixMilli())
		}
		if !c.When.Type.Once() && c.NextRunAt.After(now) { // a due schedule stays due
			if next, err := s.after(c, now); err == nil { // after an error, FireSchedule pauses the schedule
				c.NextRunAt = next
			}
		}
		_, err := tx.Exec(`UPDATE schedules SET timezone = ?, last_run_at = ?, next_run_at = ? WHERE num = ?`,
			db.Nullable(c.zone), last, c.NextRunAt.UnixMilli(), c.num)
		if err != nil {
			return err
		}
	}
	return nil
}

const (
	realignBatch = 500
	// wrongClock is how far in the future a last run must be to show that the clock was wrong then.
	// A smaller difference changes nothing, so that no schedule runs twice at one time.
	wrongClock = 24 * time.Hour
)
