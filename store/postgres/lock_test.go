package postgres_test

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/engine"
	"journeyman/store/ordertest"
	"journeyman/store/postgres"
	"journeyman/store/postgres/pgtest"
)

// TestSecondProcess opens a database twice. The second Open must wait until the first database is
// closed.
func TestSecondProcess(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]string{
		"its own connection": "",
		"behind a proxy":     "&default_query_exec_mode=cache_describe",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			url := pgtest.URL(t) + options
			db, err := postgres.Open(t.Context(), url, schema, nil)
			is.NoErr(err)
			is.NoErr(db.Write(t.Context(), engine.Serializable, note("first")))
			_, err = postgres.Open(t.Context(), url, schema, nil)
			is.True(errors.Is(err, postgres.ErrInUse))
			is.NoErr(db.Close())
			is.Equal(notes(t, openURL(t, url)), []string{"first"})
		})
	}
}

// endLocks terminates the connections that hold locks of the database. It fails if there are none: it
// divides by their number.
const endLocks = `SELECT 1 / count(pg_terminate_backend(pid)) FROM pg_locks WHERE locktype = 'advisory'
	AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`

// locks returns the number of connections that hold the lock of the database.
func locks(t *testing.T, q engine.Querier) int64 {
	t.Helper()
	n, err := number(t.Context(), q, `SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory'
		AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
	is.New(t).NoErr(err)
	return n
}

// TestLostLock terminates the connection that holds the lock. Writes continue when the lock is held
// again.
func TestLostLock(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	url := pgtest.URL(t)
	db := openURL(t, url)
	change(t, url, endLocks)
	eventually(t, "the lock to be held again", func() bool {
		err := db.Write(t.Context(), engine.Serializable, exec(insertOnce, "a"))
		is.True(err == nil || postgres.IsUnavailable(err))
		return err == nil && locks(t, db) == 1
	})
	_, err := postgres.Open(t.Context(), url, schema, nil)
	is.True(errors.Is(err, postgres.ErrInUse))
	is.Equal(notes(t, db), []string{"a"})
}

// TestFence lets a process open the database while a write of another process runs, whose lock is
// lost. The new process waits for that write, and the old process cannot write any more.
func TestFence(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	url := pgtest.URL(t)
	p, through := throughProxy(t, url)
	db := openURL(t, through)
	opened := make(chan *postgres.DB, 1)
	is.NoErr(db.Write(t.Context(), engine.Serializable, func(tx engine.Tx) error {
		if err := note("under way")(tx); err != nil {
			return err
		}
		p.refuse() // the first process must not retake its lock at once
		change(t, url, endLocks)
		go func() {
			other, err := postgres.Open(t.Context(), url, schema, nil)
			if err != nil {
				t.Error(err)
			}
			opened <- other
		}()
		eventually(t, "the other process to wait", func() bool {
			n, err := number(t.Context(), tx, `SELECT COUNT(*) FROM pg_locks WHERE NOT granted
				AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
			is.NoErr(err)
			return n > 0
		})
		select {
		case <-opened:
			t.Error("the other process did not wait")
		default:
		}
		return nil
	}))
	other := <-opened
	t.Cleanup(func() { is.NoErr(other.Close()) })
	err := db.Write(t.Context(), engine.Serializable, note("fenced"))
	is.True(postgres.IsUnavailable(err))
	is.NoErr(other.Write(t.Context(), engine.Serializable, note("of the other")))
	is.Equal(notes(t, other), []string{"of the other", "under way"})
}

// TestFenceWithoutNotice increments the epoch as another process would. The first process has not
// noticed the loss of its lock, but its writes are refused.
func TestFenceWithoutNotice(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	url := pgtest.URL(t)
	db := openURL(t, url)
	is.NoErr(db.Write(t.Context(), engine.Serializable, note("a")))
	change(t, url, `UPDATE meta SET value = '2' WHERE name = 'epoch'`)
	for _, mode := range modes {
		err := db.Write(t.Context(), mode, note("b"))
		is.True(postgres.IsUnavailable(err))
		is.True(strings.Contains(err.Error(), "another process"))
	}
	is.Equal(notes(t, db), []string{"a"})
}

// TestFenceDuringTheCount begins a write while another process increments the epoch. The write
// waits, and sees the new epoch.
func TestFenceDuringTheCount(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	url := pgtest.URL(t)
	db := openURL(t, url)
	for range 2 { // the second time, the statements are prepared
		is.NoErr(db.Write(t.Context(), engine.Serializable, note(rand.Text())))
	}
	c := connect(t, url)
	_, err := c.Exec(t.Context(), `BEGIN; LOCK TABLE meta IN ACCESS EXCLUSIVE MODE;
		UPDATE meta SET value = '2' WHERE name = 'epoch'`)
	is.NoErr(err)
	written := make(chan error, 1)
	go func() { written <- db.Write(t.Context(), engine.Serializable, note("fenced")) }()
	eventually(t, "the write to wait", func() bool {
		var n int
		is.NoErr(c.QueryRow(t.Context(), `SELECT COUNT(*) FROM pg_locks WHERE NOT granted
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&n))
		return n > 0
	})
	_, err = c.Exec(t.Context(), `COMMIT`)
	is.NoErr(err)
	err = <-written
	is.True(postgres.IsUnavailable(err))
	is.Equal(len(notes(t, db)), 2)
}

// TestRefusedWithoutLock terminates the lock's connection while no new connection can be opened.
// Writes are refused, although their connections are alive.
func TestRefusedWithoutLock(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	url := pgtest.URL(t)
	p, through := throughProxy(t, url)
	db := openURL(t, through)
	is.NoErr(db.Write(t.Context(), engine.Serializable, note("a")))
	p.refuse()
	change(t, url, endLocks)
	eventually(t, "writes to be refused", func() bool {
		err := db.Write(t.Context(), engine.Serializable, note(rand.Text()))
		is.True(err == nil || postgres.IsUnavailable(err))
		return err != nil && strings.Contains(err.Error(), "lock of the database is lost")
	})
	ordertest.Above(is, len(notes(t, db)), 0) // reads still succeed
	p.setDown(false)
	eventually(t, "writes to go on", func() bool {
		return db.Write(t.Context(), engine.Serializable, note(rand.Text())) == nil
	})
}
