package db

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"journeyman/store/engine"
)

// A Tx is the transaction in which a write runs.
type Tx = engine.Tx

// A Querier runs queries: on the pool of connections that only read, in a
// snapshot, or in the transaction of a write.
type Querier = engine.Querier

// A Scanner is a row that can be read.
type Scanner interface{ Scan(dest ...any) error }

// ScannerFunc is a function as a scanner. With it, a query can have columns besides those of a record.
type ScannerFunc func(dest ...any) error

// Scan calls f.
func (f ScannerFunc) Scan(dest ...any) error { return f(dest...) }

// All runs a query and returns the results of scan for each row.
func All[T any](ctx context.Context, q Querier, scan func(Scanner) (T, error), query string, args ...any) ([]T, error) {
	return AppendAll(ctx, q, nil, scan, query, args...)
}

// AppendAll is All, and appends the results to list. A list with enough capacity is allocated once.
func AppendAll[T any](ctx context.Context, q Querier, list []T, scan func(Scanner) (T, error), query string,
	args ...any) ([]T, error) {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return nil, Unavailable(err)
	}
	defer rows.Close()
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, Unavailable(q.Note(&rowError{err}))
		}
		list = append(list, v)
	}
	return list, Unavailable(q.Note(rows.Err()))
}

// One runs a query and returns the result of scan for the first row. Without a row it returns
// sql.ErrNoRows.
func One[T any](ctx context.Context, q Querier, scan func(Scanner) (T, error), query string, args ...any) (T, error) {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		var zero T
		return zero, Unavailable(err)
	}
	return first(q, rows, scan)
}

// first returns the result of scan for the first row, and closes the rows.
func first[T any](q Querier, rows engine.Rows, scan func(Scanner) (T, error)) (T, error) {
	defer rows.Close()
	if !rows.Next() {
		var zero T
		if err := rows.Err(); err != nil {
			return zero, Unavailable(q.Note(err))
		}
		return zero, sql.ErrNoRows
	}
	v, err := scan(rows)
	if err != nil {
		err = &rowError{err}
	}
	// The end of the query can fail after its first row.
	if end := rows.Close(); err == nil {
		err = end
	}
	return v, Unavailable(q.Note(err))
}

// A rowError is the error of a scan function: the database has returned the row, but a value in it
// is damaged.
type rowError struct{ error }

// Unwrap returns the error of the scan function.
func (e *rowError) Unwrap() error { return e.error }

// IsOfOneRow reports whether err is a missing row or a rowError. A later attempt fails, too, but other
// rows can be read.
func IsOfOneRow(err error) bool {
	_, damaged := errors.AsType[*rowError](err)
	return damaged || errors.Is(err, sql.ErrNoRows)
}

// Into is a scan function for queries whose columns are variables of the caller.
func Into(dest ...any) func(Scanner) (struct{}, error) {
	return func(row Scanner) (struct{}, error) { return struct{}{}, row.Scan(dest...) }
}

// ScanString reads a row of one text.
func ScanString(row Scanner) (v string, err error) { err = row.Scan(&v); return v, err }

// ScanInt reads a row of one integer.
func ScanInt(row Scanner) (v int64, err error) { err = row.Scan(&v); return v, err }

// ScanBool reads a row of one truth value.
func ScanBool(row Scanner) (v bool, err error) { err = row.Scan(&v); return v, err }

// RefuseIf returns refusal if the value that the query selects is true.
func RefuseIf(ctx context.Context, q Querier, refusal error, query string, args ...any) error {
	exists, err := One(ctx, q, ScanBool, query, args...)
	if err == nil && exists {
		return refusal
	}
	return err
}

// NoRow returns instead, which may be nil, if err is sql.ErrNoRows. It returns any other err as it
// is.
func NoRow(err, instead error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return instead
	}
	return err
}

// NoRecord is NoRow with a NotFound error that names the record.
func NoRecord(err error, record string) error {
	return NoRow(err, Errorf(NotFound, "no %s has that id", record))
}

// Nullable returns v, or nil for the zero value, so that the column becomes NULL.
func Nullable[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

// FromMillis returns the time that the database stores as Unix milliseconds.
func FromMillis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// The functions below return sql.Scanners for columns that need a conversion. Each scanner sets the variable to which
// its argument points.

// AsTime reads Unix milliseconds. NULL becomes the zero time.
func AsTime(to *time.Time) timeColumn { return timeColumn{to} }

type timeColumn struct{ to *time.Time }

func (c timeColumn) Scan(src any) error {
	var ms sql.NullInt64
	err := ms.Scan(src)
	if *c.to = (time.Time{}); ms.Valid {
		*c.to = FromMillis(ms.Int64)
	}
	return err
}

// ScanInt implements engine.IntScanner.
func (c timeColumn) ScanInt(ms int64) { *c.to = FromMillis(ms) }

// AsTimeOrNil reads Unix milliseconds. NULL becomes nil.
func AsTimeOrNil(to **time.Time) timeOrNilColumn { return timeOrNilColumn{to} }

type timeOrNilColumn struct{ to **time.Time }

func (c timeOrNilColumn) Scan(src any) error {
	*c.to = nil
	if src == nil {
		return nil
	}
	*c.to = new(time.Time)
	return AsTime(*c.to).Scan(src)
}

// ScanInt implements engine.IntScanner.
func (c timeOrNilColumn) ScanInt(ms int64) { *c.to = new(FromMillis(ms)) }

// AsDuration reads milliseconds.
func AsDuration(to *time.Duration) durationColumn { return durationColumn{to} }

type durationColumn struct{ to *time.Duration }

func (c durationColumn) Scan(src any) error {
	var ms sql.NullInt64
	err := ms.Scan(src)
	*c.to = time.Duration(ms.Int64) * time.Millisecond
	return err
}

// ScanInt implements engine.IntScanner.
func (c durationColumn) ScanInt(ms int64) { *c.to = time.Duration(ms) * time.Millisecond }

// AsText reads text. NULL becomes "".
func AsText(to *string) textColumn { return textColumn{to} }

type textColumn struct{ to *string }

func (c textColumn) Scan(src any) error {
	var text sql.NullString
	err := text.Scan(src)
	*c.to = text.String
	return err
}

// AsJSON reads JSON text. NULL becomes nil.
func AsJSON(to *json.RawMessage) *[]byte { return (*[]byte)(to) }

// LikePattern returns a LIKE pattern, for use with ESCAPE '\', that matches every
// value that contains text. Without text it returns "".
func LikePattern(text string) string {
	if text == "" {
		return ""
	}
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text) + "%"
}

// NullMillis returns t as the database stores it; the zero time is NULL.
func NullMillis(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

// Set assigns *v to *field, unless v is nil: a change without a field leaves it as it is.
func Set[T any](field *T, v *T) {
	if v != nil {
		*field = *v
	}
}
