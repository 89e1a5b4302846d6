package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// A stmt is a prepared statement of a connection.
type stmt struct {
	c      *conn
	handle uintptr // the sqlite3_stmt of C
	params int
	kept   bool // the connection keeps it
	open   bool // its rows are being read

	// buffer is C memory of size bytes that holds the texts and blobs of the parameters.
	buffer uintptr
	size   int
	bound  []int32 // numbers of the parameters that point into the buffer
}

const (
	// smallestBuffer is the size of the first buffer of a statement.
	smallestBuffer = 256
	// keptBuffer is the size of the largest buffer that a statement keeps.
	keptBuffer = 16 << 10
	// longestValues bounds the total size of the texts and blobs of one execution; SQLite bounds
	// only each of them.
	longestValues = 1 << 30
)

// prepare prepares a text that is one statement.
func (c *conn) prepare(query string, flags uint32) (*stmt, error) {
	text, err := libc.CString(query)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(c.tls, text)
	rc := sqlite3.Xsqlite3_prepare_v3(c.tls, c.db, text, int32(len(query)+1), flags, c.cell, c.cell+wordSize)
	if err := c.error(rc); err != nil {
		return nil, err
	}
	st := &stmt{c: c, handle: c.pointer(c.cell)}
	if rest := query[c.pointer(c.cell+wordSize)-text:]; st.handle == 0 || strings.TrimSpace(rest) != "" {
		st.finalize()
		return nil, fmt.Errorf("not one statement: %q", query)
	}
	st.params = int(sqlite3.Xsqlite3_bind_parameter_count(c.tls, st.handle))
	return st, nil
}

// finalize ends the statement. It may be called again.
func (st *stmt) finalize() {
	// The result code is that of the last execution, whose caller has seen it.
	sqlite3.Xsqlite3_finalize(st.c.tls, st.handle)
	st.handle = 0
	st.freeBuffer()
}

// freeBuffer frees the buffer. No parameter may point into it.
func (st *stmt) freeBuffer() {
	libc.Xfree(st.c.tls, st.buffer)
	st.buffer, st.size = 0, 0
}

// exec runs a statement to its end.
func (st *stmt) exec(args []any) error {
	if err := st.bind(args); err != nil {
		return err
	}
	rc := int32(sqlite3.SQLITE_ROW)
	for rc == sqlite3.SQLITE_ROW {
		rc = sqlite3.Xsqlite3_step(st.c.tls, st.handle)
	}
	err := st.c.error(rc)
	if end := st.reset(err); err == nil {
		err = end
	}
	return err
}

// query begins a query.
func (st *stmt) query(ctx context.Context, args []any) (*Rows, error) {
	r := &Rows{st: st, ctx: ctx}
	if err := st.bind(args); err != nil {
		return nil, err
	}
	st.open = true
	if r.step(); r.err != nil {
		_ = st.reset(r.err)
		return nil, r.err
	}
	r.columns = int(sqlite3.Xsqlite3_column_count(st.c.tls, st.handle))
	return r, nil
}

// unbind makes the parameters that point into the buffer NULL, so that SQLite never has a pointer to
// freed memory. The others keep their values: SQLite 3.54 plans some statements again if a parameter
// changes from 0 or 1, and sqlite3_clear_bindings has the same effect. The statement must be reset.
func (st *stmt) unbind() {
	for _, i := range st.bound {
		sqlite3.Xsqlite3_bind_null(st.c.tls, st.handle, i) // fails only for a running statement
	}
	st.bound = st.bound[:0]
}

// reset ends an execution. It returns the error of SQLite unless the caller knows it already.
func (st *stmt) reset(known error) error {
	rc := sqlite3.Xsqlite3_reset(st.c.tls, st.handle)
	var err error
	if known == nil {
		err = st.c.error(rc)
	}
	st.open = false
	st.unbind()
	if !st.kept {
		st.finalize()
	} else if st.size > keptBuffer {
		st.freeBuffer()
	}
	return err
}

// bind sets the parameters. It converts arguments as database/sql does. After an error it closes a
// statement that is not kept.
func (st *stmt) bind(args []any) (err error) {
	defer func() {
		if err != nil {
			st.unbind()
		}
		if err != nil && !st.kept {
			st.finalize()
		}
	}()
	if len(args) != st.params {
		return fmt.Errorf("the statement has %d parameters, not %d", st.params, len(args))
	}
	var room [32]any // avoids an allocation
	values := append(room[:0], args...)
	need := 1 // an empty text needs an address
	for i, v := range values {
		if values[i], err = plain(v); err != nil {
			return fmt.Errorf("parameter %d: %w", i+1, err)
		}
		switch v := values[i].(type) {
		case string:
			need += len(v)
		case []byte:
			need += len(v)
		}
	}
	if err := st.reserve(need); err != nil {
		return err
	}
	at := 0
	for i, v := range values {
		n, err := st.bindOne(int32(i+1), v, at)
		if err != nil {
			return fmt.Errorf("parameter %d: %w", i+1, err)
		}
		at += n
	}
	return nil
}

// plain returns an argument as one of the types that bindOne knows.
func plain(arg any) (any, error) {
	switch arg.(type) {
	case nil, int64, int, string, []byte:
		return arg, nil
	}
	return driver.DefaultParameterConverter.ConvertValue(arg)
}

// reserve makes the buffer large enough for n bytes.
func (st *stmt) reserve(n int) (err error) {
	if n <= st.size || st.params == 0 {
		return nil
	}
	if n > longestValues {
		return &engineError{sqlite3.SQLITE_TOOBIG, "string or blob too big"}
	}
	st.freeBuffer()
	n = max(n, 2*min(n, keptBuffer/2), smallestBuffer)
	if st.buffer, err = st.c.allocate(n); err == nil {
		st.size = n
	}
	return err
}

// bindOne sets a parameter. It returns the number of bytes that it has written to the buffer at
// offset at.
func (st *stmt) bindOne(i int32, value any, at int) (n int, err error) {
	tls, rc := st.c.tls, int32(0)
	p := st.buffer + uintptr(at)
	switch v := value.(type) {
	case nil:
		rc = sqlite3.Xsqlite3_bind_null(tls, st.handle, i)
	case int64:
		rc = sqlite3.Xsqlite3_bind_int64(tls, st.handle, i, v)
	case int:
		rc = sqlite3.Xsqlite3_bind_int64(tls, st.handle, i, int64(v))
	case bool:
		rc = sqlite3.Xsqlite3_bind_int64(tls, st.handle, i, int64(libc.Bool32(v)))
	case float64:
		rc = sqlite3.Xsqlite3_bind_double(tls, st.handle, i, v)
	case string:
		n = copy(libc.GoBytes(p, len(v)), v)
		st.bound = append(st.bound, i)
		rc = sqlite3.Xsqlite3_bind_text(tls, st.handle, i, p, int32(n), 0)
	case []byte:
		if v == nil {
			rc = sqlite3.Xsqlite3_bind_null(tls, st.handle, i)
			break
		}
		n = copy(libc.GoBytes(p, len(v)), v)
		st.bound = append(st.bound, i)
		rc = sqlite3.Xsqlite3_bind_blob(tls, st.handle, i, p, int32(n), 0)
	default: // a time.Time: the store writes times as integers
		return 0, fmt.Errorf("the type %T is not known", value)
	}
	return n, st.c.error(rc)
}
