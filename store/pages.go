package store

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// maxScanned is how many entries of its index a list reads for one page. A
	// filter that few rows pass so costs no more in a large table: its page may be
	// short, or even empty, and yet have a cursor.
	maxScanned = 100_000

	maxPage      = 1000 // items in a page, whatever was asked for
	maxQueryText = 200  // characters of a text filter
)

// pageLimit is how many items a page holds at most.
func pageLimit(asked int) int { return max(1, min(asked, maxPage)) }

// paginate makes a page of rows, of which one more than limit was asked for.
// position is where a row stands; the query end, with args, gives where the scan
// stopped, and no row where the list ends before.
func paginate[T any](ctx context.Context, q querier, rows []T, limit int, position func(T) []int64, end string, args ...any) ([]T, string, error) {
	if len(rows) > limit {
		return rows[:limit], formatCursor(position(rows[limit-1])), nil
	}
	stopped, err := one(ctx, q, scanPosition, end, args...)
	if errors.Is(err, sql.ErrNoRows) {
		return rows, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	return rows, formatCursor(stopped), nil
}

// scanPosition reads a row of two columns.
func scanPosition(row scanner) ([]int64, error) {
	p := make([]int64, 2)
	return p, row.Scan(&p[0], &p[1])
}

// formatCursor makes an opaque cursor of a position: a time and a num.
func formatCursor(position []int64) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %d", position[0], position[1]))
}

// parseCursor is its reverse; nil for none.
func parseCursor(cursor string) ([]int64, error) {
	if cursor == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	first, second, ok := strings.Cut(string(b), " ")
	a, err1 := strconv.ParseInt(first, 10, 64)
	n, err2 := strconv.ParseInt(second, 10, 64)
	if !ok || errors.Join(err, err1, err2) != nil {
		return nil, errors.New("not a cursor")
	}
	return []int64{a, n}, nil
}

// checkCursor notes in f a cursor that no list has given.
func checkCursor(f *Fields, cursor string) {
	_, err := parseCursor(cursor)
	f.Check(err == nil, "cursor", "is not a nextCursor of this list")
}

// checkText notes in f a text filter that is too long.
func checkText(f *Fields, text string) {
	f.Check(utf8.RuneCountInString(text) <= maxQueryText, "q", "must have at most %d characters", maxQueryText)
	f.Check(!strings.Contains(text, "\x00"), "q", "must not have a NUL character") // where LIKE would end
}

// likePattern is a LIKE pattern, with ESCAPE '\', for what contains text; none for no text.
func likePattern(text string) string {
	if text == "" {
		return ""
	}
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text) + "%"
}
