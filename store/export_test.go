package store

import (
	"context"
	"os"
	"path/filepath"

	"journeyman/store/db"
	"journeyman/store/engine"
	"journeyman/store/postgres"
	"journeyman/store/workers"
)

// Internals for tests.
var (
	IsServerID    = db.IsServerID
	FolderVersion = folderVersion
	ClockFinding  = clockFinding
)

const (
	MaxScanned = db.MaxScanned
	MaxMembers = workers.MaxMembers
	MaxTurns   = maxTurns
	TrimStep   = trimStep
)

// Write runs fn in a write.
func (s *Store) Write(ctx context.Context, fn func(tx db.Tx) error) error { return s.db.Write(ctx, fn) }

// Waiting returns the number of writes that have not begun.
func (s *Store) Waiting() int { return s.db.Waiting() }

// Checkpoint copies the write-ahead log into the database file.
func (s *Store) Checkpoint(ctx context.Context) error { return s.file.Checkpoint(ctx) }

// Ints returns one column of integers.
func (s *Store) Ints(ctx context.Context, query string, args ...any) ([]int64, error) {
	return db.All(ctx, s.db, db.ScanInt, query, args...)
}

// Strings returns one column of text.
func (s *Store) Strings(ctx context.Context, query string, args ...any) ([]string, error) {
	return db.All(ctx, s.db, db.ScanString, query, args...)
}

// PreparedTexts returns the texts of all statements that have run. No write may run during the
// call.
func (s *Store) PreparedTexts() []string {
	if s.server != nil {
		return s.server.Statements()
	}
	return s.file.Statements()
}

// EngineStats returns the counters of the database engine.
func (s *Store) EngineStats() *engine.Stats { return s.db.Stats() }

// QueueCounts returns the number of queued turns by organization: of members, and of strangers.
func (s *Store) QueueCounts() map[string][2]int64 {
	s.waiting.mu.Lock()
	defer s.waiting.mu.Unlock()
	counts := map[string][2]int64{}
	for id, n := range s.waiting.by {
		counts[id] = n
	}
	return counts
}

// CursorAt returns a cursor that continues the task list below a time and a num.
func (q TaskQuery) CursorAt(millis, num int64) string {
	return q.scope().Cursor(millis, num)
}

// DatabasePath returns the path of the database file in a data folder.
func DatabasePath(dir string) string { return filepath.Join(dir, databaseName) }

// UnnamedBlobs returns the names of files that are being written.
func (s *Store) UnnamedBlobs() (names []string, err error) {
	entries, err := os.ReadDir(s.blobDir())
	for _, e := range entries {
		if isTemp(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// BlobPath returns the path of the file with that SHA-256.
func (s *Store) BlobPath(sha string) string { return s.blobPath(sha) }

// Recount recomputes the counters of the queue. Tests call it after they have written turns
// directly.
func (s *Store) Recount(ctx context.Context) error { return s.countQueue(ctx) }

// TaskWithNum returns a Task with only the field num set.
func TaskWithNum(num int64) Task { return Task{num: num} }

// WithStep returns the options of a newer program, whose tables have one version more. file and server
// are the scripts that lead to them. oldest is the version of the oldest programs that work with them.
func (o Options) WithStep(file, server string, oldest int) Options {
	known := knownVersions()
	o.versions = &versions{append(known.steps, migration{file, server}), oldest}
	return o
}

// AwaitsWrites reports whether a goroutine waits in AwaitWrites.
func (s *Store) AwaitsWrites() bool { return s.db.Waiters() > 0 }

// LoseAnswers makes writes return ErrUnknown although they are committed, until settle is called. A
// broken connection to a server has the same effect. settle applies the delayed effects of the last
// write in memory.
func (s *Store) LoseAnswers() (settle func()) {
	db := &lostAnswers{DB: s.db.DB}
	s.db.DB = db
	return func() {
		s.db.DB = db.DB
		db.Committed()
	}
}

type lostAnswers struct {
	engine.DB
	engine.Effects
}

// Write returns ErrUnknown after fn's changes are committed.
func (l *lostAnswers) Write(ctx context.Context, mode engine.Mode, fn func(tx db.Tx) error) error {
	err := l.DB.Write(ctx, mode, func(tx db.Tx) error {
		l.Effects = engine.Effects{}
		return fn(lostTx{tx, &l.Effects})
	})
	if err == nil {
		err = postgres.ErrUnknown
	}
	return err
}

type lostTx struct {
	db.Tx
	effects *engine.Effects
}

// OnCommit stores fn for settle.
func (t lostTx) OnCommit(fn func()) { t.effects.OnCommit(fn) }
