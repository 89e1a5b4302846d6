// Package engine declares the interfaces through which the store uses a database. Two packages
// implement them: sqlite is an embedded database, and postgres is a client of a server.
//
// Package engine also contains code that both implementations share. It contains no SQL, knows no
// table, and imports no package of this module.
package engine

import (
	"context"
	"errors"
)

// ErrClosed is the error of calls that were not served before the database was closed.
var ErrClosed = errors.New("store is closed")

// A DB is an open database. Its methods are safe for concurrent use.
type DB interface {
	// The Querier's Query runs outside of a transaction. It sees all changes that were committed
	// before the call.
	Querier

	// Write runs fn in a transaction. It returns nil when fn's changes are committed and survive a
	// power failure. If fn returns an error, Write undoes fn's changes and returns the error. If ctx
	// ends before fn has begun, fn never runs.
	//
	// fn may run several times, because transactions can conflict. So it must set the variables that
	// it shares with its caller before it reads them. Effects that cannot be undone belong in
	// OnCommit. fn must return the first error of a statement.
	Write(ctx context.Context, mode Mode, fn func(tx Tx) error) error

	// WriteLater returns at once, and fn runs in a later transaction. If too many writes wait, fn is
	// dropped. So fn must write only data that may be lost.
	WriteLater(fn func(tx Tx) error)

	// Snapshot calls fn. All queries of fn see the same state of the database.
	Snapshot(ctx context.Context, fn func(q Querier) error) error

	// Waiting returns the number of writes that have not begun yet.
	Waiting() int

	// Stats returns the counters, which continue to change.
	Stats() *Stats

	// Close waits for the writes that were submitted before, and closes the database. Later writes
	// fail with ErrClosed.
	Close() error
}

// A Querier runs queries.
type Querier interface {
	// Query runs a query. It is written in the SQL of SQLite, and uses only what each engine can
	// translate. The caller closes the rows.
	Query(ctx context.Context, query string, args ...any) (Rows, error)

	// Note returns err unchanged. The caller passes each error of Rows to it, because the database
	// records errors that show damage of its file.
	Note(err error) error
}

// A Tx is the transaction in which a write runs. It is valid only during the write.
type Tx interface {
	// The Querier's Query ignores its context, because the transaction must not be interrupted.
	Querier

	// Exec runs a statement and returns the number of rows that it changed.
	Exec(query string, args ...any) (int64, error)

	// ExecLater runs a statement whose result the write does not need. The engine may send it to the
	// server together with the next statement or with the commit, which then return its error. A row
	// that many writes change should be changed last, so that each write locks it only briefly.
	ExecLater(query string, args ...any) error

	// QueryLater runs a query as ExecLater runs a statement. It calls read with the rows before the
	// result of any later statement is returned, and before the commit. An error of read undoes the
	// write, although later statements may already have run.
	QueryLater(read func(rows Rows) error, query string, args ...any) error

	// Insert runs an INSERT and returns the new row's integer primary key, the column num.
	Insert(query string, args ...any) (int64, error)

	// OnCommit registers fn to run after the write's changes are committed. Notifications belong
	// there, because before the commit a reader does not see the changes. fn must not block.
	OnCommit(fn func())

	// OnUndo registers fn to run if the write's changes are undone. fn undoes changes of the memory
	// that belong to the write. fn must not block.
	OnUndo(fn func())
}

// Rows are the rows of a query. They belong to one goroutine.
type Rows interface {
	// Next advances to the next row and reports whether there is one. After the last row, and after
	// an error, it closes the rows.
	Next() bool

	// Scan copies the columns of the current row into the variables to which dest points. It
	// converts values as database/sql does.
	Scan(dest ...any) error

	// Err returns the error that ended the rows early, or nil.
	Err() error

	// Close ends the query. It does nothing if the rows are closed.
	Close() error
}

// A Mode is the isolation of concurrent writes. An engine that runs its writes one after the other
// ignores the mode.
type Mode int

const (
	// Serializable writes have the same result as if they ran one after the other.
	Serializable Mode = iota

	// Locking writes conflict less often, but each statement sees what other writes have committed
	// before it. A write that depends on a row must lock the row before it reads it. Or the statement
	// that changes the row must test it in its WHERE clause.
	Locking
)
