// Package store keeps all data of Journeyman. Organizations, workers, tasks, turns and their
// journal are in one SQLite file or on a PostgreSQL server. The contents of files are in the data
// folder or in a bucket. The package and its rooms hold the records, the queries and the access rules. They also
// hold every state change, as a method that is named for the event.
//
// It and its packages are the only ones that know SQL. Of this module it imports only packages below store: db, gate and
// seal, on which it stands, its rooms people and workers, the database engines, the client of buckets, and pure
// ones. A write that has returned is committed, and survives kill -9 and power loss. The store starts no work and sends
// nothing: the runner and the handlers act on its rows.
package store

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"journeyman/store/db"
	"journeyman/store/engine"
	"journeyman/store/gate"
	"journeyman/store/objects"
	"journeyman/store/people"
	"journeyman/store/postgres"
	"journeyman/store/seal"
	"journeyman/store/sqlite"
	"journeyman/store/workers"
)

// A Store is an open data folder. Its methods are safe for concurrent use.
type Store struct {
	Gate    *gate.Gate // whether anything may be written now
	People  *people.Store
	Workers *workers.Store
	Effects *Effects

	log    *slog.Logger
	dir    string
	lock   io.Closer
	node   *Node        // nil if no other server shares the database
	leads  atomic.Bool  // see Leads; meaningless without node
	db     *db.DB       // file or server
	file   *sqlite.DB   // nil if the database is on a server
	server *postgres.DB // nil if the database is a file in the data folder
	now    func() time.Time
	zone   *time.Location // of cron schedules that name none
	close  func() error   // closes the folder once; every call returns the same result

	waiting   waiting // turns with status pending
	queue     [lanes]queueQueries
	fair      fairness
	counters  Counters
	seal      *seal.Key // of secrets at rest and of tokens
	abandoned abandoned

	asksByMail    atomic.Bool                 // set by AskByMail
	onInterrupted atomic.Pointer[func(Turn)]  // nil until OnInterrupted
	onClaimed     atomic.Pointer[func(Claim)] // nil until OnClaimed
	slots         atomic.Pointer[Slots]       // nil until UseSlots
	envelopes     atomic.Pointer[Envelopes]   // nil until UseEnvelopes

	measured atomic.Pointer[Storage] // nil until MeasureStorage
	pruned   atomic.Pointer[Pruned]  // nil until EndPruning

	orgDisks    orgDisks                   // what each organization stores
	full        fullStart                  // owned by Open, then by the caller of WatchDisk
	bucketFails atomic.Bool                // since the last request to the bucket
	naming      sync.Mutex                 // held while a blob is renamed or removed
	bucket      *objects.Bucket            // of the blobs; nil if the data folder has them
	objectLocks [blobFolders]chan struct{} // see lockObject; nil without a bucket
	durable     sync.Map                   // folders of blobs whose names are durably on the disk

	keptUntil time.Time // the sweep spares files that are not newer: see begunAnew

	backups   sync.Mutex // held by the one backup or sweep under way
	nextBlobs int        // the folder of blobs to sweep next; guarded by backups
	lastSwept [2]string  // worker id and name of the own folder that was swept last; guarded by backups
}

// Dir returns the path of the data folder.
func (s *Store) Dir() string { return s.dir }

// Ping returns an error if the database cannot be written, or if damage was found.
func (s *Store) Ping(ctx context.Context) error {
	if s.node != nil {
		// A node may hang in the middle of this write, which must not hold up the leases of other nodes.
		_, err := s.db.Exec(ctx, `UPDATE runners SET expires_at = expires_at WHERE url = ?`, s.node.URL)
		return err
	}
	// SQLite writes the page although no value changes, so a full disk causes an error.
	_, err := s.db.Exec(ctx, `UPDATE runners SET expires_at = expires_at`)
	return err
}

// Answers returns an error if the database does not answer a query before ctx ends.
func (s *Store) Answers(ctx context.Context) error {
	_, err := db.One(ctx, s.db, db.ScanInt, `SELECT 1`)
	return db.Unavailable(err)
}

// ErrLocked means that another process has the data folder open.
var ErrLocked = sqlite.ErrLocked

// Counters are sums of the changes that were committed since the store was opened, for
// monitoring. Sums that must outlive the process are in the database.
type Counters struct {
	TurnsCompleted, TurnsFailed, TurnsAborted  atomic.Int64 // by their last status
	Steps                                      atomic.Int64 // model calls finished
	InputTokens, OutputTokens                  atomic.Int64
	Cost                                       atomic.Int64 // nano-dollars
	AttemptsSucceeded, AttemptsFailed          atomic.Int64 // of webhook deliveries
	EmailsReceived                             atomic.Int64 // counted once for each worker that a mail addresses
	EmailsAccepted, EmailsHeld, EmailsIgnored  atomic.Int64 // of those received, by status
	EmailsRefused                              atomic.Int64 // answered with an error; the mail server counts them
	EmailsSent, EmailsFailed, EmailsRetried    atomic.Int64 // attempts to send a mail, by their result
	ConnectionsRefused, MailConnectionsRefused atomic.Int64 // the listeners count them
	TurnsTakenOver                             atomic.Int64 // from processes that ended without returning them
	TasksPruned, DeliveriesPruned              atomic.Int64
	SpaceReturned                              atomic.Int64 // bytes of the database file
}

// Counters returns a pointer to the live counters.
func (s *Store) Counters() *Counters { return &s.counters }

// WriteStats returns the engine's live counters of transactions.
func (s *Store) WriteStats() *engine.Stats { return s.db.Stats() }

// OnChange sets the function that is called after a commit that changed records of an organization: see DB.OnChange.
func (s *Store) OnChange(fn func(organizationID string, what db.Change)) { s.db.OnChange(fn) }

// AwaitWrites waits until the writes that have already begun are committed or undone: see DB.AwaitWrites.
func (s *Store) AwaitWrites(ctx context.Context) error { return s.db.AwaitWrites(ctx) }

// Storable returns a text as a later read returns it: see DB.Storable.
func (s *Store) Storable(text string) string { return s.db.Storable(text) }

// OnServer reports whether the database is on a PostgreSQL server.
func (s *Store) OnServer() bool { return s.server != nil }

// Replay returns the id of the record that the same request created before, or "" if the
// request is new.
func (s *Store) Replay(ctx context.Context, k db.IdempotencyKey) (string, error) {
	return s.db.Replay(ctx, k)
}

// Remember stores the result of a request that takes more than one transaction: see DB.Remember.
func (s *Store) Remember(ctx context.Context, k db.IdempotencyKey, resultID string) error {
	return s.db.Remember(ctx, k, resultID)
}

// PruneIdempotency deletes up to limit expired requests, and returns their number.
func (s *Store) PruneIdempotency(ctx context.Context, limit int) (int64, error) {
	return s.db.PruneIdempotency(ctx, limit)
}
