package postgres

import "time"

// SetSettling sets how long a commit that was cut off waits to learn what has become of it.
func (db *DB) SetSettling(d time.Duration) { db.settling = d }
