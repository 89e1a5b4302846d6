package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/engine"
	"journeyman/store/postgres"
	"journeyman/store/postgres/pgtest"
)

// openShared opens a database together with others. It is closed when the test ends.
func openShared(t testing.TB, url string, p program) *postgres.DB {
	t.Helper()
	db, err := p.open(t.Context(), url)
	return opened(t, db, err)
}

// A program is what a version of the program knows of the tables.
type program struct {
	schema     string
	migrations []string
	oldest     int
}

func (p program) open(ctx context.Context, url string) (*postgres.DB, error) {
	return postgres.OpenShared(ctx, url, p.schema, p.migrations, p.oldest)
}

// The programs of three versions. The second version adds, and the third takes away what only the first needs.
var (
	first  = program{schema, nil, 1}
	second = program{schema + `
		CREATE TABLE more (id TEXT PRIMARY KEY) STRICT;`, []string{addMore}, 1}
	third = program{strings.Replace(second.schema, ", data BLOB", "", 1),
		[]string{addMore, `ALTER TABLE log DROP COLUMN data`}, 2}
)

const addMore = `CREATE TABLE more (id TEXT COLLATE "C" NOT NULL PRIMARY KEY)`

// TestShared opens a new database several times at once. All of them write. A process that needs the
// database alone is refused until the last of them has closed it, and then refuses them.
func TestShared(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]string{
		"their own connections": "",
		"behind a proxy":        "&default_query_exec_mode=cache_describe",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			url := pgtest.URL(t) + options
			dbs := make([]*postgres.DB, 3)
			var opening sync.WaitGroup
			for i := range dbs {
				opening.Go(func() {
					db, err := first.open(t.Context(), url)
					if err != nil {
						t.Error(err)
						return
					}
					if err := db.Write(t.Context(), engine.Serializable, note(fmt.Sprint(i))); err != nil {
						t.Error(err)
					}
					dbs[i] = db
				})
			}
			opening.Wait()
			is.True(!t.Failed())
			is.Equal(notes(t, dbs[0]), []string{"0", "1", "2"})
			_, err := postgres.Open(t.Context(), url, schema, nil)
			is.True(errors.Is(err, postgres.ErrInUse))
			for _, db := range dbs {
				is.NoErr(db.Write(t.Context(), engine.Locking, note(fmt.Sprintf("%p", db)))) // the attempt has no effect
				is.NoErr(db.Close())
			}
			alone, err := postgres.Open(t.Context(), url, schema, nil)
			is.NoErr(err)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			_, err = first.open(ctx, url)
			is.True(err != nil) // it waits for the process that has the database alone
			is.NoErr(alone.Close())
			openShared(t, url, first)
		})
	}
}

// TestSharedFence ends the lock's connection of one of two processes. It continues, because no process had
// the database alone. When one had it, both are refused for good.
func TestSharedFence(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	url := pgtest.URL(t)
	a, b := openShared(t, url, first), openShared(t, url, first)
	change(t, url, endLocks)
	for name, db := range map[string]*postgres.DB{"a": a, "b": b} {
		eventually(t, "the lock to be held again", func() bool {
			return locks(t, a) == 4 && db.Write(t.Context(), engine.Serializable, note(name)) == nil
		})
	}
	change(t, url, `UPDATE meta SET value = CAST(value AS bigint) + 1 WHERE name = 'epoch'`)
	for _, db := range []*postgres.DB{a, b} {
		is.True(postgres.IsUnavailable(db.Write(t.Context(), engine.Serializable, note("fenced"))))
	}
	is.Equal(notes(t, a), []string{"a", "b"})
}

// TestClock compares the server's clock with the one of this machine, on which it runs.
func TestClock(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := open(t)
	before := time.Now().Truncate(time.Millisecond)
	at, err := db.Clock(t.Context())
	is.NoErr(err)
	is.True(!at.Before(before.Add(-time.Second)) && !at.After(time.Now().Add(time.Second)))
}
