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

func TestAFolderIsOneProcess(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	first, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})
	is.NoErr(err)
	_, err = store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})
	is.True(errors.Is(err, store.ErrLocked))
	is.NoErr(first.Ping(t.Context())) // the attempt has not harmed the first
	is.NoErr(first.Close())
	second, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})
	is.NoErr(err)
	is.NoErr(second.Close())
}

// rawDatabase opens a database file as nobody's program.
func rawDatabase(t *testing.T, path string) *sql.DB {
	t.Helper()
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

func scanOne[T any](t *testing.T, db *sql.DB, query string) (v T) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
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
	is.NoErr(store.Migrate(t.Context(), path, pets1, nil))
	db := rawDatabase(t, path)
	is.Equal(scanOne[int](t, db, `PRAGMA user_version`), 1)
	must(t, db, `INSERT INTO owners (id) VALUES (7); INSERT INTO pets (id, owner) VALUES (1, 7)`)
	is.NoErr(db.Close())
	is.NoErr(store.Migrate(t.Context(), path, "nonsense", nil)) // it is there: nothing is run
	left, err := filepath.Glob(path + ".v*")
	is.NoErr(err)
	is.Equal(len(left), 0) // nothing to set aside
}

func TestMigrateUpgradesAndSetsACopyAside(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	path := filepath.Join(t.TempDir(), "a b%3f.db")
	is.NoErr(store.Migrate(t.Context(), path, pets1, nil))
	db := rawDatabase(t, strings.ReplaceAll(path, "%", "%25"))
	must(t, db, `INSERT INTO owners (id) VALUES (7); INSERT INTO pets (id, owner) VALUES (1, 7)`)
	is.NoErr(db.Close())

	is.NoErr(store.Migrate(t.Context(), path, "nonsense", []string{step1, step2})) // two versions at once
	db = rawDatabase(t, strings.ReplaceAll(path, "%", "%25"))
	is.Equal(scanOne[int](t, db, `PRAGMA user_version`), 3)
	is.Equal(scanOne[string](t, db, `SELECT p.name || o.name FROM pets p JOIN owners o ON o.id = p.owner`), "RexAnn")

	old := rawDatabase(t, strings.ReplaceAll(path, "%", "%25")+".v1")
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
			is.NoErr(store.Migrate(t.Context(), path, pets1, nil))
			db := rawDatabase(t, path)
			must(t, db, `INSERT INTO owners (id) VALUES (7); INSERT INTO pets (id, owner) VALUES (1, 7)`)
			must(t, db, fmt.Sprintf(`PRAGMA user_version = %d`, tt.version))
			before := shape(t, db)
			is.NoErr(db.Close())

			err := store.Migrate(t.Context(), path, "nonsense", tt.steps)
			is.True(err != nil)
			is.True(strings.Contains(err.Error(), tt.says)) // the message says what is wrong
			db = rawDatabase(t, path)
			is.Equal(scanOne[int](t, db, `PRAGMA user_version`), tt.version)
			is.Equal(shape(t, db), before) // not even the first step is left
			is.Equal(scanOne[int](t, db, `SELECT owner FROM pets`), 7)
		})
	}
}

func TestOpenRefusesANewerDatabase(t *testing.T) {
	t.Parallel()
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
	is.True(strings.Contains(err.Error(), "newer"))
	_, err = store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})
	is.True(!errors.Is(err, store.ErrLocked)) // a failed Open gives the folder back
}

// TestUpgrade holds the promise that a database of any version becomes what
// schema.sql says. testdata keeps the schema of every version, the newest too:
// whoever changes schema.sql finds it differing from the version that databases
// out there already have, and so makes a new one. How: leave the old files alone,
// add the step to migrations, and copy schema.sql to schema-vN.sql.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	newest := storetest.Schema(t)
	want := shapeOf(t, newest)
	for version := 1; version <= store.NewestVersion(); version++ {
		old, err := os.ReadFile(fmt.Sprintf("testdata/schema-v%d.sql", version))
		is.NoErr(err) // every version's schema is kept
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
	is.True(errors.Is(err, os.ErrNotExist)) // a schema without the migration to it
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

// shape is what a database declares, without comments and the like.
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
