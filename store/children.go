package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"journeyman/store/db"
	"journeyman/store/workers"
)

// A Child is a turn that a tool call of another turn has started.
type Child struct {
	Turn
	ParentNum   int64 // number of the turn that started it
	Step, Call  int64 // place of the tool call that started it
	WorkerTitle string
}

// A CallPlace identifies a tool call of a claimed turn.
type CallPlace struct {
	Turn     Turn
	RunnerID string // the runner that must have the turn; '' if any runner may have it
	Step     int64
	Call     int64 // among the step's tool calls
}

const childColumns = turnColumns + `, parent_turn_num, parent_step_seq, parent_call_seq,
	(SELECT w.title FROM workers w WHERE w.num = worker_num)`

func scanChild(row db.Scanner) (c Child, err error) {
	c.Turn, err = scanTurn(db.ScannerFunc(func(dest ...any) error {
		return row.Scan(append(dest, &c.ParentNum, &c.Step, &c.Call, &c.WorkerTitle)...)
	}))
	return c, err
}

// childOf returns the turn that a tool call has started; found is false if there is none.
func childOf(ctx context.Context, q db.Querier, p CallPlace) (c Child, found bool, err error) {
	c, err = db.One(ctx, q, scanChild, `SELECT `+childColumns+` FROM turns
		WHERE parent_turn_num = ? AND parent_step_seq = ? AND parent_call_seq = ?`, p.Turn.Num, p.Step, p.Call)
	if errors.Is(err, sql.ErrNoRows) {
		return c, false, nil
	}
	return c, err == nil, err
}

// ChildOf returns the turn that a tool call has started; found is false if there is none.
func (s *Store) ChildOf(ctx context.Context, p CallPlace) (c Child, found bool, err error) {
	return childOf(ctx, s.db, p)
}

// Children returns the turns that tool calls of a turn have started, oldest first.
func (s *Store) Children(ctx context.Context, t Turn) ([]Child, error) {
	children, err := db.All(ctx, s.db, scanChild, `SELECT `+childColumns+` FROM turns WHERE parent_turn_num = ?`, t.Num)
	slices.SortFunc(children, func(a, b Child) int { return cmp.Compare(a.Num, b.Num) })
	return children, err
}

// maxListed is how many children TaskChildren returns at most.
const maxListed = 200

// TaskChildren returns the newest turns that tool calls of a task's turns have started, at
// most maxListed, oldest first.
func (s *Store) TaskChildren(ctx context.Context, task TaskRef) ([]Child, error) {
	children, err := db.All(ctx, s.db, scanChild, `SELECT `+childColumns+` FROM turns WHERE parent_turn_num IN
		(SELECT p.num FROM turns p WHERE p.task_num = ?)`, task.taskKey())
	slices.SortFunc(children, func(a, b Child) int { return cmp.Compare(a.Num, b.Num) })
	return children[max(len(children)-maxListed, 0):], err
}

// ChildTask returns the newest turn of the task with that id, if a turn of t's task has started it.
// found is false for any other task, so a worker can look up only tasks that it has started.
func (s *Store) ChildTask(ctx context.Context, t Turn, taskID string) (c Child, found bool, err error) {
	c, err = db.One(ctx, s.db, scanChild, `SELECT `+childColumns+` FROM turns
		WHERE task_num = (SELECT k.num FROM tasks k WHERE k.id = ?1
				AND k.organization_num = (SELECT num FROM organizations WHERE id = ?2))
			AND parent_turn_num IN (SELECT p.num FROM turns p WHERE p.task_num = ?3)
		ORDER BY seq DESC LIMIT 1`, taskID, t.OrganizationID, t.taskNum)
	if errors.Is(err, sql.ErrNoRows) {
		return c, false, nil
	}
	return c, err == nil, err
}

// Parent returns the turn whose tool call has started t. found is false if no turn has.
func (s *Store) Parent(ctx context.Context, t Turn) (p Turn, found bool, err error) {
	if t.Depth == 0 {
		return p, false, nil
	}
	p, err = db.One(ctx, s.db, scanTurn, `SELECT `+turnColumns+` FROM turns
		WHERE num = (SELECT c.parent_turn_num FROM turns c WHERE c.num = ?)`, t.Num)
	return p, err == nil, err
}

// childWaitLimit is the limit of a wait for children. It is never reached, because each child has
// limits of its own.
const childWaitLimit = 10 * 365 * 24 * time.Hour

