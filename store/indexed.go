package store

import (
	"fmt"

	"journeyman/store/sqlite"
)

// longestIndexed is the greatest length, in bytes, of an address in an index of PostgreSQL. The
// limit of 2,704 bytes for an index entry holds for all of its columns together.
const longestIndexed = 2500

// isIndexedText reports whether a column has an index on PostgreSQL and texts that may be longer.
func isIndexedText(table, column string) bool {
	switch table {
	case "files":
		return column == "path"
	case "sources":
		return column == "url"
	case "inbound_emails":
		return column == "message_id"
	}
	return false
}

// checkIndexed returns an error if the server cannot store a value of a row. The first value of a row is
// its number or its id.
func checkIndexed(t sqlite.Table, row []any, c sqlite.Column, value any) error {
	text, ok := value.(string)
	if !ok || len(text) <= longestIndexed || !isIndexedText(t.Name, c.Name) {
		return nil
	}
	return fmt.Errorf("row %v: its %s has %d bytes, and an index of PostgreSQL holds at most %d: delete the row or "+
		"shorten the text before the copy, or keep the database in the data folder", row[0], c.Name, len(text),
		longestIndexed)
}
