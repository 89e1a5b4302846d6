package store_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/storetest"
)

// rowCounts returns the number of rows of each table, except tables that are never pruned.
func (f *fixture) rowCounts() map[string]int64 {
	f.t.Helper()
	query := `SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0`
	if storetest.OnServer() {
		query = `SELECT tablename FROM pg_tables WHERE schemaname = current_schema()`
	}
	tables, err := f.Strings(f.ctx(), query)
	is.New(f.t).NoErr(err)
	counts := map[string]int64{}
	for _, table := range tables {
		counts[table] = f.count(`SELECT count(*) FROM ` + table)
	}
	return counts
}

// hangEverything adds rows to an ended turn, one in every table that refers to turns or tasks.
func (f *fixture) hangEverything(t store.Turn, sha string) {
	f.t.Helper()
	for _, query := range []string{
		`INSERT INTO steps (turn_num, seq, attempt, parts, finish, feedback, model, estimated_tokens, input_tokens, output_tokens,
			cache_read_tokens, cache_write_tokens, reasoning_tokens, cost, started_at, completed_at)
			VALUES (?1, 0, 1, '[]', 'stop', '', 'm', 0, 0, 0, 0, 0, 0, 0, 1, 1)`,
		`INSERT INTO tool_calls (turn_num, step_seq, seq, state, output, cost, started_at, completed_at) VALUES (?1, 0, 0, 'completed', '""', 0, 1, 1)`,
		`INSERT INTO call_images (turn_num, step_seq, call_seq, seq, path, media_type, size, sha256) VALUES (?1, 0, 0, 0, 'a', 'image/png', 1, ?2)`,
		`INSERT INTO approvals (num, id, kind, organization_id, task_num, turn_num, step_seq, call_seq, status, reason, decision, created_at, decided_at)
			SELECT 1000 + num, 'apr_' || id, 'approval', (SELECT id FROM organizations WHERE num = organization_num), task_num, num, 0, 0, 'approved', '', 0, 1, 1 FROM turns WHERE num = ?1`,
		`INSERT INTO task_allowances (task_num, tool, user_id, worker_version, created_at) SELECT task_num, 'shell', (SELECT id FROM users WHERE num = created_by_user_num), 1, 1 FROM turns WHERE num = ?1`,
		`INSERT INTO compactions (task_num, turn_num, step_seq, kind, before_turn, before_step, items, summary, refused, model, room, tokens_before,
			tokens_after, input_tokens, output_tokens, cost, started_at, completed_at)
			SELECT task_num, num, 0, 'summary', 0, 0, 1, 's', 0, 'm', 1, 1, 1, 1, 1, 0, 1, 1 FROM turns WHERE num = ?1`,
		`INSERT INTO files (id, worker_id, task_num, turn_num, origin, path, title, media_type, size, sha256, created_at)
			SELECT 'fil_' || id, (SELECT id FROM workers WHERE num = worker_num), task_num, num, 'published', 'a.txt', 'a', 'text/plain', 1, ?2, 1 FROM turns WHERE num = ?1`,
		`INSERT INTO sources (id, task_num, turn_num, url, created_at) SELECT 'src_' || id, task_num, num, 'https://a.example', 1 FROM turns WHERE num = ?1`,
		`INSERT INTO toolsets (hash, toolset) VALUES ('h', '{}') ON CONFLICT (hash) DO NOTHING`,
		`INSERT INTO turn_toolsets (turn_num, hash, preamble) VALUES (?1, 'h', '{}')`,
		`INSERT INTO inbound_emails (num, id, organization_id, worker_id, message_id, status, reason, turn_num, mail_from, from_address, recipient,
			reply_to, subject, verdicts, remote_addr, size, created_at, source_sha256)
			SELECT 1000 + num, 'msg_i' || id, (SELECT id FROM organizations WHERE num = organization_num), (SELECT id FROM workers WHERE num = worker_num), id, 'accepted', '', num, '', '', '', '', '', '{}', '', 1, 1, ?2 FROM turns WHERE num = ?1`,
		`INSERT INTO outbound_emails (id, kind, organization_id, worker_id, turn_num, inbound_num, approval_num, user_id, recipient, subject, status,
			attempts, error_message, created_at, size, source_sha256)
			SELECT 'msg_o' || id, 'approval', (SELECT id FROM organizations WHERE num = organization_num), (SELECT id FROM workers WHERE num = worker_num), num, 1000 + num, 1000 + num, (SELECT id FROM users WHERE num = created_by_user_num), '', '', 'sent', 1, '', 1, 1, ?2
			FROM turns WHERE num = ?1`,
	} {
		args := []any{t.Num}
		if strings.Contains(query, "?2") {
			args = append(args, sha)
		}
		if !strings.Contains(query, "?1") {
			args = nil
		}
		f.exec(query, args...)
	}
}

