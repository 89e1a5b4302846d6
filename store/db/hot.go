package db

import (
	"context"
	"errors"

	"journeyman/store/engine"
)

// This file runs the writes that every turn needs. A PostgreSQL server runs writes concurrently,
// and two serializable ones often conflict: one of them has to run again. So these writes run in
// the mode engine.Locking, where they wait for each other instead. This is correct only if their
// decisions do not depend on rows that a concurrent write can change. The doc comment of each write
// explains why that is so.
//
// PostgreSQL does not look for conflicts between a serializable write and a locking one. So if one
// reads what the other changes, one of two rules must hold. Both change the same row, or the reader
// locks the row that the other changes. A serializable write fails if it changes or locks a row
// that another write has changed since it began. Then it runs again.
//
// The order of locks is: a turn, its task, the turn behind it, then the sums of the organization in
// usage and spending. A write that only adds to a task locks the task first and no turn. AbortTask
// and the end of a turn with children lock several turns and sums in the order of the tree. They can
// deadlock with the writes of these children. Then PostgreSQL ends one of them, and it runs again.

// ErrSerialize ends a locking write that meets a case for which it is not made.
var ErrSerialize = errors.New("the write has to be serializable")

// A lockingTx is the transaction of a locking write.
type lockingTx struct{ Tx }

// IsLocking reports whether a write is locking. An embedded engine runs one write after the other, so
// none of its writes is.
func IsLocking(tx Tx) bool {
	_, ok := tx.(lockingTx)
	return ok
}

// Hot runs fn as a locking write if locking is true. If fn then returns ErrSerialize, it runs again
// as a serializable one.
func (d *DB) Hot(ctx context.Context, locking bool, fn func(tx Tx) error) error {
	if locking && d.OnServer() {
		err := d.writeIn(ctx, engine.Locking, func(tx Tx) error { return fn(lockingTx{tx}) })
		if !errors.Is(err, ErrSerialize) {
			return err
		}
	}
	return d.Write(ctx, fn)
}

// OneLater calls scan with the first row of a query, before the result of any later statement is
// returned: see engine.Tx. If there is no row, it returns the error without. If tx is not locking,
// scan is called before OneLater returns. So the caller can use the scanned values in its next
// query.
func OneLater(tx Tx, without error, scan func(Scanner) error, query string, args ...any) error {
	read := func(rows engine.Rows) error {
		_, err := first(tx, rows, func(row Scanner) (struct{}, error) { return struct{}{}, scan(row) })
		return NoRow(err, without)
	}
	if IsLocking(tx) {
		return Unavailable(tx.QueryLater(read, query, args...))
	}
	rows, err := tx.Query(context.Background(), query, args...)
	if err != nil {
		return Unavailable(err)
	}
	return read(rows)
}
