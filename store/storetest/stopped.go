package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // as the store has it
)

// open opens the database of a data folder that no process has open.
func open(t testing.TB, dir, options string) *sql.DB {
	t.Helper()
	path := (&url.URL{Path: filepath.Join(dir, "journeyman.db")}).EscapedPath()
	db, err := sql.Open("sqlite", "file:"+path+"?"+options)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	return db
}

// A querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// column reads a query's rows of one column.
func column(t testing.TB, q querier, query string) []string {
	t.Helper()
	rows, err := q.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var list []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// faults are queries that find nothing in a sound database, and what it is that
// they would find. They hold whatever was killed or cancelled meanwhile.
var faults = map[string]string{
	"is damaged":                      `SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'`,
	"has a row that refers nowhere":   `SELECT "table" FROM pragma_foreign_key_check`,
	"has a turn with other steps":     `SELECT id FROM turns u WHERE steps <> (SELECT count(*) FROM steps WHERE turn_num = u.num)`,
	"has a turn with other costs":     `SELECT id FROM turns u WHERE model_cost <> (SELECT coalesce(sum(cost), 0) FROM steps WHERE turn_num = u.num)`,
	"has a task with other costs":     `SELECT id FROM tasks k WHERE cost <> (SELECT sum(model_cost + tool_cost) FROM turns WHERE task_num = k.num)`,
	"has a task with other turns":     `SELECT id FROM tasks k WHERE turn_count <> (SELECT count(*) FROM turns WHERE task_num = k.num)`,
	"has a task in another state":     `SELECT id FROM tasks k WHERE status <> (SELECT status FROM turns WHERE task_num = k.num ORDER BY seq DESC LIMIT 1)`,
	"has a task that counts too much": `SELECT id FROM tasks k WHERE unfinished <> (SELECT count(*) FROM turns WHERE task_num = k.num AND completed_at IS NULL)`,
	"has a turn that never gets ready": `SELECT id FROM turns u WHERE status = 'pending' AND ready = 0 AND NOT EXISTS
		(SELECT 1 FROM turns e WHERE e.task_num = u.task_num AND e.seq < u.seq AND e.completed_at IS NULL)`,
	"has metered steps that are not there": `SELECT 'usage' WHERE (SELECT coalesce(sum(steps), 0) FROM usage) <> (SELECT coalesce(sum(steps), 0) FROM turns)`,
	"has metered costs that are not there": `SELECT 'usage' WHERE (SELECT coalesce(sum(cost), 0) FROM usage) <>
		(SELECT coalesce(sum(model_cost + tool_cost), 0) FROM turns)`,
}

// Sound fails the test unless the database of a data folder, which no process may
// have open, is whole and agrees with itself.
func Sound(t testing.TB, dir string) {
	t.Helper()
	db := open(t, dir, "mode=ro")
	defer db.Close()
	for _, what := range slices.Sorted(maps.Keys(faults)) {
		if found := column(t, db, faults[what]); len(found) > 0 {
			t.Errorf("the database %s: %s", what, strings.Join(found[:min(len(found), 5)], ", "))
		}
	}
}

// Multiply makes n more tasks like the newest one, with turns and steps like its
// own, in a data folder that no process may have open. It is quick: what a test
// needs thousands of. They are not metered, so the folder is not Sound any more.
func Multiply(t testing.TB, dir string, n int) {
	t.Helper()
	db := open(t, dir, "_txlock=immediate&_pragma=synchronous(OFF)")
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	const task, turns = `(SELECT max(num) FROM tasks)`, `(SELECT count(*) FROM turns WHERE task_num = (SELECT max(num) FROM tasks))`
	const turn = `(SELECT max(num) FROM turns) + (i - 1) * ` + turns + ` + (SELECT count(*) FROM turns e WHERE e.task_num = u.task_num AND e.seq <= u.seq)`
	// The deeper tables first: they are found by what is the newest task before.
	for _, c := range []struct {
		table, from string
		set         map[string]string
	}{
		{"steps", `FROM turns u JOIN steps r ON r.turn_num = u.num WHERE u.task_num = ` + task, map[string]string{"turn_num": turn}},
		{"turns", `FROM turns u JOIN turns r ON r.num = u.num WHERE u.task_num = ` + task,
			map[string]string{"num": turn, "id": `r.id || '-' || i`, "task_num": `r.task_num + i`, "created_at": `r.created_at + i`}},
		{"tasks", `FROM tasks r WHERE r.num = ` + task,
			map[string]string{"num": `r.num + i`, "id": `r.id || '-' || i`, "created_at": `r.created_at + i`, "title": `r.title || ' ' || i`}},
	} {
		names := column(t, tx, `SELECT name FROM pragma_table_info('`+c.table+`')`)
		values := make([]string, len(names))
		for i, name := range names {
			if values[i] = c.set[name]; values[i] == "" {
				values[i] = "r." + name
			}
		}
		from := strings.Replace(c.from, "FROM ", "FROM n CROSS JOIN ", 1)
		_, err := tx.ExecContext(t.Context(), fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			INSERT INTO %s (%s) SELECT %s %s`, n, c.table, strings.Join(names, ", "), strings.Join(values, ", "), from))
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}
