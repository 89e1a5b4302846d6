package store

import (
	"context"
	"errors"

	"journeyman/store/db"
	"journeyman/store/workers"
)

// This file claims a turn in the transaction that accepts it, if a runner has a free slot. So most
// turns need no second transaction before they run.

// Slots are the places of a runner for turns. Its functions must not block: the writer waits for
// them.
type Slots struct {
	RunnerID string
	// Take takes a slot for a turn if one is free that it may have: those of strangers may not have all.
	// The claim that OnClaimed reports owns the slot.
	Take    func(stranger bool) bool
	Release func(stranger bool) // gives back the slot of a claim that is undone
}

// UseSlots makes CreateTurn claim a turn at once for a runner that has a free slot. StartRunner
// must have registered the runner. Take must return false before StopRunner is called.
func (s *Store) UseSlots(sl Slots) { s.slots.Store(&sl) }

// takeSlot returns the slots of which the turn of n takes one, or nil if the turn waits in the
// queue, such as one whose worker is placed on another node. A claim that is undone gives its slot
// back.
func (s *Store) takeSlot(ctx context.Context, tx db.Tx, n NewTurn, task Task, w workers.Worker) (*Slots, error) {
	sl := s.slots.Load()
	// In maintenance a running turn may send work to the server's own API. That work waits in the
	// queue.
	stranger := n.Caller.Stranger()
	if sl == nil || !n.atOnce || task.Unfinished > 0 || s.Gate.Writable() != nil || !sl.Take(stranger) {
		return nil, nil
	}
	waits, err := s.anyBefore(ctx, tx, sl.RunnerID, stranger)
	if err != nil || waits {
		sl.Release(stranger)
		return nil, err
	}
	if placed, err := s.placeOrUndo(tx, sl.RunnerID, w.Num); err != nil || !placed {
		sl.Release(stranger)
		return nil, err
	}
	tx.OnUndo(func() { sl.Release(stranger) })
	return sl, nil
}

// errElsewhere undoes a write that claims a turn whose worker is placed on another node.
var errElsewhere = errors.New("the worker is placed on another node")

// placeOrUndo is place, but in a locking write placed is only assumed, so that it costs no round trip. If it turns out
// to be wrong, the write is undone with errElsewhere.
func (s *Store) placeOrUndo(tx db.Tx, runnerID string, workerNum int64) (placed bool, err error) {
	if s.node == nil || !db.IsLocking(tx) {
		return s.place(tx, runnerID, workerNum)
	}
	return true, db.OneLater(tx, errElsewhere, func(row db.Scanner) error { return row.Scan(new(int64)) },
		placeWorker+` RETURNING worker_num`, s.placeArgs(runnerID, workerNum)...)
}

// anyBefore reports whether turns in the queue come before a new one. A member's turn does not wait for
// those of strangers: they may have to wait for a slot that strangers may have. Turns that are behind
// others of their tasks need no slot yet.
func (s *Store) anyBefore(ctx context.Context, tx db.Tx, runnerID string, stranger bool) (bool, error) {
	for l := range laneOf(stranger) + 1 {
		if s.waiting.in(l) <= 0 {
			continue
		}
		waits, err := db.One(ctx, tx, db.ScanBool, `SELECT `+s.anyQueued(l, `?1`), s.withRunner(runnerID)...)
		if err != nil || waits {
			return waits, err
		}
	}
	return false, nil
}

// claimAccepted reports the claim of a turn that insertTurn has stored as running. The claim is
// the one that ClaimTurns would have returned.
func (s *Store) claimAccepted(ctx context.Context, tx db.Tx, t Turn, runnerID string, w workers.Worker,
	hasFiles bool) error {
	c := Claim{Turn: t, RunnerID: runnerID, HasFiles: hasFiles}
	if w.Claim == nil {
		if err := readClaimFacts(ctx, tx, t, &w); err != nil {
			return err
		}
	}
	c.HasSecrets, c.Instructions = w.Claim.HasSecrets, w.Instructions
	c.OutputSchema, c.Settings = w.OutputSchema, w.Settings
	s.fair.follow(tx, laneOf(t.Stranger()), w.Claim.Organization, w.Num)
	s.claimed(tx, c)
	return nil
}

// readClaimFacts reads the fields that workers.Claimable would have read into w, for the version of a
// turn.
func readClaimFacts(ctx context.Context, tx db.Tx, t Turn, w *workers.Worker) error {
	w.Claim = new(workers.ClaimFacts)
	dest := append([]any{&w.Claim.Organization, &w.Claim.HasSecrets, &w.Instructions, db.AsJSON(&w.OutputSchema)},
		w.Settings.Columns()...)
	_, err := db.One(ctx, tx, db.Into(dest...), `SELECT (SELECT num FROM organizations WHERE id = ?1),
			EXISTS (SELECT 1 FROM secrets INDEXED BY secrets_by_name
				WHERE organization_id = ?1 AND coalesce(secrets.worker_id, '') IN ('', ?2)),
			instructions, output_schema, `+workers.SettingsColumns+` FROM worker_versions
		WHERE worker_id = ?2 AND version = ?3`, t.OrganizationID, t.WorkerID, t.WorkerVersion)
	return err
}

// claimedBy reports a claim of ClaimTurns once it is committed. If ClaimTurns has returned an error
// meanwhile, nobody carries the turn out.
func (s *Store) claimedBy(tx db.Tx, c Claim, fate *claimFate) {
	tx.OnCommit(func() {
		if !fate.begin() {
			s.abandoned.add(c)
		} else if fn := s.onClaimed.Load(); fn != nil {
			(*fn)(c)
		}
	})
}

// claimed reports a claim once it is committed.
func (s *Store) claimed(tx db.Tx, c Claim) {
	if fn := s.onClaimed.Load(); fn != nil {
		tx.OnCommit(func() { (*fn)(c) })
	}
}
