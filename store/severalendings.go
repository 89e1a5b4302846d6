package store

import (
	"cmp"
	"context"
	"slices"

	"journeyman/store/db"
)

// This file keeps the order of locks in writes that end several turns of a tree. Without it, the cancel
// of a tree and the end of a turn in it can wait for each other, until PostgreSQL ends one of them.

// An endingTx is the transaction of a write that may end several turns. It collects what meter adds, so
// that the write locks the rows of the sums last.
type endingTx struct {
	db.Tx
	ended []metered
}

// A metered is usage to add to the sums. ended is as for meter.
type metered struct {
	turn   *Turn
	usage  Usage
	ended  bool
	hasCap bool
}

// ending runs fn, which may end several turns, and then adds these turns to the sums.
func (s *Store) ending(tx db.Tx, fn func(tx db.Tx) error) error {
	if db.IsLocking(tx) {
		return fn(tx) // it ends one turn
	}
	e := &endingTx{Tx: tx}
	if err := fn(e); err != nil {
		return err
	}
	return s.meterAll(tx, e.ended)
}

// meterAll adds usage to the sums. All writes lock the rows in the same order: by organization those of
// usage, and then the one of spending.
func (s *Store) meterAll(tx db.Tx, list []metered) error {
	slices.SortStableFunc(list, func(a, b metered) int {
		t, o := a.turn, b.turn
		return cmp.Or(cmp.Compare(t.OrganizationID, o.OrganizationID), cmp.Compare(t.WorkerID, o.WorkerID),
			cmp.Compare(t.KeyID, o.KeyID), cmp.Compare(t.TriggeredBy, o.TriggeredBy))
	})
	for len(list) > 0 {
		organizationID, n := list[0].turn.OrganizationID, 0
		for n < len(list) && list[n].turn.OrganizationID == organizationID {
			n++
		}
		if err := s.Effects.meterOrganization(tx, organizationID, list[:n]); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

// lockParents locks the turns that the end of a turn of the task may resume. They are locked before the
// turns of the task, as in a cancel of the parents' task.
func (s *Store) lockParents(ctx context.Context, tx db.Tx, taskNum int64) error {
	if !s.db.OnServer() {
		return nil
	}
	_, err := db.All(ctx, tx, db.ScanInt, `SELECT num FROM turns WHERE waits_for = 'worker' AND task_num IN
			(SELECT p.task_num FROM turns c CROSS JOIN turns p ON p.num = c.parent_turn_num WHERE c.task_num = ?)
		ORDER BY num /* FOR NO KEY UPDATE */`, taskNum)
	return err
}
