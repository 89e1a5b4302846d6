package store_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/postgres/pgtest"
	"journeyman/store/storetest"
)

// The tests below upgrade to a made-up version, which has a column and a table more.
const (
	badges = `CREATE TABLE badges (id TEXT PRIMARY KEY, turns INTEGER NOT NULL) STRICT;`
	motto  = `motto TEXT NOT NULL DEFAULT ''`

	toNextInFile = `ALTER TABLE organizations ADD COLUMN ` + motto + `; ` + badges + `
		INSERT INTO badges SELECT id, (SELECT count(*) FROM turns WHERE organization_num = o.num) FROM organizations o;`
	toNextOnServer = `ALTER TABLE organizations ADD COLUMN motto TEXT COLLATE "C" NOT NULL DEFAULT '';
		CREATE TABLE badges (id TEXT COLLATE "C" PRIMARY KEY, turns BIGINT NOT NULL);
		INSERT INTO badges SELECT id, (SELECT count(*) FROM turns WHERE organization_num = o.num) FROM organizations o`
)

// nextSchema returns the schema of the made-up version.
func nextSchema(schema string) string {
	organizations := regexp.MustCompile(`(?s)(CREATE TABLE organizations \(.*?)( *--[^\n]*)?\n\) STRICT;`)
	return organizations.ReplaceAllString(schema, "$1, "+motto+"\n) STRICT;") + badges
}

// openNext opens a data folder with a program of the made-up version.
func openNext(ctx context.Context, dir, schema, url string) (*store.Store, error) {
	opt := store.Options{Database: url, PasswordMemory: 64}
	return store.Open(ctx, dir, nextSchema(schema), opt.WithStep(toNextInFile, toNextOnServer, store.NewestVersion()))
}

// shape returns the declarations in a database file, without comments and formatting.
func shape(t *testing.T, path string) (list []string) {
	t.Helper()
	comment, space := regexp.MustCompile(`--[^\n]*`), regexp.MustCompile(`\s*([(),])\s*|\s+`)
	const query = `SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name`
	for _, row := range storetest.FileRows(t, path, query) {
		list = append(list, strings.TrimSpace(space.ReplaceAllString(comment.ReplaceAllString(row[0], ""), "$1 ")))
	}
	return list
}

// TestUpgrade upgrades a data folder with work in progress. Its database then has exactly the tables of
// schema.sql, and the work goes on. The copy from before the upgrade has all rows: RollBack goes back to it.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	f := newFixture(t)
	first := f.finish(running(f))
	f.accept(f.turn())
	f.claimOne("r") // it is running when the older program ends
	is.NoErr(f.Close())
	path, version := store.DatabasePath(f.Dir()), store.NewestVersion()

	s, err := openNext(t.Context(), f.Dir(), storetest.Schema(t), "")
	is.NoErr(err)
	is.NoErr(s.CheckDatabase(t.Context()))
	turns, err := s.Ints(t.Context(), `SELECT turns FROM badges`)
	is.NoErr(err)
	is.Equal(turns, []int64{2})
	is.NoErr(s.StartRunner(t.Context(), "next", time.Minute))
	claims, err := s.ClaimTurns(t.Context(), "next", 10, 10)
	is.NoErr(err)
	is.Equal(len(claims), 1)
	_, err = s.FinishTurn(t.Context(), claims[0], nil, store.Outcome{Status: store.Completed, OutputText: "late"})
	is.NoErr(err)
	is.NoErr(s.Close())

	fresh := filepath.Join(t.TempDir(), "fresh.db")
	storetest.Run(t, storetest.OpenFile(t, fresh), nextSchema(storetest.Schema(t)))
	is.Equal(shape(t, path), shape(t, fresh))
	is.True(says(errOf(store.Open(t.Context(), f.Dir(), storetest.Schema(t), store.Options{})), "use a newer program"))

	kept, err := store.RollBack(t.Context(), f.Dir(), version)
	is.NoErr(err)
	is.Equal(kept, fmt.Sprintf("%s.v%d", path, version+1))
	now, err := store.FolderVersion(t.Context(), f.Dir())
	is.NoErr(err)
	is.Equal(now, version)
	storetest.Sound(t, f.Dir())
	s = storetest.Reopen(t, f.Dir(), store.Options{})
	again, err := s.Turn(t.Context(), first.ID)
	is.NoErr(err)
	is.Equal(again.Status, store.Completed)
	running, err := s.Ints(t.Context(), `SELECT count(*) FROM turns WHERE status <> 'completed'`)
	is.NoErr(err)
	is.Equal(running, []int64{1}) // the newer database has the end of this turn
}

// TestKeepVersion opens an older database with a newer program for a command that must not upgrade it. The
// database is as before, and the older program still opens it. A new folder and the own version are opened.
func TestKeepVersion(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	is.NoErr(f.Close())
	url := storetest.DatabaseOf(f.Dir())
	opt := store.Options{Database: url, PasswordMemory: 64, KeepVersion: true}
	newer := opt.WithStep(toNextInFile, toNextOnServer, store.NewestVersion())
	err := errOf(store.Open(t.Context(), f.Dir(), nextSchema(storetest.Schema(t)), newer))
	is.True(says(err, "start the server with this program"))
	_, err = os.Stat(store.DatabasePath(f.Dir()) + ".v1")
	is.True(errors.Is(err, fs.ErrNotExist)) // no upgrade was begun
	s, err := store.Open(t.Context(), f.Dir(), storetest.Schema(t), opt)
	is.NoErr(err)
	is.NoErr(s.Close())
	if url == "" {
		s, err = store.Open(t.Context(), t.TempDir(), nextSchema(storetest.Schema(t)), newer)
		is.NoErr(err)
		is.NoErr(s.Close())
	}
}

