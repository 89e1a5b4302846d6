package store

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// What tests see of the inside.
var (
	Migrate    = migrate
	IsServerID = isServerID
)

const (
	MaxScanned   = maxScanned
	MaxBatch     = maxBatch
	MaxMembers   = maxMembers
	MaxTurns     = maxTurns
	MaxSchedules = maxSchedules
)

// NewestVersion is the version that schema.sql describes.
func NewestVersion() int { return len(migrations) + 1 }

// Write runs fn as an operation of the writer.
func (s *Store) Write(ctx context.Context, fn func(tx *Tx) error) error { return s.write(ctx, fn) }

// Waiting is how many operations the writer has not taken yet.
func (s *Store) Waiting() int { return len(s.writer.queue) }

// Ints reads one column of integers.
func (s *Store) Ints(ctx context.Context, query string, args ...any) ([]int64, error) {
	return all(ctx, s, scanInt, query, args...)
}

// Strings reads one column of text.
func (s *Store) Strings(ctx context.Context, query string, args ...any) ([]string, error) {
	return all(ctx, s, scanString, query, args...)
}

// PreparedTexts are the statements that were run, reads and writes. No write may
// be under way.
func (s *Store) PreparedTexts() []string {
	var texts []string
	s.prepared.Range(func(text, _ any) bool {
		texts = append(texts, text.(string))
		return true
	})
	for text := range s.writer.tx.stmt {
		texts = append(texts, text)
	}
	return texts
}

// DatabasePath is the database file of a data folder.
func DatabasePath(dir string) string { return filepath.Join(dir, databaseName) }

// UnnamedBlobs are the files that are being written.
func (s *Store) UnnamedBlobs() (names []string, err error) {
	entries, err := os.ReadDir(s.blobDir())
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), unnamedBlob) {
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
func (s *Store) SetMost(n int64) { s.writer.most.Store(n) }

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
