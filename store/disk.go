package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// DiskUse is what the data folder takes up, in bytes.
type DiskUse struct {
	Database   int64 // with what is not yet in its main file
	Files      int64 // that were kept: uploads, published files, large mail
	Workspaces int64
	Free       int64 // on the same disk
	Partly     bool  // there is more: counting took too long
}

// DiskUse counts what the data folder takes up, for no longer than atMost.
func (s *Store) DiskUse(ctx context.Context, atMost time.Duration) (u DiskUse, err error) {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	for _, name := range []string{databaseName, databaseName + "-wal", databaseName + "-shm"} {
		if info, err := os.Stat(filepath.Join(s.dir, name)); err == nil {
			u.Database += info.Size()
		}
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(s.dir, &disk); err == nil {
		u.Free = int64(disk.Bavail) * int64(disk.Bsize) //nolint:gosec,unconvert // types differ between systems
	}
	for folder, size := range map[string]*int64{"files": &u.Files, "workspaces": &u.Workspaces} {
		err := addSizes(ctx, filepath.Join(s.dir, folder), size)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			u.Partly = true
		case err != nil:
			return u, err
		}
	}
	return u, nil
}

// addSizes adds the sizes of the files below a folder, links not followed.
func addSizes(ctx context.Context, folder string, sum *int64) error {
	return filepath.WalkDir(folder, func(_ string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || !e.Type().IsRegular() {
			return nil //nolint:nilerr // it went away, or is a worker's own affair
		}
		if info, err := e.Info(); err == nil {
			*sum += info.Size()
		}
		return nil
	})
}

// lastBackupName is the file of the data folder whose text is when the last backup
// ended. It is in no backup, so that a restored folder has had none.
const lastBackupName = "last-backup"

// LastBackup says when the last backup ended; it is the zero time where there was
// none.
func (s *Store) LastBackup() (time.Time, error) {
	text, err := os.ReadFile(filepath.Join(s.dir, lastBackupName))
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	t, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		return time.Time{}, nil //nolint:nilerr // cut short by a crash: as if there was none
	}
	return t, nil
}

// noteBackup writes down that a backup has ended.
func (s *Store) noteBackup() error {
	return os.WriteFile(filepath.Join(s.dir, lastBackupName), []byte(s.now().UTC().Format(time.RFC3339)), 0o600)
}
