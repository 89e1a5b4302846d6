package postgres

import "time"

// SetSettling sets how long an interrupted commit waits for its result.
func (db *DB) SetSettling(d time.Duration) { db.settling = d }
