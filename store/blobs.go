package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A Blob is bytes in the data folder, named by their SHA-256.
type Blob struct {
	SHA256 string // in hexadecimal
	Size   int64
}

// unnamedBlob begins the names of files that are being written.
const unnamedBlob = "new-"

func (s *Store) blobDir() string { return filepath.Join(s.dir, "files") }

func (s *Store) blobPath(sha string) string { return filepath.Join(s.blobDir(), sha[:2], sha) }

// PutBlob keeps what r gives, durably, and fails with TooLarge beyond limit bytes.
// The same bytes twice are kept once.
func (s *Store) PutBlob(r io.Reader, limit int64) (b Blob, err error) {
	tmp, err := os.CreateTemp(s.blobDir(), unnamedBlob+"*")
	if err != nil {
		return b, Unavailable(fmt.Errorf("keep file: %w", err))
	}
	defer func() {
		if rm := os.Remove(tmp.Name()); !errors.Is(rm, os.ErrNotExist) {
			err = errors.Join(err, rm) // gone where it was renamed
		}
		err = Unavailable(err)
	}()
	h := sha256.New()
	b.Size, err = io.Copy(io.MultiWriter(tmp, h), io.LimitReader(r, max(limit, limit+1)))
	if err == nil && b.Size > limit {
		err = Errorf(TooLarge, "a file has at most %d bytes", limit)
	}
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return b, err
	}
	b.SHA256 = hex.EncodeToString(h.Sum(nil))
	return b, s.nameBlob(tmp.Name(), b.SHA256)
}

// openBlobs makes the folder of blobs and removes what a crash left half written.
func (s *Store) openBlobs() error {
	if err := os.MkdirAll(s.blobDir(), 0o700); err != nil {
		return fmt.Errorf("make folder of files: %w", err)
	}
	entries, err := os.ReadDir(s.blobDir())
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), unnamedBlob) {
			err = errors.Join(err, os.Remove(filepath.Join(s.blobDir(), e.Name())))
		}
	}
	if err != nil {
		return fmt.Errorf("remove half-written files: %w", err)
	}
	s.sweepNext = rand.IntN(blobFolders) // a program that is often started anew gets to each of them, too
	return nil
}

// nameBlob gives a written file its place and makes the name durable.
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
	// Also of a name that was there: who gave it may not have come this far.
	if err := syncDir(dir); err != nil {
		return err
	}
	if _, synced := s.durable.Load(dir); synced && !fresh {
		return nil
	}
	if err := syncDir(s.blobDir()); err != nil {
		return err
	}
	s.durable.Store(dir, true)
	return nil
}

// placeBlob renames a written file, or makes the one that has the name already
// young again, so that it is not swept before it is referred to.
func (s *Store) placeBlob(tmp, path string) error {
	s.naming.Lock()
	defer s.naming.Unlock()
	err := os.Chtimes(path, time.Time{}, s.now())
	if errors.Is(err, os.ErrNotExist) {
		return os.Rename(tmp, path)
	}
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}

// OpenBlob opens the bytes with that SHA-256 for reading.
func (s *Store) OpenBlob(sha string) (*os.File, error) {
	if b, err := hex.DecodeString(sha); err != nil || len(b) != sha256.Size {
		return nil, Errorf(NotFound, "no file has that content")
	}
	f, err := os.Open(s.blobPath(sha))
	if errors.Is(err, os.ErrNotExist) {
		return nil, Errorf(NotFound, "no file has that content")
	}
	return f, err
}