// TestRollBackRefuses keeps a newer database whose copy from before the upgrade is missing, and one that
// a server has open.
func TestRollBackRefuses(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	f := newFixture(t)
	is.NoErr(f.Close())
	path, version := store.DatabasePath(f.Dir()), store.NewestVersion()
	kept, err := store.RollBack(t.Context(), f.Dir(), version)
	is.NoErr(err)
	is.Equal(kept, "") // the database is not newer
	s, err := openNext(t.Context(), f.Dir(), storetest.Schema(t), "")
	is.NoErr(err)
	is.True(errors.Is(errOf(store.RollBack(t.Context(), f.Dir(), version)), store.ErrLocked))
	is.NoErr(s.Close())
	is.NoErr(os.Remove(fmt.Sprintf("%s.v%d", path, version)))
	is.True(says(errOf(store.RollBack(t.Context(), f.Dir(), version)), "is missing"))
	now, err := store.FolderVersion(t.Context(), f.Dir())
	is.NoErr(err)
	is.Equal(now, version+1)
}

// TestKilledInUpgrade kills processes during the upgrade. After each kill, the database has the older or the
// newer version with all rows. An upgrade that is not killed ends, and its copy is complete.
func TestKilledInUpgrade(t *testing.T) {
	storetest.Slow(t)
	skipUnderRace(t)
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	dir := prunable(t, 3000)
	path, version := store.DatabasePath(dir), store.NewestVersion()
	turns := func(path string, want int) {
		t.Helper()
		rows := storetest.FileRows(t, path, `SELECT (SELECT count(*) FROM turns), (SELECT * FROM pragma_integrity_check)`)
		is.Equal(rows, [][]string{{strconv.Itoa(want), "ok"}})
	}
	killed, upgraded := 0, 0
	for round := range storetest.Rounds(60, 8) {
		if killAt(t, dir, "upgrade", time.Duration(round%8+1)*60*time.Millisecond) != nil {
			killed++
		}
		turns(path, 3000)
		now, err := store.FolderVersion(t.Context(), dir)
		is.NoErr(err)
		if now > version { // go back, and upgrade again
			upgraded++
			is.NoErr(errOf(store.RollBack(t.Context(), dir, version)))
			turns(path, 3000)
		}
	}
	s, err := openNext(t.Context(), dir, storetest.Schema(t), storetest.DatabaseOf(dir))
	is.NoErr(err)
	is.NoErr(s.Close())
	turns(path, 3000)
	turns(fmt.Sprintf("%s.v%d", path, version), 3000)
	left, err := filepath.Glob(filepath.Join(dir, "*.tmp"))
	is.NoErr(err)
	is.Equal(len(left), 0) // incomplete copies
	t.Logf("killed %d times, upgraded %d times", killed, upgraded)
}

// connectTo connects to a database on a server.
func connectTo(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	is.New(t).NoErr(err)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// declarations returns the columns, indexes and constraints of a database on a server.
func declarations(t *testing.T, url string) []string {
	t.Helper()
	is := is.New(t)
	rows, err := connectTo(t, url).Query(t.Context(), `
		SELECT concat_ws(' ', table_name, ordinal_position, column_name, data_type, collation_name, is_nullable, column_default,
			is_generated, is_identity) FROM information_schema.columns WHERE table_schema = current_schema()
		UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema()
		UNION ALL SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint
			WHERE connamespace = current_schema()::regnamespace`)
	is.NoErr(err)
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	is.NoErr(err)
	slices.Sort(list)
	return list
}

// TestPostgresUpgrade upgrades a database on a server. Its declarations are then those of a new database,
// and its work goes on. The older program refuses it.
func TestPostgresUpgrade(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	url := pgtest.URL(t)
	f := newFixtureWith(t, store.Options{Database: url})
	f.accept(f.turn())
	is.NoErr(f.Close())
	s, err := openNext(t.Context(), f.Dir(), storetest.Schema(t), url)
	is.NoErr(err)
	turns, err := s.Ints(t.Context(), `SELECT turns FROM badges`)
	is.NoErr(err)
	is.Equal(turns, []int64{1})
	is.NoErr(s.StartRunner(t.Context(), "run", time.Minute))
	claims, err := s.ClaimTurns(t.Context(), "run", 10, 10)
	is.NoErr(err)
	is.Equal(len(claims), 1)
	is.NoErr(s.Close())

	fresh := pgtest.URL(t)
	s, err = openNext(t.Context(), t.TempDir(), storetest.Schema(t), fresh)
	is.NoErr(err)
	is.NoErr(s.Close())
	want := declarations(t, fresh)
	ordertest.Above(is, len(want), 300)
	is.Equal(declarations(t, url), want)

	is.True(says(errOf(openOn(t, f.Dir(), url)), "use a newer program"))
	found := store.ExamineServer(t.Context(), url)[1]
	is.True(found.Bad && strings.Contains(found.Detail, "use a newer program"))
}
