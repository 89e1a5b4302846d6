// Package postgres is the engine whose database is on a PostgreSQL server, version 14 or later: a
// pool of connections, transactions that run again after a conflict, migrations, and the lock of a
// database, which one process at a time uses.
//
// It knows no table but its own, and gets SQL as the embedded engine does: Translate and Schema
// return the server's form of it. What it acknowledges is as safe as the server's settings fsync
// and synchronous_commit make it.
//
// A write is one transaction, which the server runs beside others. So fn may run many times: see
// engine.DB. All rows of a query are read before the caller sees the first, because a connection
// runs one query at a time and callers nest them.
//
// Two kinds of text are changed when they are stored, because the server refuses them: bytes that
// are not UTF-8 become U+FFFD, and so does NUL. NaN becomes NULL, as in SQLite.
//
// No error contains the password of the server.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"journeyman/store/engine"
)

// A DB is an open database. Its methods are safe for concurrent use.
type DB struct {
	pool     *pool
	lock     *lock
	epoch    int64         // counts the processes that have opened the database; this one's own
	settling time.Duration // settleTime, but for tests
	stats    *engine.Stats
	later    later

	unsettled *unsettled

	limiter *limiter // of serializable writes

	texts sync.Map // the translation of each statement that has run

	mu     sync.RWMutex // held for reading while a write is counted
	closed bool         // guarded by mu
	writes sync.WaitGroup
	close  func() error
}

var _ engine.DB = (*DB)(nil)

// Open opens the database of a URL, and creates or upgrades its tables: see migrate. It refuses a
// database whose tables differ from schema, and one that another process has open.
func Open(ctx context.Context, url, schema string, migrations []string) (*DB, error) {
	cfg, err := parseConfig(url)
	if err != nil {
		return nil, err
	}
	script, err := Schema(schema)
	if err != nil {
		return nil, fmt.Errorf("read the program's schema: %w", err)
	}
	l, err := acquire(ctx, cfg)
	if err != nil {
		return nil, err
	}
	epoch, err := prepare(ctx, cfg, script, migrations)
	if err != nil {
		l.close()
		return nil, err
	}
	l.start(epoch)
	return open(cfg, l, epoch), nil
}

// prepare brings the database to the newest version and returns the new epoch.
func prepare(ctx context.Context, cfg *config, script string, migrations []string) (epoch int64, err error) {
	c, err := connect(ctx, cfg)
	if err != nil {
		return 0, err
	}
	defer c.close()
	if err := checkServer(ctx, c); err != nil {
		return 0, err
	}
	version, err := readVersion(ctx, c)
	if err != nil {
		return 0, fmt.Errorf("read database version: %w", err)
	}
	if version > 0 {
		// First, so that a process that has lost the lock writes nothing into newer tables.
		if epoch, err = nextEpoch(ctx, c); err != nil {
			return 0, err
		}
	}
	if err := migrate(ctx, c, version, script, migrations); err != nil {
		return 0, err
	}
	return epoch, checkSchema(ctx, c, script) // the epoch of new tables is 0
}

func open(cfg *config, l *lock, epoch int64) *DB {
	db := &DB{lock: l, epoch: epoch, settling: settleTime, stats: engine.NewStats()}
	db.pool = newPool(cfg, slices.Concat(db.opening(engine.Serializable), db.opening(engine.Locking)[:1]))
	db.limiter = newLimiter(cap(db.pool.writers))
	db.later = newLater()
	db.unsettled = newUnsettled()
	db.close = sync.OnceValue(db.closeAll)
	go db.later.run(db)     // ends with Close
	go db.unsettled.run(db) // likewise
	return db
}

// opening returns the statements that begin a write. They compare the epoch, so that a process
// that has lost the lock and does not know it changes nothing. The lock of the table comes first:
// nextEpoch waits for those who have it, and a statement after it sees what nextEpoch has done.
// LOCK TABLE is the only one that does not fix what a serializable transaction sees. Its mode meets
// that of nextEpoch, and not that of pg_dump. The last statement also returns the transaction's id.
func (db *DB) opening(mode engine.Mode) []string {
	level := `SERIALIZABLE`
	if mode == engine.Locking {
		level = `READ COMMITTED`
	}
	return []string{`BEGIN ISOLATION LEVEL ` + level, `LOCK TABLE meta IN ROW SHARE MODE`, selectOpening}
}

