package store_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// A clock stands still until a test moves it.
type clock struct{ ms atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ms.Store(time.Date(2026, 3, 31, 23, 59, 0, 0, time.UTC).UnixMilli())
	return c
}

func (c *clock) now() time.Time          { return time.UnixMilli(c.ms.Load()) }
func (c *clock) advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }

// A fixture is a store with one organization, its owner and a public worker.
type fixture struct {
	*store.Store
	t      testing.TB
	clock  *clock
	owner  people.Identity
	worker workers.Worker
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	return newFixtureWith(t, store.Options{})
}

func newFixtureWith(t testing.TB, opt store.Options) *fixture {
	t.Helper()
	f := &fixture{t: t, clock: newClock()}
	opt.Now = f.clock.now
	f.Store = storetest.Open(t, opt)
	f.owner, _ = storetest.Caller(t, f.Store, "Acme", "ann@acme.test", people.RoleOwner)
	f.worker = f.newWorker(f.owner, workers.NewWorker{Title: "Scribe", Instructions: "Help."})
	return f
}

func (f *fixture) ctx() context.Context { return f.t.Context() }

// caller returns a user of an organization.
func (f *fixture) caller(organization, email string, role people.Role) people.Identity {
	f.t.Helper()
	id, _ := storetest.Caller(f.t, f.Store, organization, email, role)
	return id
}

func (f *fixture) newWorker(who people.Identity, n workers.NewWorker) workers.Worker {
	f.t.Helper()
	w, _, err := f.Workers.CreateWorker(f.ctx(), who.Caller, n, db.IdempotencyKey{})
	is.New(f.t).NoErr(err)
	return w
}

// turn returns an instruction of the owner to the worker, as a new task.
func (f *fixture) turn() store.NewTurn {
	return store.NewTurn{Caller: f.owner.Caller, WorkerID: f.worker.ID, Input: "Go", Budget: store.BudgetStandard}
}

func (f *fixture) accept(n store.NewTurn) store.Turn {
	f.t.Helper()
	a, err := f.CreateTurn(f.ctx(), n)
	is.New(f.t).NoErr(err)
	return a.Turn
}

// follow adds a turn to the task of t.
func (f *fixture) follow(t store.Turn) store.Turn {
	f.t.Helper()
	n := f.turn()
	n.WorkerID, n.TaskID = "", t.TaskID
	return f.accept(n)
}

func (f *fixture) startRunner(id string) {
	f.t.Helper()
	is.New(f.t).NoErr(f.StartRunner(f.ctx(), id, time.Minute))
}

func (f *fixture) claim(runner string, n int) []store.Claim {
	f.t.Helper()
	claims, err := f.ClaimTurns(f.ctx(), runner, n, n)
	is.New(f.t).NoErr(err)
	return claims
}

// claimOne fails the test unless exactly one turn can be claimed.
func (f *fixture) claimOne(runner string) store.Claim {
	f.t.Helper()
	claims := f.claim(runner, 2)
	if len(claims) != 1 {
		f.t.Fatalf("claimed %d turns, want 1", len(claims))
	}
	return claims[0]
}

func (f *fixture) finish(c store.Claim) store.Turn {
	f.t.Helper()
	t, err := f.FinishTurn(f.ctx(), c, nil, store.Outcome{Status: store.Completed, OutputText: "Done", Duration: time.Second})
	is.New(f.t).NoErr(err)
	return t
}

// runAll runs queued turns until none is left.
func (f *fixture) runAll() {
	f.t.Helper()
	f.startRunner("all")
	for claims := f.claim("all", 100); len(claims) > 0; claims = f.claim("all", 100) {
		for _, c := range claims {
			f.finish(c)
		}
	}
}

func (f *fixture) task(id string) store.Task {
	f.t.Helper()
	t, _, err := f.Task(f.ctx(), f.owner.Caller, id)
	is.New(f.t).NoErr(err)
	return t
}

func (f *fixture) reread(t store.Turn) store.Turn {
	f.t.Helper()
	again, err := f.Turn(f.ctx(), t.ID)
	is.New(f.t).NoErr(err)
	return again
}

// count returns the result of a counting query.
func (f *fixture) count(query string, args ...any) int64 {
	f.t.Helper()
	n, err := f.Ints(f.ctx(), query, args...)
	is.New(f.t).NoErr(err)
	return n[0]
}

