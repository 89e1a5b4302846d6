package store

import (
	"context"
	"time"

	"journeyman/store/postgres"
)

// A NodeLook is a node as its row in the database describes it, also if its lease is over.
type NodeLook struct {
	URL     string
	Version string
	Leader  bool
	Lease   time.Duration // the rest of its lease by the clock of the database; negative if the lease is over
}

// nodeLooks selects the nodes of a database on a server. A server that does not share the database has no URL.
const nodeLooks = `SELECT url, coalesce(version, ''), EXISTS (SELECT 1 FROM leaders WHERE runner_id = runners.id),
		expires_at - CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)
	FROM runners WHERE url <> '' ORDER BY url, started_at`

// ExamineNodes returns the nodes in the database of a URL, and changes nothing. A node that stops deletes its row,
// and a living node deletes the rows of dead ones. So a lease that is over shows that no node is left to do so.
func ExamineNodes(ctx context.Context, url string) (list []NodeLook, err error) {
	err = postgres.ReadRows(ctx, url, nodeLooks, func(scan func(dest ...any) error) error {
		var n NodeLook
		var left int64
		if err := scan(&n.URL, &n.Version, &n.Leader, &left); err != nil {
			return err
		}
		n.Lease = time.Duration(left) * time.Millisecond
		list = append(list, n)
		return nil
	})
	return list, err
}
