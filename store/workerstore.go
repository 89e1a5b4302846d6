package store

import (
	"sync/atomic"

	"journeyman/store/db"
	"journeyman/store/gate"
	"journeyman/store/people"
	"journeyman/store/seal"
)

// A workerStore keeps the workers and what they work with. Its methods are safe for concurrent use.
type workerStore struct {
	db     *db.DB
	gate   *gate.Gate
	seal   *seal.Key
	people *people.Store
	charge func(tx db.Tx, organizationID string, size int64) error

	modelChanges atomic.Int64 // changes of providers and default models: see ModelChanges
}

// A workerConfig is what a workerStore stands on. All fields are needed.
type workerConfig struct {
	DB     *db.DB
	Gate   *gate.Gate
	Seal   *seal.Key
	People *people.Store

	// Charge counts bytes that a write stores for an organization. It returns an error if the organization may not
	// store them.
	Charge func(tx db.Tx, organizationID string, size int64) error
}

// newWorkerStore returns the room of an open database.
func newWorkerStore(c workerConfig) *workerStore {
	return &workerStore{db: c.DB, gate: c.Gate, seal: c.Seal, people: c.People, charge: c.Charge}
}
