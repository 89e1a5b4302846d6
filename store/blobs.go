package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"journeyman/store/db"
	"journeyman/store/sqlite"
)

// A Blob is a file of the data folder whose name is the SHA-256 of its bytes.
type Blob struct {
	SHA256 string // in hexadecimal
	Size   int64
}

func (s *Store) blobDir() string { return filepath.Join(s.dir, "files") }

func (s *Store) blobPath(sha string) string { return filepath.Join(s.blobDir(), sha[:2], sha) }

// PutBlob reads r to its end and stores the bytes durably. It returns a TooLarge error
// for more than limit bytes, and a Busy error if the bucket does not answer. The same bytes are
// stored once only.
func (s *Store) PutBlob(ctx context.Context, r io.Reader, limit int64) (b Blob, err error) {
	tmp, err := os.CreateTemp(s.blobDir(), tempPattern)
	if err != nil {
		return b, s.db.Unavailable(fmt.Errorf("keep file: %w", err))
	}
	defer func() {
		if rm := os.Remove(tmp.Name()); !errors.Is(rm, os.ErrNotExist) {
			err = errors.Join(err, rm) // it does not exist if it was renamed
		}
		err = s.db.Unavailable(err)
	}()
	h := sha256.New()
	// Reading one byte more than the limit shows whether the file exceeds it. max prevents an overflow.
	b.Size, err = io.Copy(io.MultiWriter(tmp, h), io.LimitReader(r, max(limit, limit+1)))
	if err == nil && b.Size > limit {
		err = db.Errorf(db.TooLarge, "a file has at most %d bytes", limit)
	}
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return b, err
	}
	b.SHA256 = hex.EncodeToString(h.Sum(nil))
	if err := s.nameBlob(tmp.Name(), b.SHA256); err != nil || s.bucket == nil {
		return b, err
	}
	return b, s.upload(ctx, b)
}

// openBlobs creates the folder of blobs, and finds out whether a bucket has them.
func (s *Store) openBlobs(ctx context.Context, opt Options) error {
	if err := os.MkdirAll(s.blobDir(), 0o700); err != nil {
		return fmt.Errorf("make folder of files: %w", err)
	}
	s.nextBlobs = rand.IntN(blobFolders) // so that a program that restarts often also sweeps each folder at some time
	return s.openBucket(ctx, opt)
}

// nameBlob moves a written file to its place and makes the name durable.
func (s *Store) nameBlob(tmp, sha string) error {
	path := s.blobPath(sha)
	dir := filepath.Dir(path)
	err := os.Mkdir(dir, 0o700)
	if err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("keep file: %w", err)
	}
	fresh := err == nil
	if err := s.placeBlob(tmp, path); err != nil {
		return fmt.Errorf("keep file: %w", err)
	}
	// Also for a name that exists: an earlier process may have died before the name was durable.
	if err := sqlite.SyncDir(dir); err != nil {
		return err
	}
	if _, synced := s.durable.Load(dir); synced && !fresh {
		return nil
	}
	if err := sqlite.SyncDir(s.blobDir()); err != nil {
		return err
	}
	s.durable.Store(dir, true)
	return nil
}

// placeBlob renames a written file. It replaces a file with the same bytes, which may be so old that a
// sweep removes it.
func (s *Store) placeBlob(tmp, path string) error {
	if err := os.Chtimes(tmp, time.Time{}, s.now()); err != nil {
		return err
	}
	s.naming.Lock()
	defer s.naming.Unlock()
	return os.Rename(tmp, path)
}

// openBlobFile opens a blob. While another node sweeps, a blob can have the suffix removedSuffix
// for a moment, and then its own name again: see endRemoval.
func openBlobFile(path string) (f *os.File, err error) {
	for _, name := range []string{path, path + removedSuffix, path} {
		if f, err = os.Open(name); !errors.Is(err, os.ErrNotExist) {
			return f, err
		}
	}
	return f, err
}

// hasBlob reports whether the bytes with that SHA-256 exist.
func (s *Store) hasBlob(sum string) bool {
	info, err := os.Stat(s.blobPath(sum))
	return err == nil && info.Mode().IsRegular()
}

// OpenBlob opens the bytes with that SHA-256 for reading. If only the bucket has them, OpenBlob
// copies them to the data folder first. It returns a Busy error if the bucket does not answer.
func (s *Store) OpenBlob(ctx context.Context, sha string) (*os.File, error) {
	if b, err := hex.DecodeString(sha); err != nil || len(b) != sha256.Size {
		return nil, db.Errorf(db.NotFound, "no file has that content")
	}
	f, err := openBlobFile(s.blobPath(sha))
	switch {
	case s.bucket == nil: // the folder is all there is
	case err == nil:
		s.renewCopy(sha, f)
	case errors.Is(err, os.ErrNotExist):
		f, err = s.download(ctx, sha)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil, db.Errorf(db.NotFound, "no file has that content")
	}
	return f, err
}
