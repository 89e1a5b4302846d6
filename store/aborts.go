package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"journeyman/store/db"
	"journeyman/store/people"
)

// AbortTask cancels the turns of a task that have not ended, and the turns of other tasks
// that they have started. Turns that no runner has end at once. running holds the ids of the
// turns that a runner has: the runner must stop them. When such a turn ends, the cancelled
// turns behind it end in the same transaction.
func (s *Store) AbortTask(ctx context.Context, c people.Caller, id string) (task Task, running []string, err error) {
	err = s.db.Write(ctx, func(tx db.Tx) error {
		return s.ending(tx, func(tx db.Tx) error {
			task, running, err = s.abortTask(ctx, tx, c, id)
			return err
		})
	})
	return task, running, err
}

func (s *Store) abortTask(ctx context.Context, tx db.Tx, c people.Caller, id string) (task Task, running []string,
	err error) {
	if task, _, err = visibleTask(ctx, tx, c, id); err != nil {
		return task, nil, err
	}
	return s.abortUnfinished(ctx, tx, task, "")
}

// abortUnfinished is AbortTask for a task that the caller may cancel. The turn kept goes on; it is "" for none.
func (s *Store) abortUnfinished(ctx context.Context, tx db.Tx, task Task, kept string) (_ Task, running []string,
	err error) {
	if task.Unfinished == 0 {
		return task, nil, nil
	}
	if err := s.lockParents(ctx, tx, task.num); err != nil {
		return task, nil, err
	}
	// A runner that has the turn, or is about to suspend it, reads this mark.
	turns, err := db.All(ctx, tx, scanTurn, `UPDATE turns SET abort_requested = 1 WHERE task_num = ?
			AND completed_at IS NULL AND id <> ? RETURNING `+turnColumns, task.num, kept)
	if err != nil {
		return task, nil, err
	}
	slices.SortFunc(turns, func(a, b Turn) int { return cmp.Compare(a.Seq, b.Seq) }) // RETURNING has no order
	goesOn, err := db.One(ctx, tx, db.ScanBool,
		`SELECT EXISTS (SELECT 1 FROM turns WHERE id = ? AND completed_at IS NULL)`, kept)
	if err != nil {
		return task, nil, err
	}
	if !goesOn { // otherwise the others end with it
		if running, err = s.abortTurns(ctx, tx, task.num, turns); err != nil {
			return task, nil, err
		}
	}
	for _, t := range turns {
		// The children follow their parents, so that no end of a child resumes a
		// parent.
		below, err := s.abortBelow(ctx, tx, t.Num)
		if err != nil {
			return task, nil, err
		}
		running = append(running, below...)
	}
	task, err = db.One(ctx, tx, scanTask, `SELECT `+taskColumns+` FROM tasks WHERE num = ?`, task.num)
	return task, running, err
}

// abortTurn cancels one turn of a task. Later turns of the task stay as they are.
func (s *Store) abortTurn(ctx context.Context, tx db.Tx, t Turn) (running []string, err error) {
	if _, err := tx.Exec(`UPDATE turns SET abort_requested = 1 WHERE num = ?`, t.Num); err != nil {
		return nil, err
	}
	t.AbortRequested = true
	return s.abortTurns(ctx, tx, t.taskNum, []Turn{t})
}

// abortBelow cancels the turns below a turn that have not ended. A turn that a runner has
// does not end here: running holds its id, and the runner must stop it.
func (s *Store) abortBelow(ctx context.Context, tx db.Tx, num int64) (running []string, err error) {
	turns, err := unfinishedBelow(ctx, tx, num)
	if err != nil {
		return nil, err
	}
	// Parents end first. Otherwise the end of a child would put its parent into the queue.
	for _, t := range turns {
		more, err := s.abortTurn(ctx, tx, t)
		if err != nil {
			return nil, err
		}
		running = append(running, more...)
	}
	return running, nil
}

// abortTurns ends the turns of a task for which an abort was requested. If a runner has
// one of them, it ends none and returns the id of that turn.
func (s *Store) abortTurns(ctx context.Context, tx db.Tx, taskNum int64, turns []Turn) (running []string, err error) {
	for _, t := range turns {
		if t.Status != Running {
			continue
		}
		suspended, err := db.One(ctx, tx, db.ScanInt, `SELECT suspended_until IS NOT NULL FROM turns WHERE num = ?`, t.Num)
		if err != nil {
			return nil, err
		}
		if suspended == 0 {
			return []string{t.ID}, nil
		}
		// endTurn also ends the turns that wait behind it.
		_, err = s.endSuspended(ctx, tx, t, ApprovalCancelled, AbortedOutcome())
		return nil, err
	}
	waiting, err := s.abortWaiting(tx, taskNum)
	if err != nil || len(waiting) == 0 {
		return nil, err
	}
	about := &endSettings{hasCap: true, hasWebhook: true} // assumed: later statements check both
	if err := s.endTurns(tx, waiting, false, 0, about); err != nil {
		return nil, err
	}
	return nil, s.meterEnded(tx, waiting, Usage{}, *about)
}

// abortWaiting returns the waiting turns of a task for which an abort was requested. It sets
// the fields of their end, but endTurns has to store them.
func (s *Store) abortWaiting(tx db.Tx, taskNum int64) ([]Turn, error) {
	turns, err := db.All(context.Background(), tx, scanTurn, `SELECT `+turnColumns+` FROM turns
		WHERE task_num = ? AND status = 'pending' AND abort_requested = 1 ORDER BY seq`, taskNum)
	if err != nil {
		return nil, err
	}
	now := db.FromMillis(s.db.Millis())
	for i, t := range turns {
		if t, err = s.keepProduced(tx, t); err != nil {
			return nil, err
		}
		t.Status, t.CompletedAt = Aborted, &now
		out := AbortedOutcome()
		t.Failure, t.IncompleteReason = out.Failure, out.IncompleteReason
		turns[i] = t
	}
	// They leave the queue here, because endTurns does not know which of its turns waited.
	for _, t := range turns {
		s.waiting.add(tx, t.OrganizationID, laneOf(t.Stranger()), -1)
	}
	return turns, nil
}

// keepProduced completes a turn that was cancelled while it waited. If the turn had run
// before, it keeps what it had produced, and its approvals are closed.
func (s *Store) keepProduced(tx db.Tx, t Turn) (Turn, error) {
	if t.Usage.Steps == 0 {
		return t, nil
	}
	if err := s.closeApprovals(tx, t, ApprovalCancelled); err != nil {
		return t, err
	}
	steps, err := readJournal(context.Background(), tx, t.Num)
	if err != nil {
		return t, err
	}
	t.OutputText, t.Duration = AnswerText(steps), Worked(steps).Truncate(time.Millisecond)
	return t, nil
}
