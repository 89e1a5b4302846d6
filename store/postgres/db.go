// Package postgres is the engine for databases on a PostgreSQL server, version 14 or later. It
// contains a pool of connections, transactions that run again after a conflict, migrations, and a
// lock. The lock ensures that only one process at a time uses a database.
//
// The package knows no tables except its own. Callers pass SQL in the dialect of the embedded
// engine, and Translate and Schema convert it. Committed writes are as durable as the server's
// settings fsync and synchronous_commit permit.
//
// A write is one transaction, and the server runs transactions concurrently. So fn may run several
// times: see engine.DB. All rows of a query are read before the caller gets the first one. The
// reason is that callers nest queries, but a connection runs one query at a time.
//
// The server refuses two kinds of text, which are changed before they are stored: invalid UTF-8 and
// NUL become U+FFFD. NaN becomes NULL, as in SQLite.
//
// Errors never contain the password of the server.
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
	epoch    int64         // number of this opening of the database; see lock
	settling time.Duration // settleTime, except in tests
	limit    time.Duration // txTimeout, except in tests
	stats    *engine.Stats
	later    later

	settlers sync.WaitGroup     // one for each write with an unknown result: see settleLater
	asking   sync.Mutex         // held by the settler that asks for its result
	closing  context.Context    // of settlers
	stop     context.CancelFunc // ends closing

	limiter *limiter // of serializable writes

	texts sync.Map // translation of each statement that has run, by its text

	mu     sync.RWMutex // read-locked while a write is counted
	closed bool         // guarded by mu
	writes sync.WaitGroup
	close  func() error
}

var _ engine.DB = (*DB)(nil)

// Open opens the database of a URL, and creates or upgrades its tables: see migrate. It returns an
// error if the tables differ from schema, or if another process has the database open.
func Open(ctx context.Context, url, schema string, migrations []string) (*DB, error) {
	cfg, script, err := parse(url, schema)
	if err != nil {
		return nil, err
	}
	return openAlone(ctx, cfg, plan{script, migrations, int64(len(migrations) + 1)})
}

func parse(url, schema string) (cfg *config, script string, err error) {
	if cfg, err = parseConfig(url); err != nil {
		return nil, "", err
	}
	if script, err = Schema(schema); err != nil {
		return nil, "", fmt.Errorf("read the program's schema: %w", err)
	}
	return cfg, script, nil
}

func openAlone(ctx context.Context, cfg *config, p plan) (*DB, error) {
	l, err := acquire(ctx, cfg, 0)
	if err != nil {
		return nil, err
	}
	epoch, err := prepare(ctx, cfg, p)
	if err != nil {
		l.close()
		return nil, err
	}
	l.start(epoch)
	return open(cfg, l, epoch), nil
}

// prepare upgrades the database to the newest version and returns the new epoch.
func prepare(ctx context.Context, cfg *config, p plan) (epoch int64, err error) {
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
	if err := migrate(ctx, c, version, p); err != nil {
		return 0, err
	}
	return epoch, checkSchema(ctx, c, p.script) // the epoch of new tables is 0
}

func open(cfg *config, l *lock, epoch int64) *DB {
	db := &DB{lock: l, epoch: epoch, settling: settleTime, limit: txTimeout, stats: engine.NewStats()}
	db.pool = newPool(cfg, slices.Concat(db.opening(engine.Serializable), db.opening(engine.Locking)[:1]))
	db.limiter = newLimiter(cap(db.pool.writers))
	db.later = newLater()
	db.closing, db.stop = context.WithCancel(context.Background())
	db.close = sync.OnceValue(db.closeAll)
	go db.later.run(db) // ends during Close
	return db
}

// opening returns the statements that begin a write. They check the epoch, so that a process that
// has lost the lock unnoticed changes nothing. LOCK TABLE comes first: nextEpoch waits for
// transactions that hold this lock, and later statements see its update. Any other first statement
// would already fix the snapshot of a serializable transaction. The lock mode conflicts with that
// of nextEpoch, but not with that of pg_dump. The last statement also returns the transaction id.
func (db *DB) opening(mode engine.Mode) []string {
	level := `SERIALIZABLE`
	if mode == engine.Locking {
		level = `READ COMMITTED`
	}
	return []string{`BEGIN ISOLATION LEVEL ` + level, `LOCK TABLE meta IN ROW SHARE MODE`, selectOpening}
}

// openingAlone is opening for a write that waits until all other writes have ended, and that holds off
// new ones until it ends. The lock comes before the snapshot, so the write meets no conflict. Each
// write takes its lock of meta first and never a stronger one later, so no deadlock results.
func (db *DB) openingAlone(mode engine.Mode) []string {
	opening := db.opening(mode)
	opening[1] = `LOCK TABLE meta IN EXCLUSIVE MODE`
	return opening
}

// Query runs a query outside of a transaction and reads all its rows.
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
	read, cancel := lingering(ctx)
	defer cancel()
	r, err := c.query(read, text, args)
	if err != nil && (c.reused && c.broken() || c.stale) && ctx.Err() == nil {
		if c, err = db.pool.renew(read, c); err != nil {
			return nil, err
		}
		r, err = c.query(read, text, args)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Note returns err unchanged, because the server manages its own files.
func (db *DB) Note(err error) error { return err }

// Snapshot calls fn. All queries of fn see the same state of the database.
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

// Statements returns the text of each statement that has run, in the caller's dialect. The texts of
// Insert end with RETURNING num.
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

// Stats returns the counters, which continue to change.
func (db *DB) Stats() *engine.Stats { return db.stats }

// enter counts a write that Close must wait for, or returns ErrClosed.
func (db *DB) enter() error {
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.closed {
		return engine.ErrClosed
	}
	db.writes.Add(1)
	return nil
}

// Close waits for running writes and closes the database. It releases the lock last. Further calls
// do nothing.
func (db *DB) Close() error { return db.close() }

func (db *DB) closeAll() error {
	db.mu.Lock()
	db.closed = true
	close(db.later.queue)
	db.mu.Unlock()
	<-db.later.done
	db.writes.Wait()
	db.stop()
	db.settlers.Wait()
	db.pool.close()
	db.lock.close()
	return nil
}

// maxLater limits the queued writes of WriteLater.
const maxLater = 1024

// A later runs the writes of WriteLater, one after the other.
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
		// The write is optional, so its error is ignored.
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
	default: // the queue is full, and fn is optional
	}
}

// errNotMade means that the schema contains tables of another program.
var errNotMade = errors.New("the schema holds tables that this program did not make: give it a database of its own")
