package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
	"journeyman/store/sqlite"
	"journeyman/store/storetest"
)

const orders = `
	-- An order; somebody's "comment".
	CREATE TABLE orders (
	    id    INTEGER PRIMARY KEY,
	    state TEXT NOT NULL DEFAULT 'new ( x' CHECK (state <> ''), -- how far it is
	    price INTEGER
	) STRICT;
	CREATE INDEX orders_by_state ON orders (state) WHERE price IS NOT NULL;`

// TestCheckSchema changes a database behind the program's back: the next start names what
// differs.
func TestCheckSchema(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ change, says string }{
		"as it was":          {``, ""},
		"Litestream's":       {`CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER); CREATE TABLE _litestream_lock (id INTEGER)`, ""},
		"statistics":         {`INSERT INTO orders (price) VALUES (1); ANALYZE`, ""},
		"same in other form": {`DROP INDEX orders_by_state; CREATE INDEX "orders_by_state" ON orders(state)  WHERE price IS NOT NULL -- x`, ""},
		"column renamed":     {`ALTER TABLE orders RENAME COLUMN state TO status`, `the table "orders" has no column "state"`},
		"column added":       {`ALTER TABLE orders ADD COLUMN note TEXT`, `the table "orders" has a column "note"`},
		"column dropped":     {`DROP INDEX orders_by_state; ALTER TABLE orders DROP COLUMN price`, `the table "orders" has no column "price"`},
		"table dropped":      {`DROP TABLE orders`, `the table "orders" is missing`},
		"table of others":    {`CREATE TABLE mine (x)`, `the table "mine" is unknown`},
		"index dropped":      {`DROP INDEX orders_by_state`, `the index "orders_by_state" of the table "orders" is missing`},
		"index differs":      {`DROP INDEX orders_by_state; CREATE INDEX orders_by_state ON orders (price)`, `"orders_by_state" of the table "orders" is declared differently`},
		"trigger":            {`CREATE TRIGGER t AFTER INSERT ON orders BEGIN DELETE FROM orders; END`, `the trigger "t" of the table "orders" is unknown`},
		"check dropped": {`DROP TABLE orders; CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT NOT NULL DEFAULT 'new ( x', price INTEGER) STRICT;
			CREATE INDEX orders_by_state ON orders (state) WHERE price IS NOT NULL`, `the table "orders" is declared differently`},
		"default differs": {`DROP TABLE orders; CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT NOT NULL DEFAULT 'new (x' CHECK (state <> ''), price INTEGER) STRICT;
			CREATE INDEX orders_by_state ON orders (state) WHERE price IS NOT NULL`, `the column "state" of the table "orders" is declared differently`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			path := filepath.Join(t.TempDir(), "a.db")
			is.NoErr(sqlite.Migrate(t.Context(), path, orders, nil))
			db := storetest.OpenFile(t, path)
			storetest.Run(t, db, tt.change)
			is.NoErr(db.Close())
			again, err := sqlite.Open(t.Context(), path, orders, nil)
			if tt.says == "" {
				is.NoErr(err)
				is.NoErr(again.Close())
				return
			}
			is.True(err != nil)                               // the change goes unnoticed
			is.True(strings.Contains(err.Error(), tt.says))   // the message names what differs
			is.True(strings.Contains(err.Error(), "Restore")) // and says what to do
		})
	}
}

