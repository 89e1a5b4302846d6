package store

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"slices"
	"time"
)

// A DueSchedule is a schedule whose time has come.
type DueSchedule struct {
	ID    string
	DueAt time.Time
	num   int64
}

func scanDue(row scanner) (d DueSchedule, err error) {
	var at int64
	err = row.Scan(&d.num, &d.ID, &at)
	d.DueAt = fromMillis(at)
	return d, err
}

// ScheduleRoom is how many turns schedules may add to the queue now. They fill half
// of it at most, so that a full hour leaves room for whoever asks: what is due
// beyond that waits where it stands.
func (s *Store) ScheduleRoom() int64 { return s.queueLimit/2 - s.queued.Load() }

// DueSchedules lists up to limit schedules that are due, the longest due first.
// Where there are more than that, each organization has its share of them; turn
// counts the calls, so that each share of one goes round.
func (s *Store) DueSchedules(ctx context.Context, limit, turn int) ([]DueSchedule, error) {
	now := s.millis()
	due, err := all(ctx, s, scanDue, `SELECT num, id, next_run_at FROM schedules INDEXED BY schedules_due
		WHERE next_run_at <= ? AND paused = 0 ORDER BY next_run_at LIMIT ?`, now, limit)
	if err != nil || len(due) < limit {
		return due, err
	}
	organizations, err := all(ctx, s, scanString, `SELECT id FROM organizations ORDER BY id`)
	if err != nil || len(organizations) < 2 {
		return due, err
	}
	due = due[:0]
	share := max(1, limit/len(organizations))
	first := turn % len(organizations)
	for _, id := range slices.Concat(organizations[first:], organizations[:first]) {
		more, err := all(ctx, s, scanDue, `SELECT num, id, next_run_at FROM schedules INDEXED BY schedules_by_organization
			WHERE organization_id = ? AND next_run_at <= ? AND paused = 0 ORDER BY next_run_at LIMIT ?`, id, now, share)
		if err != nil {
			return nil, err
		}
		if due = append(due, more...); len(due) >= limit {
			return due[:limit], nil
		}
	}
	return due, nil
}

// NextScheduleAt is when the next schedule is due; ok is false where none is.
func (s *Store) NextScheduleAt(ctx context.Context) (at time.Time, ok bool, err error) {
	ms, err := one(ctx, s, scanInt, `SELECT next_run_at FROM schedules INDEXED BY schedules_due
		WHERE next_run_at > -1 AND paused = 0 ORDER BY next_run_at LIMIT 1`)
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, false, nil
	}
	return fromMillis(ms), err == nil, err
}

// A Firing says what became of a schedule whose time had come. It fired if TurnID
// is set; otherwise Held says why not, ” where someone has changed it meanwhile.
type Firing struct {
	TurnID string
	Held   string
}

// How long a schedule waits for its organization to have credits again, at least;
// at most it is twice that.
const creditWait = 5 * time.Minute

// FireSchedule makes the task of a schedule that is due and moves it to its next
// time: one transaction, so that a due time fires once, whatever dies when. Times
// missed meanwhile are run with this one.
//
// With the queue full it gives a Busy error and changes nothing: the schedule stays
// due. One that cannot run is held back: without credits for some minutes, and
// paused where the one it runs for may no longer use the worker.
func (s *Store) FireSchedule(ctx context.Context, d DueSchedule) (f Firing, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		sch, err := one(ctx, tx, scanSchedule, `SELECT `+scheduleColumns+` FROM schedules WHERE num = ?`, d.num)
		if err != nil {
			return err
		}
		if sch.ended || sch.Paused || !sch.NextRunAt.Equal(d.DueAt) {
			return nil
		}
		now := fromMillis(s.millis())
		next, err := s.after(sch, latest(now, sch.NextRunAt))
		if err != nil {
			f.Held = err.Error()
			return s.pauseSchedule(tx, sch.num)
		}
		role, err := s.role(ctx, tx, sch.OrganizationID, sch.CreatedByUserID)
		if err != nil {
			return err
		}
		if role == "" {
			f.Held = "its creator has left the organization"
			return s.pauseSchedule(tx, sch.num)
		}
		t, err := s.acceptTurn(ctx, tx, sch.turn(Caller{OrganizationID: sch.OrganizationID, UserID: sch.CreatedByUserID, Role: role}))
		if err != nil {
			return s.hold(tx, sch, now, err, &f)
		}
		f.TurnID = t.ID
		_, err = tx.Exec(`UPDATE schedules SET next_run_at = ?, last_run_at = ? WHERE num = ? AND next_run_at = ?`,
			nullMillis(next), now.UnixMilli(), sch.num, sch.NextRunAt.UnixMilli())
		return err
	})
	return f, err
}