// referring returns the tables that refer to a task, directly or through others.
func (f *fixture) referring() []string {
	f.t.Helper()
	query := `WITH RECURSIVE refs(name) AS (VALUES ('tasks') UNION
			SELECT s.name FROM refs CROSS JOIN sqlite_schema s CROSS JOIN pragma_foreign_key_list(s.name) k
			WHERE s.type = 'table' AND k."table" = refs.name)
		SELECT name FROM refs ORDER BY name`
	if storetest.OnServer() {
		query = `WITH RECURSIVE refs(name) AS (SELECT CAST('tasks' AS TEXT) COLLATE "C" UNION
				SELECT CAST(c.relname AS TEXT) COLLATE "C" FROM refs JOIN pg_constraint k ON k.contype = 'f'
					AND k.confrelid = to_regclass(refs.name) JOIN pg_class c ON c.oid = k.conrelid)
			SELECT name FROM refs ORDER BY name`
	}
	list, err := f.Strings(f.ctx(), query)
	is.New(f.t).NoErr(err)
	return list
}

// TestPruneTasks prunes a task with a row in every referring table. All of these rows are deleted,
// and no others.
func TestPruneTasks(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.webhook("https://a.example/")
	kept := f.finish(running(f))
	f.record(f.due()[0], store.Attempt{Success: true})
	f.exec(`INSERT INTO toolsets (hash, toolset) VALUES ('h', '{}')`)
	f.exec(`UPDATE tasks SET completed_at = completed_at + 2592000000 WHERE num = 1`) // it ended later
	before := f.rowCounts()
	usage := f.count(`SELECT coalesce(sum(turns), 0) FROM usage`)

	n := f.turn()
	n.TaskID = "old"
	old := f.accept(n)
	f.finish(f.claimOne("r"))
	f.record(f.due()[0], store.Attempt{Success: true, Request: "POST /"})
	image := f.put("image", 30*time.Hour)
	f.hangEverything(old, image)
	f.exec(`UPDATE tasks SET own_folder = 1 WHERE id = 'old'`)
	a := f.hook(store.AlertNow)
	f.exec(`INSERT INTO alerts (channel_id, event, worker_id, count, task_num, first_at, last_at, sent_at) VALUES (?, 'e', 'w', 0, ?, 1, 1, 1)`,
		a.ID, f.count(`SELECT num FROM tasks WHERE id = 'old'`))
	folder := f.ownFolder(store.Folder{WorkerID: f.worker.ID, TaskID: "old"}, 30*time.Hour)
	after := f.rowCounts()
	for _, table := range f.referring() {
		if table != "schedules" && table != "alert_messages" && after[table] == before[table] && table != "alerts" {
			t.Errorf("no row of %s hangs on the task: the test has to add one", table)
		}
	}
	newest := f.accept(f.turn()) // numbers must not be reused
	f.finish(f.claimOne("r"))
	f.record(f.due()[0], store.Attempt{Success: true})

	pruned, err := f.PruneTasks(t.Context(), 48*time.Hour)
	is.NoErr(err)
	is.Equal(pruned, int64(0)) // no task is old enough
	f.clock.advance(72 * time.Hour)
	pruned, err = f.PruneTasks(t.Context(), 48*time.Hour)
	is.NoErr(err)
	is.Equal(pruned, int64(1))
	is.Equal(f.Counters().TasksPruned.Load(), int64(1))
	is.True(db.IsNotFound(errOf(f.Task(t.Context(), f.owner.Caller, "old"))))
	f.task(kept.TaskID)
	f.task(newest.TaskID)
	got := f.rowCounts()
	got["tasks"], got["turns"] = got["tasks"]-1, got["turns"]-1 // without the newest
	got["deliveries"], got["webhook_executions"], got["webhook_exchanges"] = got["deliveries"]-1,
		got["webhook_executions"]-1, got["webhook_exchanges"]-1
	for table, n := range got {
		if slices.Contains([]string{"alert_channels", "alerts", "audit_log", "usage"}, table) {
			continue
		}
		if n != before[table] {
			t.Errorf("%s: %d rows, want %d", table, n, before[table])
		}
	}
	is.Equal(f.count(`SELECT count(*) FROM alerts WHERE task_num IS NOT NULL`), int64(0))
	is.Equal(f.count(`SELECT sum(turns) FROM usage`), usage+2) // reports keep their sums
	// The file is deleted with the last row that refers to it.
	is.True(!f.kept(image))
	is.True(errors.Is(errOf(os.Stat(folder)), os.ErrNotExist))
	list, _, err := f.Effects.Executions(t.Context(), f.owner.Caller, f.worker.ID, 1)
	is.NoErr(err)
	is.Equal(len(list), 2)
}

