package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"time"

	"journeyman/store/db"
	"journeyman/store/engine"
)

// maxInterruptions is how often the process may die while a turn runs, counted since the turn's
// last finished call. After that many interruptions, the turn itself is probably the cause.
const maxInterruptions = 3

// StartRunner registers runnerID with a lease of ttl. A process that has the database alone knows
// that every other runner is dead: its turns go back to the queue. Among nodes, two kinds of
// runners are dead: those whose lease is over, and the earlier runner of this node.
func (s *Store) StartRunner(ctx context.Context, runnerID string, ttl time.Duration) error {
	now, err := s.leaseClock(ctx)
	if err != nil {
		return err
	}
	if s.node != nil {
		return s.startNode(ctx, runnerID, now, ttl)
	}
	return s.db.Write(ctx, func(tx db.Tx) error {
		if _, err := tx.Exec(`DELETE FROM runners`); err != nil {
			return err
		}
		return s.renewLease(ctx, tx, runnerID, now, ttl)
	})
}

// RenewLease extends the lease of runnerID to ttl from now. Without other nodes, turns of runners whose
// lease is over go back to the queue. Among nodes, EndLeases does that, so that its work holds up no
// renewal. There RenewLease returns ErrLeaseLost if the lease was over already.
//
// It may be locking: the lease is one row, and the statement that deletes leases decides on the rows
// that it deletes. If it finds turns of such a runner, it becomes serializable.
func (s *Store) RenewLease(ctx context.Context, runnerID string, ttl time.Duration) error {
	now, err := s.leaseClock(ctx) // read before the write, so that the lease is never too long
	if err != nil {
		return err
	}
	return s.db.Hot(ctx, true, func(tx db.Tx) error { return s.renewLease(ctx, tx, runnerID, now, ttl) })
}

func (s *Store) renewLease(ctx context.Context, tx db.Tx, runnerID string, now time.Time, ttl time.Duration) error {
	n, err := tx.Exec(`UPDATE runners SET expires_at = ? WHERE id = ?`, now.Add(ttl).UnixMilli(), runnerID)
	switch {
	case err != nil:
		return err
	case n == 0 && s.node != nil:
		return ErrLeaseLost
	case n == 0:
		_, err = tx.Exec(`INSERT INTO runners (id, expires_at) VALUES (?, ?)`, runnerID, now.Add(ttl).UnixMilli())
	}
	if err != nil || s.node != nil {
		return err
	}
	_, err = s.endLeases(ctx, tx, now, math.MaxInt32)
	return err
}

// returnedAtOnce is the number of turns of dead nodes that one write of EndLeases returns to the
// queue. The write holds their locks. A write with more turns would often conflict with others, and
// run again.
const returnedAtOnce = 100

// EndLeases returns the turns of nodes whose leases are over to the queue, and those of abandoned claims.
func (s *Store) EndLeases(ctx context.Context) error {
	if s.node == nil {
		return s.returnAbandoned(ctx)
	}
	now, err := s.leaseClock(ctx)
	for returned := returnedAtOnce; err == nil && returned == returnedAtOnce; {
		err = s.db.Hot(ctx, true, func(tx db.Tx) (err error) {
			returned, err = s.endLeases(ctx, tx, now, returnedAtOnce)
			return err
		})
	}
	return errors.Join(err, s.returnAbandoned(ctx))
}

// endLeases deletes the runners whose leases are over. Up to limit of their turns go back to the queue; it
// returns the number.
func (s *Store) endLeases(ctx context.Context, tx db.Tx, now time.Time, limit int) (returned int, err error) {
	if _, err := tx.Exec(`DELETE FROM runners WHERE expires_at <= ?`, now.UnixMilli()); err != nil {
		return 0, err
	}
	// NOT IN also finds the turns of a runner that claimed after its row was deleted.
	const left = ` FROM turns INDEXED BY turns_running
		WHERE runner_id IS NOT NULL AND runner_id NOT IN (SELECT id FROM runners)`
	if db.IsLocking(tx) {
		return 0, db.RefuseIf(ctx, tx, db.ErrSerialize, `SELECT EXISTS (SELECT 1`+left+`)`)
	}
	return s.interruptAll(ctx, tx, 1, `SELECT `+interruptedColumns+left+` LIMIT ?`, limit)
}

// stopTime bounds StopRunner on a server, which may not answer. The next start finds the turns.
const stopTime = 10 * time.Second

