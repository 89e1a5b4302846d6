package store

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"journeyman/store/db"
	"journeyman/store/people"
)

// A DueSchedule is a schedule whose time has come.
type DueSchedule struct {
	ID    string
	DueAt time.Time
	num   int64

	OrganizationID string
	WorkerID       string
}

func scanDue(row db.Scanner) (d DueSchedule, err error) {
	err = row.Scan(&d.num, &d.ID, db.AsTime(&d.DueAt), &d.OrganizationID, &d.WorkerID)
	return d, err
}

// isDue selects the schedules that may run at their time. A schedule whose last task has not ended
// does not run. After the end of the task it runs once for all missed times.
const isDue = `paused = 0 AND running_task_num IS NULL`

// DueSchedules returns up to limit schedules that are due, the longest due first. Of each
// organization it returns at most as many as its queue has room for. If more than limit are due,
// each organization has an equal share. round is the number of the call. It selects the first
// organization, so that each organization gets a share even if limit is small.
func (s *Store) DueSchedules(ctx context.Context, limit, round int) ([]DueSchedule, error) {
	now := s.db.Millis()
	due, err := db.All(ctx, s.db, scanDue, `SELECT num, id, next_run_at, organization_id, worker_id
		FROM schedules INDEXED BY schedules_due
		WHERE next_run_at <= ? AND `+isDue+` ORDER BY next_run_at LIMIT ?`, now, limit)
	// With fewer than limit, all due schedules were found, and no shares are needed.
	if err != nil || len(due) < limit {
		return s.withRoom(due), err
	}
	organizations, err := db.All(ctx, s.db, db.ScanString, `SELECT id FROM organizations ORDER BY id`)
	if err != nil || len(organizations) < 2 {
		return s.withRoom(due), err
	}
	due = due[:0]
	share := max(1, limit/len(organizations))
	// A small limit ends the loop early, so each call begins with another organization.
	first := round % len(organizations)
	for _, id := range slices.Concat(organizations[first:], organizations[:first]) {
		room := min(int64(share), s.waiting.scheduleRoom(id))
		if room <= 0 {
			continue
		}
		more, err := db.All(ctx, s.db, scanDue, `SELECT num, id, next_run_at, organization_id, worker_id
			FROM schedules INDEXED BY schedules_by_organization
			WHERE organization_id = ? AND next_run_at <= ? AND `+isDue+` ORDER BY next_run_at LIMIT ?`, id, now, room)
		if err != nil {
			return nil, err
		}
		if due = append(due, more...); len(due) >= limit {
			return due[:limit], nil
		}
	}
	return due, nil
}

// withRoom returns the schedules of due for which their organizations' queues have room.
func (s *Store) withRoom(due []DueSchedule) []DueSchedule {
	room := map[string]int64{}
	return slices.DeleteFunc(due, func(d DueSchedule) bool {
		left, known := room[d.OrganizationID]
		if !known {
			left = s.waiting.scheduleRoom(d.OrganizationID)
		}
		room[d.OrganizationID] = left - 1
		return left <= 0
	})
}

// NextScheduleAt returns the time at which the next schedule is due; ok is false if there
// is none.
func (s *Store) NextScheduleAt(ctx context.Context) (at time.Time, ok bool, err error) {
	_, err = db.One(ctx, s.db, db.Into(db.AsTime(&at)), `SELECT next_run_at FROM schedules INDEXED BY schedules_due
		WHERE next_run_at > -1 AND `+isDue+` ORDER BY next_run_at LIMIT 1`)
	return at, err == nil, db.NoRow(err, nil)
}

// A Firing is the result of FireSchedule. If TurnID is set, the schedule has run. Otherwise Held is
// the reason why it has not, or "" if it was changed meanwhile.
type Firing struct {
	TurnID string
	Held   string
}

// creditWait is the shortest time that a schedule waits for its organization to have
// credits or room again. The longest is twice that.
const creditWait = 5 * time.Minute

