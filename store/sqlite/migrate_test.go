package sqlite_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/sqlite"
	"journeyman/store/storetest"
)

func scanOne[T any](t *testing.T, db *sql.DB, query string) (v T) {
	t.Helper()
	is.New(t).NoErr(db.QueryRowContext(t.Context(), query).Scan(&v))
	return v
}

// shape returns the declarations of a database.
func shape(t *testing.T, db *sql.DB) [][]string {
	t.Helper()
	return storetest.Query(t, db, `SELECT sql FROM sqlite_schema ORDER BY type, name`)
}

const (
	pets1 = `CREATE TABLE owners (id INTEGER PRIMARY KEY); CREATE TABLE pets (id INTEGER PRIMARY KEY, owner INTEGER REFERENCES owners (id))`
	step1 = `ALTER TABLE pets ADD COLUMN name TEXT NOT NULL DEFAULT 'Rex'; -- a comment may end a step`
	// A table that others refer to, made anew: what needs foreign keys off.
	step2 = `CREATE TABLE owners2 (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO owners2 SELECT id, 'Ann' FROM owners;
		DROP TABLE owners; ALTER TABLE owners2 RENAME TO owners`
)

func TestMigrateFresh(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	path := filepath.Join(t.TempDir(), "a.db")
	is.NoErr(sqlite.Migrate(t.Context(), path, pets1, nil))
	db := storetest.OpenFile(t, path)
	is.Equal(scanOne[int](t, db, `PRAGMA user_version`), 1)
	storetest.Run(t, db, `INSERT INTO owners (id) VALUES (7); INSERT INTO pets (id, owner) VALUES (1, 7)`)
	is.NoErr(db.Close())
	is.NoErr(sqlite.Migrate(t.Context(), path, "nonsense", nil)) // it is there: nothing is run
	left, err := filepath.Glob(path + ".v*")
	is.NoErr(err)
	is.Equal(len(left), 0) // nothing to set aside
}

func TestMigrateUpgradesAndSetsACopyAside(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	path := filepath.Join(t.TempDir(), "a b%3f.db")
	is.NoErr(sqlite.Migrate(t.Context(), path, pets1, nil))
	db := storetest.OpenFile(t, strings.ReplaceAll(path, "%", "%25"))
	storetest.Run(t, db, `INSERT INTO owners (id) VALUES (7); INSERT INTO pets (id, owner) VALUES (1, 7)`)
	is.NoErr(db.Close())

	is.NoErr(sqlite.Migrate(t.Context(), path, "nonsense", []string{step1, step2})) // two versions at once
	db = storetest.OpenFile(t, strings.ReplaceAll(path, "%", "%25"))
	is.Equal(scanOne[int](t, db, `PRAGMA user_version`), 3)
	is.Equal(scanOne[string](t, db, `SELECT p.name || o.name FROM pets p JOIN owners o ON o.id = p.owner`), "RexAnn")

	old := storetest.OpenFile(t, strings.ReplaceAll(path, "%", "%25")+".v1")
	is.Equal(scanOne[int](t, old, `PRAGMA user_version`), 1)
	is.Equal(scanOne[int](t, old, `SELECT owner FROM pets`), 7)
	is.Equal(scanOne[string](t, old, `PRAGMA integrity_check`), "ok")
}

func TestMigrateRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		version int
		steps   []string
		says    string
	}{
		"a newer database":      {9, []string{step1}, "use a newer program"},
		"an impossible version": {-1, []string{step1}, "impossible"},
		"a failing last step":   {1, []string{step1, `CREATE TABLE more (x); INSERT INTO nowhere VALUES (1)`}, "nowhere"},
		"a broken reference":    {1, []string{step1, `DELETE FROM owners`}, "pets"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			path := filepath.Join(t.TempDir(), "a.db")
			is.NoErr(sqlite.Migrate(t.Context(), path, pets1, nil))
			db := storetest.OpenFile(t, path)
			storetest.Run(t, db, `INSERT INTO owners (id) VALUES (7); INSERT INTO pets (id, owner) VALUES (1, 7)`)
			storetest.Run(t, db, fmt.Sprintf(`PRAGMA user_version = %d`, tt.version))
			before := shape(t, db)
			is.NoErr(db.Close())

			err := sqlite.Migrate(t.Context(), path, "nonsense", tt.steps)
			is.True(err != nil)
			is.True(strings.Contains(err.Error(), tt.says)) // the message says what is wrong
			db = storetest.OpenFile(t, path)
			is.Equal(scanOne[int](t, db, `PRAGMA user_version`), tt.version)
			is.Equal(shape(t, db), before) // not even the first step is left
			is.Equal(scanOne[int](t, db, `SELECT owner FROM pets`), 7)
		})
	}
}
