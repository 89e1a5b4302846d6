package db

import "journeyman/store/postgres"

// Storable returns a text as a later read returns it. PostgreSQL stores neither NUL nor invalid UTF-8:
// both become U+FFFD. A database in the data folder stores every text as it is.
func (d *DB) Storable(text string) string {
	if !d.OnServer() {
		return text
	}
	return postgres.Clean(text)
}

// MakeStorable makes texts storable where they enter the store. So the first answer to a client, which
// shows a record from memory, equals later reads.
func (d *DB) MakeStorable(texts ...*string) {
	for _, text := range texts {
		*text = d.Storable(*text)
	}
}
