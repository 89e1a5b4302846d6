package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"journeyman/store/db"
	"journeyman/store/sqlite"
)

// This file is about nodes: servers that share one database. Each node has a runner, whose row is
// the node's lease. A node that does not renew its lease loses its turns, its placements and the
// leadership.
//
// A worker is placed on one runner at a time, which alone carries out its turns. So the edits in a
// workspace meet in one process, and one process has the worker's stream. A placement ends with its
// runner, or when the worker has had no turn for a while.

// Shared reports whether other servers may use the database at the same time.
func (s *Store) Shared() bool { return s.node != nil }

// ErrLeaseLost means that the lease of a runner was over: other runners may have its turns.
var ErrLeaseLost error = &db.Error{Kind: db.Busy, Code: db.CodeStorage,
	Message: "this server could not renew its lease in the database: try again soon"}

// leaseClock returns the time by which leases are measured. Nodes compare their times, so it is that
// of the database's server.
func (s *Store) leaseClock(ctx context.Context) (time.Time, error) {
	if s.node == nil {
		return s.now(), nil
	}
	return s.server.Clock(ctx)
}

// ClockAhead returns by how much the clock of this machine is ahead of that of the database, by which
// the leases of nodes are measured. It is 0 for a server that has the database alone.
func (s *Store) ClockAhead(ctx context.Context) (time.Duration, error) {
	if s.node == nil {
		return 0, nil
	}
	begun := time.Now()
	theirs, err := s.server.Clock(ctx)
	own, took := s.now(), time.Since(begun)
	return own.Add(-took / 2).Sub(theirs), err
}

// startNode is StartRunner for a node. The file of the node's lock contains the id of its runner.
// The runner that the file named before is dead, because its process held this lock. This is so
// even if its lease is not over.
func (s *Store) startNode(ctx context.Context, runnerID string, now time.Time, ttl time.Duration) error {
	lock, ok := s.lock.(*sqlite.NodeLock)
	if !ok {
		return errors.New("the data folder is not locked for a node")
	}
	earlier, err := lock.Note()
	if err != nil {
		return err
	}
	err = s.db.Write(ctx, func(tx db.Tx) error {
		if _, err := tx.Exec(`DELETE FROM runners WHERE id = ?`, earlier); err != nil {
			return err
		}
		_, err := tx.Exec(`INSERT INTO runners (id, expires_at, url, version, started_at) VALUES (?, ?, ?, ?, ?)`,
			runnerID, now.Add(ttl).UnixMilli(), db.Nullable(s.node.URL), db.Nullable(s.node.Version), s.db.Millis())
		return err
	})
	if err != nil {
		return err
	}
	if err := lock.SetNote(runnerID); err != nil { // such as on a full disk
		s.log.Warn("after a crash, the turns of this node will wait for the end of its lease", "err", err)
	}
	return s.EndLeases(ctx)
}

// A NodeState is a node as the others see it.
type NodeState struct {
	RunnerID  string
	URL       string
	Version   string
	StartedAt time.Time
	Leader    bool // it does the work that one node does for all
	Workers   int64
	Running   int64 // turns
}

// Nodes returns the nodes whose leases are not over, the oldest first. It is empty if the server has
// the database alone.
func (s *Store) Nodes(ctx context.Context) ([]NodeState, error) {
	if s.node == nil {
		return nil, nil
	}
	return db.All(ctx, s.db, func(row db.Scanner) (n NodeState, err error) {
		err = row.Scan(&n.RunnerID, &n.URL, &n.Version, db.AsTime(&n.StartedAt), &n.Leader, &n.Workers, &n.Running)
		return n, err
	}, `SELECT id, coalesce(url, ''), coalesce(version, ''), started_at, EXISTS (SELECT 1 FROM leaders WHERE runner_id = runners.id),
			(SELECT count(*) FROM placements WHERE runner_id = runners.id),
			(SELECT count(*) FROM turns INDEXED BY turns_running WHERE runner_id = runners.id)
		FROM runners ORDER BY started_at, id`)
}

// housekeeping is the name of the work that one node does for all: schedules, webhooks, replies by
// mail, and the deletion of old rows.
const housekeeping = "housekeeping"

// Lead makes a runner the leader unless another runner with a lease is: see Leads. It reports whether
// the runner has become the leader just now.
func (s *Store) Lead(ctx context.Context, runnerID string) (begins bool, err error) {
	var leads bool
	err = s.db.Write(ctx, func(tx db.Tx) error {
		leads, begins = false, false
		holder, err := db.One(ctx, tx, db.ScanString, `SELECT runner_id FROM leaders WHERE name = ?`, housekeeping)
		if db.NoRow(err, nil) != nil {
			return err
		}
		if leads = holder == runnerID; leads {
			return nil
		}
		n, err := tx.Exec(`INSERT INTO leaders (name, runner_id) SELECT ?, id FROM runners WHERE id = ?
			ON CONFLICT (name) DO UPDATE SET runner_id = excluded.runner_id
			WHERE NOT EXISTS (SELECT 1 FROM runners WHERE id = leaders.runner_id)`, housekeeping, runnerID)
		leads, begins = n > 0, n > 0
		return err
	})
	if err == nil {
		s.leads.Store(leads)
	}
	return begins && err == nil, err
}

