package postgres_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/matryer/is"

	"journeyman/store/engine"
	"journeyman/store/ordertest"
)

// later inserts a note with ExecLater.
func later(tx engine.Tx, id string) error {
	return tx.ExecLater(`INSERT INTO notes (id) VALUES (?)`, id)
}

// TestExecLater checks that delayed statements are sent together with others. A query sees the
// effects of earlier statements, and the commit sends the remaining statements.
func TestExecLater(t *testing.T) {
	t.Parallel()
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			db := open(t)
			var seen []string
			write := func(first, last string) error {
				return db.Write(t.Context(), mode, func(tx engine.Tx) (err error) {
					if err = later(tx, first); err == nil {
						seen, err = texts(t.Context(), tx, `SELECT id FROM notes ORDER BY id`)
					}
					if err == nil {
						err = later(tx, last)
					}
					return err
				})
			}
			is.NoErr(write("a", "b"))
			is.Equal(seen, []string{"a"})
			is.Equal(notes(t, db), []string{"a", "b"})
			trips := db.Stats().RoundTrips.Load()
			is.NoErr(write("c", "d"))
			is.Equal(db.Stats().RoundTrips.Load()-trips, int64(2))
			is.NoErr(db.Write(t.Context(), mode, func(tx engine.Tx) error { return later(tx, "alone") }))
			is.Equal(notes(t, db), []string{"a", "alone", "b", "c", "d"})
		})
	}
}

// TestExecLaterFails makes a delayed statement fail. The error appears at the next statement or at
// the commit. No changes remain, and the connection is usable again.
func TestExecLaterFails(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := open(t)
	is.NoErr(db.Write(t.Context(), engine.Locking, note("a")))
	for name, end := range map[string]func(tx engine.Tx) error{
		"commit":    func(engine.Tx) error { return nil },
		"statement": note("z"),
	} {
		undone := 0
		err := db.Write(t.Context(), engine.Locking, func(tx engine.Tx) error {
			tx.OnUndo(func() { undone++ })
			if err := note("b")(tx); err != nil {
				return err
			}
			if err := later(tx, "a"); err != nil { // a duplicate
				return err
			}
			return end(tx)
		})
		fault, ok := errors.AsType[*pgconn.PgError](err)
		is.True(ok && fault.Code == "23505") // unique violation
		ordertest.Above(is, undone, 0)
		is.Equal(notes(t, db), []string{"a"})
		t.Log(name, err)
	}
	is.NoErr(db.Write(t.Context(), engine.Locking, func(tx engine.Tx) error { return later(tx, "c") }))
	is.Equal(notes(t, db), []string{"a", "c"})
}

// TestExecLaterIsFenced writes in a process that has lost the lock to another one. A write of one
// statement could be sent together with its commit, but it must change nothing.
func TestExecLaterIsFenced(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := open(t)
	is.NoErr(db.Write(t.Context(), engine.Locking, note("a")))
	// As another process would.
	is.NoErr(db.Write(t.Context(), engine.Locking, exec(`UPDATE meta SET value = '77' WHERE name = 'epoch'`)))
	err := db.Write(t.Context(), engine.Locking, func(tx engine.Tx) error { return later(tx, "b") })
	is.True(err != nil)
	is.Equal(notes(t, db), []string{"a"})
}

// TestQueryLater delays a query whose rows decide about the write. The commit waits for it. An error of
// read hides the failure of a later statement, because the same row is the cause of both.
func TestQueryLater(t *testing.T) {
	t.Parallel()
	errFound := errors.New("found")
	nothing := func(engine.Tx) error { return nil }
	for name, tt := range map[string]struct {
		before, then func(tx engine.Tx) error
		trips        int64 // without the row
	}{
		"nothing":           {nothing, nothing, 2},
		"after a statement": {note("b"), nothing, 3},
		"another statement": {nothing, note("b"), 2},
		"delayed statement": {nothing, func(tx engine.Tx) error { return later(tx, "b") }, 2},
		"a duplicate":       {nothing, note("a"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			db := open(t)
			is.NoErr(db.Write(t.Context(), engine.Locking, note("a")))
			write := func(id string) (read bool, err error) {
				err = db.Write(t.Context(), engine.Locking, func(tx engine.Tx) error {
					if err := tt.before(tx); err != nil {
						return err
					}
					err := tx.QueryLater(func(rows engine.Rows) error {
						read = true
						if rows.Next() {
							return errFound
						}
						return nil
					}, `SELECT id FROM notes WHERE id = ?`, id)
					if err != nil {
						return err
					}
					return tt.then(tx)
				})
				return read, err
			}
			read, err := write("a")
			is.True(read)
			is.True(errors.Is(err, errFound))
			is.Equal(notes(t, db), []string{"a"}) // the write is undone
			if tt.trips > 0 {
				_, err = write("x") // prepares the statements
				is.NoErr(err)
				_, err = db.Query(t.Context(), `DELETE FROM notes WHERE id = 'b'`)
				is.NoErr(err)
				trips := db.Stats().RoundTrips.Load()
				_, err = write("x")
				is.NoErr(err)
				is.Equal(db.Stats().RoundTrips.Load()-trips, tt.trips)
			}
		})
	}
}
