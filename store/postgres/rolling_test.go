package postgres_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/engine"
	"journeyman/store/postgres"
	"journeyman/store/postgres/pgtest"
)

// TestRollingUpgrade replaces processes one after the other. A migration that only adds leaves the older
// ones working, also those that start after it.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	url := pgtest.URL(t)
	old := openShared(t, url, first)
	is.NoErr(old.Write(t.Context(), engine.Serializable, note("before")))
	newer := openShared(t, url, second)
	is.NoErr(old.Write(t.Context(), engine.Locking, note("old")))
	is.NoErr(newer.Write(t.Context(), engine.Serializable, exec(`INSERT INTO more (id) VALUES ('x')`)))
	late := openShared(t, url, first)
	is.NoErr(late.Write(t.Context(), engine.Serializable, note("late")))
	is.Equal(notes(t, newer), []string{"before", "late", "old"})

	_, err := third.open(t.Context(), url) // after it has waited for the older ones
	is.True(err != nil && strings.Contains(err.Error(), "servers with a program of version 1 use the database"))
	is.NoErr(old.Close())
	is.NoErr(late.Close())
	newest := openShared(t, url, third) // beside newer
	is.NoErr(newer.Write(t.Context(), engine.Serializable, note("newer")))
	is.NoErr(newest.Write(t.Context(), engine.Serializable, note("newest")))
	_, err = first.open(t.Context(), url)
	is.True(err != nil && strings.Contains(err.Error(), "use a newer program"))
	is.NoErr(newer.Close())
	openShared(t, url, second) // the third version permits it
	_, err = postgres.Open(t.Context(), url, schema, nil)
	is.True(err != nil) // it would need the database alone
}

// TestUpgradeThatNeedsTheDatabaseAlone skips a version, and the new program permits none of the old ones.
func TestUpgradeThatNeedsTheDatabaseAlone(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	url := pgtest.URL(t)
	old := openShared(t, url, first)
	_, err := third.open(t.Context(), url)
	is.True(err != nil && strings.Contains(err.Error(), "stop all servers that use it"))
	is.NoErr(old.Write(t.Context(), engine.Serializable, note("old"))) // the attempt has no effect
	is.NoErr(old.Close())
	is.Equal(notes(t, openShared(t, url, third)), []string{"old"})
}

// TestTwoUpgradesAtOnce starts several new programs at once beside an old one that writes.
func TestTwoUpgradesAtOnce(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	url := pgtest.URL(t)
	old := openShared(t, url, first)
	dbs := make([]*postgres.DB, 4)
	var opening sync.WaitGroup
	for i := range dbs {
		opening.Go(func() {
			db, err := second.open(t.Context(), url)
			if err != nil {
				t.Error(err)
				return
			}
			dbs[i] = db
		})
		opening.Go(func() {
			for n := range 20 {
				id := string(rune('a'+i)) + string(rune('a'+n))
				if err := old.Write(t.Context(), engine.Serializable, note(id)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	opening.Wait()
	is.True(!t.Failed())
	is.Equal(len(notes(t, dbs[0])), 80)
	for _, db := range dbs {
		is.NoErr(db.Close())
	}
}

// TestAdditionsAreRefusedOfTheSameVersion changes the tables by hand. Only a newer program may add.
func TestAdditionsAreRefusedOfTheSameVersion(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	url := pgtest.URL(t)
	is.NoErr(openShared(t, url, first).Close())
	change(t, url, `CREATE TABLE theirs (id text)`)
	_, err := first.open(t.Context(), url)
	is.True(err != nil && strings.Contains(err.Error(), "unknown to this program"))
	change(t, url, `DROP TABLE theirs; ALTER TABLE log DROP COLUMN size`)
	_, err = second.open(t.Context(), url)
	is.True(err != nil && strings.Contains(err.Error(), "is missing"))
}

// TestUpgradeWithoutALock ends the lock of an old process, so that a new one upgrades the tables as if the
// old one had ended. The old process is refused when it takes its lock again.
func TestUpgradeWithoutALock(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	url := pgtest.URL(t)
	p, through := throughProxy(t, url)
	old := openShared(t, through, first)
	is.NoErr(openShared(t, url, second).Close())
	p.refuse()
	change(t, url, endLocks)
	openShared(t, url, third)
	p.setDown(false)
	eventually(t, "the old process to be refused", func() bool {
		err := old.Write(t.Context(), engine.Serializable, note("old"))
		return err != nil && strings.Contains(err.Error(), "another process has opened the database since")
	})
}