// StopRunner returns the turns of a runner that stops in good order to the queue. It
// does not count as an interruption of them.
func (s *Store) StopRunner(ctx context.Context, runnerID string) error {
	if s.db.OnServer() {
		var cancel context.CancelFunc
		ctx, cancel = engine.Bounded(ctx, stopTime)
		defer cancel()
	}
	// A write that accepts a turn may have taken a slot of the runner, and not be committed yet.
	if err := s.AwaitWrites(ctx); err != nil {
		return err
	}
	return s.db.Write(ctx, func(tx db.Tx) error {
		_, err := s.interruptAll(ctx, tx, 0, `SELECT `+interruptedColumns+` FROM turns INDEXED BY turns_running
			WHERE runner_id = ?`, runnerID)
		if err != nil {
			return err
		}
		if _, err = tx.Exec(`DELETE FROM runners WHERE id = ?`, runnerID); err != nil {
			return err
		}
		return s.forgetNode(tx, runnerID)
	})
}

// ReturnTurn puts a claimed turn back into the queue, because the machine cannot carry it out
// now. It does not count as an interruption. It changes nothing if the turn was claimed again since.
func (s *Store) ReturnTurn(ctx context.Context, c Claim) error {
	return s.db.Write(ctx, func(tx db.Tx) error {
		_, err := s.interruptAll(ctx, tx, 0, `SELECT `+interruptedColumns+` FROM turns
			WHERE num = ? AND runner_id = ? AND claims = ?`, c.Num, c.RunnerID, c.Claims)
		return err
	})
}

// An interruptedTurn is a turn that its runner left unfinished.
type interruptedTurn struct {
	Turn
	runnerID             string
	interruptions        int64
	callTokens, callCost sql.NullInt64 // of the model call that was under way
}

const interruptedColumns = turnColumns + `, runner_id, interruptions, call_tokens, call_cost`

func scanInterrupted(row db.Scanner) (t interruptedTurn, err error) {
	t.Turn, err = scanTurn(db.ScannerFunc(func(dest ...any) error {
		return row.Scan(append(dest, &t.runnerID, &t.interruptions, &t.callTokens, &t.callCost)...)
	}))
	return t, err
}

// interruptAll interrupts the turns that a query finds. count is 1 if the process died,
// and 0 if it stopped in good order. It returns the number of turns.
func (s *Store) interruptAll(ctx context.Context, tx db.Tx, count int64, query string, args ...any) (int, error) {
	turns, err := db.All(ctx, tx, scanInterrupted, query, args...)
	if err != nil {
		return 0, err
	}
	if len(turns) > 0 && count > 0 {
		tx.OnCommit(func() { s.noteTakenOver(turns) })
	}
	return len(turns), s.ending(tx, func(tx db.Tx) error {
		for _, t := range turns {
			if err := s.interrupt(tx, t, count); err != nil {
				return err
			}
		}
		return nil
	})
}

// noteTakenOver counts and logs turns that a process left when it ended.
func (s *Store) noteTakenOver(turns []interruptedTurn) {
	s.counters.TurnsTakenOver.Add(int64(len(turns)))
	left := map[string]int{}
	for _, t := range turns {
		left[t.runnerID]++
	}
	for runner, n := range left {
		s.log.Warn("turns are taken over from a process that ended while it carried them out", "runner", runner, "turns", n)
	}
}

// interrupt puts a turn back into the queue, or ends it if it was cancelled or has been
// interrupted too often.
func (s *Store) interrupt(tx db.Tx, t interruptedTurn, count int64) error {
	if err := s.chargeInterrupted(tx, t); err != nil {
		return err
	}
	switch {
	case t.AbortRequested:
		return s.endInterrupted(tx, t, AbortedOutcome()) // its runner died before it carried out the cancel
	case t.interruptions+count >= maxInterruptions:
		return s.endInterrupted(tx, t, Outcome{Status: Failed, Failure: &Failure{Code: "interrupted", Retryable: true,
			Message: "the service stopped three times while it worked on this turn"}})
	}
	_, err := tx.Exec(`UPDATE turns SET status = 'pending', runner_id = NULL, interruptions = interruptions + ?
		WHERE num = ?`, count, t.Num)
	if err != nil {
		return err
	}
	s.waiting.add(tx, t.OrganizationID, laneOf(t.Stranger()), 1)
	return s.setRunning(tx, t.OrganizationID, t.taskNum, false)
}

