// Package sqlite is the embedded database engine: one writer that groups the operations of many
// callers into one transaction, a pool of connections that only read, migrations, copies, and
// the lock of a data folder.
//
// It contains no table, and of this module it imports only engine. A write that has returned is
// committed, and survives kill -9 and power loss. Pragmas are in the connection string, because an
// executed pragma applies to only one pooled connection.
package sqlite

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	modernc "modernc.org/sqlite"

	"journeyman/store/engine"
)

// A DB is an open database file. Its methods are safe for concurrent use.
type DB struct {
	writer atomic.Pointer[writer] // nil while the database is open for reading only
	path   string
	sync   string // the pragma of its connections that names what a commit waits for
	stats  *engine.Stats
	health health

	switching sync.RWMutex // held while readers are replaced, and for reading while a query begins
	readers   *readers     // guarded by switching
}

// newDB sets the options of the driver, which apply to the whole process. A commit syncs the data of
// the log and its size, but not its times: that is as durable, and quicker.
func newDB(path string) *DB {
	modernc.StrictPragmas(true)
	_, _ = modernc.Fdatasync(true) // where the system has no such call, a commit syncs everything
	return &DB{path: path, sync: "&_pragma=synchronous(FULL)", stats: engine.NewStats()}
}

// Open creates or upgrades the database file at path, as Migrate does, and opens it. It refuses
// a database whose tables differ from schema.
func Open(ctx context.Context, path, schema string, migrations []string) (*DB, error) {
	return newDB(path).opened(ctx, schema, migrations)
}

// OpenVolatile is Open for tests: commits do not wait for the disk. They survive the death of the
// process, but not the loss of power.
func OpenVolatile(ctx context.Context, path, schema string, migrations []string) (*DB, error) {
	db := newDB(path)
	db.sync = "&_pragma=synchronous(OFF)"
	return db.opened(ctx, schema, migrations)
}

func (db *DB) opened(ctx context.Context, schema string, migrations []string) (*DB, error) {
	if err := db.openWhole(ctx, schema, migrations); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func (db *DB) openWhole(ctx context.Context, schema string, migrations []string) error {
	if err := Migrate(ctx, db.path, schema, migrations); err != nil {
		return err
	}
	r := newReaders(dsn(db.path, reading+db.sync)) // the last one that closes moves the log into the file
	err := r.checkSchema(ctx, db.path, schema)
	if err == nil {
		err = db.open(r)
	}
	if err != nil {
		return errors.Join(err, r.Close())
	}
	return nil
}

func (db *DB) open(r *readers) error {
	// The write-ahead log holds 4,000 pages, as many as one page of its index can
	// name, before they are copied into the database. So a page that changes often
	// is copied once.
	const options = "&_pragma=foreign_keys(1)" +
		"&_pragma=journal_size_limit(67108864)&_pragma=wal_autocheckpoint(4000)"
	w, err := openWriter(dsn(db.path, options+db.sync), db.stats, &db.health)
	if err != nil {
		return err
	}
	db.writer.Store(w)
	db.readers = r
	return nil
}

// reading holds the options of a connection that only reads.
const reading = "&_pragma=query_only(1)"

// dsn returns the connection string of the database file, with the pragmas that every connection
// needs, and more. auto_vacuum comes before journal_mode, because journal_mode writes the first
// page of a new file. After that, auto_vacuum has no effect. In a file that has tables, auto_vacuum
// is the mode of its copies. It takes the write lock, so connections that only read leave it out.
func dsn(path, more string) string {
	vacuum := "&_pragma=auto_vacuum(2)"
	if strings.HasPrefix(more, reading) || more == "" { // a copy of the pages has the mode of the original
		vacuum = ""
	}
	return uri(path) + "?_pragma=busy_timeout(5000)" + vacuum +
		"&_pragma=journal_mode(WAL)&_pragma=temp_store(MEMORY)&_dqs=0&_error_rc=1" + more
}

func uri(path string) string { return "file:" + (&url.URL{Path: path}).EscapedPath() }

// Close waits for the writes under way and closes the database. Writes that are
// submitted later fail with engine.ErrClosed.
func (db *DB) Close() error {
	var err error
	if w := db.writer.Load(); w != nil {
		err = w.close()
	}
	db.switching.RLock()
	defer db.switching.RUnlock()
	if db.readers != nil {
		err = errors.Join(err, db.readers.Close())
	}
	return err
}

// Write runs fn in the writer's next transaction. It returns nil once that
// transaction is committed, and fn's error once fn's changes are undone. If ctx
// ends before fn has begun, fn never runs. An fn that has begun runs to its end,
// because it writes to its caller's variables.
// It returns ErrReadOnly while the database is open for reading only.
// The mode does not matter, because the writer runs one operation after the other.
func (db *DB) Write(ctx context.Context, _ engine.Mode, fn func(tx engine.Tx) error) error {
	w := db.writer.Load()
	if w == nil {
		return ErrReadOnly
	}
	return w.do(ctx, fn)
}

// WriteLater submits fn for the writer's next transaction and does not wait for it. fn is dropped
// if the queue is full, so it must write only data that may be lost.
func (db *DB) WriteLater(fn func(tx engine.Tx) error) {
	if w := db.writer.Load(); w != nil {
		w.offer(fn)
	}
}

// Query runs a query on a connection that only reads. The statement is prepared
// once and kept.
func (db *DB) Query(ctx context.Context, query string, args ...any) (engine.Rows, error) {
	db.stats.Reads.Add(1)
	db.switching.RLock()
	defer db.switching.RUnlock()
	rows, err := db.readers.query(ctx, query, args)
	if err != nil {
		return nil, db.Note(err)
	}
	return rows, nil
}

// Stats returns the live counters.
func (db *DB) Stats() *engine.Stats { return db.stats }

// Waiting returns the number of operations that the writer has not taken yet.
func (db *DB) Waiting() int {
	if w := db.writer.Load(); w != nil {
		return len(w.queue)
	}
	return 0
}

// RepeatWrites makes the writer run each operation twice, and undo the first run. Tests use it
// to find operations that are not safe to repeat. An engine whose transactions conflict would
// have to repeat them. It has no effect while the database is open for reading only.
func (db *DB) RepeatWrites() {
	if w := db.writer.Load(); w != nil {
		w.repeat.Store(true)
	}
}

// Statements returns the text of each statement that was run, reads and writes,
// so that a test can look at their query plans. No write may be under way.
func (db *DB) Statements() []string {
	var texts []string
	db.readers.prepared.Range(func(text, _ any) bool {
		texts = append(texts, text.(string))
		return true
	})
	for text := range db.writer.Load().tx.conn.stmts {
		texts = append(texts, text)
	}
	return texts
}
