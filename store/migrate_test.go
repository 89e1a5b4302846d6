package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/storetest"
)

func TestFolderAllowsOneProcess(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	dir := t.TempDir()
	first, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})
	is.NoErr(err)
	_, err = store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})
	is.True(errors.Is(err, store.ErrLocked))
	is.NoErr(first.Ping(t.Context())) // the failed attempt has no effect on the first
	is.NoErr(first.Close())
	second, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})
	is.NoErr(err)
	is.NoErr(second.Close())
}

// rawDatabase opens a database file directly.
func rawDatabase(t *testing.T, path string) *sql.DB {
	t.Helper()
	storetest.Embedded(t)
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func must(t *testing.T, db *sql.DB, script string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), script); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefusesANewerDatabase(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	dir := t.TempDir()
	s, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})
	is.NoErr(err)
	is.NoErr(s.Close())
	db := rawDatabase(t, store.DatabasePath(dir))
	must(t, db, fmt.Sprintf(`PRAGMA user_version = %d`, store.NewestVersion()+1))
	is.NoErr(db.Close())
	_, err = store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})
	is.True(err != nil)
	is.True(strings.Contains(err.Error(), "newer")) // the error does not ask for a newer program
	_, err = store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})
	is.True(!errors.Is(err, store.ErrLocked)) // a failed Open releases the folder
}

// TestUpgrade checks that a database of any version becomes equal to schema.sql. testdata contains
// the schema of every version, including the newest one. So a change of schema.sql without a new
// version fails this test. To add a version, keep the old files, add a step to migrations, and copy
// schema.sql to schema-vN.sql.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	newest := storetest.Schema(t)
	want := shapeOf(t, newest)
	for version := 1; version <= store.NewestVersion(); version++ {
		old, err := os.ReadFile(fmt.Sprintf("testdata/schema-v%d.sql", version))
		is.NoErr(err) // the schema of every version is stored
		path := filepath.Join(t.TempDir(), "a.db")
		db := rawDatabase(t, path)
		must(t, db, string(old))
		must(t, db, fmt.Sprintf(`PRAGMA user_version = %d`, version))
		is.NoErr(db.Close())

		s, err := store.Open(t.Context(), moveToFolder(t, path), newest, store.Options{})
		is.NoErr(err)
		got := shape(t, rawDatabase(t, store.DatabasePath(s.Dir())))
		is.NoErr(s.Close())
		for i := range max(len(got), len(want)) {
			is.True(i < len(got))     // the upgraded database lacks something of schema.sql
			is.True(i < len(want))    // the upgraded database has something that schema.sql lacks
			is.Equal(got[i], want[i]) // the upgraded database differs from schema.sql
		}
	}
	_, err := os.Stat(fmt.Sprintf("testdata/schema-v%d.sql", store.NewestVersion()+1))
	is.True(errors.Is(err, os.ErrNotExist)) // a schema without a migration
}

// TestUpgradeFindsTheTasksOfSchedules upgrades a database of version 1. Its schedules have tasks
// that are queued, running and ended.
func TestUpgradeFindsTheTasksOfSchedules(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	old, err := os.ReadFile("testdata/schema-v1.sql")
	is.NoErr(err)
	path := filepath.Join(t.TempDir(), "a.db")
	db := rawDatabase(t, path)
	must(t, db, string(old)+`;
		PRAGMA user_version = 1;
		INSERT INTO organizations VALUES ('o', 'Acme', NULL, 1);
		INSERT INTO users VALUES ('u', 'ann@acme.test', 'Ann', NULL, 1);
		INSERT INTO workers VALUES (1, 'w', 'o', 'u', 'W', '', 'public', 1, 1, 1, NULL);
		INSERT INTO worker_versions (worker_id, version, instructions, created_at) VALUES ('w', 1, '', 1)`)
	for i, status := range []string{"pending", "running", "completed", "pending"} { // the last two are of one schedule
		num, input := i+1, min(i, 2)
		must(t, db, fmt.Sprintf(`
			INSERT INTO tasks (num, id, organization_id, worker_id, created_by_user_id, title, status, triggered_by, turn_count, unfinished, cost, duration_ms, created_at, completed_at)
			VALUES (%[1]d, 'tsk_%[1]d', 'o', 'w', 'u', 'T', '%[2]s', 'schedule', 1, '%[2]s' <> 'completed', 0, 0, 1, iif('%[2]s' = 'completed', 1, NULL));
			INSERT INTO turns (num, id, task_num, seq, organization_id, worker_id, worker_version, created_by_user_id, triggered_by, input, budget, status,
				ready, runner_id, claims, interruptions, abort_requested, output_text, model, steps, input_tokens, output_tokens, cache_read_tokens,
				cache_write_tokens, reasoning_tokens, model_cost, tool_cost, duration_ms, created_at, completed_at)
			VALUES (%[1]d, 'trn_%[1]d', %[1]d, 0, 'o', 'w', 1, 'u', 'schedule', 'input %[3]d', 'low', '%[2]s',
				1, iif('%[2]s' = 'running', 'r', NULL), 0, 0, 0, '', '', 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, iif('%[2]s' = 'completed', 1, NULL))`, num, status, input))
	}
	for i := range 4 {
		must(t, db, fmt.Sprintf(`INSERT INTO schedules (id, organization_id, worker_id, created_by_user_id, input, budget, type, interval_seconds, anchor_at, next_run_at, paused, created_at)
			VALUES ('sch_%[1]d', 'o', 'w', 'u', 'input %[1]d', 'low', 'interval', 60, 1, 1, 0, 1)`, i))
	}
	is.NoErr(db.Close())
	s, err := store.Open(t.Context(), moveToFolder(t, path), storetest.Schema(t), store.Options{})
	is.NoErr(err)
	defer s.Close()
	running, err := s.Ints(t.Context(), `SELECT coalesce(running_task_num, 0) FROM schedules ORDER BY id`)
	is.NoErr(err)
	is.Equal(running, []int64{1, 2, 4, 0})
	due, err := s.DueSchedules(t.Context(), 10, 0)
	is.NoErr(err)
	is.Equal(len(due), 1)
	is.Equal(due[0].ID, "sch_3")
}

func moveToFolder(t *testing.T, path string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Rename(path, store.DatabasePath(dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func shapeOf(t *testing.T, schema string) []string {
	t.Helper()
	db := rawDatabase(t, filepath.Join(t.TempDir(), "shape.db"))
	must(t, db, schema)
	return shape(t, db)
}

var (
	sqlComment = regexp.MustCompile(`--[^\n]*`)
	sqlSpace   = regexp.MustCompile(`\s*([(),])\s*|\s+`)
)

// shape returns the declarations in a database, without comments and formatting.
func shape(t *testing.T, db *sql.DB) []string {
	t.Helper()
	rows, err := db.QueryContext(context.Background(), `SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var list []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		text = strings.ReplaceAll(sqlComment.ReplaceAllString(text, ""), `"`, "") // renaming a table quotes its name
		list = append(list, strings.TrimSpace(sqlSpace.ReplaceAllString(text, "$1 ")))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}