// FireSchedule creates the task of a due schedule and moves the schedule to its next
// time, in one transaction: each time fires once, even if the process dies. Times that
// were missed fire together with this one. A schedule whose last task has not ended
// stays due until that task ends.
//
// If the queue is full, FireSchedule returns a Busy error and the schedule stays due.
// Without credits, or without room on the disk, the schedule waits some minutes. If its creator may no longer use
// the worker, it is paused.
func (s *Store) FireSchedule(ctx context.Context, d DueSchedule) (f Firing, err error) {
	// The disk is read before the transaction. Tasks with a folder of their own drop this
	// listing.
	workspace := s.lookAt(Folder{WorkerID: d.WorkerID})
	err = s.db.Write(ctx, func(tx db.Tx) error {
		f = Firing{} // the write may run again
		sch, err := db.One(ctx, tx, scanSchedule, `SELECT `+scheduleColumns+` FROM schedules WHERE num = ?`, d.num)
		if err != nil {
			return err
		}
		// The schedule may have changed, or run, since DueSchedules read it.
		if sch.ended || sch.Paused || sch.runningTask != 0 || !sch.NextRunAt.Equal(d.DueAt) {
			return nil
		}
		now := db.FromMillis(s.db.Millis())
		next, err := s.after(sch, latest(now, sch.NextRunAt))
		if err != nil {
			f.Held = err.Error()
			return pauseSchedule(tx, sch.num)
		}
		// The creator's present role counts, not the role at the time when the schedule was created.
		role, err := people.ReadRole(ctx, tx, sch.OrganizationID, sch.CreatedByUserID)
		if err != nil {
			return err
		}
		if role == "" {
			f.Held = "its creator has left the organization"
			return pauseSchedule(tx, sch.num)
		}
		a, err := s.acceptTurn(ctx, tx, sch.turn(people.Caller{OrganizationID: sch.OrganizationID,
			UserID: sch.CreatedByUserID,
			Role:   role}, workspace))
		if err != nil {
			// The refusal must not fail the write, because that would undo the changes of hold.
			return s.hold(tx, sch, now, err, &f)
		}
		f.TurnID = a.Turn.ID
		_, err = tx.Exec(`UPDATE schedules SET next_run_at = ?, last_run_at = ?, running_task_num = ?
			WHERE num = ? AND next_run_at = ?`,
			db.NullMillis(next), now.UnixMilli(), a.Turn.taskNum, sch.num, sch.NextRunAt.UnixMilli())
		return err
	})
	return f, err
}

// hold pauses, ends or delays a due schedule whose turn was refused. acceptTurn has written nothing
// for that turn.
func (s *Store) hold(tx db.Tx, c Schedule, now time.Time, refusal error, f *Firing) error {
	f.Held = refusal.Error()
	switch {
	case db.IsKind(refusal, db.PaymentRequired), db.IsKind(refusal, db.Full):
		wait := creditWait + rand.N(creditWait)
		_, err := tx.Exec(`UPDATE schedules SET next_run_at = ? WHERE num = ?`, now.Add(wait).UnixMilli(), c.num)
		return err
	case db.IsKind(refusal, db.NotFound):
		return s.endSchedule(tx, c.num)
	case db.IsKind(refusal, db.Forbidden):
		return pauseSchedule(tx, c.num)
	}
	f.Held = ""
	return refusal
}

// releaseSchedule lets the schedule that created a task fire again, once all turns of the task have
// ended. Such a task has only turns of schedules and follow-ups, so no statement runs for any other
// turn.
func releaseSchedule(tx db.Tx, ended Turn) error {
	if ended.TriggeredBy != people.TriggerSchedule && ended.Seq == 0 {
		return nil
	}
	_, err := tx.Exec(`UPDATE schedules SET running_task_num = NULL
		WHERE running_task_num = ?1 AND (SELECT unfinished FROM tasks WHERE num = ?1) = 0`, ended.taskNum)
	return err
}

func pauseSchedule(tx db.Tx, num int64) error {
	_, err := tx.Exec(`UPDATE schedules SET paused = 1 WHERE num = ?`, num)
	return err
}

// DelaySchedule delays a due schedule that failed to fire for an unforeseen reason, so
// that it does not block others.
func (s *Store) DelaySchedule(ctx context.Context, d DueSchedule, by time.Duration) error {
	_, err := s.db.Exec(ctx, `UPDATE schedules SET next_run_at = ? WHERE num = ? AND next_run_at = ?`,
		s.db.Now().Add(by).UnixMilli(), d.num, d.DueAt.UnixMilli())
	return err
}
