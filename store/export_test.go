package store

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"time"

	"journeyman/store/engine"
	"journeyman/store/postgres"
)

// What tests see of the inside.
var (
	IsServerID  = isServerID
	ForgetKnown = (*Store).forgetKnown
)

const (
	MaxScanned = maxScanned
	MaxMembers = maxWorkerMembers
	MaxTurns   = maxTurns
)

// Write runs fn as an operation of the writer.
func (s *Store) Write(ctx context.Context, fn func(tx Tx) error) error { return s.write(ctx, fn) }

// Waiting is how many operations the writer has not taken yet.
func (s *Store) Waiting() int { return s.db.Waiting() }

// Checkpoint copies the write-ahead log into the database file.
func (s *Store) Checkpoint(ctx context.Context) error { return s.file.Checkpoint(ctx) }

// Ints reads one column of integers.
func (s *Store) Ints(ctx context.Context, query string, args ...any) ([]int64, error) {
	return all(ctx, s.db, scanInt, query, args...)
}

// Strings reads one column of text.
func (s *Store) Strings(ctx context.Context, query string, args ...any) ([]string, error) {
	return all(ctx, s.db, scanString, query, args...)
}

// PreparedTexts are the statements that were run, reads and writes. No write may
// be under way.
func (s *Store) PreparedTexts() []string {
	if s.server != nil {
		return s.server.Statements()
	}
	return s.file.Statements()
}

// EngineStats are the counters of the database engine.
func (s *Store) EngineStats() *engine.Stats { return s.db.Stats() }

// QueueCounts returns how many turns wait, by organization.
func (s *Store) QueueCounts() map[string]int64 {
	s.waiting.mu.Lock()
	defer s.waiting.mu.Unlock()
	return maps.Clone(s.waiting.by)
}

// CursorAt returns the cursor of a task list that begins below a time and a num.
func (q TaskQuery) CursorAt(millis, num int64) string {
	return q.scope().cursor(millis, num)
}

// DatabasePath is the database file of a data folder.
func DatabasePath(dir string) string { return filepath.Join(dir, databaseName) }

// UnnamedBlobs are the files that are being written.
func (s *Store) UnnamedBlobs() (names []string, err error) {
	entries, err := os.ReadDir(s.blobDir())
	for _, e := range entries {
		if isTemp(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// BlobPath is where the bytes with that SHA-256 lie.
func (s *Store) BlobPath(sha string) string { return s.blobPath(sha) }

// Recount counts the queue anew, after a test has written turns by itself.
func (s *Store) Recount(ctx context.Context) error { return s.countQueue(ctx) }

// SetMost sets how many operations share a transaction.
func (s *Store) SetMost(n int64) { s.file.SetMaxBatch(n) }

// FillHashing leaves no room to hash a password until free is called.
func (s *Store) FillHashing() (free func()) {
	for range cap(s.hashing) {
		s.hashing <- struct{}{}
	}
	return func() {
		for range cap(s.hashing) {
			<-s.hashing
		}
	}
}

// UsesRemembered returns how many keys and sessions the store remembers as used.
func (s *Store) UsesRemembered() int {
	s.lastUse.mu.Lock()
	defer s.lastUse.mu.Unlock()
	return len(s.lastUse.seen)
}

// TaskWithNum returns a Task that has no field but its num.
func TaskWithNum(num int64) Task { return Task{num: num} }

// PackEnvelope and UnpackEnvelope convert between an envelope and its form in the database.
func PackEnvelope(text string) string { return packEnvelope(text) }

// UnpackEnvelope undoes PackEnvelope.
func UnpackEnvelope(stored string) string { return unpackEnvelope(stored) }

// AwaitsWrites reports whether somebody waits in AwaitWrites.
func (s *Store) AwaitsWrites() bool {
	s.underWay.mu.Lock()
	defer s.underWay.mu.Unlock()
	return s.underWay.waiters > 0
}

// KnownFor is how long the store remembers identities.
const KnownFor = knownFor * time.Millisecond

// LoseAnswers makes writes return an error although they are committed, until settle is called. So does
// a server whose connection breaks during the commit. settle then does what the last one does in memory.
func (s *Store) LoseAnswers() (settle func()) {
	db := &lostAnswers{DB: s.db}
	s.db = db
	return func() {
		s.db = db.DB
		db.Committed()
	}
}

type lostAnswers struct {
	engine.DB
	engine.Effects
}

// Write returns ErrUnknown once fn's changes are committed.
func (l *lostAnswers) Write(ctx context.Context, mode engine.Mode, fn func(tx Tx) error) error {
	err := l.DB.Write(ctx, mode, func(tx Tx) error {
		l.Effects = engine.Effects{}
		return fn(lostTx{tx, &l.Effects})
	})
	if err == nil {
		err = postgres.ErrUnknown
	}
	return err
}

type lostTx struct {
	Tx
	effects *engine.Effects
}

// OnCommit keeps fn for later.
func (t lostTx) OnCommit(fn func()) { t.effects.OnCommit(fn) }
