package storetest

import (
	"context"
	"database/sql"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // as the store has it

	"journeyman/store"
	"journeyman/store/postgres"
	"journeyman/store/postgres/pgtest"
)

// open opens the database of a data folder that no process has open.
func open(t testing.TB, dir, options string) *sql.DB {
	t.Helper()
	if OnServer() {
		return pgtest.Open(t, databaseIn(dir))
	}
	path := (&url.URL{Path: filepath.Join(dir, databaseName)}).EscapedPath()
	db, err := sql.Open("sqlite", "file:"+path+"?"+options)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	return db
}

// OpenFile opens a database file directly, until the test ends.
func OpenFile(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // most tests have closed it
	return db
}

// Run runs a script in a database.
func Run(t testing.TB, db *sql.DB, script string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), script); err != nil {
		t.Fatal(err)
	}
}

// A querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// translated returns a query in the form of the engine that holds the databases.
func translated(t testing.TB, query string) string {
	t.Helper()
	if !OnServer() {
		return query
	}
	return forServer(t, query)
}

// forServer returns a query in the form of PostgreSQL.
func forServer(t testing.TB, query string) string {
	t.Helper()
	query, err := postgres.Translate(query)
	if err != nil {
		t.Fatal(err)
	}
	return query
}

// faults returns queries by the fault that they find. For a sound database they return no row, even
// after its server was killed.
func faults() map[string]string {
	return map[string]string{
		"is damaged":                    `SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'`,
		"has a row that refers nowhere": `SELECT "table" FROM pragma_foreign_key_check`,
		"has a turn with other steps": `SELECT id FROM turns u WHERE steps <> (SELECT count(*) FROM steps
			WHERE turn_num = u.num)`,
		"has a turn with lower costs": `SELECT id FROM turns u WHERE model_cost < (SELECT coalesce(sum(cost), 0)
			FROM steps WHERE turn_num = u.num)`, // what failed adds to them
		"has a task with other costs": `SELECT id FROM tasks k WHERE cost <> (SELECT sum(model_cost + tool_cost)
			FROM turns WHERE task_num = k.num)`,
		"has a task with other turns": `SELECT id FROM tasks k WHERE turn_count <> (SELECT count(*) FROM turns
			WHERE task_num = k.num)`,
		"has a task in another state": `SELECT id FROM tasks k WHERE status <> CASE WHEN (SELECT count(*) FROM turns
			WHERE task_num = k.num AND status = 'running') > 0 THEN 'running'
			WHEN (SELECT count(*) FROM turns WHERE task_num = k.num AND status = 'pending') > 0 THEN 'pending'
			ELSE (SELECT status FROM turns WHERE task_num = k.num ORDER BY seq DESC LIMIT 1) END`,
		// After a clock that was set back, the turn that ended last need not have the latest time.
		"has a task that ended at another time": `SELECT id FROM tasks k WHERE CASE WHEN unfinished > 0
			THEN completed_at IS NOT NULL
			ELSE completed_at IS DISTINCT FROM (SELECT max(completed_at) FROM turns WHERE task_num = k.num)
			AND completed_at IS DISTINCT FROM (SELECT completed_at FROM turns WHERE task_num = k.num
			ORDER BY seq DESC LIMIT 1) END`,
		"has a task that counts too much": `SELECT id FROM tasks k WHERE unfinished <> (SELECT count(*) FROM turns
			WHERE task_num = k.num AND completed_at IS NULL)`,
		"has a turn that never gets ready": `SELECT id FROM turns u WHERE status = 'pending' AND ready = 0 AND NOT EXISTS
			(SELECT 1 FROM turns e WHERE e.task_num = u.task_num AND e.seq < u.seq AND e.completed_at IS NULL)`,
		"has metered steps that are not there": `SELECT 'usage' WHERE (SELECT coalesce(sum(steps), 0)
			FROM usage) <> (SELECT coalesce(sum(steps), 0) FROM turns)`,
		"has metered tokens that are not there": `SELECT 'usage'
			WHERE (SELECT coalesce(sum(input_tokens + output_tokens), 0) FROM usage) <>
			(SELECT coalesce(sum(input_tokens + output_tokens), 0) FROM turns)`,
		"has spent what is not there": `SELECT 'spending' WHERE (SELECT coalesce(sum(cost), 0) FROM spending) <>
			(SELECT coalesce(sum(model_cost + tool_cost), 0) FROM turns)`,
		"has a call under way of a turn that does not run": `SELECT id FROM turns WHERE call_tokens IS NOT NULL
			AND runner_id IS NULL`,
		"has metered costs that are not there": `SELECT 'usage' WHERE (SELECT coalesce(sum(cost), 0) FROM usage) <>
			(SELECT coalesce(sum(model_cost + tool_cost), 0) FROM turns)`,
	}
}

