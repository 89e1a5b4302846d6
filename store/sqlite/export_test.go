package sqlite

import (
	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// Bound returns the statements that the writer and the idle readers keep, with the values that are
// bound to their parameters. No statement may be running.
func (db *DB) Bound() (texts []string) {
	for _, c := range append([]*conn{db.writer.Load().tx.conn}, db.readers.idle...) {
		for _, st := range c.stmts {
			text := sqlite3.Xsqlite3_expanded_sql(c.tls, st.handle)
			texts = append(texts, libc.GoString(text))
			sqlite3.Xsqlite3_free(c.tls, text)
		}
	}
	return texts
}
