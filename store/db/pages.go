package db

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"time"
)

const (
	// MaxScanned is the number of index entries that a list reads at most for one page. So a filter
	// that few rows match costs no more in a large table. Its page may be short or empty, and still
	// have a cursor.
	MaxScanned = 100_000

	maxPage      = 1000 // items in a page, whatever the client asks for
	MaxQueryText = 200  // characters of a text filter
)

// Scanned returns the number of entries that a list reads for one page. A caller may ask for
// fewer than the usual number.
func Scanned(asked int) int {
	if asked <= 0 {
		return MaxScanned
	}
	return min(asked, MaxScanned)
}

// PageLimit returns the number of items that a page holds at most.
func PageLimit(asked int) int { return max(1, min(asked, maxPage)) }

// Cut returns a page of the rows. The query must have requested one row more than limit. It returns
// the cursor of the next page, or "" after the last row. position returns the values by which the
// list is sorted.
func Cut[T any](rows []T, limit int, of Scope, position func(T) []any) ([]T, string) {
	if len(rows) <= limit {
		return rows, ""
	}
	return rows[:limit], of.Cursor(position(rows[limit-1])...)
}

// Paginate is Cut for a list that reads at most MaxScanned entries of its index. The query end,
// with args, returns the position of the last entry that was read, as text. The query end returns
// no row if the list has fewer entries.
func Paginate[T any](ctx context.Context, q Querier, rows []T, limit int, of Scope, position func(T) []any,
	end string, args ...any) ([]T, string, error) {
	if len(rows) > limit {
		page, next := Cut(rows, limit, of, position)
		return page, next, nil
	}
	last, err := One(ctx, q, ScanString, end, args...)
	if err != nil {
		return rows, "", NoRow(err, nil)
	}
	return rows, of.Cursor(last), nil
}

// A Scope identifies a list and the values of its filters. Each cursor contains its Scope, so that
// every other list refuses it.
type Scope string

// ScopeOf returns the scope of a list with the values of its filters.
func ScopeOf(list string, filters ...any) Scope {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %#v", list, filters))
	return Scope(hex.EncodeToString(sum[:6]))
}

// Cursor returns the opaque cursor of a position: the values by which the list is
// sorted.
func (of Scope) Cursor(position ...any) string {
	text := fmt.Sprint(position...) + " " + string(of) // Sprint puts a space between numbers
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// Read reads a cursor into the variables to which position points. Without a cursor it leaves them
// as they are. It adds an error to f if the cursor is of another list.
func (of Scope) Read(f *Fields, cursor string, position ...any) {
	if cursor == "" {
		return
	}
	decoded, err := base64.RawURLEncoding.DecodeString(cursor)
	text, ok := strings.CutSuffix(string(decoded), " "+string(of))
	if ok = ok && err == nil && len(strings.Fields(text)) == len(position); ok {
		_, err = fmt.Sscan(text, position...)
	}
	f.Check(ok && err == nil, "cursor", "is not a nextCursor of this list with these filters")
}

// AboveIDs sorts after every id. A list with the newest ids first begins there.
const AboveIDs = "~"

// ReadNum reads the cursor of a list that is sorted by num, newest first. It returns the
// num below which the page begins.
func (of Scope) ReadNum(f *Fields, cursor string) (num int64) {
	num = math.MaxInt64
	of.Read(f, cursor, &num)
	return num
}

// ReadTime reads the cursor of a list that is sorted by time and num, newest first. The page begins
// below the returned position. If before is set, the position is not later than before, so that a
// cursor cannot widen the filter.
func (of Scope) ReadTime(f *Fields, cursor string, before time.Time) (at, num int64) {
	top := int64(math.MaxInt64)
	if !before.IsZero() {
		top = before.UnixMilli()
	}
	at = top
	if of.Read(f, cursor, &at, &num); at >= top {
		return top, 0
	}
	return at, num
}
