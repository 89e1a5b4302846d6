package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"journeyman/store/engine"
)

// A session is a transaction on a connection of the pool. It begins in the same round trip as its
// first statement.
type session struct {
	db      *DB
	conn    *conn // nil after a broken connection that could not be renewed
	opening []string
	writes  bool // the last text of opening selects the epoch and the transaction id
	id      string
	begun   bool
	pending []statement // statements to send with the next one
}

// run runs the pending statements and then query.
func (s *session) run(ctx context.Context, query string, args []any) (*rows, error) {
	text, err := s.db.translated(query)
	if err != nil {
		return nil, err
	}
	results, err := s.send(ctx, statement{text: text, args: args})
	if err != nil {
		return nil, err
	}
	return results[len(results)-1], nil
}

// send runs the pending statements, followed by more. It returns the rows of each.
func (s *session) send(ctx context.Context, more ...statement) ([]*rows, error) {
	list := append(s.pending, more...)
	s.pending = nil
	if s.begun {
		results, err := s.conn.together(ctx, nil, list)
		return results, deliver(list, results, err)
	}
	s.begun = true
	results, err := s.conn.together(ctx, s.opening, list)
	if err != nil && (s.conn.reused && s.conn.broken() || s.conn.stale) && ctx.Err() == nil {
		// Nothing was committed, so the statements can run again.
		if s.conn, err = s.db.pool.renew(ctx, s.conn); err != nil {
			return nil, err
		}
		results, err = s.conn.together(ctx, s.opening, list)
	}
	opened := len(s.opening)
	if len(results) < opened {
		return nil, err
	}
	if s.writes {
		if err := s.checkEpoch(results[opened-1]); err != nil {
			return nil, err
		}
	}
	results = results[opened:]
	return results, deliver(list, results, err)
}

// deliver calls the read functions of statements with their results. It returns the first error of
// these functions, or else err. A statement may fail just because an earlier result was not the
// expected one, so the error of read counts more.
func deliver(list []statement, results []*rows, err error) error {
	for i, r := range results {
		if list[i].read == nil {
			continue
		}
		if err := list[i].read(r); err != nil {
			return err
		}
	}
	return err
}

// checkEpoch returns an error if another process has opened the database since this one did.
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

// end rolls back a transaction.
func (s *session) end(ctx context.Context) {
	if s.conn == nil || !s.begun || s.conn.broken() || s.conn.pg.TxStatus() == 'I' {
		return
	}
	// After an error the connection is not reusable, and put closes it.
	_ = s.conn.script(ctx, `ROLLBACK`)
}

// A tx is the transaction of one try of a write. After the first failed statement, the server
// refuses all others.
type tx struct {
	engine.Effects
	session
	ctx context.Context // has its own time limit, and does not end with the caller's context
	err error           // the first error of a statement
}

// Query runs a query and reads all its rows.
func (t *tx) Query(_ context.Context, query string, args ...any) (engine.Rows, error) {
	r, err := t.do(query, args)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Exec runs a statement and returns the number of changed rows.
func (t *tx) Exec(query string, args ...any) (int64, error) {
	r, err := t.do(query, args)
	if err != nil {
		return 0, err
	}
	return r.tag.RowsAffected(), nil
}

// ExecLater queues a statement, which is sent with the next one or with the commit.
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
	t.pending = append(t.pending, statement{text: text, args: args})
	return nil
}

// QueryLater queues a query like ExecLater. A commit never begins before read has returned.
func (t *tx) QueryLater(read func(rows engine.Rows) error, query string, args ...any) error {
	if err := t.ExecLater(query, args...); err != nil {
		return err
	}
	t.pending[len(t.pending)-1].read = read
	return nil
}

// Insert runs an INSERT. It returns the column num of the new row, or 0 if there is no new row.
func (t *tx) Insert(query string, args ...any) (int64, error) {
	r, err := t.do(query+returningNum, args)
	if err != nil || !r.Next() {
		return 0, err
	}
	var num int64
	err = r.Scan(&num)
	return num, err
}

// returningNum makes an INSERT return the number that the server has assigned to the new row.
const returningNum = ` RETURNING num`

// Note returns err unchanged, because the server manages its own files.
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

// failedBefore returns the error for a statement after a failed one.
func (t *tx) failedBefore() error {
	return fmt.Errorf("an earlier statement of the write has failed: %w", t.err)
}

// commit runs the pending statements and commits the transaction, in one round trip. If the
// connection breaks meanwhile, it asks the server for the transaction's status on another
// connection.
func (t *tx) commit() error {
	if !t.begun && len(t.pending) > 0 || slices.ContainsFunc(t.pending, statement.isRead) {
		// The epoch and the rows must be checked before the commit.
		if _, err := t.send(t.ctx); err != nil {
			return err
		}
	}
	if !t.begun {
		return nil // fn ran no statement
	}
	results, err := t.send(t.ctx, statement{text: commitText})
	if err != nil && t.conn.broken() {
		return t.db.settle(transaction{t.id, t.conn.since}, err)
	}
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	if tag := results[len(results)-1].tag.String(); tag != commitText {
		return fmt.Errorf("commit: the server answered %q", tag)
	}
	return nil
}

// A snapshot is a read-only transaction.
type snapshot struct{ session }

// Query runs a query on the snapshot and reads all its rows.
func (s *snapshot) Query(ctx context.Context, query string, args ...any) (engine.Rows, error) {
	s.db.stats.Reads.Add(1)
	if s.conn == nil {
		return nil, &connectionError{doing: "query a snapshot", err: errSnapshotEnded}
	}
	if err := ctx.Err(); err != nil {
		return nil, err // only a query that runs already may outlive its caller
	}
	read, cancel := lingering(ctx)
	defer cancel()
	r, err := s.run(read, query, args)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// errSnapshotEnded is the error of queries after the connection broke.
var errSnapshotEnded = errors.New("the connection of the snapshot broke")

// Note returns err unchanged, because the server manages its own files.
func (s *snapshot) Note(err error) error { return err }
