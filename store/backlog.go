package store

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"journeyman/store/db"
)

// A Backlog describes the waiting work, for monitoring. Reading it takes a few short ranges of indexes.
type Backlog struct {
	Turns      Waiting       // in the queue; a turn that resumes counts from its acceptance
	Deliveries Waiting       // to webhooks, with those between two attempts
	Outbox     Waiting       // mails to send
	Held       Waiting       // mails that wait for an Admin
	Schedule   time.Duration // delay of the next schedule; 0 if it is on time
}

// Waiting is one kind of work that waits.
type Waiting struct {
	Count int64         // up to maxCounted
	Age   time.Duration // of the oldest; 0 if none waits
}

// maxCounted bounds the count of each kind, so that the cost of Backlog does not grow with the
// work. If more items wait, Age is the age of the oldest counted item.
const maxCounted = 10_000

// Backlog returns the work that waits.
func (s *Store) Backlog(ctx context.Context) (b Backlog, err error) {
	for l := range lanes {
		age, err := s.age(ctx, `SELECT created_at FROM turns WHERE num = (SELECT min(num)
			FROM (SELECT num`+l.queued()+`TRUE LIMIT ?) AS counted)`)
		if err != nil {
			return b, err
		}
		b.Turns.Age = max(b.Turns.Age, age)
	}
	b.Turns.Count = s.Queued()
	// worker_num > 0 is true for every row. It makes the query a range of the index.
	const deliveries = `(SELECT num FROM deliveries INDEXED BY deliveries_due
		WHERE worker_num > 0 AND next_attempt_at IS NOT NULL LIMIT ?) AS counted`
	const outbox = `(SELECT num FROM outbound_emails INDEXED BY outbound_emails_due
		WHERE next_attempt_at > 0 LIMIT ?) AS counted`
	const held = `(SELECT num FROM inbound_emails INDEXED BY inbound_emails_held
		WHERE organization_id > '' AND status = 'held' LIMIT ?) AS counted`
	for _, w := range []struct {
		to         *Waiting
		count, age string
	}{
		{&b.Deliveries, `SELECT count(*) FROM ` + deliveries,
			`SELECT created_at FROM deliveries WHERE num = (SELECT min(num) FROM ` + deliveries + `)`},
		{&b.Outbox, `SELECT count(*) FROM ` + outbox,
			`SELECT created_at FROM outbound_emails WHERE num = (SELECT min(num) FROM ` + outbox + `)`},
		{&b.Held, `SELECT count(*) FROM ` + held,
			`SELECT created_at FROM inbound_emails WHERE num = (SELECT min(num) FROM ` + held + `)`},
	} {
		if w.to.Count, err = db.One(ctx, s.db, db.ScanInt, w.count, maxCounted); err != nil {
			return b, err
		}
		if w.to.Age, err = s.age(ctx, w.age); err != nil {
			return b, err
		}
	}
	at, ok, err := s.NextScheduleAt(ctx)
	if ok {
		b.Schedule = max(0, s.db.Now().Sub(at))
	}
	return b, err
}

// age returns the age of the row whose time of creation a query returns, 0 without a row.
func (s *Store) age(ctx context.Context, query string) (time.Duration, error) {
	var created time.Time
	_, err := db.One(ctx, s.db, db.Into(db.AsTime(&created)), query, maxCounted)
	if err != nil {
		return 0, db.NoRow(err, nil)
	}
	return max(0, s.db.Now().Sub(created)), nil // the clock may have been set back
}

// Sizes are the sizes of the database and of the disk of the data folder, in bytes. Reading them
// needs no walk over files.
type Sizes struct {
	Database int64 // the database file, or the database on its server
	WAL      int64 // the write-ahead log of the file
	Free     int64 // of the disk, for this user; -1 if the system does not say
	Disk     int64 // the whole disk; -1 if the system does not say

	Warning int64 // free space below which the disk counts as low; 0 without a limit
	Reserve int64 // free space below which no new work is taken; 0 without a limit
}

// Sizes returns the sizes of the database and its disk. The size of a database on a server is 0 if the
// server does not answer before ctx ends.
func (s *Store) Sizes(ctx context.Context) Sizes {
	size := Sizes{Free: -1, Disk: -1}
	if s.server != nil {
		size.Database = s.serverSize(ctx)
	}
	for name, to := range map[string]*int64{databaseName: &size.Database, databaseName + "-wal": &size.WAL} {
		if info, err := os.Stat(filepath.Join(s.dir, name)); err == nil {
			*to = info.Size()
		}
	}
	if space, _ := s.Gate.Disk(); space.Total > 0 {
		size.Free, size.Disk = space.Free, space.Total
		size.Warning, size.Reserve = s.Gate.DiskLimits(space.Total)
	}
	return size
}
