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
	"journeyman/store/ordertest"
	"journeyman/store/postgres"
	"journeyman/store/postgres/pgtest"
)

// schema contains the tables of the engine's tests.
const schema = `
	CREATE TABLE notes (id TEXT PRIMARY KEY) STRICT;
	CREATE TABLE counters (id TEXT PRIMARY KEY, n INTEGER NOT NULL) STRICT;
	CREATE TABLE log (num INTEGER PRIMARY KEY, detail TEXT NOT NULL UNIQUE, size REAL, data BLOB) STRICT;`

// open opens a new database. It is closed when the test ends.
func open(t testing.TB) *postgres.DB {
	t.Helper()
	return openURL(t, pgtest.URL(t))
}

func openURL(t testing.TB, url string) *postgres.DB {
	t.Helper()
	return openSchema(t, url, schema)
}

func openSchema(t testing.TB, url, schema string) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), url, schema, nil)
	return opened(t, db, err)
}

// opened returns an open database, which it closes when the test ends.
func opened(t testing.TB, db *postgres.DB, err error) *postgres.DB {
	t.Helper()
	is.New(t).NoErr(err)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// eventually waits until ok returns true.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long for %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// texts returns one column of text.
func texts(ctx context.Context, q engine.Querier, query string, args ...any) (list []string, err error) {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	return list, rows.Err()
}

// number returns one number.
func number(ctx context.Context, q engine.Querier, query string, args ...any) (n int64, err error) {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	if !rows.Next() {
		return 0, errors.New("no row")
	}
	err = rows.Scan(&n)
	return n, err
}

// exec returns a write of one statement.
func exec(query string, args ...any) func(tx engine.Tx) error {
	return func(tx engine.Tx) error {
		_, err := tx.Exec(query, args...)
		return err
	}
}

// note returns a write that inserts the row id.
func note(id string) func(tx engine.Tx) error { return exec(`INSERT INTO notes (id) VALUES (?)`, id) }

const insertOnce = `INSERT INTO notes (id) VALUES (?) ON CONFLICT (id) DO NOTHING`

func notes(t testing.TB, db *postgres.DB) []string {
	t.Helper()
	ids, err := texts(t.Context(), db, `SELECT id FROM notes ORDER BY id`)
	is.New(t).NoErr(err)
	return ids
}

// modes are the modes of writes, by name.
var modes = map[string]engine.Mode{"serializable": engine.Serializable, "locking": engine.Locking}

// TestOneCounter lets 32 callers increment one counter. No increment is lost or counted twice.
func TestOneCounter(t *testing.T) {
	t.Parallel()
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			db := open(t)
			is.NoErr(db.Write(t.Context(), mode, exec(`INSERT INTO counters (id, n) VALUES ('a', 0)`)))
			counted := make(chan error, 32)
			for range cap(counted) {
				go func() { counted <- countUp(t.Context(), db, mode, 10) }()
			}
			for range cap(counted) {
				is.NoErr(<-counted)
			}
			n, err := number(t.Context(), db, `SELECT n FROM counters WHERE id = 'a'`)
			is.NoErr(err)
			is.Equal(n, int64(320))
			t.Logf("%d retries", db.Stats().Retries.Load())
		})
	}
}

