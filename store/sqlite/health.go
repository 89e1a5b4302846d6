package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"journeyman/store/engine"
)

// ErrDamaged is in the chain of every error of a database whose file is damaged.
var ErrDamaged = errors.New("the database is damaged")

// IsDamage reports whether err means that the database file is damaged, or that the disk cannot
// read or write it.
func IsDamage(err error) bool {
	if errors.Is(err, ErrDamaged) {
		return true
	}
	code := codeOf(err)
	switch code & 0xff { // the primary code of an extended one
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return true
	case sqlite3.SQLITE_IOERR:
		return isDiskFault(code)
	}
	return false
}

// isDiskFault reports whether an I/O error means that bytes were lost. Other I/O errors come from
// locks or lack of memory, and a later attempt may succeed.
func isDiskFault(code int) bool {
	switch code {
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ,
		sqlite3.SQLITE_IOERR_DATA, sqlite3.SQLITE_IOERR_CORRUPTFS,
		sqlite3.SQLITE_IOERR_FSTAT, sqlite3.SQLITE_IOERR_MMAP:
		return true
	}
	// A failed write is not a fault, because a quota or the file size limit also causes it. The
	// transaction is then undone, and nothing is lost. A failed sync is not a fault either, because
	// a full thin volume causes it. The write-ahead log makes that safe: a commit whose sync fails
	// is undone, and a checkpoint whose sync fails is repeated from the log, which is reset only
	// after a successful sync.
	return false
}

// A health holds the first error that showed damage of the file. It is never reset, because a page
// that cannot be read now may have been read wrongly before.
type health struct {
	mu       sync.Mutex // guards the fields below
	err      error      // of the first damage; nil while no damage is known
	onDamage func(error)
}

// note returns err. If err shows that the file is damaged, note records it, and returns an error
// with ErrDamaged in its chain.
func (h *health) note(err error) error {
	if err == nil || !IsDamage(err) {
		return err
	}
	if !errors.Is(err, ErrDamaged) {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	h.mu.Lock()
	first, tell := h.err == nil, h.onDamage
	if first {
		h.err = err
	}
	h.mu.Unlock()
	if first && tell != nil {
		tell(err)
	}
	return err
}

func (h *health) damage() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// Damage returns the first error that showed that the file is damaged, or nil if none has.
func (db *DB) Damage() error { return db.health.damage() }

// OnDamage sets the function that is called once, with the first such error. fn must not block.
func (db *DB) OnDamage(fn func(error)) {
	db.health.mu.Lock()
	defer db.health.mu.Unlock()
	db.health.onDamage = fn
}

// Note returns err, an error of a reader of rows. The database records an error that shows damage
// of the file.
func (db *DB) Note(err error) error { return db.health.note(err) }

// Note does the same for the rows of a snapshot.
func (s *Snapshot) Note(err error) error { return s.db.health.note(err) }

// Note does the same for the rows of a query in a transaction.
func (tx *Tx) Note(err error) error { return tx.health.note(err) }

// QuickCheck looks for damage in the whole file. The database records the damage that is found.
func (db *DB) QuickCheck(ctx context.Context) error {
	return db.health.note(QuickCheck(ctx, db.path))
}

// CheckTables looks for damage in each table for which due returns true, and calls sound after a
// table without damage. While the database is in use, the check pauses most of the time, and half of the time
// otherwise. The database records the damage that is found.
func (db *DB) CheckTables(ctx context.Context, due func(table string) bool, sound func(table string) error) error {
	tables, err := column[string](db.Query(ctx, allTables))
	if err != nil || !slices.ContainsFunc(tables, due) {
		return err // after most starts: a connection for the check would parse the whole schema
	}
	pace := db.Pace(ctx)
	pace.share, pace.calm, pace.log = checkShare, checkCalm, db.path+"-wal"
	return db.health.note(checkTables(ctx, db.path, pace, due, sound))
}

// allTables is the query for the names of all tables that have pages.
const allTables = `SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0`

// QuickCheck looks for damage in the database file at path, table by table. Other processes
// may have it open.
func QuickCheck(ctx context.Context, path string) error {
	return checkTables(ctx, path, nil, func(string) bool { return true }, func(string) error { return nil })
}

// checkTables checks tables on a connection of its own. Each table is checked in a transaction of
// its own, because the write-ahead log grows as long as a transaction lasts.
func checkTables(ctx context.Context, path string, pace *Pace, due func(string) bool,
	sound func(string) error) (err error) {
	c, err := openConn(dsn(path, reading))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if pace != nil {
		c.setPace(pace)
	}
	tables, err := c.column(ctx, allTables)
	if err != nil {
		return fmt.Errorf("list tables: %w", err)
	}
	for _, table := range tables {
		if !due(table) {
			continue
		}
		begun := time.Now()
		verdict, err := c.column(ctx, `SELECT quick_check FROM pragma_quick_check(?)`, table)
		if err != nil {
			return fmt.Errorf("check table %s: %w", table, err)
		}
		if len(verdict) != 1 || verdict[0] != "ok" {
			return fmt.Errorf("%w: table %s: %s", ErrDamaged, table, first(verdict))
		}
		if err := errors.Join(sound(table), pauseAfter(ctx, time.Since(begun))); err != nil {
			return err
		}
	}
	return nil
}

// pauseAfter pauses after a table whose check took the given time, so that a checkpoint can run and
// requests get the processor.
func pauseAfter(ctx context.Context, took time.Duration) error {
	return engine.Pause(ctx, min(took/2, time.Second))
}

func first(list []string) string {
	if len(list) == 0 {
		return "no verdict"
	}
	return list[0]
}

// column reads the rows of a query that has one column. Its parameters are the results of the query.
func column[T any, R engine.Rows](rows R, err error) (list []T, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v T
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, rows.Err()
}

// Blank reports whether the file at path holds no database yet: it does not exist, is empty, or
// has neither a version nor a table.
func Blank(ctx context.Context, path string) (blank bool, err error) {
	size, err := fileSize(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && size == 0 {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if version, err := versionOf(ctx, path); err != nil || version != 0 {
		return false, err
	}
	err = withDatabase(path, "", func(c *sql.DB) error {
		var version, tables int
		err := c.QueryRowContext(ctx, `SELECT user_version, (SELECT count(*) FROM sqlite_schema)
			FROM pragma_user_version`).Scan(&version, &tables)
		blank = version == 0 && tables == 0
		return err
	})
	return blank, err
}
