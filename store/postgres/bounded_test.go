package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/engine"
	"journeyman/store/ordertest"
)

// TestBoundedWritesEnd makes writes wait for a row that another write has locked. A bounded context ends
// the wait, and the database stays usable. Other contexts do not end a write that has begun.
func TestBoundedWritesEnd(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := open(t)
	is.NoErr(db.Write(t.Context(), engine.Locking, note("a")))
	const change = `UPDATE notes SET id = id WHERE id = 'a'`
	locked, release := make(chan struct{}), make(chan struct{})
	holder := make(chan error, 1)
	go func() {
		holder <- db.Write(context.Background(), engine.Locking, func(tx engine.Tx) error {
			_, err := tx.Exec(change)
			close(locked)
			<-release
			return err
		})
	}()
	<-locked
	write := func(ctx context.Context) error {
		return db.Write(ctx, engine.Locking, exec(change))
	}
	bounded, cancel := engine.Bounded(context.Background(), 200*time.Millisecond)
	defer cancel()
	is.True(errors.Is(write(bounded), context.DeadlineExceeded))

	limited, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	other := make(chan error, 1)
	go func() { other <- write(limited) }()
	<-limited.Done()
	close(release)
	is.NoErr(<-holder)
	if err := <-other; err != nil {
		is.True(errors.Is(err, context.DeadlineExceeded)) // it had not begun
	}
	is.Equal(notes(t, db), []string{"a"})
	is.NoErr(db.Write(t.Context(), engine.Locking, note("b")))
}

// TestLongWritesMayRunAgain makes the server take too long for a statement. The error says that a later try
// may succeed. The limit is shorter here than the time in which a write runs again by itself.
func TestLongWritesMayRunAgain(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := open(t)
	db.SetLimit(time.Second)
	runs := 0
	is.NoErr(db.Write(t.Context(), engine.Locking, func(tx engine.Tx) error {
		if runs++; runs > 1 {
			return note("a")(tx)
		}
		_, err := tx.Query(t.Context(), `SELECT pg_sleep(60)`)
		return err
	}))
	is.Equal(runs, 2)
	is.Equal(notes(t, db), []string{"a"})
}

// TestReadsOutliveTheirCaller cancels reads while they run. A short one ends, and its connection is
// used again. A long one is cut off soon, and a deadline is kept.
func TestReadsOutliveTheirCaller(t *testing.T) {
	t.Parallel()
	db := open(t)
	session := func(seconds string, limit time.Duration) (id int64, err error) {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		time.AfterFunc(50*time.Millisecond, cancel)
		rows, err := db.Query(ctx, `SELECT pg_backend_pid() FROM pg_sleep(`+seconds+`)`)
		if err == nil && rows.Next() {
			err = rows.Scan(&id)
		}
		return id, err
	}
	is := is.New(t)
	first, err := session("0.3", time.Minute)
	is.NoErr(err)
	second, err := session("0.3", time.Minute)
	is.NoErr(err)
	is.Equal(first, second)

	ctx, cancel := context.WithCancel(t.Context())
	err = db.Snapshot(ctx, func(q engine.Querier) error {
		_, err := q.Query(ctx, `SELECT 1`)
		is.NoErr(err)
		cancel()
		_, err = q.Query(ctx, `SELECT 1`)
		return err
	})
	is.True(errors.Is(err, context.Canceled)) // a query does not begin after its caller has gone

	begun := time.Now()
	_, err = session("60", time.Minute)
	is.True(errors.Is(err, context.Canceled))
	_, err = session("60", 20*time.Millisecond)
	is.True(errors.Is(err, context.DeadlineExceeded))
	ordertest.Below(is, time.Since(begun), 30*time.Second)
}
