package postgres

import (
	"time"

	"journeyman/store/engine"
)

// settleAgain is the interval between requests for the result of a write.
const settleAgain = time.Second

// settleLater waits for the result of a write that has returned ErrUnknown. Its effects in memory
// wait until the server reports the result. So the counters in memory become correct as soon as the
// server is reachable. A result that is unknown at Close stays unknown: the next process counts
// again from the database.
func (db *DB) settleLater(t *tx) {
	id := transaction{t.id, t.conn.since}
	db.settlers.Go(func() { // ends during Close
		for {
			switch status, err := db.statusOf(db.closing, id); {
			case err != nil || status == statusInProgress: // the server may be starting
			case status == statusCommitted:
				t.Committed()
				return
			default: // aborted, or the server will never know more
				t.Undone()
				return
			}
			if engine.Pause(db.closing, settleAgain) != nil {
				return
			}
		}
	})
}
