package store

import (
	"encoding/base64"
	"strings"
)

// What a list may read of its index for one page: the page and one more, then
// windows of scanWindow rows until the page is full or maxScanned rows were read.
// A filter that few rows pass so costs no more in a large table; its page may be
// short, or even empty, and yet have a cursor.
const (
	scanWindow = 1000
	maxScanned = 100_000
)

// listed is a row of an index, and whether it passes the filters beyond that.
type listed[T any] struct {
	row     T
	matches bool
}

// scanListed reads a row and, in the column after it, whether it matches.
func scanListed[T any](scan func(scanner) (T, error)) func(scanner) (listed[T], error) {
	return func(row scanner) (l listed[T], err error) {
		l.row, err = scan(extended{row, &l.matches})
		return l, err
	}
}

// extended is a row with a column after those its scan function reads.
type extended struct {
	scanner
	more any
}

// Scan reads the row into dest and the column after into more.
func (e extended) Scan(dest ...any) error { return e.scanner.Scan(append(dest, e.more)...) }

// paginate fills a page of at most limit rows with read, which gives the next
// window of rows after a row (nil: from the query's own position). last is where
// the next page goes on, nil where there is none.
func paginate[T any](limit int, read func(after *T, window int) ([]listed[T], error)) (page []T, last *T, err error) {
	var after *T
	window := limit + 1
	for scanned := 0; scanned < maxScanned; {
		rows, err := read(after, window)
		if err != nil {
			return nil, nil, err
		}
		for i := range rows {
			if rows[i].matches {
				if len(page) == limit {
					return page, &page[limit-1], nil
				}
				page = append(page, rows[i].row)
			}
		}
		if len(rows) < window {
			return page, nil, nil
		}
		after = &rows[len(rows)-1].row
		scanned += window
		window = scanWindow
	}
	return page, after, nil
}

// formatCursor makes an opaque cursor of a position.
func formatCursor(parts ...string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strings.Join(parts, " ")))
}

// parseCursor is its reverse: n parts, or none for ”.
func parseCursor(cursor string, n int) ([]string, error) {
	if cursor == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) > 200 {
		return nil, errCursor()
	}
	parts := strings.Split(string(b), " ")
	if len(parts) != n {
		return nil, errCursor()
	}
	return parts, nil
}

func errCursor() error {
	var f Fields
	f.Add("cursor", "is not a nextCursor of this list")
	return f.Err()
}
