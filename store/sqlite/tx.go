package sqlite

import (
	"context"
	"fmt"

	sqlite3 "modernc.org/sqlite/lib"

	"journeyman/store/engine"
)

// A Tx is the transaction in which an operation runs. It is valid only during the
// operation.
type Tx struct {
	conn *conn
	op   *operation

	health *health
	stats  *engine.Stats
}

// OnUndo registers fn to run if the operation's changes are undone, so that changes in memory can
// be undone, too. fn must not block.
func (tx *Tx) OnUndo(fn func()) { tx.op.OnUndo(fn) }

// OnCommit registers fn to run once the operation's changes are committed, so that nobody is
// notified of changes that a reader cannot see yet. fn must not block.
func (tx *Tx) OnCommit(fn func()) { tx.op.OnCommit(fn) }

// Exec runs a statement and returns the number of rows that it changed.
func (tx *Tx) Exec(query string, args ...any) (int64, error) {
	if err := tx.exec(query, args); err != nil {
		return 0, err
	}
	return sqlite3.Xsqlite3_changes64(tx.conn.tls, tx.conn.db), nil
}

// ExecLater runs a statement at once.
func (tx *Tx) ExecLater(query string, args ...any) error { return tx.exec(query, args) }

// QueryLater runs a query at once.
func (tx *Tx) QueryLater(read func(rows engine.Rows) error, query string, args ...any) error {
	rows, err := tx.Query(context.Background(), query, args...)
	if err != nil {
		return err
	}
	return read(rows)
}

// Insert runs an INSERT and returns the new row's integer primary key.
func (tx *Tx) Insert(query string, args ...any) (int64, error) {
	if err := tx.exec(query, args); err != nil {
		return 0, err
	}
	return sqlite3.Xsqlite3_last_insert_rowid(tx.conn.tls, tx.conn.db), nil
}

// Query runs a query inside the transaction. It ignores the context: an
// interrupted statement would roll back the operations of other callers, too.
func (tx *Tx) Query(_ context.Context, query string, args ...any) (engine.Rows, error) {
	st, err := tx.prepare(query)
	if err != nil {
		return nil, err
	}
	rows, err := st.query(context.Background(), args)
	if err != nil {
		return nil, tx.Note(err)
	}
	return rows, nil
}

func (tx *Tx) exec(query string, args []any) error {
	st, err := tx.prepare(query)
	if err != nil {
		return err
	}
	return tx.Note(st.exec(args))
}

func (tx *Tx) prepare(query string) (*stmt, error) {
	tx.stats.Statements.Add(1) // each call of prepare runs the statement once
	st, err := tx.conn.stmt(query)
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", tx.Note(err))
	}
	return st, nil
}
