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

// folderVersion returns the version of the database in a data folder, 0 if there is none. A server
// may have the folder open.
func folderVersion(ctx context.Context, dir string) (int, error) {
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

// fileVersion returns the version of a database file. SQLite would create a file that does not exist.
func fileVersion(ctx context.Context, path string) (int, error) {
	if _, err := os.Stat(path); err != nil {
		return 0, err
	}
	return sqlite.Version(ctx, path)
}

// RollBack replaces a newer database by the copy that an upgrade from the given version has made.
// It does nothing if the database is not newer. It returns the new path of the newer database, or
// "" if nothing changed. Only the newer database has the writes since the upgrade. It returns
// ErrLocked while a server has the folder open.
//
// After a kill at any moment, the folder has one of the two databases, undamaged.
func RollBack(ctx context.Context, dir string, version int) (kept string, err error) {
	path := filepath.Join(dir, databaseName)
	now, err := folderVersion(ctx, dir)
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
	// SQLite would apply a log beside the file to the older database, and damage it.
	if err := sqlite.EmptyLog(ctx, path); err != nil {
		return "", err
	}
	kept = fmt.Sprintf("%s.v%d", path, now)
	if err := os.Remove(kept); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	// A link is created first, so that the database file exists at every moment. A folder without
	// one would be refused as lost.
	if err := os.Link(path, kept); err != nil {
		return "", err
	}
	if err := os.Rename(aside, path); err != nil {
		return "", err
	}
	return kept, sqlite.SyncDir(dir)
}