// countUp increments a counter several times. A serializable write reads the counter first and then
// sets it.
func countUp(ctx context.Context, db *postgres.DB, mode engine.Mode, times int) error {
	for range times {
		err := db.Write(ctx, mode, func(tx engine.Tx) error {
			if mode == engine.Locking {
				_, err := tx.Exec(`UPDATE counters SET n = n + 1 WHERE id = 'a'`)
				return err
			}
			n, err := number(ctx, tx, `SELECT n FROM counters WHERE id = 'a'`)
			if err != nil {
				return err
			}
			_, err = tx.Exec(`UPDATE counters SET n = ? WHERE id = 'a'`, n+1)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// TestWriteSkew runs two writes in parallel. Each changes a row depending on the other's row. In
// sequence, only the first write would change anything.
func TestWriteSkew(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := open(t)
	is.NoErr(db.Write(t.Context(), engine.Serializable, exec(`INSERT INTO counters (id, n) VALUES ('a', 1), ('b', 1)`)))
	var both sync.WaitGroup
	both.Add(2)
	leave := func(id string) error {
		first := true
		return db.Write(t.Context(), engine.Serializable, func(tx engine.Tx) error {
			n, err := number(t.Context(), tx, `SELECT SUM(n) FROM counters`)
			if err != nil {
				return err
			}
			if first { // both have read before one writes
				first = false
				both.Done()
				both.Wait()
			}
			if n < 2 {
				return nil
			}
			_, err = tx.Exec(`UPDATE counters SET n = 0 WHERE id = ?`, id)
			return err
		})
	}
	left := make(chan error, 2)
	for _, id := range []string{"a", "b"} {
		go func() { left <- leave(id) }()
	}
	is.NoErr(<-left)
	is.NoErr(<-left)
	n, err := number(t.Context(), db, `SELECT SUM(n) FROM counters`)
	is.NoErr(err)
	is.Equal(n, int64(1)) // only one of them took effect
	ordertest.Above(is, db.Stats().Retries.Load(), 0)
}

// TestEffects runs a write again after a conflict. Its effects in memory are undone first.
func TestEffects(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := open(t)
	is.NoErr(db.Write(t.Context(), engine.Serializable, exec(`INSERT INTO counters (id, n) VALUES ('a', 0)`)))
	var done []string
	try := 0
	is.NoErr(db.Write(t.Context(), engine.Serializable, func(tx engine.Tx) error {
		try++
		tx.OnUndo(func() { done = append(done, fmt.Sprint("undo first of ", try)) })
		tx.OnUndo(func() { done = append(done, fmt.Sprint("undo second of ", try)) })
		tx.OnCommit(func() { done = append(done, fmt.Sprint("commit ", try)) })
		if _, err := number(t.Context(), tx, `SELECT n FROM counters`); err != nil {
			return err
		}
		if try == 1 {
			is.NoErr(countUp(t.Context(), db, engine.Locking, 1)) // another write changes the row
		}
		_, err := tx.Exec(`UPDATE counters SET n = n + 10 WHERE id = 'a'`)
		return err
	}))
	is.Equal(done, []string{"undo second of 1", "undo first of 1", "commit 2"})
	n, err := number(t.Context(), db, `SELECT n FROM counters`)
	is.NoErr(err)
	is.Equal(n, int64(11))
}

// TestFailures makes writes fail in several ways. No changes remain, and other writes still
// succeed.
func TestFailures(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := open(t)
	broken := errors.New("broken")
	undone := 0
	for name, tt := range map[string]struct {
		fn   func(tx engine.Tx) error
		says string
	}{
		"its own error": {func(tx engine.Tx) error { return broken }, "broken"},
		"a panic":       {func(tx engine.Tx) error { panic("boom") }, "boom"},
		"an error that it does not return": {func(tx engine.Tx) error {
			_, _ = tx.Exec(`INSERT INTO nothing (id) VALUES (1)`)
			return nil
		}, "42P01"},
		"a statement after an error": {func(tx engine.Tx) error {
			_, _ = tx.Exec(`INSERT INTO nothing (id) VALUES (1)`)
			_, err := tx.Exec(`INSERT INTO notes (id) VALUES ('z')`)
			return err
		}, "an earlier statement of the write has failed"},
		"a note that exists": {func(tx engine.Tx) error {
			return errors.Join(note("same")(tx), note("same")(tx))
		}, "23505"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			err := db.Write(t.Context(), engine.Serializable, func(tx engine.Tx) error {
				tx.OnUndo(func() { undone++ })
				if err := note("lost " + name)(tx); err != nil {
					return err
				}
				return tt.fn(tx)
			})
			is.True(err != nil && strings.Contains(err.Error(), tt.says))
			is.True(!postgres.IsUnavailable(err))
		})
	}
	is.Equal(undone, 4+3) // the violation of the unique index ran 3 times
	is.NoErr(db.Write(t.Context(), engine.Serializable, note("kept")))
	is.Equal(notes(t, db), []string{"kept"})
}

// TestContexts cancels the caller's context before and during a write.
func TestContexts(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	is.NoErr(db.Write(ctx, engine.Serializable, func(tx engine.Tx) error {
		cancel()
		return note("to its end")(tx)
	}))
	ran := false
	err := db.Write(ctx, engine.Serializable, func(tx engine.Tx) error {
		ran = true
		return nil
	})
	is.True(errors.Is(err, context.Canceled))
	is.True(!ran)
	_, err = db.Query(ctx, `SELECT 1`)
	is.True(errors.Is(err, context.Canceled))
	is.Equal(notes(t, db), []string{"to its end"})
}

// TestInsert checks the numbers of new rows, and 0 if there is no new row.
func TestInsert(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := open(t)
	var nums []int64
	is.NoErr(db.Write(t.Context(), engine.Serializable, func(tx engine.Tx) error {
		nums = nil
		for _, detail := range []string{"a", "b", "a"} {
			num, err := tx.Insert(`INSERT INTO log (detail) VALUES (?) ON CONFLICT (detail) DO NOTHING`, detail)
			if err != nil {
				return err
			}
			nums = append(nums, num)
		}
		changed, err := tx.Exec(`UPDATE log SET size = 1.5`)
		is.Equal(changed, int64(2))
		return err
	}))
	is.Equal(nums, []int64{1, 2, 0})
}

// TestNestedQueries runs queries while it iterates over the rows of the same query.
func TestNestedQueries(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := open(t)
	is.NoErr(db.Write(t.Context(), engine.Serializable, func(tx engine.Tx) error {
		return errors.Join(note("a")(tx), note("b")(tx))
	}))
	pairs := func(q engine.Querier) error {
		outer, err := texts(t.Context(), q, `SELECT id FROM notes ORDER BY id`)
		if err != nil {
			return err
		}
		var got []string
		rows, err := q.Query(t.Context(), `SELECT id FROM notes ORDER BY id`)
		if err != nil {
			return err
		}
		for rows.Next() {
			inner, err := texts(t.Context(), q, `SELECT id FROM notes ORDER BY id`)
			is.NoErr(err)
			is.Equal(inner, outer)
			var id string
			is.NoErr(rows.Scan(&id))
			got = append(got, id)
		}
		is.NoErr(rows.Close())
		is.NoErr(rows.Close()) // does nothing
		is.True(!rows.Next())
		is.Equal(got, []string{"a", "b"})
		return rows.Err()
	}
	for range 2 {
		is.NoErr(pairs(db))
		is.NoErr(db.Snapshot(t.Context(), pairs))
		is.NoErr(db.Write(t.Context(), engine.Serializable, func(tx engine.Tx) error { return pairs(tx) }))
	}
}

// TestSnapshot does not see a write that is committed after its first query.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := open(t)
	is.NoErr(db.Snapshot(t.Context(), func(q engine.Querier) error {
		for range 2 {
			ids, err := texts(t.Context(), q, `SELECT id FROM notes`)
			is.NoErr(err)
			is.Equal(len(ids), 0)
			is.NoErr(db.Write(t.Context(), engine.Serializable, exec(insertOnce, "later")))
		}
		return nil
	}))
	is.Equal(notes(t, db), []string{"later"})
}

// TestClose checks that earlier writes finish before Close returns, and that later writes are
// refused.
func TestClose(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	url := pgtest.URL(t)
	db := openURL(t, url)
	for i := range 20 {
		db.WriteLater(note(fmt.Sprintf("%02d", i)))
	}
	is.NoErr(db.Close())
	is.NoErr(db.Close())
	is.True(errors.Is(db.Write(t.Context(), engine.Serializable, note("late")), engine.ErrClosed))
	_, err := db.Query(t.Context(), `SELECT 1`)
	is.True(errors.Is(err, engine.ErrClosed))
	db.WriteLater(note("later"))
	is.Equal(len(notes(t, openURL(t, url))), 20)
}

// TestStats checks the counters.
func TestStats(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := open(t)
	is.NoErr(db.Write(t.Context(), engine.Serializable, note("a")))
	is.NoErr(db.Write(t.Context(), engine.Locking, func(tx engine.Tx) error {
		return errors.Join(note("b")(tx), note("c")(tx))
	}))
	is.Equal(len(notes(t, db)), 3)
	s := db.Stats()
	is.Equal(s.Commits.Load(), int64(2))
	is.Equal(s.Operations.Load(), int64(2))
	is.Equal(s.Statements.Load(), int64(3))
	is.Equal(s.Reads.Load(), int64(1))
	is.Equal(s.Retries.Load(), int64(0))
	is.Equal(db.Waiting(), 0)
	is.Equal(db.Statements(), []string{`INSERT INTO notes (id) VALUES (?)`, `SELECT id FROM notes ORDER BY id`})
}
