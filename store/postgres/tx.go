package postgres

import (
	"context"
	"errors"
	"fmt"

	"journeyman/store/engine"
)

// A session is a transaction on a connection of the pool. It begins with its first statement, in
// the same round trip.
type session struct {
	db      *DB
	conn    *conn // nil after a broken connection that could not be renewed
	opening []string
	writes  bool // the last text of opening selects the epoch, and the id of the transaction
	id      string
	begun   bool
	pending []statement // that run with the next one
}

// run runs a statement of the session, after those that are pending.
func (s *session) run(ctx context.Context, query string, args []any) (*rows, error) {
	text, err := s.db.translated(query)
	if err != nil {
		return nil, err
	}
	results, err := s.send(ctx, statement{text, args})
	if err != nil {
		return nil, err
	}
	return results[len(results)-1], nil
}

// send runs the pending statements and one more.
func (s *session) send(ctx context.Context, more ...statement) ([]*rows, error) {
	list := append(s.pending, more...)
	s.pending = nil
	if s.begun {
		return s.conn.together(ctx, nil, list)
	}
	s.begun = true
	results, err := s.conn.together(ctx, s.opening, list)
	if err != nil && s.conn.reused && s.conn.broken() && ctx.Err() == nil {
		// Nothing was committed, so the statements can run again.
		if s.conn, err = s.db.pool.renew(ctx, s.conn); err != nil {
			return nil, err
		}
		results, err = s.conn.together(ctx, s.opening, list)
	}
	if err != nil {
		return nil, err
	}
	opened := len(s.opening)
	if s.writes {
		err = s.checkEpoch(results[opened-1])
	}
	return results[opened:], err
}

// checkEpoch returns an error if another process has opened the database since this one.
func (s *session) checkEpoch(r *rows) error {
	var epoch int64
	if !r.Next() {
		return errFenced
	}
	if err := r.Scan(&epoch, &s.id); err != nil {
		return err
	}
	if epoch != s.db.epoch {
		return errFenced
	}
	return nil
}

// end ends a transaction whose changes are not kept.
func (s *session) end(ctx context.Context) {
	if s.conn == nil || !s.begun || s.conn.broken() || s.conn.pg.TxStatus() == 'I' {
		return
	}
	// After an error, the connection is in no state to be used again, and put closes it.
	_ = s.conn.script(ctx, `ROLLBACK`)
}

// A tx is the transaction of one try of a write. After the first error of a statement, the server
// refuses all others.
type tx struct {
	engine.Effects
	session
	ctx context.Context // with a limit of time of its own, and without the caller's end
	err error           // the first error of a statement
}

// Query runs a query and reads its rows as a whole.
func (t *tx) Query(_ context.Context, query string, args ...any) (engine.Rows, error) {
	r, err := t.do(query, args)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Exec runs a statement and returns the number of rows that it changed.
func (t *tx) Exec(query string, args ...any) (int64, error) {
	r, err := t.do(query, args)
	if err != nil {
		return 0, err
	}
	return r.tag.RowsAffected(), nil
}

// ExecLater runs a statement together with the next one, or with the commit.
func (t *tx) ExecLater(query string, args ...any) error {
	if t.err != nil {
		return t.failedBefore()
	}
	text, err := t.db.translated(query)
	if err != nil {
		t.err = err
		return err
	}
	t.db.stats.Statements.Add(1)
	t.pending = append(t.pending, statement{text, args})
	return nil
}

// Insert runs an INSERT and returns the column num of the new row, or 0 if it made none.
func (t *tx) Insert(query string, args ...any) (int64, error) {
	r, err := t.do(query+returningNum, args)
	if err != nil || !r.Next() {
		return 0, err
	}
	var num int64
	err = r.Scan(&num)
	return num, err
}

// returningNum makes an INSERT a query for the number that the server has given to the new row.
const returningNum = ` RETURNING num`

// Note returns err: the server looks after its files itself.
func (t *tx) Note(err error) error { return err }

func (t *tx) do(query string, args []any) (*rows, error) {
	if t.err != nil {
		return nil, t.failedBefore()
	}
	t.db.stats.Statements.Add(1)
	r, err := t.run(t.ctx, query, args)
	t.err = err
	return r, err
}

// failedBefore returns the error of a statement after one that has failed.
func (t *tx) failedBefore() error {
	return fmt.Errorf("an earlier statement of the write has failed: %w", t.err)
}

// commit runs the pending statements and commits the transaction, in one round trip. If the
// connection breaks meanwhile, it asks the server on another one what has become of the transaction.
func (t *tx) commit() error {
	if !t.begun && len(t.pending) > 0 {
		// The epoch must be compared before the commit.
		if _, err := t.send(t.ctx); err != nil {
			return err
		}
	}
	if !t.begun {
		return nil // fn ran no statement
	}
	results, err := t.send(t.ctx, statement{text: commitText})
	if err != nil && t.conn.broken() {
		return t.db.settle(t.id, err)
	}
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	if tag := results[len(results)-1].tag.String(); tag != commitText {
		return fmt.Errorf("commit: the server answered %q", tag)
	}
	return nil
}

// A snapshot is a transaction that only reads.
type snapshot struct{ session }

// Query runs a query on the snapshot and reads its rows as a whole.
func (s *snapshot) Query(ctx context.Context, query string, args ...any) (engine.Rows, error) {
	s.db.stats.Reads.Add(1)
	if s.conn == nil {
		return nil, errSnapshotEnded
	}
	r, err := s.run(ctx, query, args)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// errSnapshotEnded follows the error of an earlier query.
var errSnapshotEnded = errors.New("the connection of the snapshot broke")

// Note returns err: the server looks after its files itself.
func (s *snapshot) Note(err error) error { return err }
