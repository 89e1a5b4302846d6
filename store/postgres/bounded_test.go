package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/engine"
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
		return db.Write(ctx, engine.Locking, func(tx engine.Tx) error {
			_, err := tx.Exec(change)
			return err
		})
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
