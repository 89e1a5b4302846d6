package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"
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

// selectSince selects whether the server is a standby, and the time since when the server counts
// statistics. The server loses these in a crash and keeps them otherwise, and a standby that takes over
// has its own. So the time tells whether the server can have forgotten a transaction.
const selectSince = `SELECT pg_is_in_recovery(),
	coalesce(CAST(extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time()) AS text), '')`

// readSince returns the result of selectSince.
func (c *conn) readSince(ctx context.Context) (standby bool, since string, err error) {
	c.trips++
	r, err := readRows(c.pg.ExecParams(ctx, selectSince, nil, nil, nil, nil))
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
		err = errStandby // it may not have heard of the transaction yet
	}
	if err != nil {
		return "", err
	}
	r, err := c.query(ctx, `SELECT coalesce(pg_xact_status(CAST($1 AS xid8)), '')`, []any{t.id})
	if codeOf(err) == codeInvalidValue {
		return statusAborted, nil // no transaction has got the id yet, so the server has forgotten this one
	}
	if err != nil {
		return "", err
	}
	r.Next()
	err = r.Scan(&status)
	if err == nil && status == statusCommitted && since != t.since {
		return c.statusAfterCrash(ctx, t)
	}
	return status, err
}

// statusAfterCrash returns statusCommitted if the committed transaction is t, and not a later one with the
// same id. The server makes a checkpoint when it starts after a crash. The ids before it are never
// assigned again. Of checkpoints, only those at such a start and at a stop begin where they end.
func (c *conn) statusAfterCrash(ctx context.Context, t transaction) (status string, err error) {
	r, err := c.query(ctx, `SELECT redo_lsn = checkpoint_lsn AND CAST($1 AS bigint) <
			CAST(split_part(next_xid, ':', 1) AS bigint) * 4294967296 + CAST(split_part(next_xid, ':', 2) AS bigint)
		FROM pg_control_checkpoint()`, []any{t.id})
	if codeOf(err) != "" && !c.broken() {
		return statusUnknown, nil // some services permit no look at checkpoints
	}
	if err != nil {
		return "", fmt.Errorf("read the last checkpoint: %w", err)
	}
	var same bool
	r.Next()
	if err := r.Scan(&same); err != nil || !same {
		return statusUnknown, err
	}
	return statusCommitted, nil
}
