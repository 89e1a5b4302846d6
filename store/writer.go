package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	maxBatch   = 256  // operations in one transaction
	queueDepth = 1024 // operations waiting; beyond it submitters wait
)

var errClosed = errors.New("store is closed")

// A writer owns the only connection that writes. It groups the operations that
// wait into one transaction, so that one sync of the disk serves them all, and
// answers each after COMMIT. Each has a savepoint: one that fails leaves the
// others.
type writer struct {
	db    *sql.DB
	tx    Tx
	queue chan *operation
	done  chan struct{}
	most  atomic.Int64 // operations in one transaction; maxBatch but in measurements

	counters *Counters

	mu     sync.RWMutex // held for reading while sending on queue
	closed bool
}

// An operation is a function to run in a transaction and the way to answer its
// submitter.
type operation struct {
	ctx   context.Context
	fn    func(tx *Tx) error
	taken atomic.Bool // by the writer, who runs it, or by the submitter, who gives it up: whoever is first
	undo  []func()    // run where the changes are undone, last first
	after []func()    // run once the changes are committed, in order
	err   error
	reply chan error // holds one answer, so that the writer never waits for a submitter
}

// A Tx is the transaction an operation runs in. It is valid only during the
// operation.
type Tx struct {
	conn *sql.Conn
	stmt map[string]*sql.Stmt
	op   *operation
}

func openWriter(ctx context.Context, dsn string, counters *Counters) (*writer, error) {
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	db.SetMaxOpenConns(1)
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open database: %w", err), db.Close())
	}
	w := &writer{
		db:    db,
		tx:    Tx{conn: conn, stmt: map[string]*sql.Stmt{}},
		queue: make(chan *operation, queueDepth),
		done:  make(chan struct{}),

		counters: counters,
	}
	w.most.Store(maxBatch)
	go w.loop()
	return w, nil
}

// do runs fn in the next transaction and gives its outcome. A ctx that ends gives
// up an operation that still waits. One that has begun is seen through: fn writes
// to its caller's variables, and the outcome is a moment away.
func (w *writer) do(ctx context.Context, fn func(tx *Tx) error) error {
	op := &operation{ctx: ctx, fn: fn, reply: make(chan error, 1)}
	if err := w.submit(op); err != nil {
		return err
	}
	select {
	case err := <-op.reply:
		return err
	case <-ctx.Done():
		if op.taken.CompareAndSwap(false, true) {
			return ctx.Err()
		}
		return <-op.reply
	}
}

// offer has fn run in the next transaction without waiting for it. Where the queue
// is full it is dropped.
func (w *writer) offer(fn func(tx *Tx) error) {
	op := &operation{ctx: context.Background(), fn: fn, reply: make(chan error, 1)}
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return
	}
	select {
	case w.queue <- op:
	default:
	}
}

func (w *writer) submit(op *operation) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return errClosed
	}
	select {
	case w.queue <- op:
		return nil
	case <-op.ctx.Done():
		return op.ctx.Err()
	}
}

// close lets what was submitted finish.
func (w *writer) close() error {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.queue)
	}
	w.mu.Unlock()
	<-w.done
	var errs []error
	for _, st := range w.tx.stmt {
		errs = append(errs, st.Close())
	}
	return errors.Join(append(errs, w.tx.conn.Close(), w.db.Close())...)
}

func (w *writer) loop() {
	defer close(w.done)
	batch := make([]*operation, 0, maxBatch)
	for op := range w.queue {
		batch = w.commit(append(batch[:0], op))
	}
}

// collect adds the operations that wait. It waits for none: while a batch commits,
// the next one gathers by itself.
func (w *writer) collect(batch []*operation) []*operation {
	for int64(len(batch)) < w.most.Load() {
		select {
		case op, ok := <-w.queue:
			if !ok {
				return batch
			}
			batch = append(batch, op)
		default:
			return batch
		}
	}
	return batch
}

// commit runs a batch and those who come until it commits, and answers them all.
// Nobody hears of success before COMMIT.
func (w *writer) commit(batch []*operation) []*operation {
	batch, err := w.run(batch)
	for _, op := range batch {
		if err != nil {
			op.err = Unavailable(err)
		}
		if op.err != nil {
			op.undone()
		} else {
			op.committed()
		}
		op.reply <- op.err
	}
	return batch
}