// Leads reports whether this server does the work that one node does for all: schedules, webhooks,
// replies by mail, and the deletion of old rows. It returns true if the server has the database
// alone.
func (s *Store) Leads() bool { return s.node == nil || s.leads.Load() }

// Resign gives up the leadership, because the lease of this node may soon be over.
func (s *Store) Resign() { s.leads.Store(false) }

// GiveUp gives up the leadership and the placements of a runner, except those of workers that have
// running turns. A node in maintenance calls it, because it starts no work.
func (s *Store) GiveUp(ctx context.Context, runnerID string) error {
	s.Resign()
	if s.node == nil {
		return nil
	}
	return s.db.Write(ctx, func(tx db.Tx) error {
		_, err := tx.Exec(`DELETE FROM leaders WHERE name = ? AND runner_id = ?`, housekeeping, runnerID)
		if err != nil {
			return err
		}
		// A claim changes the row of the placement, so this write and the claim cannot both commit.
		_, err = tx.Exec(`DELETE FROM placements WHERE runner_id = ?1 AND NOT EXISTS (SELECT 1
			FROM turns INDEXED BY turns_running WHERE runner_id = ?1 AND worker_num = placements.worker_num)`, runnerID)
		return err
	})
}

// place places a worker on a runner. placed is false if another runner has the worker, or if this one
// has lost its lease. Without other nodes, every worker is placed here.
//
// It is correct in a locking write. The runner's row is locked, so the lease cannot end before the
// claim is committed. A write that ends the lease later finds the claimed turn. A placement moves
// only from a runner that has no lease in the snapshot that shows the placement. That runner never
// gets a lease again: its row was created before its first placement, and is never created again.
// If another runner has taken the worker since, the row names that one.
func (s *Store) place(tx db.Tx, runnerID string, workerNum int64) (placed bool, err error) {
	if s.node == nil {
		return true, nil
	}
	n, err := tx.Exec(placeWorker, s.placeArgs(runnerID, workerNum)...)
	return n > 0, err
}

// placeWorker is the statement of place. It changes no row if the worker is not placed.
const placeWorker = `INSERT INTO placements (worker_num, runner_id, used_at)
	SELECT CAST(?1 AS BIGINT), id, CAST(?3 AS BIGINT) FROM runners WHERE id = ?2 /* FOR KEY SHARE */
	ON CONFLICT (worker_num) DO UPDATE SET runner_id = excluded.runner_id, used_at = excluded.used_at
	WHERE placements.runner_id = excluded.runner_id OR placements.runner_id = (SELECT p.runner_id FROM placements p
		WHERE p.worker_num = ?1 AND NOT EXISTS (SELECT 1 FROM runners WHERE id = p.runner_id))`

func (s *Store) placeArgs(runnerID string, workerNum int64) []any {
	return []any{workerNum, runnerID, s.db.Millis()}
}

// ReleasePlacements ends the placements of a runner whose workers have had no turn for the duration
// idle. It also deletes the placements and reservations of runners without a lease.
func (s *Store) ReleasePlacements(ctx context.Context, runnerID string, idle time.Duration) error {
	if s.node == nil {
		return nil
	}
	return s.db.Write(ctx, func(tx db.Tx) error {
		// A claim changes the row of the placement, so this write and the claim cannot both commit.
		_, err := tx.Exec(`DELETE FROM placements WHERE runner_id NOT IN (SELECT id FROM runners)
			OR runner_id = ?1 AND used_at < ?2 AND NOT EXISTS (SELECT 1 FROM turns INDEXED BY turns_running
				WHERE runner_id = ?1 AND worker_num = placements.worker_num)`,
			runnerID, s.now().Add(-idle).UnixMilli())
		if err != nil {
			return err
		}
		_, err = tx.Exec(`DELETE FROM reservations WHERE runner_id NOT IN (SELECT id FROM runners)`)
		return err
	})
}

// forgetNode deletes the placements, the reservations and the leadership of a runner.
func (s *Store) forgetNode(tx db.Tx, runnerID string) error {
	if s.node == nil {
		return nil
	}
	for _, table := range []string{"placements", "reservations"} {
		if _, err := tx.Exec(`DELETE FROM `+table+` WHERE runner_id = ?`, runnerID); err != nil {
			return err
		}
	}
	_, err := tx.Exec(`DELETE FROM leaders WHERE name = ? AND runner_id = ?`, housekeeping, runnerID)
	return err
}

