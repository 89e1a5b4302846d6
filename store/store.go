// Package store keeps everything Journeyman knows: organizations, workers, tasks,
// turns and their journal, in one SQLite file, and the bytes of files beside it.
// It holds the records, the queries, the rules of who may see what, and every
// state change, each named for what happens.
//
// It is the only package that knows SQL, and it imports nothing of ours. What it
// has answered is committed and survives kill -9 and power loss. It starts no
// work and talks to nobody: the runner and the handlers act on its rows.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
)

const databaseName = "journeyman.db"

// Options change what Open does. The zero value is right for a program.
type Options struct {
	Now        func() time.Time // the clock; time.Now where nil
	QueueLimit int              // most turns waiting at once; 10,000 where 0
	Timezone   *time.Location   // of cron schedules that name none; UTC where nil
}

// A Store is an open data folder. Its methods are safe for concurrent use.
type Store struct {
	dir        string
	lock       *os.File
	writer     *writer
	reads      *sql.DB
	prepared   sync.Map // query text to *sql.Stmt on reads
	now        func() time.Time
	zone       *time.Location // of cron schedules that name none
	queueLimit int64
	queued     atomic.Int64                          // turns with status pending
	fair       fairness                              // owned by the writer's goroutine
	lastUse    sync.Map                              // API key id to the minute its use was last noted
	onDelivery atomic.Pointer[func(workerID string)] // nil until someone wants to know
	counters   Counters
	backups    sync.Mutex    // held by the one backup or sweep under way
	sweepNext  int           // the folder of blobs to sweep next; guarded by backups
	naming     sync.Mutex    // held while a blob gets its name, or loses it
	durable    sync.Map      // folders of blobs that are durable themselves
	hashing    chan struct{} // has room for as many passwords as are hashed at once
	closing    sync.Once
	closed     error // what closing gave
}

// Open opens the data folder dir, making or upgrading its database: schema is the
// text of schema.sql, which must describe the newest version. It fails when
// another process has the folder open, and when the database is newer than this
// program.
func Open(ctx context.Context, dir, schema string, opt Options) (*Store, error) {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.QueueLimit == 0 {
		opt.QueueLimit = 10_000
	}
	if opt.Timezone == nil {
		opt.Timezone = time.UTC
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	lock, err := lockFolder(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, lock: lock, now: opt.Now, zone: opt.Timezone, queueLimit: int64(opt.QueueLimit),
		hashing: make(chan struct{}, runtime.GOMAXPROCS(0))}
	if err := s.open(ctx, schema); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, schema string) error {
	sqlite.StrictPragmas(true)
	path := filepath.Join(s.dir, databaseName)
	if err := migrate(ctx, path, schema, migrations); err != nil {
		return err
	}
	// The log holds 4,000 pages, as many as one page of its index knows, before they
	// are copied into the database: what changes often is copied once.
	w, err := openWriter(ctx, dsn(path, "&_pragma=foreign_keys(1)&_txlock=immediate&_pragma=synchronous(FULL)"+
		"&_pragma=journal_size_limit(67108864)&_pragma=wal_autocheckpoint(4000)"), &s.counters)
	if err != nil {
		return err
	}
	s.writer = w
	s.reads, err = sql.Open("sqlite", dsn(path, "&_pragma=query_only(1)"))
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	n := min(max(4, 2*runtime.GOMAXPROCS(0)), 16)
	s.reads.SetMaxOpenConns(n)
	s.reads.SetMaxIdleConns(n)
	if err := s.countQueue(ctx); err != nil {
		return err
	}
	return s.openBlobs()
}

// dsn is the address of the database file with what every connection needs.
// Pragmas travel here because one sent by Exec reaches one pooled connection.
func dsn(path, more string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() +
		"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=temp_store(MEMORY)&_dqs=0&_error_rc=1" + more
}

// Close waits for writes under way and closes the folder. Writes submitted after
// it fail. Closing twice is closing once.
func (s *Store) Close() error {
	s.closing.Do(func() { s.closed = s.close() })
	return s.closed
}

func (s *Store) close() error {
	var errs []error
	if s.writer != nil {
		errs = append(errs, s.writer.close())
	}
	if s.reads != nil {
		errs = append(errs, s.reads.Close())
	}
	return errors.Join(append(errs, s.lock.Close())...)
}

// Dir is the data folder.
func (s *Store) Dir() string { return s.dir }

// Ping reports whether the database can be written.
func (s *Store) Ping(ctx context.Context) error {
	return s.write(ctx, func(tx *Tx) error {
		_, err := tx.Exec(`UPDATE runners SET expires_at = expires_at`) // a real change: it needs room on the disk
		return err
	})
}

// write runs fn in the writer's next transaction and returns once that is
// committed, or with fn's error once fn's changes are undone. If ctx ends before
// fn has begun, fn never runs.
func (s *Store) write(ctx context.Context, fn func(tx *Tx) error) error {
	return s.writer.do(ctx, fn)
}

// millis is the present as the database writes it.
func (s *Store) millis() int64 { return s.now().UnixMilli() }

// stmt is query, prepared once on the read pool.
func (s *Store) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	if st, ok := s.prepared.Load(query); ok {
		return st.(*sql.Stmt), nil
	}
	st, err := s.reads.PrepareContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	if old, loaded := s.prepared.LoadOrStore(query, st); loaded {
		_ = st.Close()
		return old.(*sql.Stmt), nil
	}
	return st, nil
}

// A querier reads: the pool or, inside a write, the transaction.
type querier interface {
	query(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func (s *Store) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	st, err := s.stmt(ctx, query)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(ctx, args...)
}

// A scanner is a row to read.
type scanner interface{ Scan(dest ...any) error }

// all collects what scan makes of each row.
func all[T any](ctx context.Context, q querier, scan func(scanner) (T, error), query string, args ...any) ([]T, error) {
	rows, err := q.query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, rows.Err()
}

// one gives the first row, or sql.ErrNoRows.
func one[T any](ctx context.Context, q querier, scan func(scanner) (T, error), query string, args ...any) (T, error) {
	var zero T
	rows, err := q.query(ctx, query, args...)
	if err != nil {
		return zero, err
	}
	defer rows.Close()
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return zero, err
		}
		return zero, sql.ErrNoRows
	}
	return scan(rows)
}

func scanString(row scanner) (v string, err error) { err = row.Scan(&v); return v, err }
func scanInt(row scanner) (v int64, err error)     { err = row.Scan(&v); return v, err }