// checkCounters compares all counters with the counted rows.
func (f *fixture) checkCounters() {
	f.t.Helper()
	is := is.New(f.t)
	is.Helper()
	is.Equal(f.Queued(), f.count(`SELECT count(*) FROM turns WHERE status = 'pending'`)) // the queue's counter
	f.checkQueueCounts()
	is.Equal(f.count(`SELECT count(*) FROM schedules s JOIN tasks t ON t.num = s.running_task_num WHERE t.unfinished = 0`), int64(0)) // these schedules must be free
	wrong, err := f.Strings(f.ctx(), `SELECT t.id FROM tasks t LEFT JOIN turns u ON u.task_num = t.num GROUP BY t.num HAVING
		t.turn_count <> count(u.num) OR t.unfinished <> count(u.num) FILTER (WHERE u.status IN ('pending', 'running'))
		OR t.cost <> sum(u.model_cost + u.tool_cost) OR t.duration_ms <> sum(u.duration_ms)
		OR count(u.num) FILTER (WHERE u.ready = 1 AND u.status IN ('pending', 'running')) > 1
		OR t.unfinished > 0 AND count(u.num) FILTER (WHERE u.ready = 1 AND u.status IN ('pending', 'running')) = 0
		OR t.status <> CASE WHEN count(u.num) FILTER (WHERE u.status = 'running') > 0 THEN 'running'
			WHEN count(u.num) FILTER (WHERE u.status = 'pending') > 0 THEN 'pending'
			ELSE (SELECT n.status FROM turns n WHERE n.task_num = t.num ORDER BY n.seq DESC LIMIT 1) END
		OR t.completed_at IS NOT iif(t.unfinished > 0, NULL, max(u.completed_at))`)
	is.NoErr(err)
	is.Equal(len(wrong), 0) // tasks whose sums differ from their turns
	is.Equal(f.count(`SELECT coalesce(sum(cost), 0) FROM usage`), f.count(`SELECT coalesce(sum(model_cost + tool_cost), 0) FROM turns`))
	is.Equal(f.count(`SELECT coalesce(sum(cost), 0) FROM spending`), f.count(`SELECT coalesce(sum(model_cost + tool_cost), 0) FROM turns`))
	is.Equal(f.count(`SELECT coalesce(sum(turns), 0) FROM usage`), f.count(`SELECT count(*) FROM turns WHERE completed_at IS NOT NULL`))
	for _, figure := range []string{"steps", "input_tokens", "output_tokens"} {
		is.Equal(f.count(`SELECT coalesce(sum(`+figure+`), 0) FROM usage`), f.count(`SELECT coalesce(sum(`+figure+`), 0) FROM turns`))
	}
	is.Equal(f.count(`SELECT count(*) FROM turns WHERE call_tokens IS NOT NULL AND runner_id IS NULL`), int64(0)) // calls without a runner
}

// checkQueueCounts compares the queue counter of each organization with its rows.
func (f *fixture) checkQueueCounts() {
	f.t.Helper()
	is := is.New(f.t)
	is.Helper()
	counts := f.QueueCounts()
	for id, n := range counts {
		for i, author := range []string{"IS NOT NULL", "IS NULL"} {
			is.Equal(n[i], f.count(`SELECT count(*) FROM turns WHERE status = 'pending' AND created_by_user_num `+author+
				` AND organization_num = (SELECT num FROM organizations WHERE id = ?)`, id))
		}
	}
	is.Equal(int64(len(counts)), f.count(`SELECT count(DISTINCT organization_num) FROM turns WHERE status = 'pending'`))
}

// errOf returns the error of a call, which is the last of its results.
func errOf(results ...any) error {
	err, _ := results[len(results)-1].(error)
	return err
}

// says reports whether err is an error with this text.
func says(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }

// sha returns the SHA-256 of text in hexadecimal.
func sha(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// copyTask creates n copies of the task of t, with a copy of t each. It runs one statement per
// table, for tests that need thousands of tasks.
func (f *fixture) copyTask(t store.Turn, n int) {
	f.t.Helper()
	f.exec(`WITH RECURSIVE m (base) AS MATERIALIZED (SELECT max(num) FROM tasks),
				n (i) AS (SELECT base + 1 FROM m UNION ALL SELECT i + 1 FROM n, m WHERE i < base + ?2)
			INSERT INTO tasks (id, organization_num, worker_num, created_by_user_num, title, triggered_by, turn_count, unfinished, running, outcome,
				cost, duration_ms, created_at, completed_at)
			SELECT id || '-copy-' || i, organization_num, worker_num, created_by_user_num, title || ' ' || i, triggered_by, turn_count,
				unfinished, running, outcome, cost, duration_ms, created_at + i, completed_at FROM n CROSS JOIN tasks WHERE tasks.id = ?1`, t.TaskID, n)
	if n > 0 {
		f.exec(`INSERT INTO turns (id, task_num, seq, organization_num, worker_num, worker_version, created_by_user_num, api_key_num,
				own_folder, triggered_by, input, budget, status, ready, runner_id, claims, interruptions, abort_requested, output_text, model, steps, input_tokens,
				output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, model_cost, tool_cost, duration_ms, created_at, started_at,
				completed_at, task_status)
			SELECT u.id || substr(k.id, ?1), k.num, u.seq, u.organization_num, u.worker_num, u.worker_version, u.created_by_user_num, u.api_key_num,
				u.own_folder, u.triggered_by, u.input, u.budget, u.status, u.ready, u.runner_id, u.claims, u.interruptions, u.abort_requested, u.output_text,
				u.model, u.steps, u.input_tokens, u.output_tokens, u.cache_read_tokens, u.cache_write_tokens, u.reasoning_tokens, u.model_cost,
				u.tool_cost, u.duration_ms, k.created_at, u.started_at, u.completed_at, u.task_status
			FROM tasks k CROSS JOIN turns u WHERE u.num = ?2 AND k.num > (SELECT max(num) FROM tasks) - ?3`, len(t.TaskID)+1, t.Num, n)
	}
}
