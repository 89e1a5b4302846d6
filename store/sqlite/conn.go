package sqlite

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	sqlite3 "modernc.org/sqlite/lib"
)

// This file and stmt.go, rows.go, assign.go and pool.go call SQLite without database/sql and its
// driver, for the statements of a running server. These statements are short. database/sql took a
// quarter of their time for unused column names, for two goroutines for the context of each query,
// and for locks. Code that runs rarely still uses database/sql.
//
// The calls were compared with those of the driver, modernc.org/sqlite v1.62.0. With a newer driver,
// compare them again, and change the number here: see TestDriverIsTheComparedOne.

// A conn is a connection to a database file. One goroutine at a time uses it, so SQLite takes
// no locks for it.
type conn struct {
	tls   *libc.TLS
	db    uintptr // the sqlite3 of C
	cell  uintptr // C memory, for two pointers that SQLite returns
	stmts map[string]*stmt

	// ctx is the context of the query that runs. SQLite calls stop from time to time, and stop ends
	// the query once ctx has ended. Only C memory points to stop besides this field.
	ctx  context.Context
	stop func(*libc.TLS, uintptr) int32
}

// stopSteps is the number of steps of SQLite's virtual machine between two calls of stop.
const stopSteps = 1000

// openConn opens the database that dsn names, and executes the pragmas of dsn in their order.
// Quotes and errors are handled as with _dqs=0 and _error_rc=1 in the driver of database/sql.
func openConn(dsn string) (c *conn, err error) {
	_, query, _ := strings.Cut(dsn, "?")
	options, err := url.ParseQuery(query)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	c = &conn{tls: libc.NewTLS(), stmts: map[string]*stmt{}, ctx: context.Background()}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("open database: %w", err), c.close())
		}
	}()
	if c.cell, err = c.allocate(2 * wordSize); err != nil {
		return c, err
	}
	if err := c.open(dsn); err != nil {
		return c, err
	}
	c.stop = func(*libc.TLS, uintptr) int32 { return libc.Bool32(c.ctx.Err() != nil) }
	sqlite3.Xsqlite3_progress_handler(c.tls, c.db, stopSteps, *(*uintptr)(unsafe.Pointer(&c.stop)), 0)
	for _, pragma := range options["_pragma"] {
		if err := c.exec("PRAGMA " + pragma); err != nil {
			return c, err
		}
	}
	return c, nil
}

// setPace makes the statements of the connection pause. They end once the context of the pace has
// ended.
func (c *conn) setPace(p *Pace) {
	c.stop = func(*libc.TLS, uintptr) int32 { return libc.Bool32(p.Pause() != nil) }
	sqlite3.Xsqlite3_progress_handler(c.tls, c.db, paceSteps, *(*uintptr)(unsafe.Pointer(&c.stop)), 0)
}

// column returns the texts of a query that has one column.
func (c *conn) column(ctx context.Context, query string, args ...any) ([]string, error) {
	st, err := c.stmt(query)
	if err != nil {
		return nil, err
	}
	return column[string](st.query(ctx, args))
}

// wordSize is the size of the largest C pointer, and of an argument of a variadic C function.
const wordSize = 8

// open opens the file.
func (c *conn) open(dsn string) error {
	name, err := libc.CString(dsn)
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, name)
	const flags = sqlite3.SQLITE_OPEN_READWRITE | sqlite3.SQLITE_OPEN_CREATE | sqlite3.SQLITE_OPEN_URI |
		sqlite3.SQLITE_OPEN_NOMUTEX | sqlite3.SQLITE_OPEN_EXRESCODE
	rc := sqlite3.Xsqlite3_open_v2(c.tls, name, c.cell, flags, 0)
	c.db = c.pointer(c.cell) // after an error, too, there is a connection that must be closed
	for _, quotes := range []int32{sqlite3.SQLITE_DBCONFIG_DQS_DDL, sqlite3.SQLITE_DBCONFIG_DQS_DML} {
		if rc == sqlite3.SQLITE_OK {
			rc = sqlite3.Xsqlite3_db_config(c.tls, c.db, quotes, libc.VaList(c.cell, int32(0), uintptr(0)))
		}
	}
	return c.error(rc)
}

// pointer returns the C pointer that is stored at an address.
func (c *conn) pointer(at uintptr) uintptr {
	return *(*uintptr)(unsafe.Pointer(unsafe.SliceData(libc.GoBytes(at, wordSize))))
}

func (c *conn) allocate(n int) (uintptr, error) {
	p := libc.Xmalloc(c.tls, types.Size_t(n))
	if p == 0 {
		return 0, fmt.Errorf("no memory for %d bytes", n)
	}
	return p, nil
}

// close closes the connection and its statements. It may be called again.
func (c *conn) close() error {
	if c.tls == nil {
		return nil
	}
	for _, st := range c.stmts {
		st.finalize()
	}
	clear(c.stmts)
	err := c.error(sqlite3.Xsqlite3_close_v2(c.tls, c.db))
	libc.Xfree(c.tls, c.cell)
	c.tls.Close()
	c.tls, c.db = nil, 0
	return err
}

// exec runs a statement to its end and does not keep it.
func (c *conn) exec(query string) error {
	st, err := c.prepare(query, 0)
	if err != nil {
		return err
	}
	return st.exec(nil)
}

// run runs a statement to its end and keeps it. The context of an earlier query does not end it.
func (c *conn) run(query string) error {
	c.ctx = context.Background()
	st, err := c.stmt(query)
	if err != nil {
		return err
	}
	return st.exec(nil)
}

// stmt returns the statement of a query text. It prepares each text once and keeps the statement.
// While the rows of that statement are open, stmt returns another one, which is not kept.
func (c *conn) stmt(query string) (*stmt, error) {
	kept, ok := c.stmts[query]
	if ok && !kept.open {
		return kept, nil
	}
	st, err := c.prepare(query, sqlite3.SQLITE_PREPARE_PERSISTENT)
	if err == nil && !ok {
		c.stmts[query] = st
		st.kept = true
	}
	return st, err
}

// An engineError is an error of SQLite.
type engineError struct {
	code int32
	text string
}

// Error returns the text.
func (e *engineError) Error() string { return e.text }

// error returns the error of a result code, and nil if the code reports success.
func (c *conn) error(rc int32) error {
	switch rc {
	case sqlite3.SQLITE_OK, sqlite3.SQLITE_ROW, sqlite3.SQLITE_DONE:
		return nil
	}
	text := libc.GoString(sqlite3.Xsqlite3_errstr(c.tls, rc))
	// The connection's message may belong to another statement.
	if c.db != 0 && sqlite3.Xsqlite3_extended_errcode(c.tls, c.db)&0xff == rc&0xff {
		if more := libc.GoString(sqlite3.Xsqlite3_errmsg(c.tls, c.db)); more != text {
			text += ": " + more
		}
	}
	return &engineError{rc, fmt.Sprintf("%s (%d)", text, rc)}
}
