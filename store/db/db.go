// Package db is what the rooms of the store stand on: writes and their gate, helpers for SQL, pages of lists, ids,
// texts, the errors that a caller may be told about, requests that are carried out once, and notices of changes.
//
// It knows the engines of the database and the gate. Of the tables it reads those of idempotency, and those that give
// records their num: organizations, workers, users and api_keys. What only one room needs must not be here.
package db

import (
	"context"
	"sync/atomic"
	"time"

	"journeyman/store/engine"
	"journeyman/store/gate"
	"journeyman/store/sqlite"
)

// A DB runs the queries and the writes of all rooms of the store. Its methods are safe for concurrent use. Those of the
// engine read, and ask no gate: Query outside of a transaction, and Snapshot for several queries of one state.
// WriteLater does not ask it either.
type DB struct {
	engine.DB
	Now func() time.Time // the clock

	gate     *gate.Gate
	damage   func() error // returns the damage that was found in the database, or nil
	onServer bool
	underWay writesUnderWay
	onChange atomic.Pointer[func(string, Change)] // nil until OnChange
}

// New returns a DB. The gate refuses writes. damage returns the damage that was found in the database; without
// damage, it returns nil. onServer says that the engine is a PostgreSQL server.
func New(e engine.DB, now func() time.Time, g *gate.Gate, damage func() error, onServer bool) *DB {
	return &DB{DB: e, Now: now, gate: g, damage: damage, onServer: onServer}
}

// OnServer reports whether the database is on a PostgreSQL server.
func (d *DB) OnServer() bool { return d.onServer }

// Write runs fn in the writer's next transaction and returns once that is
// committed. If fn fails, Write undoes fn's changes and returns its error. If ctx ends
// before fn has begun, fn never runs.
func (d *DB) Write(ctx context.Context, fn func(tx Tx) error) error {
	return d.writeIn(ctx, engine.Serializable, fn)
}

func (d *DB) writeIn(ctx context.Context, mode engine.Mode, fn func(tx Tx) error) error {
	// This comes before the check of the gate: code that closes the gate can then wait for all writes
	// that have passed it.
	begun := d.underWay.begin()
	defer begun.Done()
	if err := d.gate.WritableIn(ctx); err != nil {
		return err
	}
	// A write to a damaged file can destroy undamaged data. It would also be lost when the operator
	// restores a backup.
	if err := d.damage(); err != nil {
		return Unavailable(err)
	}
	return d.Unavailable(d.DB.Write(ctx, mode, fn))
}

// Unavailable is the function of that name, for errors of writes. It also records errors of a full disk.
func (d *DB) Unavailable(err error) error {
	if sqlite.IsFull(err) {
		d.gate.NoteFull()
	}
	return Unavailable(err)
}

// Exec runs one statement as a write and returns the number of rows that it changed.
func (d *DB) Exec(ctx context.Context, query string, args ...any) (n int64, err error) {
	err = d.Write(ctx, func(tx Tx) error {
		n, err = tx.Exec(query, args...)
		return err
	})
	return n, err
}

// Millis returns the present time as the database stores it: in Unix milliseconds.
func (d *DB) Millis() int64 { return d.Now().UnixMilli() }

// OnChange sets the function that is called after a commit that changed records of an organization.
// fn gets only the kind of records, so that watchers must read the records with the access checks.
// fn must not block: the writer waits for it.
func (d *DB) OnChange(fn func(organizationID string, what Change)) { d.onChange.Store(&fn) }

// Notify reports a change of a kind of records, once it is committed.
func (d *DB) Notify(tx Tx, organizationID string, what Change) {
	if fn := d.onChange.Load(); fn != nil && organizationID != "" {
		tx.OnCommit(func() { (*fn)(organizationID, what) })
	}
}