// SuspendForChildren suspends a claimed turn until all of its given children have ended. If
// they have ended already, it changes nothing and suspended is false. It returns
// ErrAbortRequested if the turn was cancelled.
func (s *Store) SuspendForChildren(ctx context.Context, c Claim, children []Child) (suspended bool, err error) {
	err = s.db.Write(ctx, func(tx db.Tx) error {
		suspended = false
		// claimedProgress returns ErrClaimLost if the runner no longer has the turn.
		if err := claimedProgress(tx, c, "", Usage{}); err != nil {
			return err
		}
		err := db.RefuseIf(ctx, tx, ErrAbortRequested, `SELECT abort_requested FROM turns WHERE num = ?`, c.Num)
		if err != nil {
			return err
		}
		// A child may have ended while the runner still had the parent. The end of that child has
		// resumed nothing, so the children are read again here.
		var names []string
		for _, child := range children {
			open, err := db.One(ctx, tx, db.ScanBool, `SELECT completed_at IS NULL FROM turns WHERE num = ?`, child.Num)
			if err != nil {
				return err
			}
			if open && !slices.Contains(names, child.WorkerTitle) {
				names = append(names, child.WorkerTitle)
			}
		}
		if suspended = len(names) > 0; !suspended {
			return nil
		}
		return s.suspend(tx, c, Wait{For: WaitForWorker, Reason: db.FirstRunes(strings.Join(names, ", "), workers.MaxTitle),
			Until: s.db.Now().Add(childWaitLimit)})
	})
	return suspended, err
}

// childEnded resumes the turn that waits for the ended turn t, unless it also waits for other
// turns. It is called in the transaction that ends t, so that no end is missed.
func (s *Store) childEnded(tx db.Tx, t Turn) error {
	ctx := context.Background()
	var own bool // the call that started the child has no result yet, and belongs to the waiting turn
	var w waitingTurn
	// A task runs one turn at a time, so at most one turn of the parent's task waits.
	_, err := db.One(ctx, tx, db.Into(&w.num, &w.taskNum, &w.organization, &own), `SELECT w.num, w.task_num,
			(SELECT id FROM organizations WHERE num = w.organization_num),
			w.num = c.parent_turn_num AND NOT EXISTS (SELECT 1 FROM tool_calls k WHERE k.turn_num = c.parent_turn_num
				AND k.step_seq = c.parent_step_seq AND k.seq = c.parent_call_seq)
		FROM turns c CROSS JOIN turns p ON p.num = c.parent_turn_num CROSS JOIN turns w ON w.task_num = p.task_num
		WHERE c.num = ? AND w.waits_for = 'worker' LIMIT 1`, t.Num)
	if err != nil {
		return db.NoRow(err, nil)
	}
	if own {
		others, err := db.One(ctx, tx, db.ScanBool, `SELECT EXISTS (SELECT 1 FROM turns c WHERE c.parent_turn_num = ?
			AND c.completed_at IS NULL AND NOT EXISTS (SELECT 1 FROM tool_calls k WHERE k.turn_num = c.parent_turn_num
				AND k.step_seq = c.parent_step_seq AND k.seq = c.parent_call_seq))`, w.num)
		if err != nil || others {
			return err
		}
	}
	// If t belongs to an earlier call, the runner finds out whether the turn still has to wait.
	return s.resume(tx, w.organization, w.taskNum, w.num)
}

// belowTurn begins a query over the turns below the turn whose num is the first argument.
const belowTurn = `WITH RECURSIVE below (num) AS (SELECT num FROM turns WHERE parent_turn_num = ?1
	UNION ALL SELECT c.num FROM below CROSS JOIN turns c ON c.parent_turn_num = below.num) `

// Unfinished returns the turns below the unfinished turns of a task that have not ended
// themselves.
func (s *Store) Unfinished(ctx context.Context, task TaskRef) (list []Turn, err error) {
	nums, err := db.All(ctx, s.db, db.ScanInt, `SELECT num FROM turns WHERE task_num = ? AND completed_at IS NULL`,
		task.taskKey())
	for _, num := range nums {
		below, err := unfinishedBelow(ctx, s.db, num)
		if err != nil {
			return nil, err
		}
		list = append(list, below...)
	}
	return list, err
}

// UnfinishedBelow returns the turns below t that have not ended, parents first.
func (s *Store) UnfinishedBelow(ctx context.Context, t Turn) ([]Turn, error) {
	return unfinishedBelow(ctx, s.db, t.Num)
}

// unfinishedBelow returns the turns below a turn that have not ended, parents first.
func unfinishedBelow(ctx context.Context, q db.Querier, num int64) ([]Turn, error) {
	turns, err := db.All(ctx, q, scanTurn, belowTurn+`SELECT `+turnColumns+` FROM turns
		WHERE num IN (SELECT num FROM below) AND completed_at IS NULL`, num)
	slices.SortFunc(turns, func(a, b Turn) int { return cmp.Compare(a.Num, b.Num) })
	return turns, err
}
