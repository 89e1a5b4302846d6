package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"journeyman/store/sqlite"
)

// FolderVersion returns the version of the database in a data folder, 0 if there is none. A server
// may have the folder open.
func FolderVersion(ctx context.Context, dir string) (int, error) {
	path := filepath.Join(dir, databaseName)
	version, err := fileVersion(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if sqlite.IsNoRoomToOpen(err) {
		return 0, fmt.Errorf("the disk of %s is full: make room and try again: %w", dir, err)
	}
	if err != nil {
		return 0, fmt.Errorf("read the version of the database: %w", err)
	}
	return version, nil
}

// fileVersion returns the version of a database file. To open a file that does not exist would
// create it.
func fileVersion(ctx context.Context, path string) (int, error) {
	if _, err := os.Stat(path); err != nil {
		return 0, err
	}
	return sqlite.Version(ctx, path)
}

// RollBack puts the copy of the database that an upgrade from the given version has set aside in
// the place of the newer database. It does nothing if the database is not newer. It returns where
// the newer database is now, "" if nothing changed. What was written since the upgrade is only
// there. It returns ErrLocked while a server has the folder open.
//
// A kill at any moment leaves the one database or the other, whole.
func RollBack(ctx context.Context, dir string, version int) (kept string, err error) {
	path := filepath.Join(dir, databaseName)
	now, err := FolderVersion(ctx, dir)
	if err != nil || now <= version {
		return "", err
	}
	lock, err := sqlite.Lock(dir)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	aside := fmt.Sprintf("%s.v%d", path, version)
	if was, err := fileVersion(ctx, aside); err != nil || was != version {
		return "", errors.Join(fmt.Errorf("the copy %s from before the upgrade is missing or of another version %d",
			aside, was), err)
	}
	// A log beside the file would be applied to the older database, and damage it.
	if err := sqlite.EmptyLog(ctx, path); err != nil {
		return "", err
	}
	kept = fmt.Sprintf("%s.v%d", path, now)
	if err := os.Remove(kept); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	// A link first, so that the name of the database exists at every moment: a folder without a
	// database looks lost.
	if err := os.Link(path, kept); err != nil {
		return "", err
	}
	if err := os.Rename(aside, path); err != nil {
		return "", err
	}
	return kept, sqlite.SyncDir(dir)
}

// InUse reports whether another process has the data folder open.
func InUse(dir string) bool {
	if _, err := os.Stat(dir); err != nil {
		return false // there is none yet
	}
	lock, err := sqlite.Lock(dir)
	if err == nil {
		_ = lock.Close() // nothing was written, so an error here changes nothing
	}
	return errors.Is(err, ErrLocked)
}

// SyncFolder writes the names in a folder to the disk: renames are safe only then.
func SyncFolder(dir string) error { return sqlite.SyncDir(dir) }
