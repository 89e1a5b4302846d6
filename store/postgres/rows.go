package postgres

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"

	"journeyman/store/engine"
)

// Formats of values in the wire protocol.
const (
	textFormat   = 0
	binaryFormat = 1
)

// rows is the result of a query. All rows are read before the caller gets the first one. The reason
// is that callers nest queries, but a connection runs one query at a time.
type rows struct {
	columns []pgconn.FieldDescription
	data    []byte // all values, concatenated
	cells   []cell // of all rows
	next    int    // index in cells of the row after the current one
	open    bool   // Next has moved to a row
	tag     pgconn.CommandTag
}

// A cell is the position of a value in data. For NULL, begin is -1.
type cell struct{ begin, end int }

// readRows reads a complete result.
func readRows(from *pgconn.ResultReader) (*rows, error) {
	r := &rows{}
	for from.NextRow() {
		if r.columns == nil {
			r.columns = append(r.columns, from.FieldDescriptions()...)
		}
		for _, value := range from.Values() {
			at := cell{-1, -1}
			if value != nil {
				at = cell{len(r.data), len(r.data) + len(value)}
				r.data = append(r.data, value...)
			}
			r.cells = append(r.cells, at)
		}
	}
	tag, err := from.Close()
	if err != nil {
		return nil, err
	}
	r.tag = tag
	return r, nil
}

// Next moves to the next row and reports whether there is one.
func (r *rows) Next() bool {
	if r.open = r.next < len(r.cells); r.open {
		r.next += len(r.columns)
	}
	return r.open
}

// Err returns nil, because all rows were already read.
func (r *rows) Err() error { return nil }

// Close discards the rows.
func (r *rows) Close() error {
	r.cells, r.data, r.open = nil, nil, false
	return nil
}

// Scan copies the current row into the variables that dest points to.
func (r *rows) Scan(dest ...any) error {
	if !r.open {
		return errors.New("the rows are closed")
	}
	if len(dest) != len(r.columns) {
		return fmt.Errorf("the query has %d columns, not %d", len(r.columns), len(dest))
	}
	for i, to := range dest {
		if err := r.scan(i, to); err != nil {
			return fmt.Errorf("column %d, %q: %w", i, r.columns[i].Name, err)
		}
	}
	return nil
}

// scan copies one column. For the most frequent types it avoids an interface value.
func (r *rows) scan(i int, dest any) error {
	at, column := r.cells[r.next-len(r.columns)+i], &r.columns[i]
	if at.begin < 0 {
		return engine.Assign(dest, nil)
	}
	data := r.data[at.begin:at.end]
	switch to := dest.(type) {
	case *string:
		if to != nil && isText(column.DataTypeOID) {
			*to = string(data)
			return nil
		}
	case *int64:
		if to != nil && column.DataTypeOID == oidInt8 {
			*to = int64(binary.BigEndian.Uint64(data))
			return nil
		}
	case *bool:
		if to != nil && column.DataTypeOID == oidBool {
			*to = data[0] == 't'
			return nil
		}
	}
	v, err := decode(column, data)
	if err != nil {
		return err
	}
	return engine.Assign(dest, v)
}

// isText reports whether values of a type are text in both formats.
func isText(oid uint32) bool {
	return oid == oidText || oid == oidVarchar || oid == oidUnknown
}

// formatOf returns the format in which values of a type are requested.
func formatOf(oid uint32) int16 {
	switch oid {
	case oidInt8, oidFloat8, oidBytea:
		return binaryFormat
	}
	return textFormat
}

// decode returns a non-NULL value as SQLite would return it: an int64, a float64, a string or a
// []byte. The server returns sums as numeric; decode converts whole numbers to int64.
func decode(column *pgconn.FieldDescription, data []byte) (any, error) {
	if column.Format == binaryFormat {
		switch column.DataTypeOID {
		case oidInt8:
			return int64(binary.BigEndian.Uint64(data)), nil
		case oidFloat8:
			return math.Float64frombits(binary.BigEndian.Uint64(data)), nil
		}
		return append([]byte(nil), data...), nil // nil if there are no bytes
	}
	switch column.DataTypeOID {
	case oidBool:
		if data[0] == 't' {
			return int64(1), nil
		}
		return int64(0), nil
	case oidInt2, oidInt4, oidOID:
		return strconv.ParseInt(string(data), 10, 64)
	case oidFloat4:
		return strconv.ParseFloat(string(data), 64)
	case oidNumeric:
		return decodeNumeric(string(data))
	}
	return string(data), nil
}

// decodeNumeric returns a whole number as an int64 if it fits, and any other number as a float64.
func decodeNumeric(text string) (any, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, err
	}
	if n := int64(x); x == math.Trunc(x) && math.Abs(x) < 1<<53 {
		return n, nil
	}
	return x, nil
}