// TestTasksThatAreNotPruned checks that tasks are kept while they have pending work, or while the
// worker's settings require it.
func TestTasksThatAreNotPruned(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		keep  time.Duration
		hold  func(f *fixture, c store.Claim) // changes the claimed turn
		after string                          // SQL, after which the task is pruned
	}{
		"running":     {24 * time.Hour, func(*fixture, store.Claim) {}, ""},
		"a follow-up": {24 * time.Hour, func(f *fixture, c store.Claim) { f.finish(c); f.follow(c.Turn) }, ""},
		"a delivery that is due": {24 * time.Hour, func(f *fixture, c store.Claim) { f.webhook("https://a.example/"); f.finish(c) },
			`UPDATE deliveries SET next_attempt_at = NULL`},
		"a mail in the queue": {24 * time.Hour, func(f *fixture, c store.Claim) {
			f.finish(c)
			f.hangEverything(c.Turn, sha("x"))
			f.exec(`UPDATE outbound_emails SET status = 'queued', next_attempt_at = 1`)
		}, `UPDATE outbound_emails SET status = 'sent', next_attempt_at = NULL`},
		"the server keeps": {0, func(f *fixture, c store.Claim) { f.finish(c) }, `UPDATE workers SET keep_task_days = 1`},
		"the worker keeps": {24 * time.Hour, func(f *fixture, c store.Claim) {
			f.finish(c)
			f.exec(`UPDATE workers SET keep_task_days = 0`)
		}, `UPDATE workers SET keep_task_days = NULL`},
		"the worker keeps longer": {24 * time.Hour, func(f *fixture, c store.Claim) {
			f.finish(c)
			f.exec(`UPDATE workers SET keep_task_days = 100`)
		}, `UPDATE workers SET keep_task_days = 3`},
		"its parent runs": {24 * time.Hour, func(f *fixture, c store.Claim) {
			f.finish(c)
			f.accept(f.turn())
			f.exec(`UPDATE turns SET parent_turn_num = (SELECT max(num) FROM turns), root_turn_num = (SELECT max(num) FROM turns),
				parent_step_seq = 0, parent_call_seq = 0, depth = 1 WHERE num = ?`, c.Num)
		}, `UPDATE turns SET parent_turn_num = NULL, root_turn_num = NULL, parent_step_seq = NULL, parent_call_seq = NULL, depth = 0`},
		"its child is kept": {24 * time.Hour, func(f *fixture, c store.Claim) {
			f.finish(c)
			f.accept(f.turn())
			f.exec(`UPDATE turns SET parent_turn_num = ?, root_turn_num = ?, parent_step_seq = 0, parent_call_seq = 0, depth = 1
				WHERE num = (SELECT max(num) FROM turns)`, c.Num, c.Num)
		}, `UPDATE turns SET parent_turn_num = NULL, root_turn_num = NULL, parent_step_seq = NULL, parent_call_seq = NULL, depth = 0`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t)
			f.startRunner("r")
			turn := f.accept(f.turn())
			tt.hold(f, f.claimOne("r"))
			f.accept(f.turn()) // a newer task
			f.clock.advance(96 * time.Hour)
			n, err := f.PruneTasks(t.Context(), tt.keep)
			is.NoErr(err)
			is.Equal(n, int64(0))
			f.task(turn.TaskID)
			if tt.after == "" {
				return
			}
			f.exec(tt.after)
			n, err = f.PruneTasks(t.Context(), tt.keep)
			is.NoErr(err)
			is.Equal(n, int64(1)) // the reason to keep the task is gone
		})
	}
}

