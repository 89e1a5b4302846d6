package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"journeyman/store/engine"
)

// readers are the connections that only read. A connection is opened when a query finds none idle.
// A query waits while all slots are in use.
type readers struct {
	dsn    string
	slots  chan struct{} // holds a token for each connection in use
	closed chan struct{} // closed by Close

	prepared sync.Map // the keys are the texts of all queries

	mu   sync.Mutex // guards the fields below
	idle []*conn    // the most recently used one is last
	open int
}

func newReaders(dsn string) *readers {
	n := min(max(4, 2*runtime.GOMAXPROCS(0)), 16)
	return &readers{dsn: dsn, slots: make(chan struct{}, n), closed: make(chan struct{})}
}

// take returns a connection. The caller gives it back.
func (r *readers) take(ctx context.Context) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case r.slots <- struct{}{}:
	default:
		select {
		case r.slots <- struct{}{}:
		case <-r.closed:
			return nil, engine.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	c, err := r.idleOrNew()
	if err != nil {
		<-r.slots
	}
	return c, err
}

// idleOrNew returns the connection that was used last, or opens one.
func (r *readers) idleOrNew() (*conn, error) {
	r.mu.Lock()
	if r.isClosed() {
		r.mu.Unlock()
		return nil, engine.ErrClosed
	}
	if n := len(r.idle); n > 0 {
		c := r.idle[n-1]
		r.idle = r.idle[:n-1]
		r.mu.Unlock()
		return c, nil
	}
	r.open++
	r.mu.Unlock()
	c, err := openConn(r.dsn)
	if err != nil {
		r.mu.Lock()
		r.open--
		r.mu.Unlock()
	}
	return c, err
}

// isClosed reports whether Close was called.
func (r *readers) isClosed() bool {
	select {
	case <-r.closed:
		return true
	default:
		return false
	}
}

// give takes a connection back.
func (r *readers) give(c *conn) {
	c.ctx = context.Background()
	r.mu.Lock()
	// A connection whose snapshot could not be ended would return old rows.
	keep := !r.isClosed() && sqlite3.Xsqlite3_get_autocommit(c.tls, c.db) != 0
	if keep {
		r.idle = append(r.idle, c)
	} else {
		r.open--
	}
	r.mu.Unlock()
	if !keep {
		_ = c.close() // nothing was written
	}
	<-r.slots
}

// query runs a query on a connection that Rows.Close gives back.
func (r *readers) query(ctx context.Context, query string, args []any) (*Rows, error) {
	c, err := r.take(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := r.queryOn(ctx, c, query, args)
	if err != nil {
		r.give(c)
		return nil, err
	}
	rows.pool = r
	return rows, nil
}

// row runs a query of one row and reads it.
func (r *readers) row(ctx context.Context, query string, dest ...any) error {
	rows, err := r.query(ctx, query, nil)
	if err != nil {
		return err
	}
	if rows.Next() {
		err = rows.Scan(dest...)
	}
	return errors.Join(err, rows.Err(), rows.Close())
}

// queryOn runs a query on a connection.
func (r *readers) queryOn(ctx context.Context, c *conn, query string, args []any) (*Rows, error) {
	kept := len(c.stmts)
	st, err := c.stmt(query)
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	if len(c.stmts) > kept { // new on this connection
		r.prepared.Store(query, nil)
	}
	return st.query(ctx, args)
}

// closePatience is how long Close waits for connections in use.
const closePatience = 2 * time.Second

// Close closes the connections. It waits for those in use: the last one that closes changes files, and
// the caller may remove them or let another process have them. After closePatience, a connection is
// closed when it is given back.
func (r *readers) Close() error {
	if !r.close() {
		return nil
	}
	patience := time.NewTimer(closePatience)
	defer patience.Stop()
	for range cap(r.slots) {
		select {
		case r.slots <- struct{}{}: // a connection gives its token back after it is closed
		case <-patience.C:
			return r.closeIdle()
		}
	}
	return r.closeIdle()
}

// close makes take fail. It reports whether this is the first call.
func (r *readers) close() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isClosed() {
		return false
	}
	close(r.closed)
	return true
}

func (r *readers) closeIdle() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, c := range r.idle {
		errs = append(errs, c.close())
	}
	r.open -= len(r.idle)
	r.idle = nil
	return errors.Join(errs...)
}

// connections returns how many connections are open.
func (r *readers) connections() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open
}
