package postgres

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const (
	copyChunk = 64 << 10 // bytes of rows per message
	fetchRows = 500      // rows per FETCH
)

// A Loader writes rows into tables in one transaction. Only one goroutine may use it.
type Loader struct {
	ctx  context.Context
	conn *conn
}

// Load calls fn, and commits the rows that fn has written if fn returns nil.
func (db *DB) Load(ctx context.Context, fn func(l *Loader) error) error {
	if err := db.enter(); err != nil {
		return err
	}
	defer db.writes.Done()
	if err := db.lock.check(); err != nil {
		return err
	}
	c, err := db.pool.get(ctx)
	if err != nil {
		return err
	}
	defer func() { db.pool.put(c) }()
	if err := c.script(ctx, `BEGIN`); err != nil {
		return err
	}
	if err := fn(&Loader{ctx, c}); err != nil {
		return errors.Join(err, rollback(ctx, c))
	}
	return c.script(ctx, `COMMIT`)
}

// Table writes the rows that next returns into a table, until next returns io.EOF. A value is nil,
// an int64, a float64, a string or a []byte. If counted is set, num values that the server assigns
// later continue after the highest of these rows.
func (l *Loader) Table(table string, columns []string, counted bool, next func() ([]any, error)) error {
	source := &copySource{next: next,
		escape: strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`)}
	_, err := l.conn.pg.CopyFrom(l.ctx, source, "COPY "+table+" ("+strings.Join(columns, ", ")+") FROM STDIN")
	if err = failed(l.ctx, l.conn, err); err != nil && source.err != io.EOF {
		err = errors.Join(source.err, err)
	}
	if err != nil {
		return fmt.Errorf("write the table %s: %w", table, err)
	}
	if !counted {
		return nil
	}
	_, err = l.conn.query(l.ctx, `SELECT setval(pg_get_serial_sequence('`+table+`', 'num'), coalesce(max(num), 1),
		max(num) IS NOT NULL) FROM `+table, nil)
	return err
}

// A copySource is the text of COPY for rows.
type copySource struct {
	next func() ([]any, error)
	text []byte // not read yet
	err  error  // of next; io.EOF after the last row

	escape *strings.Replacer
}

// Read returns the next part of the text.
func (s *copySource) Read(b []byte) (int, error) {
	for len(s.text) < copyChunk && s.err == nil {
		var row []any
		if row, s.err = s.next(); s.err != nil {
			break
		}
		for i, v := range row {
			if i > 0 {
				s.text = append(s.text, '\t')
			}
			s.text = appendCopied(s.text, v, s.escape)
		}
		s.text = append(s.text, '\n')
	}
	if len(s.text) == 0 {
		return 0, s.err
	}
	n := copy(b, s.text)
	s.text = append(s.text[:0], s.text[n:]...)
	return n, nil
}

// appendCopied appends a value in the text format of COPY. escape replaces the special characters
// of that format.
func appendCopied(text []byte, value any, escape *strings.Replacer) []byte {
	switch v := value.(type) {
	case int64:
		return strconv.AppendInt(text, v, 10)
	case float64:
		if b := encodeFloat(v); b != nil {
			return append(text, b...)
		}
	case string:
		return append(text, escape.Replace(Clean(v))...)
	case []byte:
		return hex.AppendEncode(append(text, `\\x`...), v)
	}
	return append(text, `\N`...)
}

// A Dumper reads tables from one snapshot. Only one goroutine may use it.
type Dumper struct {
	ctx  context.Context
	conn *conn
}

// Dump calls fn with a Dumper.
func (db *DB) Dump(ctx context.Context, fn func(d *Dumper) error) error {
	c, err := db.pool.get(ctx)
	if err != nil {
		return err
	}
	defer func() { db.pool.put(c) }()
	if err := c.script(ctx, `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`); err != nil {
		return err
	}
	return errors.Join(fn(&Dumper{ctx, c}), rollback(ctx, c))
}

// Table calls row for each row of a table, in any order. The values have the types of Loader.Table,
// and are valid only during the call.
func (d *Dumper) Table(table string, columns []string, row func(values []any) error) error {
	cursor := "copy_" + table // unique, because the prepared FETCH has the columns of one table
	err := d.conn.script(d.ctx, "DECLARE "+cursor+" NO SCROLL CURSOR FOR SELECT "+strings.Join(columns, ", ")+
		" FROM "+table)
	if err != nil {
		return fmt.Errorf("read the table %s: %w", table, err)
	}
	values, to := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		to[i] = &values[i]
	}
	fetch := fmt.Sprintf("FETCH %d FROM %s", fetchRows, cursor)
	for {
		r, err := d.conn.query(d.ctx, fetch, nil)
		if err != nil {
			return fmt.Errorf("read the table %s: %w", table, err)
		}
		n := 0
		for ; r.Next(); n++ {
			if err := r.Scan(to...); err != nil {
				return fmt.Errorf("read the table %s: %w", table, err)
			}
			if err := row(values); err != nil {
				return err
			}
		}
		if n < fetchRows {
			return d.conn.script(d.ctx, "CLOSE "+cursor)
		}
	}
}
