package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/postgres/pgtest"
	"journeyman/store/storetest"
)

// openOn opens a data folder whose database is on a server.
func openOn(t *testing.T, dir, url string) (*store.Store, error) {
	t.Helper()
	return store.Open(t.Context(), dir, storetest.Schema(t), store.Options{Database: url, PasswordMemory: 64})
}

func TestPostgresFolders(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	url, dir := pgtest.URL(t), t.TempDir()
	s, err := openOn(t, dir, url)
	is.NoErr(err)
	is.True(s.OnServer())
	// Only one process uses a database.
	is.True(says(errOf(openOn(t, t.TempDir(), url)), "another process"))
	is.NoErr(s.Close())

	// An empty embedded database would look like data loss.
	is.True(says(errOf(openOn(t, dir, "")), "--database"))
	// The files belong to another database.
	is.True(says(errOf(openOn(t, dir, pgtest.URL(t))), "another database"))
	s, err = openOn(t, dir, url)
	is.NoErr(err)
	storetest.Caller(t, s, "Acme", "ann@acme.test", people.RoleOwner)
	is.NoErr(s.Close())
	// The folder lacks the files to which the rows refer.
	is.True(says(errOf(openOn(t, t.TempDir(), url)), "not the data folder"))

	embedded := t.TempDir()
	s, err = openOn(t, embedded, "")
	is.NoErr(err)
	is.NoErr(s.Close())
	// The embedded database in the folder would be ignored.
	is.True(says(errOf(openOn(t, embedded, url)), "a database of its own"))

	lost := t.TempDir()
	makeFiles(t, lost, map[string]string{"files/ab/abcd": ""})
	// The folder contains the files of a lost database.
	is.True(says(errOf(openOn(t, lost, pgtest.URL(t))), "the database is lost"))
}

func TestPostgresOperations(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s, err := openOn(t, t.TempDir(), pgtest.URL(t))
	is.NoErr(err)
	defer s.Close()
	is.NoErr(s.Ping(t.Context()))
	is.NoErr(s.Damage())
	is.NoErr(s.CheckDatabase(t.Context()))
	is.NoErr(s.WatchDisk(t.Context()))
	is.NoErr(s.MeasureStorage(t.Context()))
	ordertest.Above(is, s.Storage().Of(store.StorageTasks), 0)
	sp, err := s.Space(t.Context())
	is.NoErr(err)
	ordertest.Above(is, sp.File, 0)
	is.True(sp.Free == 0)
	is.Equal(s.Sizes(t.Context()).Database, sp.File)
	n, err := s.ReturnSpace(t.Context(), 0)
	is.NoErr(err)
	is.Equal(n, int64(0)) // the server manages its own files
	_, err = s.Archive(t.Context(), nil)
	is.True(db.IsKind(err, db.Conflict))
	is.True(strings.Contains(err.Error(), "pg_dump"))
}

func TestPostgresExamine(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	url := pgtest.URL(t)
	found := store.ExamineServer(t.Context(), url)
	is.Equal(len(found), 3)
	is.True(strings.Contains(found[0].Detail, "PostgreSQL "))
	is.True(strings.Contains(found[1].Detail, "none yet"))
	is.Equal(found[2], store.Finding{About: "clock", Detail: "the clock agrees with that of the database"})
	s, err := openOn(t, t.TempDir(), url)
	is.NoErr(err)
	defer s.Close()
	// Examine the database while another process uses it.
	is.Equal(store.ExamineServer(t.Context(), url)[1].Detail, fmt.Sprint("version ", store.NewestVersion()))
	found = store.ExamineServer(t.Context(), "postgres://u:s3cret@127.0.0.1:1/x")
	is.True(len(found) == 1 && found[0].Bad && !strings.Contains(found[0].Detail, "s3cret"))
}

// TestClockFinding reports a clock that differs too much from that of the database, in both directions.
func TestClockFinding(t *testing.T) {
	t.Parallel()
	for ahead, bad := range map[time.Duration]bool{0: false, 5 * time.Second: false, -5 * time.Second: false,
		6 * time.Second: true, -time.Hour: true} {
		f := store.ClockFinding(ahead)
		is.New(t).Equal(f.Bad, bad)
		is.New(t).Equal(strings.Contains(f.Detail, ahead.String()+" from that of the database"), bad)
	}
}

// TestPostgresErrors checks that an error about a URL never contains its password.
func TestPostgresErrors(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"postgres://u:s3cret@127.0.0.1:1/x", "postgres://u:s3cret@[::1/x", "mysql://u:s3cret@h/x",
		"postgres://u:s3cret@127.0.0.1:1/x?pool_max_conns=many"} {
		is := is.New(t)
		_, err := openOn(t, t.TempDir(), url)
		is.True(err != nil)
		is.True(!strings.Contains(err.Error(), "s3cret"))
	}
}
