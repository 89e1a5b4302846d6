package store_test

import (
	"database/sql"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/storetest"
)

// filledVersions are the versions for which testdata contains the rows of a real data folder. The
// last release with that version created them, and was killed during its work.
var filledVersions = []int{1, 2, 3, 4}

// computed lists columns whose values a migration recomputes. Separate tests check them:
// TestUpgradeOfTasks and TestUpgradeOfReplyTo.
var computed = []string{"tasks.status", "tasks.completed_at", "turns.task_status", "inbound_emails.reply_to"}

// A row contains the values of a row by column.
type row map[string]string

// tablesOf returns the rows of each table of a database file.
func tablesOf(t *testing.T, path string) map[string][]row {
	t.Helper()
	db := rawDatabase(t, path)
	defer db.Close()
	tables := map[string][]row{}
	for _, name := range texts(t, db, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'sqlite_*'`) {
		rows, err := db.QueryContext(t.Context(), selectRows(t, db, name))
		if err != nil {
			t.Fatal(err)
		}
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		tables[name] = []row{}
		for rows.Next() {
			values, into := make([]any, len(columns)), make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			r := row{}
			for i, c := range columns {
				r[c] = fmt.Sprintf("%T %v", values[i], values[i])
			}
			tables[name] = append(tables[name], r)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		_ = rows.Close()
	}
	return tables
}

// selectRows returns the query for the rows of a table. Since version 3, some tables refer to
// others by num. For them the query returns the ids, as in older versions.
func selectRows(t *testing.T, db *sql.DB, table string) string {
	t.Helper()
	columns := texts(t, db, `SELECT name FROM pragma_table_info('`+table+`')`)
	switch {
	case table == "idempotency" && !slices.Contains(columns, "user_num"): // of a hash, only 16 bytes
		return `SELECT api_key_id, iif(key GLOB '#*', substr(key, 1, 33), key) AS key, iif(key GLOB '#*', NULL, request_hash) AS request_hash,
			result_id, expires_at FROM idempotency`
	case table == "idempotency":
		return `SELECT coalesce((SELECT id FROM api_keys WHERE num = api_key_num), (SELECT id FROM users WHERE num = user_num)) AS api_key_id,
			iif(typeof(key) = 'blob', '#' || lower(hex(key)), '=' || key) AS key, request_hash,
			result_id, expires_at FROM idempotency`
	}
	query := `SELECT *`
	for _, r := range [][3]string{{"organization_num", "organizations", "organization_id"}, {"worker_num", "workers", "worker_id"},
		{"created_by_num", "users", "created_by_user_id"}, {"api_key_num", "api_keys", "api_key_id"}} {
		if slices.Contains(columns, r[0]) {
			query += fmt.Sprintf(`, (SELECT id FROM %s WHERE num = %s) AS %s`, r[1], r[0], r[2])
		}
	}
	return query + ` FROM "` + table + `"`
}

func texts(t *testing.T, db *sql.DB, query string) (list []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	return list
}

// sameRows fails the test unless after contains every row of before with the same values in their
// common columns. All these columns together identify a row.
func sameRows(t *testing.T, before, after map[string][]row) {
	t.Helper()
	for _, table := range slices.Sorted(maps.Keys(before)) {
		if len(before[table]) == 0 {
			continue
		}
		if len(after[table]) != len(before[table]) {
			t.Errorf("%s: %d rows became %d", table, len(before[table]), len(after[table]))
			continue
		}
		var common []string
		for _, c := range slices.Sorted(maps.Keys(before[table][0])) {
			if _, kept := after[table][0][c]; !kept {
				t.Logf("%s.%s is gone", table, c)
				continue
			}
			if !slices.Contains(computed, table+"."+c) {
				common = append(common, c)
			}
		}
		text := func(rows []row) (list []string) {
			for _, r := range rows {
				var b strings.Builder
				for _, c := range common {
					fmt.Fprintf(&b, "%s=%s ", c, r[c])
				}
				list = append(list, b.String())
			}
			slices.Sort(list)
			return list
		}
		was, is := text(before[table]), text(after[table])
		for i := range was {
			if was[i] != is[i] {
				t.Errorf("%s: a row has changed\nwas %s\nis  %s", table, was[i], is[i])
				break
			}
		}
	}
}

// TestUpgradeOfAFilledDatabase upgrades the data of real releases. All rows and values remain, the
// database is consistent, and interrupted work continues. Without SLOW, it upgrades the oldest and the
// newest of these versions.
func TestUpgradeOfAFilledDatabase(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	for i, version := range filledVersions {
		if i > 0 && i < len(filledVersions)-1 && !storetest.Slowly() {
			continue
		}
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			dir := t.TempDir()
			storetest.Filled(t, store.DatabasePath(dir), version)
			before := tablesOf(t, store.DatabasePath(dir))
			s, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})
			is.NoErr(err)
			is.NoErr(s.CheckDatabase(t.Context()))
			is.NoErr(s.Close())
			sameRows(t, before, tablesOf(t, store.DatabasePath(dir)))
			sameRows(t, before, tablesOf(t, fmt.Sprintf("%s.v%d", store.DatabasePath(dir), version))) // the copy
			storetest.Sound(t, dir)

			s, err = store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})
			is.NoErr(err)
			defer s.Close()
			is.NoErr(s.StartRunner(t.Context(), "run", time.Minute))
			claims, err := s.ClaimTurns(t.Context(), "run", 100)
			is.NoErr(err)
			is.Equal(len(claims), 6) // the turns that were running or queued at the kill
			for _, c := range claims {
				_, err := s.FinishTurn(t.Context(), c, nil, store.Outcome{Status: store.Completed, OutputText: "late"})
				is.NoErr(err)
			}
		})
	}
}

// statementsOf returns the statements of the migrations from a version on.
func statementsOf(t *testing.T, version int) (list []string) {
	t.Helper()
	for next := version + 1; next <= store.NewestVersion(); next++ {
		script, err := os.ReadFile(fmt.Sprintf("migrations/%d.sql", next))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range strings.Split(sqlComment.ReplaceAllString(string(script), ""), ";") {
			if strings.TrimSpace(s) != "" {
				list = append(list, s)
			}
		}
	}
	return list
}

// upgradeKilledAfter returns a data folder in the state after a kill: the process has run n
// statements of the upgrade. Their changes are in the log.
func upgradeKilledAfter(t *testing.T, version, n int) string {
	t.Helper()
	is := is.New(t)
	path, dir := filepath.Join(t.TempDir(), "a.db"), t.TempDir()
	storetest.Filled(t, path, version)
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=cache_size(2)&_pragma=foreign_keys(0)")
	is.NoErr(err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	tx, err := db.BeginTx(t.Context(), nil)
	is.NoErr(err)
	for _, s := range statementsOf(t, version)[:n] {
		_, err := tx.ExecContext(t.Context(), s)
		is.NoErr(err)
	}
	for _, end := range []string{"", "-wal"} { // -shm belongs to running processes
		b, err := os.ReadFile(path + end)
		is.NoErr(err)
		is.NoErr(os.WriteFile(store.DatabasePath(dir)+end, b, 0o600))
	}
	is.NoErr(tx.Rollback())
	return dir
}

// upgradeKilled kills an upgrade after every step-th statement, and upgrades again.
func upgradeKilled(t *testing.T, version, step int) {
	want := filepath.Join(t.TempDir(), "a.db")
	storetest.Filled(t, want, version)
	before := tablesOf(t, want)
	for n := 1; n <= len(statementsOf(t, version)); n += step {
		dir := upgradeKilledAfter(t, version, n)
		// The copy was interrupted, too.
		half := fmt.Sprintf("%s.v%d.tmp", store.DatabasePath(dir), version)
		if err := os.WriteFile(half, []byte("half of a copy"), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})
		if err != nil {
			t.Fatalf("after %d statements: %v", n, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		sameRows(t, before, tablesOf(t, store.DatabasePath(dir)))
		storetest.Sound(t, dir)
		if _, err := os.Stat(half); err == nil {
			t.Errorf("after %d statements: the half copy is left", n)
		}
		if t.Failed() {
			t.Fatalf("killed after %d statements of the upgrade from version %d", n, version)
		}
	}
}

// TestUpgradeKilled kills upgrades after some of their statements.
func TestUpgradeKilled(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	storetest.Embedded(t)
	upgradeKilled(t, 1, 60)
}

// TestUpgradeKilledAnywhere kills upgrades after each of their statements.
func TestUpgradeKilledAnywhere(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	storetest.Long(t)
	for _, version := range filledVersions {
		upgradeKilled(t, version, 1)
	}
}
