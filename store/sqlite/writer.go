package sqlite

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"journeyman/store/engine"
)

// MaxBatch is the maximum number of operations in one transaction.
const MaxBatch = 256

// queueDepth is the maximum number of waiting operations. Beyond it, submitters wait.
const queueDepth = 1024

// A writer owns the only connection that writes. It groups the waiting operations into one
// transaction, so that one sync of the disk serves all of them. It answers each operation after
// COMMIT: group commit. Each operation has its own savepoint, so that a failed one does not undo
// the others.
type writer struct {
	tx     Tx
	queue  chan *operation
	done   chan struct{} // closed when loop returns
	repeat atomic.Bool   // each operation runs twice
	stats  *engine.Stats

	mu     sync.RWMutex // held for reading while sending on queue
	closed bool
}

// An operation is a function to run in a transaction, and the way to answer the
// caller who submitted it.
type operation struct {
	engine.Effects
	ctx   context.Context
	fn    func(tx engine.Tx) error
	taken atomic.Bool // set by the writer when it runs fn, or by a submitter that gives up; the first one decides
	err   error
	begun time.Time  // of the submission
	reply chan error // has room for the one answer, so that the writer never waits for a submitter
}

func openWriter(dsn string, stats *engine.Stats, h *health) (*writer, error) {
	conn, err := openConn(dsn)
	if err != nil {
		return nil, err
	}
	w := &writer{
		tx:    Tx{conn: conn, health: h, stats: stats},
		queue: make(chan *operation, queueDepth),
		done:  make(chan struct{}),
		stats: stats,
	}
	go w.loop() // ends with close
	return w, nil
}

// do submits fn and waits for its result: see DB.Write.
func (w *writer) do(ctx context.Context, fn func(tx engine.Tx) error) error {
	op := &operation{ctx: ctx, fn: fn, begun: time.Now(), reply: make(chan error, 1)}
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
		return <-op.reply // the writer has begun the operation and will answer soon
	}
}

// offer submits fn and does not wait: see DB.WriteLater.
func (w *writer) offer(fn func(tx engine.Tx) error) {
	op := &operation{ctx: context.Background(), fn: fn, begun: time.Now(), reply: make(chan error, 1)}
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return
	}
	select {
	case w.queue <- op:
	default: // the queue is full: op is dropped
	}
}

func (w *writer) submit(op *operation) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return engine.ErrClosed
	}
	select {
	case w.queue <- op:
		return nil
	case <-op.ctx.Done():
		return op.ctx.Err()
	}
}

// close waits for the operations that were submitted before it.
func (w *writer) close() error {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.queue)
	}
	w.mu.Unlock()
	<-w.done // until then the loop uses the connection
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tx.conn.close()
}

func (w *writer) loop() {
	defer close(w.done)
	batch := make([]*operation, 0, MaxBatch)
	for op := range w.queue {
		batch = w.process(append(batch[:0], op))
	}
}

// collect adds the operations that wait to batch. It does not wait for more operations, because the
// next batch collects while this one commits.
func (w *writer) collect(batch []*operation) []*operation {
	for len(batch) < MaxBatch {
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

// process runs and commits a batch, with the operations that are submitted meanwhile, and answers
// each of them. No submitter gets success before COMMIT.
func (w *writer) process(batch []*operation) []*operation {
	batch, err := w.run(batch)
	full := false
	for _, op := range batch {
		if err != nil {
			op.err = err
		}
		if op.err != nil {
			op.Undone()
		} else {
			op.Committed()
		}
		w.stats.Write.UpdateDuration(op.begun)
		full = full || IsFull(op.err)
		op.reply <- op.err
	}
	if full {
		w.reuseLog()
	}
	return batch
}

// reuseLog copies the write-ahead log into the database, so that the next write begins the log
// anew. On a full disk the log cannot grow, but its own bytes can be overwritten. Commits copy
// only a log above a certain size, and on a full disk each commit fails before that.
func (w *writer) reuseLog() {
	// PASSIVE waits for no reader, so that the writer is not blocked. After an error, the log stays
	// as it is, and the next failed write tries again.
	_ = w.tx.conn.exec(`PRAGMA wal_checkpoint(PASSIVE)`)
}

// run returns the operations of the transaction, and an error if the
// transaction failed as a whole.
func (w *writer) run(batch []*operation) ([]*operation, error) {
	if _, err := w.tx.Exec(`BEGIN IMMEDIATE`); err != nil {
		// An earlier transaction may still be open if its rollback failed.
		return batch, errors.Join(err, w.rollback())
	}
	for done := 0; done < len(batch); {
		for ; done < len(batch); done++ {
			if err := w.runOne(batch[done]); err != nil {
				return batch, errors.Join(err, w.rollback())
			}
		}
		// Yield once, so that concurrent submitters join this batch and share its sync.
		runtime.Gosched()
		batch = w.collect(batch)
	}
	if _, err := w.tx.Exec(`COMMIT`); err != nil {
		return batch, errors.Join(err, w.rollback())
	}
	w.stats.Commits.Add(1)
	w.stats.Operations.Add(int64(len(batch)))
	w.stats.Batch.Update(float64(len(batch)))
	return batch, nil
}

// runOne runs one operation in its savepoint. It keeps the operation's own failure
// for the submitter, and returns an error only if the whole transaction is
// broken. The submitter's context is checked before and never passed to a
// statement: an interrupted statement would roll back the whole transaction.
func (w *writer) runOne(op *operation) error {
	if op.err = op.ctx.Err(); op.err != nil {
		return nil
	}
	if !op.taken.CompareAndSwap(false, true) {
		op.err = context.Canceled // the submitter gave up; nobody reads this
		return nil
	}
	if _, err := w.tx.Exec(`SAVEPOINT op`); err != nil {
		return err
	}
	w.tx.op = op
	op.err = engine.Recovered(func() error { return op.fn(&w.tx) })
	if w.repeat.Load() {
		if err := w.undo(op); err != nil {
			return errors.Join(op.err, err)
		}
		op.err = engine.Recovered(func() error { return op.fn(&w.tx) })
	}
	if op.err != nil {
		if err := w.undo(op); err != nil {
			return errors.Join(op.err, err)
		}
	}
	_, err := w.tx.Exec(`RELEASE op`)
	return err
}

// undo undoes all that the operation has done so far, in the database and in memory.
func (w *writer) undo(op *operation) error {
	if _, err := w.tx.Exec(`ROLLBACK TO op`); err != nil {
		return err
	}
	op.Undone()
	return nil
}

func (w *writer) rollback() error {
	_, err := w.tx.Exec(`ROLLBACK`)
	if codeOf(err)&0xff == sqlite3.SQLITE_ERROR {
		return nil // SQLite rolled the transaction back when it failed
	}
	return err
}
