// Package engine declares the interfaces through which the store uses a database. Each engine is a
// package beside it: sqlite is the embedded one, and postgres is a client of a server.
//
// It also holds the code that both engines share. It contains no table and no SQL, and of this
// module it imports only histogram.
package engine

import (
	"context"
	"errors"
)

// ErrClosed means that the database was closed before the write was submitted.
var ErrClosed = errors.New("store is closed")

// A DB is an open database. Its methods are safe for concurrent use.
type DB interface {
	// Query, outside of a transaction, sees all changes that were committed before it.
	Querier

	// Write runs fn in a transaction. It returns nil once fn's changes are committed and survive
	// a loss of power, and fn's error once they are undone. If ctx ends before fn has begun, fn
	// never runs.
	//
	// fn may run several times, because transactions can conflict. It must assign the variables of
	// its caller before it reads them. Effects that cannot be undone belong in OnCommit. fn must
	// return the first error of a statement.
	Write(ctx context.Context, mode Mode, fn func(tx Tx) error) error

	// WriteLater runs fn in a later transaction and does not wait for it. fn is dropped if too many
	// writes wait, so it must write only data that may be lost.
	WriteLater(fn func(tx Tx) error)

	// Snapshot calls fn, whose queries all see the same state of the database.
	Snapshot(ctx context.Context, fn func(q Querier) error) error

	// Waiting returns the number of writes that have not begun yet.
	Waiting() int

	// Stats returns the live counters.
	Stats() *Stats

	// Close waits for the writes under way and closes the database. Writes that are submitted
	// later fail with ErrClosed.
	Close() error
}

// A Querier runs queries.
type Querier interface {
	// Query runs a query. The query is in the SQL of SQLite, in the subset that each engine can
	// translate.
	Query(ctx context.Context, query string, args ...any) (Rows, error)

	// Note returns err, an error of the rows of a query. The database records an error that shows
	// damage of its file.
	Note(err error) error
}

// A Tx is the transaction in which a write runs. It is valid only during the write.
type Tx interface {
	// Query ignores its context, because the transaction must not be interrupted.
	Querier

	// Exec runs a statement and returns the number of rows that it changed.
	Exec(query string, args ...any) (int64, error)

	// ExecLater runs a statement whose result the write does not need. An engine may send it together
	// with the next statement or with the commit, which then return its error. If many
	// writes change the same row, each should do so in its last statements: the lock is then brief.
	ExecLater(query string, args ...any) error

	// QueryLater is ExecLater for a query. read is called with its rows before the result of any later
	// statement is returned, and before the commit. An error of read is an error of the statement. So
	// the later statements may already have run, but their changes are undone.
	QueryLater(read func(rows Rows) error, query string, args ...any) error

	// Insert runs an INSERT and returns the new row's integer primary key, the column num.
	Insert(query string, args ...any) (int64, error)

	// OnCommit registers fn to run once the write's changes are committed, so that nobody is
	// notified of changes that a reader cannot see yet. fn must not block.
	OnCommit(fn func())

	// OnUndo registers fn to run if the write's changes are undone, so that changes in memory can
	// be undone, too. fn must not block.
	OnUndo(fn func())
}

// Rows are the rows of a query. They belong to one goroutine.
type Rows interface {
	// Next goes to the next row and reports whether there is one. After the last row and after an
	// error it closes the rows.
	Next() bool

	// Scan reads the present row into the variables to which dest points. It converts values as
	// database/sql does.
	Scan(dest ...any) error

	// Err returns the error that has ended the rows early.
	Err() error

	// Close ends the query. It does nothing if the rows are closed.
	Close() error
}

// A Mode is the isolation of concurrent writes. An engine that runs one write after the other
// ignores it.
type Mode int

const (
	// Serializable writes have the same result as if they ran one after the other.
	Serializable Mode = iota

	// Locking writes see what others have committed meanwhile. Each must lock a row before it
	// decides by it, or decide in the WHERE clause of the statement that changes the row. They
	// conflict less often.
	Locking
)