// PlaceOf returns the runner and the URL of the node on which a worker is placed. Both are empty if
// the worker is not placed, or is placed on runnerID.
func (s *Store) PlaceOf(ctx context.Context, workerID, runnerID string) (NodeState, error) {
	if s.node == nil {
		return NodeState{}, nil
	}
	n, err := db.One(ctx, s.db, scanPeer, `SELECT id, coalesce(url, '') FROM runners
		WHERE id = (SELECT runner_id FROM placements WHERE worker_num = `+db.WorkerNum+`) AND id <> ?`, workerID, runnerID)
	return n, db.NoRow(err, nil)
}

// Peers returns the runners and the URLs of the nodes that have a lease.
func (s *Store) Peers(ctx context.Context) ([]NodeState, error) {
	if s.node == nil {
		return nil, nil
	}
	return db.All(ctx, s.db, scanPeer, `SELECT id, coalesce(url, '') FROM runners ORDER BY id`)
}

func scanPeer(row db.Scanner) (n NodeState, err error) {
	err = row.Scan(&n.RunnerID, &n.URL)
	return n, err
}

// NodeURL returns the address at which other nodes reach this one, or "" if there are none.
func (s *Store) NodeURL() string {
	if s.node == nil {
		return ""
	}
	return s.node.URL
}

// PlaceHere places a worker on a runner, because somebody watches it there. placed is false if another
// runner has the worker.
func (s *Store) PlaceHere(ctx context.Context, workerID, runnerID string) (placed bool, err error) {
	if s.node == nil {
		return true, nil
	}
	err = s.db.Write(ctx, func(tx db.Tx) error {
		num, err := db.One(ctx, tx, db.ScanInt, `SELECT num FROM workers WHERE id = ?`, workerID)
		if err != nil {
			return db.NoRow(err, db.Errorf(db.NotFound, "the worker does not exist"))
		}
		placed, err = s.place(tx, runnerID, num)
		return err
	})
	return placed, err
}

// placeRenew is the age of a placement from which on KeepPlaced renews it. It is well below the time after which
// ReleasePlacements ends an idle one.
const placeRenew = 15 * time.Second

// KeepPlaced renews the placements of those workers that are placed on a runner, because somebody
// watches them. It returns the other workers. It makes one read for all workers, and one write if
// some were not renewed for placeRenew. In maintenance it renews none: see GiveUp.
func (s *Store) KeepPlaced(ctx context.Context, workerIDs []string, runnerID string) (others []string, err error) {
	if s.node == nil || len(workerIDs) == 0 {
		return nil, nil
	}
	type placement struct{ num, usedAt int64 }
	here := map[string]placement{}
	_, err = db.All(ctx, s.db, func(row db.Scanner) (struct{}, error) {
		var id string
		var p placement
		err := row.Scan(&id, &p.num, &p.usedAt)
		here[id] = p
		return struct{}{}, err
	}, `SELECT w.id, w.num, p.used_at FROM placements p CROSS JOIN workers w ON w.num = p.worker_num
		WHERE p.runner_id = ?`, runnerID)
	if err != nil {
		return nil, err
	}
	now, old := s.db.Millis(), []int64{}
	for _, id := range workerIDs {
		p, found := here[id]
		if !found {
			others = append(others, id)
		} else if now-p.usedAt >= placeRenew.Milliseconds() {
			old = append(old, p.num)
		}
	}
	if len(old) == 0 || s.Gate.Maintenance() != nil {
		return others, nil
	}
	nums, err := json.Marshal(old)
	if err != nil {
		return nil, err
	}
	_, err = s.db.Exec(ctx, `UPDATE placements SET used_at = ?
		WHERE runner_id = ? AND worker_num IN (SELECT value FROM json_each(?))`, now, runnerID, string(nums))
	return others, err
}

// RequestedAborts returns the ids of a runner's turns that somebody wants to cancel. The request may
// have reached another node.
func (s *Store) RequestedAborts(ctx context.Context, runnerID string) ([]string, error) {
	return db.All(ctx, s.db, db.ScanString, `SELECT id FROM turns INDEXED BY turns_running
		WHERE runner_id = ? AND abort_requested = 1`, runnerID)
}

// CatchUp reads the number of waiting turns again, because other nodes may have changed it. It also
// clears the caches of callers, models and caps.
func (s *Store) CatchUp(ctx context.Context) error {
	if s.node == nil {
		return nil
	}
	s.People.Forget()
	s.Workers.Forget()
	return s.CountQueued(ctx)
}

// CountQueued is CatchUp for the number of waiting turns alone.
func (s *Store) CountQueued(ctx context.Context) error {
	if s.node == nil {
		return nil
	}
	if err := s.countQueue(ctx); err != nil {
		return fmt.Errorf("catch up with the other nodes: %w", err)
	}
	return nil
}
