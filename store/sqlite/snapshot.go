package sqlite

import (
	"context"
	"database/sql"
	"errors"
)

// A Snapshot reads the database as it was at one moment, whatever is written
// meanwhile. It belongs to one goroutine.
type Snapshot struct {
	db *DB
	r  *readers // those that tx belongs to
	tx *sql.Tx

	unprepared []string // queries that the readers have not prepared yet
}

// Snapshot calls fn, whose queries all see the database of one moment.
func (db *DB) Snapshot(ctx context.Context, fn func(s *Snapshot) error) error {
	db.stats.Reads.Add(1)
	db.switching.RLock()
	r := db.readers
	tx, err := r.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	db.switching.RUnlock()
	if err != nil {
		return err
	}
	s := &Snapshot{db: db, r: r, tx: tx}
	err = recovered(func() error { return fn(s) })
	if end := tx.Rollback(); err == nil && !errors.Is(end, sql.ErrTxDone) { // done: ctx has ended
		err = end
	}
	for _, query := range s.unprepared {
		if failed := db.prepare(ctx, query); failed != nil {
			return errors.Join(err, failed)
		}
	}
	return err
}

// prepare prepares a query for later readers.
func (db *DB) prepare(ctx context.Context, query string) error {
	db.switching.RLock()
	defer db.switching.RUnlock()
	_, err := db.stmt(ctx, db.readers, query)
	return err
}

// Query runs a query in the snapshot. A new query is prepared after the snapshot: to
// prepare it now could mean to wait for the connection that the snapshot itself has.
func (s *Snapshot) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if st, ok := s.r.prepared.Load(query); ok {
		rows, err := s.tx.StmtContext(ctx, st.(*sql.Stmt)).QueryContext(ctx, args...)
		return rows, s.Note(err)
	}
	s.unprepared = append(s.unprepared, query)
	rows, err := s.tx.QueryContext(ctx, query, args...)
	return rows, s.Note(err)
}