// chargeInterrupted charges the model call in which a turn was interrupted. The provider's count of
// tokens is lost with the process, so the charge is the estimate that BeginCall stored.
func (s *Store) chargeInterrupted(tx db.Tx, t interruptedTurn) error {
	if !t.callTokens.Valid {
		return nil
	}
	u := Usage{InputTokens: t.callTokens.Int64, ModelCost: t.callCost.Int64}
	_, err := tx.Exec(`UPDATE turns SET `+addUsage+` WHERE num = ?`, append(usageArgs("", u), t.Num)...)
	if err != nil {
		return err
	}
	return s.addToSums(tx, t.Turn, u)
}

func (s *Store) endInterrupted(tx db.Tx, t interruptedTurn, out Outcome) error {
	if err := s.closeApprovals(tx, t.Turn, ApprovalCancelled); err != nil {
		return err
	}
	turn, err := s.endTurn(tx, Claim{Turn: t.Turn, RunnerID: t.runnerID}, nil, out)
	if fn := s.onInterrupted.Load(); fn != nil && err == nil {
		tx.OnCommit(func() { (*fn)(turn) })
	}
	return err
}

// OnInterrupted sets the function that is called, after the commit, with each turn that ends
// because its runner left it. No runner has such a turn any more, so only the store can report its
// end. fn must not block for long.
func (s *Store) OnInterrupted(fn func(Turn)) { s.onInterrupted.Store(&fn) }

// ClaimTurns takes up to n waiting turns for a runner: round robin by organization, then
// by worker. At most strangers of them are turns of people who are not members, and no more than each
// fourth while members' turns wait. It takes none in maintenance and while the disk is full: see Room. On a server it
// may return fewer than are waiting while other calls claim.
//
// It may be locking: nextInQueue locks the turn, and skips a turn that another write has locked. So
// the row of the turn cannot change any more, and the version of its worker never changes. The
// update of the task does not depend on the task's row. Secrets that are added or removed at the
// same moment may or may not count.
func (s *Store) ClaimTurns(ctx context.Context, runnerID string, n, strangers int) (claims []Claim, err error) {
	if s.Gate.Room() != nil {
		return nil, nil // the runner asks again soon
	}
	// A runner without work asks often: it must cost no write.
	if s.waiting.in(ofMembers) <= 0 && (strangers == 0 || s.waiting.in(ofStrangers) <= 0) {
		return nil, nil
	}
	announced, none := s.waiting.announcements(), false // before the claim, which finds their turns
	var fate claimFate
	err = s.db.Hot(ctx, true, func(tx db.Tx) error {
		claims, none = nil, false
		left := strangers
		if s.Gate.Writable() != nil {
			return nil // maintenance has begun while this write waited: see DuringMaintenance
		}
		for len(claims) < n {
			next, err := s.nextOfLanes(ctx, tx, runnerID, left > 0)
			if none = errors.Is(err, sql.ErrNoRows); none {
				break
			}
			if err != nil {
				return err
			}
			placed, err := s.place(tx, runnerID, next.worker)
			if err != nil || !placed {
				return err // another node has just got the worker: the next call looks again
			}
			c, err := s.claim(ctx, tx, runnerID, next)
			if err != nil {
				return err
			}
			if s.waiting.add(tx, c.OrganizationID, laneOf(c.Stranger()), -1); c.Stranger() {
				left--
			}
			s.claimedBy(tx, c, &fate)
			claims = append(claims, c)
		}
		return nil
	})
	if err != nil && fate.lose() {
		return nil, err // the undo has put the claimed turns back into the queue
	}
	if none {
		s.waiting.foundNoMore(announced)
	}
	return claims, nil
}

// A queuedTurn is a turn that may be claimed.
type queuedTurn struct {
	Claim
	organization, worker int64 // nums
	lastWorker           int64 // the greatest num of a worker with such a turn in the organization; 0: not read
}

func scanQueued(row db.Scanner) (q queuedTurn, err error) {
	q.Claim, err = scanClaim(db.ScannerFunc(func(dest ...any) error {
		return row.Scan(append(dest, &q.organization, &q.worker, &q.lastWorker)...)
	}))
	return q, err
}

