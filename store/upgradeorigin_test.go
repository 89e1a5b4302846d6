package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/postgres"
	"journeyman/store/postgres/pgtest"
	"journeyman/store/storetest"
)

// selectOrigins returns the title and the origin of every worker.
const selectOrigins = `SELECT title || ': ' || origin FROM workers ORDER BY num`

// checkOrigins checks the origins after the upgrade of filled-v3.sql. The titles of its workers tell
// which of them a task made and nobody has changed since.
func checkOrigins(t *testing.T, s *store.Store) {
	t.Helper()
	is := is.New(t)
	list, err := s.Strings(t.Context(), selectOrigins)
	is.NoErr(err)
	marked := 0
	for _, line := range list {
		made := strings.Contains(line, "made by a task")
		is.Equal(strings.HasSuffix(line, ": task"), made)
		if made {
			marked++
		}
	}
	is.Equal(marked, 7)
	is.Equal(len(list), 22)
}

// TestUpgradeOfOrigins upgrades databases with workers that tasks made. A worker that somebody has
// changed, set up or used again stays in the lists. Without SLOW, only versions that have such workers are
// upgraded.
func TestUpgradeOfOrigins(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	for _, version := range filledVersions {
		if version < 3 && !storetest.Slowly() {
			continue
		}
		is := is.New(t)
		dir := t.TempDir()
		storetest.Filled(t, store.DatabasePath(dir), version)
		s, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})
		is.NoErr(err)
		defer s.Close()
		if version == 3 {
			checkOrigins(t, s)
			continue
		}
		made, err := s.Ints(t.Context(), `SELECT count(*) FROM workers WHERE origin = 'task'`)
		is.NoErr(err)
		want := int64(0) // these folders have no such worker
		if version == 4 {
			want = 1
		}
		is.Equal(made, []int64{want})
	}
}

// blobLiteral matches the bytes in a dump of SQLite.
var blobLiteral = regexp.MustCompile(`([(,])X'([0-9A-F]*)'`)

// filledServer creates a database of an older version on a server, with the rows of filled-vN.sql, and
// returns its URL and its data folder.
func filledServer(t *testing.T, version int) (url, dir string) {
	t.Helper()
	is := is.New(t)
	url, dir = pgtest.URL(t), t.TempDir()
	schema, err := os.ReadFile(fmt.Sprintf("testdata/schema-v%d.sql", version))
	is.NoErr(err)
	rows, err := os.ReadFile(fmt.Sprintf("testdata/filled-v%d.sql", version))
	is.NoErr(err)
	db, err := postgres.Open(t.Context(), url, string(schema), make([]string, version-1))
	is.NoErr(err)
	instance, err := db.Instance(t.Context())
	is.NoErr(err)
	is.NoErr(db.Close())
	is.NoErr(os.WriteFile(filepath.Join(dir, "database-server"), []byte(instance+"\n"), 0o600))
	var script []string
	for _, line := range strings.SplitAfter(string(rows), "\n") {
		// Keys of requests are stored in another form, and the upgrade does not read them.
		if !strings.HasPrefix(line, `INSERT INTO "idempotency"`) {
			script = append(script, blobLiteral.ReplaceAllString(line, `$1'\x$2'`))
		}
	}
	c := connectTo(t, url)
	// The rows are sorted by table, so some refer to later ones.
	_, err = c.Exec(t.Context(), "SET session_replication_role = replica; "+strings.Join(script, ""))
	is.NoErr(err)
	return url, dir
}

func connectTo(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// declarations returns the columns, indexes and constraints of a database on a server.
func declarations(t *testing.T, url string) []string {
	t.Helper()
	rows, err := connectTo(t, url).Query(t.Context(), `
		SELECT concat_ws(' ', table_name, ordinal_position, column_name, data_type, collation_name, is_nullable, column_default,
			is_generated, is_identity) FROM information_schema.columns WHERE table_schema = current_schema()
		UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema()
		UNION ALL SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint
			WHERE connamespace = current_schema()::regnamespace`)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

// TestPostgresUpgrade upgrades filled databases of older versions on a server. Their declarations are then
// those of a new database.
func TestPostgresUpgrade(t *testing.T) {
	t.Parallel()
	for _, version := range []int{3, 4} {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			url, dir := filledServer(t, version)
			is.Equal(store.ExamineServer(t.Context(), url)[1].Detail, fmt.Sprint("version ", version))
			s, err := openOn(t, dir, url)
			is.NoErr(err)
			if version == 3 {
				checkOrigins(t, s)
			}
			is.NoErr(s.StartRunner(t.Context(), "run", time.Minute))
			claims, err := s.ClaimTurns(t.Context(), "run", 100)
			is.NoErr(err)
			is.Equal(len(claims), 6) // the turns that were running or queued at the kill
			is.NoErr(s.Close())
			is.Equal(store.ExamineServer(t.Context(), url)[1].Detail, fmt.Sprint("version ", store.NewestVersion()))

			fresh := pgtest.URL(t)
			s, err = openOn(t, t.TempDir(), fresh)
			is.NoErr(err)
			is.NoErr(s.Close())
			want, got := declarations(t, fresh), declarations(t, url)
			is.True(len(want) > 300)
			is.Equal(got, want)

			old, err := os.ReadFile(fmt.Sprintf("testdata/schema-v%d.sql", version))
			is.NoErr(err)
			_, err = postgres.Open(t.Context(), url, string(old), make([]string, version-1))
			is.True(err != nil && strings.Contains(err.Error(), "use a newer program")) // an older program
		})
	}
}