// Query runs a query outside of a transaction and reads its rows as a whole.
func (db *DB) Query(ctx context.Context, query string, args ...any) (engine.Rows, error) {
	db.stats.Reads.Add(1)
	text, err := db.translated(query)
	if err != nil {
		return nil, err
	}
	c, err := db.pool.get(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { db.pool.put(c) }()
	r, err := c.query(ctx, text, args)
	if err != nil && (c.reused && c.broken() || c.stale) && ctx.Err() == nil {
		if c, err = db.pool.renew(ctx, c); err != nil {
			return nil, err
		}
		r, err = c.query(ctx, text, args)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Note returns err: the server looks after its files itself.
func (db *DB) Note(err error) error { return err }

// Snapshot calls fn, whose queries all see the database of one moment.
func (db *DB) Snapshot(ctx context.Context, fn func(q engine.Querier) error) error {
	c, err := db.pool.get(ctx)
	if err != nil {
		return err
	}
	s := &snapshot{session{db: db, conn: c, opening: []string{`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`}}}
	defer func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		s.end(limited)
		db.pool.put(s.conn)
	}()
	return fn(s)
}

// translated returns the server's form of a statement.
func (db *DB) translated(query string) (string, error) {
	if text, ok := db.texts.Load(query); ok {
		return text.(string), nil
	}
	text, err := Translate(query)
	if err != nil {
		return "", fmt.Errorf("translate a statement for PostgreSQL: %w", err)
	}
	db.texts.Store(query, text)
	return text, nil
}

// Statements returns the text of each statement that was run, in the form in which the caller
// wrote it. Those of Insert end with RETURNING num.
func (db *DB) Statements() []string {
	texts := map[string]bool{}
	db.texts.Range(func(text, _ any) bool {
		texts[text.(string)] = true
		return true
	})
	return slices.Sorted(maps.Keys(texts))
}

// Waiting returns the number of writes that have not begun.
func (db *DB) Waiting() int {
	return db.limiter.length() + int(db.pool.waiting.Load()) + len(db.later.queue)
}

// Stats returns the counters, which go on counting.
func (db *DB) Stats() *engine.Stats { return db.stats }

// enter counts a write, for which Close waits.
func (db *DB) enter() error {
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.closed {
		return engine.ErrClosed
	}
	db.writes.Add(1)
	return nil
}

// Close waits for the writes under way and closes the database. It gives up the lock last. A
// second call does nothing.
func (db *DB) Close() error { return db.close() }

func (db *DB) closeAll() error {
	db.mu.Lock()
	db.closed = true
	close(db.later.queue)
	db.mu.Unlock()
	<-db.later.done
	db.writes.Wait()
	db.unsettled.close()
	db.pool.close()
	db.lock.close()
	return nil
}

// maxLater is the most writes that wait without a caller.
const maxLater = 1024

// A later runs the writes for which no caller waits, one after the other.
type later struct {
	queue chan func(tx engine.Tx) error // closed by Close
	done  chan struct{}                 // closed when run returns
}

func newLater() later {
	return later{queue: make(chan func(tx engine.Tx) error, maxLater), done: make(chan struct{})}
}

func (l *later) run(db *DB) {
	defer close(l.done)
	for fn := range l.queue {
		// The write is dispensable, and nobody waits for its error.
		_ = db.write(context.Background(), engine.Serializable, fn)
	}
}

// WriteLater runs fn in a later transaction and does not wait for it: see engine.DB.
func (db *DB) WriteLater(fn func(tx engine.Tx) error) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.closed {
		return
	}
	select {
	case db.later.queue <- fn:
	default: // the queue is full, and fn is dispensable
	}
}

// errNotMade means that a database has tables, and not those of this program.
var errNotMade = errors.New("the schema holds tables that this program did not make: give it a database of its own")