// nextOfLanes returns the next turn to claim. Without strangers, it is a member's. After three claims of
// members' turns it is a stranger's, so that neither lane waits for the end of the other one. It returns
// sql.ErrNoRows if there is no such turn.
func (s *Store) nextOfLanes(ctx context.Context, tx db.Tx, runnerID string, strangers bool) (next queuedTurn,
	err error) {
	order := []lane{ofMembers}
	switch {
	case strangers && s.fair.strangersNext():
		order = []lane{ofStrangers, ofMembers}
	case strangers:
		order = []lane{ofMembers, ofStrangers}
	}
	err = sql.ErrNoRows
	for _, l := range order {
		if s.waiting.in(l) <= 0 {
			continue // most lanes of strangers are empty: they cost no query
		}
		if next, err = s.nextInQueue(ctx, tx, l, runnerID); !errors.Is(err, sql.ErrNoRows) {
			break
		}
	}
	return next, err
}

// nextInQueue returns the next turn of a lane: of the organization that follows the last one, and there
// of the worker that follows its last one. Each query is one or two steps down the queue's index,
// however long the queue is. It also reads what a claim holds, so a claim needs no other query. Among
// nodes, it skips the turns of workers that are placed on another one.
func (s *Store) nextInQueue(ctx context.Context, tx db.Tx, l lane, runnerID string) (queuedTurn, error) {
	q := s.queue[l]
	next, err := db.One(ctx, tx, scanQueued, q.next, s.withRunner(runnerID, s.fair.lastOrganization(l))...)
	if err != nil {
		return next, err
	}
	// The query has found the organization's first worker. If a worker follows the
	// last claimed one, that worker is next instead.
	if last := s.fair.lastWorker(l, next.organization); last >= next.worker && last < next.lastWorker {
		following, err := db.One(ctx, tx, scanQueued, q.nextWorker, s.withRunner(runnerID, next.organization, last)...)
		// Without a row, other writes have locked all turns of the following workers.
		if db.NoRow(err, nil) != nil {
			return next, err
		}
		if err == nil {
			next = following
		}
	}
	s.fair.follow(tx, l, next.organization, next.worker)
	return next, nil
}

// claim claims a turn that nextInQueue has returned. An UPDATE that returns the row would cost more than
// the two statements.
func (s *Store) claim(ctx context.Context, tx db.Tx, runnerID string, next queuedTurn) (c Claim, err error) {
	c = next.Claim
	if c.Claims > 0 { // an earlier claim has set columns that are empty in a new turn
		if c.Turn, err = db.One(ctx, tx, scanTurn, selectTurn, c.Num); err != nil {
			return c, err
		}
	}
	now := db.FromMillis(s.db.Millis())
	c.RunnerID, c.Status, c.Ready, c.Claims = runnerID, Running, true, c.Claims+1
	c.StartedAt = cmp.Or(c.StartedAt, &now)
	err = tx.ExecLater(`UPDATE turns SET status = 'running', runner_id = ?, claims = ?, started_at = ? WHERE num = ?`,
		runnerID, c.Claims, c.StartedAt.UnixMilli(), c.Num)
	if err != nil {
		return c, err
	}
	return c, s.setRunning(tx, c.OrganizationID, c.taskNum, true)
}

// OnClaimed sets the function that is called with each turn that a runner claims, after the commit.
// On SQLite the call comes before any later write. A request that cancels a claimed turn first
// calls AwaitWrites, and then finds the records of fn. fn must not block.
func (s *Store) OnClaimed(fn func(Claim)) { s.onClaimed.Store(&fn) }

func scanClaim(row db.Scanner) (c Claim, err error) {
	err = row.Scan(slices.Concat(c.accepted(), []any{&c.AbortRequested, &c.HasFiles, &c.HasSecrets, &c.Instructions,
		db.AsJSON(&c.OutputSchema)}, c.Settings.Columns())...)
	return c, err
}

// RunningTurns returns the number of turns that were claimed and have neither ended nor gone back to
// the queue.
func (s *Store) RunningTurns(ctx context.Context) (int64, error) {
	return db.One(ctx, s.db, db.ScanInt, `SELECT count(*) FROM turns INDEXED BY turns_running WHERE runner_id IS NOT NULL`)
}

// maxPlace bounds what QueuePlace counts.
const maxPlace = 1000

// QueuePlace returns how many turns of the same organization and lane have waited in the queue for
// longer than t, at most maxPlace. Not all of them must run first: each worker gets its turn.
func (s *Store) QueuePlace(ctx context.Context, t Turn) (int64, error) {
	return db.One(ctx, s.db, db.ScanInt, `SELECT count(*) FROM (SELECT 1`+laneOf(t.Stranger()).queued()+`
			organization_num = (SELECT num FROM organizations WHERE id = ?1) AND num < ?2 LIMIT ?3) AS ahead`,
		t.OrganizationID, t.Num, maxPlace)
}
