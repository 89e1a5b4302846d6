package store

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const (
	// orphanAge is how long bytes are kept that nothing refers to: the request or
	// the tool call that brought them refers to them within this time, or never.
	orphanAge = 24 * time.Hour

	blobFolders  = 256 // by the first byte of the SHA-256
	sweptFolders = 4   // by one call, so that none costs more than a small part of the whole
)

// SweepBlobs removes bytes that nothing refers to: what refused requests brought,
// and what forgotten mail held. A call goes on where the one before has stopped and
// looks at a small part; blobFolders/sweptFolders calls look at all. It says how
// many it removed, and removes nothing while a backup runs.
func (s *Store) SweepBlobs(ctx context.Context) (n int64, err error) {
	if !s.backups.TryLock() {
		return 0, nil
	}
	defer s.backups.Unlock()
	for range sweptFolders {
		removed, err := s.sweepFolder(ctx, filepath.Join(s.blobDir(), fmt.Sprintf("%02x", s.sweepNext)))
		if n += removed; err != nil {
			return n, fmt.Errorf("remove files without use: %w", err)
		}
		s.sweepNext = (s.sweepNext + 1) % blobFolders
	}
	return n, nil
}

func (s *Store) sweepFolder(ctx context.Context, dir string) (n int64, err error) {
	d, err := os.Open(dir)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	names, err := d.Readdirnames(-1)
	if err = errors.Join(err, d.Close()); err != nil {
		return 0, err
	}
	for _, sha := range names {
		removed, err := s.sweepBlob(ctx, sha)
		if err != nil {
			return n, err
		}
		if removed {
			n++
		}
	}
	return n, nil
}

// sweepBlob removes a blob unless something refers to it, or may soon.
func (s *Store) sweepBlob(ctx context.Context, sha string) (removed bool, err error) {
	if b, err := hex.DecodeString(sha); err != nil || len(b) != 32 {
		return false, nil // not ours
	}
	if old, err := s.isOldBlob(sha); err != nil || !old {
		return false, err
	}
	used, err := one(ctx, s, scanInt, `SELECT EXISTS (SELECT 1 FROM files WHERE sha256 = ?1)
		OR EXISTS (SELECT 1 FROM inbound_emails WHERE source_sha256 = ?1)
		OR EXISTS (SELECT 1 FROM outbound_emails WHERE source_sha256 = ?1)`, sha)
	if err != nil || used == 1 {
		return false, err
	}
	s.naming.Lock()
	defer s.naming.Unlock()
	// Who has brought the same bytes since has made them young again.
	if old, err := s.isOldBlob(sha); err != nil || !old {
		return false, err
	}
	return true, os.Remove(s.blobPath(sha))
}

// isOldBlob reports whether a blob is there and nobody has brought it for orphanAge.
func (s *Store) isOldBlob(sha string) (bool, error) {
	info, err := os.Stat(s.blobPath(sha))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && s.now().Sub(info.ModTime()) > orphanAge, err
}
