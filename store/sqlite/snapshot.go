package sqlite

import (
	"context"

	"journeyman/store/engine"
)

// A Snapshot reads the database as it was at one moment, whatever is written
// meanwhile. It belongs to one goroutine.
type Snapshot struct {
	db *DB
	r  *readers // the readers to which c belongs
	c  *conn
}

// Snapshot calls fn, whose queries all see the same state of the database.
func (db *DB) Snapshot(ctx context.Context, fn func(q engine.Querier) error) error {
	db.stats.Reads.Add(1)
	db.switching.RLock()
	r := db.readers
	c, err := r.take(ctx)
	db.switching.RUnlock()
	if err != nil {
		return db.Note(err)
	}
	defer r.give(c)
	if err := c.run(`BEGIN`); err != nil {
		return db.Note(err)
	}
	err = engine.Recovered(func() error { return fn(&Snapshot{db: db, r: r, c: c}) })
	if end := c.run(`ROLLBACK`); err == nil {
		err = end
	}
	return err
}

// Query runs a query in the snapshot.
func (s *Snapshot) Query(ctx context.Context, query string, args ...any) (engine.Rows, error) {
	rows, err := s.r.queryOn(ctx, s.c, query, args)
	if err != nil {
		return nil, s.Note(err)
	}
	return rows, nil
}
