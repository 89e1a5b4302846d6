package postgres

import "time"

// SetSettling sets how long an interrupted commit waits for its result.
func (db *DB) SetSettling(d time.Duration) { db.settling = d }

// SetLimit sets the time limit of one try of a write.
func (db *DB) SetLimit(d time.Duration) { db.limit = d }