// Sound fails the test unless the database of a data folder is undamaged and consistent. A process
// may have the folder open: Sound reads the database as it is at one moment.
func Sound(t testing.TB, dir string) {
	t.Helper()
	sound(t, open(t, dir, "mode=ro&_pragma=busy_timeout(10000)"), OnServer())
}

// SoundAt is Sound for a database on a server.
func SoundAt(t testing.TB, url string) {
	t.Helper()
	sound(t, openAt(t, url), true)
}

// openAt opens a database on a server.
func openAt(t testing.TB, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// sound is Sound for an open database, which it closes.
func sound(t testing.TB, db *sql.DB, server bool) {
	t.Helper()
	defer db.Close()
	opt := &sql.TxOptions{ReadOnly: true}
	if server {
		opt.Isolation = sql.LevelRepeatableRead
	}
	tx, err := db.BeginTx(context.WithoutCancel(t.Context()), opt) // a cleanup may be the caller
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // it has changed nothing
	queries := faults()
	for _, what := range slices.Sorted(maps.Keys(queries)) {
		query := queries[what]
		switch {
		case server && strings.Contains(query, "pragma_"):
			continue // the database server checks its own files
		case server:
			query = forServer(t, query)
		}
		if found := Query(t, tx, query); len(found) > 0 {
			t.Errorf("the database %s: %s", what, found[:min(len(found), 5)])
		}
	}
}

// Multiply copies the newest task n times, with its turns and steps, in a data folder that
// no process may have open. Tests that need thousands of tasks use it. The copies are not
// metered, so the folder is not Sound any more.
func Multiply(t testing.TB, dir string, n int) {
	t.Helper()
	Embedded(t)
	if err := store.CopyNewestTask(t.Context(), dir, n); err != nil {
		t.Fatal(err)
	}
}

// Script runs SQL in the database of a stopped data folder, as an older program might have
// left it. It creates the database if there is none.
func Script(t testing.TB, dir, script string) {
	t.Helper()
	Embedded(t)
	db := open(t, dir, "")
	defer db.Close()
	Run(t, db, script)
}

// Rows returns the rows of a query as text, also while a process has the data folder open. NULL is
// an empty string.
func Rows(t testing.TB, dir, query string, args ...any) [][]string {
	t.Helper()
	db := open(t, dir, "mode=ro&_pragma=busy_timeout(10000)")
	defer db.Close()
	return Query(t, db, translated(t, query), args...)
}

// RowsAt is Rows for a database on a server.
func RowsAt(t testing.TB, url, query string, args ...any) [][]string {
	t.Helper()
	db := openAt(t, url)
	defer db.Close()
	return Query(t, db, forServer(t, query), args...)
}

// FileRows is Rows for a database file that no process has open.
func FileRows(t testing.TB, path, query string, args ...any) [][]string {
	t.Helper()
	db := OpenFile(t, path)
	defer db.Close()
	return Query(t, db, query, args...)
}

// Query is Rows for a database that the test has open, or for a transaction.
func Query(t testing.TB, q querier, query string, args ...any) (list [][]string) {
	t.Helper()
	rows, err := q.QueryContext(context.WithoutCancel(t.Context()), query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values, into := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		row := make([]string, len(names))
		for i, v := range values {
			row[i] = v.String
		}
		list = append(list, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}
