// Package people stores who may use the server: organizations, their members, keys, sessions, invitations, passwords,
// sign-ins of programs (OAuth), and the audit log of what they did. It decides what a role permits.
//
// It stands on db, gate and seal. It knows no worker, task or mail by its Go type, and some of its queries count
// them. New gets functions for what must happen there when a membership ends or a cap changes.
package people

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"sync/atomic"

	"journeyman/store/db"
	"journeyman/store/gate"
	"journeyman/store/seal"
)

// A Store keeps the organizations, their members, and the ways in which these sign in. Its methods are safe for
// concurrent use.
type Store struct {
	db   *db.DB
	gate *gate.Gate
	seal *seal.Key

	onCap   func(ctx context.Context, tx db.Tx, change CapChange) error
	onLeave func(ctx context.Context, tx db.Tx, organizationID, userID string) error

	hashMemory uint32        // KiB that the hash of a password takes
	hashing    chan struct{} // its capacity is the number of passwords that are hashed at once
	lastUse    uses          // of API keys and sessions
	known      callerCache

	firstID atomic.Pointer[string] // of the first organization: see IsFirst
}

// A Config is what a Store stands on. All fields but PasswordMemory are needed.
type Config struct {
	DB   *db.DB
	Gate *gate.Gate
	Seal *seal.Key

	PasswordMemory uint32 // KiB that the hash of a password takes; 0 means the amount that protects passwords

	// OnCap is called in a transaction that has changed the monthly cap of an organization.
	OnCap func(ctx context.Context, tx db.Tx, change CapChange) error

	// OnLeave ends, in the same transaction, what a user who leaves an organization has in rooms above this one.
	OnLeave func(ctx context.Context, tx db.Tx, organizationID, userID string) error
}

// A CapChange is a change of what an organization has spent in a month, or of its cap.
type CapChange struct {
	OrganizationID     string
	SpentBefore, Spent int64    // nano-dollars
	Before, Cap        *float64 // credits; nil for none
}

// New returns the room of an open database. It returns an error if a field of c is missing.
func New(c Config) (*Store, error) {
	if c.DB == nil || c.Gate == nil || c.Seal == nil || c.OnCap == nil || c.OnLeave == nil {
		return nil, errors.New("people need a database, a gate, a key, OnCap and OnLeave")
	}
	return &Store{db: c.DB, gate: c.Gate, seal: c.Seal, onCap: c.OnCap, onLeave: c.OnLeave,
		hashMemory: cmp.Or(c.PasswordMemory, argonMemory), hashing: make(chan struct{}, runtime.GOMAXPROCS(0))}, nil
}