// TestPruningContinues interrupts a pruning of many tasks. The next pruning continues, and meanwhile
// the list of tasks can be read in pages.
func TestPruningContinues(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	first := f.finish(running(f))
	f.copyTask(f.reread(first), 1500)
	page, cursor, err := f.Tasks(t.Context(), f.owner.Caller, store.TaskQuery{Limit: 10})
	is.NoErr(err)
	is.Equal(len(page), 10)
	f.clock.advance(48 * time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	f.OnChange(func(string, db.Change) { cancel() }) // after the first transaction
	some, err := f.PruneTasks(ctx, 24*time.Hour)
	is.True(errors.Is(err, context.Canceled))
	ordertest.Above(is, some, 0)    // it stopped in between
	ordertest.Below(is, some, 1500) // it stopped in between
	is.Equal(f.count(`SELECT count(*) FROM tasks`), 1501-some)
	rest, err := f.PruneTasks(t.Context(), 24*time.Hour)
	is.NoErr(err)
	is.Equal(some+rest, int64(1500)) // all except the newest
	is.Equal(f.count(`SELECT count(*) FROM turns`), int64(1))
	page, _, err = f.Tasks(t.Context(), f.owner.Caller, store.TaskQuery{Limit: 10, Cursor: cursor})
	is.NoErr(err) // the cursor is still valid
	is.Equal(len(page), 0)
}

// TestSpaceIsReturned prunes most of a database. Its file shrinks while the store is open, and
// Vacuum reduces it to the minimum.
func TestSpaceIsReturned(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	f := newFixture(t)
	f.startRunner("r")
	n := f.turn()
	n.Input = strings.Repeat("long ", 2000)
	first := f.accept(n)
	f.finish(f.claimOne("r"))
	f.copyTask(f.reread(first), 1500)
	is.NoErr(f.MeasureStorage(t.Context()))
	ordertest.Above(is, f.Storage().Of(store.StorageTasks), 15e6) // most of the database
	full, err := f.Space(t.Context())
	is.NoErr(err)
	f.clock.advance(48 * time.Hour)
	pruned, err := f.PruneTasks(t.Context(), 24*time.Hour)
	is.NoErr(err)
	is.Equal(pruned, int64(1500))
	p, err := f.EndPruning(t.Context(), 0, 0)
	is.NoErr(err)
	is.Equal(p.Tasks, int64(1500))
	is.Equal(f.LastPruning(), p)
	sp, err := f.Space(t.Context())
	is.NoErr(err)
	ordertest.Below(is, sp.File, full.File/2)
	ordertest.Above(is, p.Returned, full.File/2)
	info, err := os.Stat(store.DatabasePath(f.Dir()))
	is.NoErr(err)
	is.Equal(info.Size(), sp.File) // also on the disk
	is.NoErr(errOf(f.ReturnSpace(t.Context(), 0)))
	least, err := f.Space(t.Context())
	is.NoErr(err)
	is.Equal(least.Free, int64(0))
	is.NoErr(f.CheckDatabase(t.Context()))
}

// TestVacuum rewrites a database with free pages.
func TestVacuum(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	f := newFixture(t)
	turn := f.accept(f.turn())
	is.True(errors.Is(errOf(store.Vacuum(t.Context(), f.Dir())), store.ErrLocked))
	is.NoErr(f.Close())
	path := store.DatabasePath(f.Dir())
	storetest.Script(t, f.Dir(), `CREATE TABLE x (b BLOB); INSERT INTO x VALUES (zeroblob(1000000)); DROP TABLE x`)
	plan, err := store.PlanVacuum(t.Context(), f.Dir())
	is.NoErr(err)
	ordertest.Above(is, plan.Free, 900_000)
	size, err := store.Vacuum(t.Context(), f.Dir())
	is.NoErr(err)
	ordertest.AtMost(is, size, plan.File-plan.Free+8192) // plus one pointer map page
	info, err := os.Stat(path)
	is.NoErr(err)
	is.Equal(info.Mode().Perm(), os.FileMode(0o600))
	entries, err := os.ReadDir(f.Dir())
	is.NoErr(err)
	for _, e := range entries {
		is.True(!strings.Contains(e.Name(), "vacuum")) // no temporary file remains
	}
	f.Store = storetest.Reopen(t, f.Dir(), store.Options{Now: f.clock.now})
	f.task(turn.TaskID)
	is.True(errors.Is(errOf(store.PlanVacuum(t.Context(), t.TempDir())), os.ErrNotExist)) // no database is created
}

// TestPruneAudit deletes old entries of the audit log.
func TestPruneAudit(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.webhook("https://a.example/")
	f.clock.advance(48 * time.Hour)
	f.webhook("https://b.example/")
	n, err := f.PruneAudit(t.Context(), 24*time.Hour, 100)
	is.NoErr(err)
	ordertest.Above(is, n, 0)
	is.Equal(len(f.auditLog(people.AuditQuery{Action: "webhook.set"}, 9)), 1)
}