// hold decides what becomes of a due schedule whose turn was refused, before
// anything was written of it.
func (s *Store) hold(tx *Tx, c Schedule, now time.Time, refusal error, f *Firing) error {
	f.Held = refusal.Error()
	switch {
	case IsKind(refusal, PaymentRequired):
		wait := creditWait + rand.N(creditWait)
		_, err := tx.Exec(`UPDATE schedules SET next_run_at = ? WHERE num = ?`, now.Add(wait).UnixMilli(), c.num)
		return err
	case IsKind(refusal, NotFound):
		return s.endSchedule(tx, c.num)
	case IsKind(refusal, Forbidden):
		return s.pauseSchedule(tx, c.num)
	}
	f.Held = ""
	return refusal
}

func (s *Store) pauseSchedule(tx *Tx, num int64) error {
	_, err := tx.Exec(`UPDATE schedules SET paused = 1 WHERE num = ?`, num)
	return err
}

// DelaySchedule puts a due schedule off, one that something unforeseen kept from
// firing, so that it does not stand in the way of others.
func (s *Store) DelaySchedule(ctx context.Context, d DueSchedule, by time.Duration) error {
	return s.write(ctx, func(tx *Tx) error {
		_, err := tx.Exec(`UPDATE schedules SET next_run_at = ? WHERE num = ? AND next_run_at = ?`,
			s.now().Add(by).UnixMilli(), d.num, d.DueAt.UnixMilli())
		return err
	})
}

// nullMillis is NULL for the zero time.
func nullMillis(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

const (
	realignBatch = 500
	// wrongClock is by how much a schedule must have run in the future for the clock
	// to have been wrong then. Below, its due times count as run, and none runs twice.
	wrongClock = 24 * time.Hour
)

// RealignSchedules computes anew when schedules run next, where that has become
// wrong: the default time zone is another one, or the clock was far ahead when they
// last ran and was set back. It says how many they were.
func (s *Store) RealignSchedules(ctx context.Context) (n int, err error) {
	const found = `SELECT ` + scheduleColumns + ` FROM schedules `
	zone := func() any { return s.zone.String() }
	for _, find := range []struct {
		query string
		arg   func() any
	}{
		{found + `INDEXED BY schedules_by_timezone WHERE next_run_at IS NOT NULL AND timezone < ? LIMIT ?`, zone},
		{found + `INDEXED BY schedules_by_timezone WHERE next_run_at IS NOT NULL AND timezone > ? LIMIT ?`, zone},
		{found + `INDEXED BY schedules_by_last_run WHERE next_run_at IS NOT NULL AND last_run_at > ? LIMIT ?`,
			func() any { return s.now().Add(wrongClock).UnixMilli() }},
	} {
		moved := realignBatch
		for ; err == nil && moved == realignBatch; n += moved {
			moved, err = s.realignSome(ctx, find.query, find.arg())
		}
	}
	return n, err
}

func (s *Store) realignSome(ctx context.Context, query string, arg any) (n int, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		rows, err := all(ctx, tx, scanSchedule, query, arg, realignBatch)
		if err != nil {
			return err
		}
		n = len(rows)
		return s.realign(tx, rows)
	})
	return n, err
}

func (s *Store) realign(tx *Tx, rows []Schedule) error {
	now := fromMillis(s.millis())
	for _, c := range rows {
		if c.zone != "" {
			c.zone = s.zone.String()
		}
		var last any
		if c.LastRunAt != nil {
			last = min(c.LastRunAt.UnixMilli(), now.UnixMilli())
		}
		if !c.When.Type.Once() && c.NextRunAt.After(now) { // what is due stays due
			if next, err := s.after(c, now); err == nil { // else FireSchedule pauses it
				c.NextRunAt = next
			}
		}
		_, err := tx.Exec(`UPDATE schedules SET timezone = ?, last_run_at = ?, next_run_at = ? WHERE num = ?`,
			nullable(c.zone), last, c.NextRunAt.UnixMilli(), c.num)
		if err != nil {
			return err
		}
	}
	return nil
}
