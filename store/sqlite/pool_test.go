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

// endless is a query that does not end by itself.
const endless = `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT count(*) FROM n`

// TestQueryEndsWithItsContext ends queries that compute and queries whose rows are being read. The
// connection serves the next query.
func TestQueryEndsWithItsContext(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := open(t)
	for range 20 { // more than there are connections
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		_, err := texts(ctx, db, endless)
		is.True(errors.Is(err, context.DeadlineExceeded))
		err = db.Snapshot(ctx, func(engine.Querier) error { return errors.New("not reached") })
		is.True(errors.Is(err, context.DeadlineExceeded))
		cancel()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	err := db.Snapshot(t.Context(), func(s engine.Querier) error {
		_, err := s.Query(ctx, endless)
		is.True(errors.Is(err, context.DeadlineExceeded))
		rows, err := s.Query(t.Context(), `SELECT 1`)
		if err == nil {
			is.True(rows.Next())
			err = rows.Close()
		}
		return err
	})
	is.NoErr(err)

	ctx, cancel = context.WithCancel(t.Context())
	rows, err := db.Query(ctx, `SELECT value FROM json_each('[1,2,3]')`)
	is.NoErr(err)
	is.True(rows.Next())
	cancel()
	is.True(!rows.Next())
	is.True(errors.Is(rows.Err(), context.Canceled))
	is.True(rows.Scan(new(int)) != nil) // closed

	got, err := texts(t.Context(), db, `SELECT 'works'`)
	is.NoErr(err)
	is.Equal(got, []string{"works"})
}

// TestReadersThatCannotBeOpened runs more queries than there are connections, without the folder of
// the database. None of them waits for a connection. A snapshot uses the one that was opened before.
func TestReadersThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := filepath.Join(t.TempDir(), "data")
	is.NoErr(os.Mkdir(dir, 0o700))
	db, err := sqlite.Open(t.Context(), filepath.Join(dir, "a.db"), schema, nil)
	is.NoErr(err)
	is.NoErr(os.RemoveAll(dir))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	is.NoErr(db.Snapshot(ctx, func(engine.Querier) error {
		for range 20 {
			_, err := texts(ctx, db, `SELECT 1`)
			is.True(sqlite.IsUnavailable(err)) // it cannot open the file
		}
		return nil
	}))
	_ = db.Close() // the writer's files are gone
}

// TestReadersAreBounded takes all connections: the next query waits for one, until its context
// ends or the database is closed.
func TestReadersAreBounded(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := open(t)
	var taken []engine.Rows
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := texts(ctx, db, `SELECT 'a connection is free'`)
		cancel()
		if err != nil {
			is.True(errors.Is(err, context.DeadlineExceeded))
			break
		}
		rows, err := db.Query(t.Context(), `SELECT 1 UNION SELECT 2`)
		is.NoErr(err)
		is.True(rows.Next())
		taken = append(taken, rows)
	}
	ordertest.Between(is, len(taken), 4, 16) // connections

	waiting := make(chan error)
	wait := func() {
		_, err := texts(context.Background(), db, `SELECT 'a connection is free'`)
		waiting <- err
	}
	go wait()
	is.NoErr(taken[0].Close())
	is.NoErr(<-waiting) // it got the connection that was given back
	rows, err := db.Query(t.Context(), `SELECT 1`)
	is.NoErr(err)
	taken[0] = rows

	go wait()
	is.NoErr(db.Close())
	is.True(errors.Is(<-waiting, engine.ErrClosed))
	_, err = db.Query(t.Context(), `SELECT 1`)
	is.True(errors.Is(err, engine.ErrClosed))
	for _, rows := range taken { // a query under way goes on
		for rows.Next() {
		}
		is.NoErr(rows.Err())
	}
	is.NoErr(db.Close()) // again
}

// TestCommitsWaitForTheDisk checks that only a volatile database skips the waiting. It asks the
// connection that writes, and one that reads: the last one that closes writes the file.
func TestCommitsWaitForTheDisk(t *testing.T) {
	t.Parallel()
	const full, off = "2", "0"
	for name, tt := range map[string]struct {
		open        func(ctx context.Context, path, schema string, migrations []string) (*sqlite.DB, error)
		synchronous string
	}{
		"durable":  {sqlite.Open, full},
		"volatile": {sqlite.OpenVolatile, off},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			db, err := tt.open(t.Context(), filepath.Join(t.TempDir(), "a.db"), schema, nil)
			is.NoErr(err)
			defer db.Close()
			const query = `SELECT CAST(synchronous AS TEXT) FROM pragma_synchronous`
			got, err := texts(t.Context(), db, query)
			is.NoErr(err)
			is.Equal(got, []string{tt.synchronous})
			is.NoErr(db.Write(t.Context(), engine.Serializable, func(tx engine.Tx) error {
				got, err = texts(t.Context(), tx, query)
				return err
			}))
			is.Equal(got, []string{tt.synchronous})
		})
	}
}

// TestCloseWaitsForQueries closes a database while a query reads. The last connection removes the log,
// so Close must not return before that one is closed.
func TestCloseWaitsForQueries(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	path := filepath.Join(t.TempDir(), "a.db")
	db := openAt(t, path, orders)
	rows, err := db.Query(t.Context(), `SELECT value FROM json_each('[1,2,3]')`)
	is.NoErr(err)
	is.True(rows.Next())
	closed := make(chan error, 1)
	go func() { closed <- db.Close() }()
	select {
	case <-closed:
		t.Fatal("the database is closed, but a query still reads")
	case <-time.After(50 * time.Millisecond):
	}
	is.NoErr(rows.Close())
	is.NoErr(<-closed)
	_, err = os.Stat(path + "-wal")
	is.True(errors.Is(err, os.ErrNotExist))
}
