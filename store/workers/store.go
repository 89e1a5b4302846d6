// Package workers keeps the workers and what they work with: versions, settings, rules of tools, members, secrets, and
// the providers of models. It decides who may see and change a worker.
//
// It stands on db, gate, seal and people. It knows no task, schedule or mail by its Go type. New gets the
// function that decides how much an organization may store.
package workers

import (
	"errors"
	"sync/atomic"

	"journeyman/store/db"
	"journeyman/store/gate"
	"journeyman/store/people"
	"journeyman/store/seal"
)

// A Store keeps the workers and what they work with. Its methods are safe for concurrent use.
type Store struct {
	db     *db.DB
	gate   *gate.Gate
	seal   *seal.Key
	people *people.Store
	charge func(tx db.Tx, organizationID string, size int64) error

	modelChanges atomic.Int64 // changes of providers and default models: see ModelChanges
}

// A Config is what a Store stands on. All fields are needed.
type Config struct {
	DB     *db.DB
	Gate   *gate.Gate
	Seal   *seal.Key
	People *people.Store

	// Charge counts bytes that a write stores for an organization. It returns an error if the organization may not
	// store them.
	Charge func(tx db.Tx, organizationID string, size int64) error
}

// New returns the room of an open database. It returns an error if a field of c is missing.
func New(c Config) (*Store, error) {
	if c.DB == nil || c.Gate == nil || c.Seal == nil || c.People == nil || c.Charge == nil {
		return nil, errors.New("workers need a database, a gate, a key, people and Charge")
	}
	return &Store{db: c.DB, gate: c.Gate, seal: c.Seal, people: c.People, charge: c.Charge}, nil
}