// TestDamageIsRemembered reads pages that were overwritten. The first error is remembered,
// told once, and ends all later writes' pretence that the file is sound.
func TestDamageIsRemembered(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	path := filepath.Join(t.TempDir(), "a.db")
	is.NoErr(sqlite.Migrate(t.Context(), path, orders, nil))
	raw := storetest.OpenFile(t, path)
	storetest.Run(t, raw, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
		INSERT INTO orders (state, price) SELECT 'state ' || i, i FROM n`)
	is.NoErr(raw.Close())
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	is.NoErr(err)
	_, err = f.WriteAt([]byte(strings.Repeat("\xee", 40<<10)), 12<<10)
	is.NoErr(errors.Join(err, f.Close()))

	db := openAt(t, path, orders) // the pages of the schema are sound
	told := make(chan error, 2)
	db.OnDamage(func(err error) { told <- err })
	is.NoErr(db.Damage())
	err = db.QuickCheck(t.Context())
	is.True(errors.Is(err, sqlite.ErrDamaged)) // the check does not find the damage
	is.True(errors.Is(db.Damage(), sqlite.ErrDamaged))
	is.True(errors.Is(<-told, sqlite.ErrDamaged))
	rows, err := db.Query(t.Context(), `SELECT sum(price) FROM orders`)
	if err == nil {
		for rows.Next() {
		}
		err = db.Note(errors.Join(rows.Err(), rows.Close()))
	}
	is.True(errors.Is(err, sqlite.ErrDamaged)) // the sum of half of the rows is told as right
	is.Equal(len(told), 0)                     // told twice
}

// TestQuickCheckOfASoundFile does not hold up a checkpoint, and ends with its context.
func TestQuickCheckOfASoundFile(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := openAt(t, filepath.Join(t.TempDir(), "a.db"), orders)
	is.NoErr(db.QuickCheck(t.Context()))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	is.True(errors.Is(db.QuickCheck(ended), context.Canceled))
	is.NoErr(db.Damage()) // an end is no damage
}

// TestCheckBesideUses checks a table while the database is in use. The check ends with its context in
// the middle of the table. Without pauses, the check of the table would last about 15 ms.
func TestCheckBesideUses(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	path := filepath.Join(t.TempDir(), "a.db")
	is.NoErr(sqlite.Migrate(t.Context(), path, orders, nil))
	raw := storetest.OpenFile(t, path)
	storetest.Run(t, raw, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
		INSERT INTO orders (state, price) SELECT 'state ' || i, i FROM n`)
	is.NoErr(raw.Close())
	db := openAt(t, path, orders)
	used := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { used <- useUntil(ctx, db) }()
	var sound []string
	short, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	all := func(string) bool { return true }
	add := func(table string) error { sound = append(sound, table); return nil }
	err := db.CheckTables(short, all, add)
	is.True(errors.Is(err, context.DeadlineExceeded)) // the check goes on after its context has ended
	is.Equal(len(sound), 0)                           // a table counts as sound whose check was cut off
	is.NoErr(db.Damage())                             // an end is no damage
	begun := time.Now()
	is.NoErr(db.CheckTables(t.Context(), all, add))
	ordertest.Above(is, time.Since(begun), 60*time.Millisecond) // the check does not pause
	is.Equal(sound, []string{"orders"})
	stop()
	is.NoErr(<-used)
}

// useUntil reads from the database until ctx ends.
func useUntil(ctx context.Context, db *sqlite.DB) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		rows, err := db.Query(context.WithoutCancel(ctx), `SELECT state FROM orders WHERE id = 7`)
		if err == nil {
			err = rows.Close()
		}
		if err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func TestBlank(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	path := filepath.Join(t.TempDir(), "a.db")
	for _, tt := range []struct {
		make  func(db *sql.DB)
		blank bool
	}{
		{nil, true},
		{func(db *sql.DB) { storetest.Run(t, db, `PRAGMA journal_mode = WAL`) }, true},
		{func(db *sql.DB) { storetest.Run(t, db, `CREATE TABLE t (x)`) }, false},
		{func(db *sql.DB) { storetest.Run(t, db, `DROP TABLE t; PRAGMA user_version = 3`) }, false},
	} {
		if tt.make != nil {
			db := storetest.OpenFile(t, path)
			tt.make(db)
			is.NoErr(db.Close())
		}
		blank, err := sqlite.Blank(t.Context(), path)
		is.NoErr(err)
		is.Equal(blank, tt.blank)
	}
	is.NoErr(os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600))
	_, err := sqlite.Blank(t.Context(), path)
	is.True(sqlite.IsDamage(err)) // a file of something else
}
