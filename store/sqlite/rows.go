package sqlite

import (
	"context"
	"errors"
	"fmt"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"journeyman/store/engine"
)

// Rows are the rows of a query. They belong to one goroutine. Close ends the query.
type Rows struct {
	st      *stmt // nil once the rows are closed
	ctx     context.Context
	columns int
	ahead   bool // the query has found a row that Next has not returned yet
	ended   bool // the query has no more rows
	err     error
	pool    *readers // Close gives the connection back to it; nil in a transaction
}

// step runs the query to its next row.
func (r *Rows) step() {
	c, rc := r.st.c, int32(sqlite3.SQLITE_DONE)
	if r.err = r.ctx.Err(); r.err == nil {
		c.ctx = r.ctx
		rc = sqlite3.Xsqlite3_step(c.tls, r.st.handle)
	}
	if rc == sqlite3.SQLITE_INTERRUPT {
		r.err = r.ctx.Err()
	}
	if r.err == nil {
		r.err = c.error(rc)
	}
	r.ahead = rc == sqlite3.SQLITE_ROW
	r.ended = !r.ahead
}

// Next goes to the next row and reports whether there is one. After the last row and after an
// error it closes the rows.
func (r *Rows) Next() bool {
	if r.st == nil {
		return false
	}
	if !r.ahead && !r.ended {
		r.step()
	}
	if r.ahead {
		r.ahead = false
		return true
	}
	if err := r.Close(); r.err == nil {
		r.err = err
	}
	return false
}

// Err returns the error that has ended the rows early.
func (r *Rows) Err() error { return r.err }

// Close ends the query. It does nothing if the rows are closed.
func (r *Rows) Close() error {
	if r.st == nil {
		return nil
	}
	c, err := r.st.c, r.st.reset(r.err)
	r.st = nil
	if r.pool != nil {
		r.pool.give(c)
	}
	return err
}

// Scan reads the present row into the variables to which dest points. It converts values as
// database/sql does.
func (r *Rows) Scan(dest ...any) error {
	if r.st == nil {
		return errors.New("the rows are closed")
	}
	if len(dest) != r.columns {
		return fmt.Errorf("the query has %d columns, not %d", r.columns, len(dest))
	}
	for i, to := range dest {
		if err := r.scan(int32(i), to); err != nil {
			name := libc.GoString(sqlite3.Xsqlite3_column_name(r.st.c.tls, r.st.handle, int32(i)))
			return fmt.Errorf("column %d, %q: %w", i, name, err)
		}
	}
	return nil
}

// scan reads a column. For the most frequent types it uses no interface value.
func (r *Rows) scan(i int32, dest any) error {
	tls, handle := r.st.c.tls, r.st.handle
	kind := sqlite3.Xsqlite3_column_type(tls, handle, i)
	switch to := dest.(type) {
	case *string:
		if kind == sqlite3.SQLITE_TEXT && to != nil {
			r.setText(i, to)
			return nil
		}
	case *int64:
		if kind == sqlite3.SQLITE_INTEGER && to != nil {
			*to = sqlite3.Xsqlite3_column_int64(tls, handle, i)
			return nil
		}
	case *bool:
		if kind == sqlite3.SQLITE_INTEGER && to != nil {
			if v := sqlite3.Xsqlite3_column_int64(tls, handle, i); v == 0 || v == 1 {
				*to = v == 1
				return nil
			}
		}
	case engine.IntScanner:
		if kind == sqlite3.SQLITE_INTEGER {
			to.ScanInt(sqlite3.Xsqlite3_column_int64(tls, handle, i))
			return nil
		}
	}
	return engine.Assign(dest, r.value(i, kind))
}

// value returns a column as the driver of database/sql does.
func (r *Rows) value(i, kind int32) any {
	tls, handle := r.st.c.tls, r.st.handle
	switch kind {
	case sqlite3.SQLITE_INTEGER:
		return sqlite3.Xsqlite3_column_int64(tls, handle, i)
	case sqlite3.SQLITE_FLOAT:
		return sqlite3.Xsqlite3_column_double(tls, handle, i)
	case sqlite3.SQLITE_TEXT:
		return r.text(i)
	case sqlite3.SQLITE_BLOB:
		p := sqlite3.Xsqlite3_column_blob(tls, handle, i)
		n := sqlite3.Xsqlite3_column_bytes(tls, handle, i)
		return append([]byte(nil), libc.GoBytes(p, int(n))...) // nil without bytes
	}
	return nil
}

// text returns a text.
func (r *Rows) text(i int32) (text string) {
	r.setText(i, &text)
	return text
}

// setText sets a variable to a copy of a text, because SQLite's own is valid only until the next row.
// If the variable has that text from another row, it keeps it.
func (r *Rows) setText(i int32, to *string) {
	p := sqlite3.Xsqlite3_column_text(r.st.c.tls, r.st.handle, i)
	n := sqlite3.Xsqlite3_column_bytes(r.st.c.tls, r.st.handle, i)
	if p == 0 {
		*to = ""
		return
	}
	if text := libc.GoBytes(p, int(n)); string(text) != *to {
		*to = string(text)
	}
}