// run gives an error when the transaction as a whole failed, with all that were to
// be in it.
func (w *writer) run(batch []*operation) ([]*operation, error) {
	if _, err := w.tx.Exec(`BEGIN IMMEDIATE`); err != nil {
		return batch, errors.Join(err, w.rollback()) // of one before that could not be rolled back
	}
	for done := 0; done < len(batch); {
		for ; done < len(batch); done++ {
			if err := w.runOne(batch[done]); err != nil {
				return batch, errors.Join(err, w.rollback())
			}
		}
		// Who is about to submit may do so first: it costs nothing where nobody is,
		// and a sync of the disk less where somebody is.
		runtime.Gosched()
		batch = w.collect(batch)
	}
	if _, err := w.tx.Exec(`COMMIT`); err != nil {
		return batch, errors.Join(err, w.rollback())
	}
	w.counters.Commits.Add(1)
	w.counters.Operations.Add(int64(len(batch)))
	return batch, nil
}

// runOne runs one operation in its savepoint. Its own failure is kept for its
// submitter; what it returns has broken the transaction for all. The submitter's
// context is looked at before and never passed to a statement: interrupting one
// would roll back the whole transaction.
func (w *writer) runOne(op *operation) error {
	if op.err = op.ctx.Err(); op.err != nil {
		return nil
	}
	if !op.taken.CompareAndSwap(false, true) {
		op.err = context.Canceled // given up; nobody reads this
		return nil
	}
	if _, err := w.tx.Exec(`SAVEPOINT op`); err != nil {
		return err
	}
	w.tx.op = op
	op.err = recovered(func() error { return op.fn(&w.tx) })
	if op.err != nil {
		if _, err := w.tx.Exec(`ROLLBACK TO op`); err != nil {
			return errors.Join(op.err, err)
		}
		op.undone()
		op.err = Unavailable(op.err)
	}
	_, err := w.tx.Exec(`RELEASE op`)
	return err
}

func (w *writer) rollback() error {
	_, err := w.tx.Exec(`ROLLBACK`)
	var e *sqlite.Error
	if errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_ERROR {
		return nil // the failure had rolled it back already
	}
	return err
}

// recovered turns a panic in an operation into its error: the writer serves
// everybody and must outlive it.
func recovered(fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in a write: %v\n%s", r, debug.Stack())
		}
	}()
	return fn()
}

// ifUndone has fn run should the operation's changes be undone, so that what was
// counted in memory along with them can be taken back. fn must not block.
func (tx *Tx) ifUndone(fn func()) { tx.op.undo = append(tx.op.undo, fn) }

// ifCommitted has fn run once the operation's changes are committed, so that others
// hear of what is there. fn must not block.
func (tx *Tx) ifCommitted(fn func()) { tx.op.after = append(tx.op.after, fn) }

func (op *operation) committed() {
	for _, fn := range op.after {
		fn()
	}
}

func (op *operation) undone() {
	for _, fn := range slices.Backward(op.undo) {
		fn()
	}
	op.undo = nil
}

func (tx *Tx) prepare(query string) (*sql.Stmt, error) {
	if st, ok := tx.stmt[query]; ok {
		return st, nil
	}
	st, err := tx.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	tx.stmt[query] = st
	return st, nil
}

// Exec runs a statement and gives the number of rows it changed.
func (tx *Tx) Exec(query string, args ...any) (int64, error) {
	st, err := tx.prepare(query)
	if err != nil {
		return 0, err
	}
	res, err := st.ExecContext(context.Background(), args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// Insert runs an INSERT and gives the new row's num.
func (tx *Tx) Insert(query string, args ...any) (int64, error) {
	st, err := tx.prepare(query)
	if err != nil {
		return 0, err
	}
	res, err := st.ExecContext(context.Background(), args...)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// query makes a Tx a querier; ctx is not used, see runOne.
func (tx *Tx) query(_ context.Context, query string, args ...any) (*sql.Rows, error) {
	st, err := tx.prepare(query)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(context.Background(), args...)
}
