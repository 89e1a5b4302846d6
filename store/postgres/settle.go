package postgres

import (
	"context"
	"errors"
	"time"

	"journeyman/store/engine"
)

// This file finds out the result of a transaction whose connection broke during the commit.
//
// The server reports the status of a transaction by its id. But a server that crashes forgets the
// transactions of which its log on the disk contains nothing, and gives their ids to others. So the
// id of a transaction that was undone may belong to a committed one later.

// settleTime limits how long a commit waits for the status of its transaction.
const settleTime = 15 * time.Second

// The statuses of a transaction. They are those of the server, and one more.
const (
	statusInProgress = "in progress" // or the server has not noticed the end of the connection
	statusCommitted  = "committed"
	statusAborted    = "aborted"
	statusUnknown    = "" // the server no longer stores it, or another transaction may have the id
)

// settle returns nil if the transaction was committed although its connection broke with cause. If
// the transaction was undone, the returned error permits a retry. If the status is unknown, the
// error is ErrUnknown.
func (db *DB) settle(t transaction, cause error) error {
	ctx, cancel := context.WithTimeout(context.Background(), db.settling)
	defer cancel()
	for try := 1; ; try++ {
		switch status, err := db.statusOf(ctx, t); {
		case err != nil || status == statusInProgress: // the server may be starting
		case status == statusCommitted:
			return nil
		case status == statusAborted:
			return &connectionError{doing: "commit", err: cause}
		default:
			return &connectionError{doing: "commit", err: errors.Join(ErrUnknown, cause)}
		}
		if pause(ctx, try) != nil {
			return &connectionError{doing: "commit", err: errors.Join(ErrUnknown, cause)}
		}
	}
}

// A transaction identifies a transaction of the server.
type transaction struct {
	id    string
	since string // see selectSince; that of its connection
}

// selectSince selects whether the server is a standby. It also selects the time since when the server
// counts statistics, and the timeline of its log. The server loses its statistics in a crash, and a standby
// that takes over begins a timeline. If either has changed, the server may have
// forgotten a transaction.
const selectSince = `SELECT pg_is_in_recovery(),
	concat(extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time()), ' ', CASE WHEN NOT pg_is_in_recovery()
		THEN left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) END)`

// readSince returns the result of selectSince. since is "" if the server refuses the query.
func (c *conn) readSince(ctx context.Context) (standby bool, since string, err error) {
	c.trips++
	r, err := readRows(c.pg.ExecParams(ctx, selectSince, nil, nil, nil, nil))
	if codeOf(err) != "" && !c.broken() {
		return false, "", nil // some services do not permit it
	}
	if err != nil {
		return false, "", failed(ctx, c, err)
	}
	r.Next()
	err = r.Scan(&standby, &since)
	return standby, since, err
}

// errStandby means that only another server, or this one later, can report a status.
var errStandby = errors.New("the server is a standby")

// statusOf returns the status of the transaction.
func (db *DB) statusOf(ctx context.Context, t transaction) (status string, err error) {
	c, err := connect(ctx, db.pool.cfg)
	if err != nil {
		return "", err
	}
	defer c.close()
	standby, since, err := c.readSince(ctx)
	if err == nil && standby {
		err = errStandby // it may not have received the transaction yet
	}
	if err != nil {
		return "", err
	}
	err = c.row(ctx, `SELECT coalesce(pg_xact_status(CAST($1 AS xid8)), '')`, []any{t.id}, &status)
	if codeOf(err) == codeInvalidValue {
		return statusAborted, nil // no transaction has got the id yet, so the server has forgotten this one
	}
	if err == nil && status == statusCommitted && (since == "" || since != t.since) {
		return statusUnknown, nil
	}
	return status, err
}

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
			db.asking.Lock() // each request opens a connection, and the server may just have started again
			status, err := db.statusOf(db.closing, id)
			db.asking.Unlock()
			switch {
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
