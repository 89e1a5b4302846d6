package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/engine"
	"journeyman/store/ordertest"
	"journeyman/store/sqlite"
)

// openCounts opens a database with two tables that each write changes alike.
func openCounts(t testing.TB) *sqlite.DB {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "a.db"),
		`CREATE TABLE a (v BLOB) STRICT; CREATE TABLE b (v BLOB) STRICT;`)
}

func writeBoth(ctx context.Context, db *sqlite.DB) error {
	return db.Write(ctx, engine.Serializable, func(tx engine.Tx) error {
		_, err := tx.Exec(`INSERT INTO a VALUES (randomblob(3000))`)
		if err == nil {
			_, err = tx.Exec(`INSERT INTO b VALUES (randomblob(3000))`)
		}
		return err
	})
}

// TestCopyBesideWrites copies a database again and again while it is written. Each copy is
// whole, and shows one moment.
func TestCopyBesideWrites(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := openCounts(t)
	for range 200 {
		is.NoErr(writeBoth(t.Context(), db))
	}
	ctx, stop := context.WithCancel(t.Context())
	wrote := make(chan error, 1)
	go func() {
		for {
			if err := writeBoth(ctx, db); err != nil {
				wrote <- err
				return
			}
		}
	}()
	last := int64(0)
	for i := range 4 {
		is.NoErr(writeBoth(t.Context(), db))               // on a busy machine the goroutine may get no time between two copies
		path := filepath.Join(t.TempDir(), "copy ?%23.db") // a name that a URI must escape
		is.NoErr(db.CopyTo(t.Context(), path, db.Pace(t.Context())))
		is.NoErr(sqlite.CheckCopy(t.Context(), path, db.Pace(t.Context())))
		n, err := sqlite.RowCounts(t.Context(), path)
		is.NoErr(err)
		is.Equal(n["a"], n["b"])         // two moments are mixed
		is.True(n["a"] > last || i == 0) // the copy is an old one
		last = n["a"]
	}
	stop()
	is.True(errors.Is(<-wrote, context.Canceled)) // a write failed
}

// TestCheckCopyFindsDamage changes one page of a copy.
func TestCheckCopyFindsDamage(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := openCounts(t)
	for range 200 {
		is.NoErr(writeBoth(t.Context(), db))
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	is.NoErr(db.CopyTo(t.Context(), path, nil))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	is.NoErr(err)
	_, err = f.WriteAt(make([]byte, 4096), 4096)
	is.NoErr(errors.Join(err, f.Close()))
	is.True(sqlite.IsDamage(sqlite.CheckCopy(t.Context(), path, nil))) // the damage goes unnoticed
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	is.True(sqlite.CheckCopy(ctx, path, db.Pace(ctx)) != nil) // a cancelled check calls the copy whole
	is.True(db.CopyTo(ctx, path+"2", db.Pace(ctx)) != nil)
}

// TestPace pauses beside uses of the database, and not without them.
func TestPace(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := openCounts(t)
	ctx, cancel := context.WithCancel(t.Context())
	pace := db.Pace(ctx)
	worked := func() { // for longer than a slice
		for begun := time.Now(); time.Since(begun) < 2*time.Millisecond; {
			continue
		}
	}
	worked()
	is.NoErr(writeBoth(ctx, db))
	begun := time.Now()
	is.NoErr(pace.Pause())
	ordertest.AtLeast(is, time.Since(begun), 3*time.Millisecond) // work beside requests did not pause
	worked()
	cancel()
	is.True(errors.Is(pace.Pause(), context.Canceled))
}

// TestTextSet holds what was added, and nothing else.
func TestTextSet(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s, err := sqlite.NewTextSet(t.Context(), filepath.Join(t.TempDir(), "set.db"))
	is.NoErr(err)
	for _, text := range []string{"a", "b", "a"} {
		is.NoErr(s.Add(t.Context(), text))
	}
	for text, want := range map[string]bool{"a": true, "b": true, "c": false} {
		found, err := s.Has(t.Context(), text)
		is.NoErr(err)
		is.Equal(found, want)
	}
	is.NoErr(s.Close())
	_, err = sqlite.NewTextSet(t.Context(), filepath.Join(t.TempDir(), "none", "set.db"))
	is.True(err != nil) // there is no such folder
}
