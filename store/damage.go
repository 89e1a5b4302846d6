package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"journeyman/store/sqlite"
)

// DamageAdvice is the advice for the operator of a damaged data folder.
const DamageAdvice = "stop the server, copy the data folder aside, check the disk, and restore the newest backup " +
	"into a new folder: journeyman restore FILE --data NEW"

// Damage returns the first error that showed damage of the database, or nil. The error stays until
// the program starts again on a sound folder.
func (s *Store) Damage() error {
	if s.file == nil {
		return nil // the database server checks its own files
	}
	return s.file.Damage()
}

// CheckDatabase looks for damage in the whole database, table by table. Requests go on
// meanwhile. Damage that it finds is remembered: see Damage. It does nothing for a database on a
// server.
func (s *Store) CheckDatabase(ctx context.Context) error {
	if s.file == nil {
		return nil
	}
	return s.file.QuickCheck(ctx)
}

// refuseLostDatabase returns an error if the folder has files and no database. Otherwise the
// program would treat a folder whose database is lost as a new folder.
func refuseLostDatabase(ctx context.Context, dir string) error {
	held, err := fileWithoutDatabase(ctx, dir)
	if err != nil || held == "" {
		return err
	}
	return fmt.Errorf("%s holds no database, but files such as %s: the database is lost. "+
		"Restore a backup into a new folder (journeyman restore FILE --data NEW), "+
		"or start once with --begin-anew to keep the files and begin with an empty database", dir, held)
}

// fileWithoutDatabase returns the path of a file in a folder that has no database, or "" if
// there is none.
func fileWithoutDatabase(ctx context.Context, dir string) (string, error) {
	blank, err := sqlite.Blank(ctx, filepath.Join(dir, databaseName))
	if err != nil || !blank {
		return "", err
	}
	for _, name := range archived {
		held, err := anyFile(filepath.Join(dir, name))
		if err != nil {
			return "", fmt.Errorf("look for files without a database: %w", err)
		}
		if held != "" {
			return held, nil
		}
	}
	return "", nil
}

// Unused reports whether dir has no database, neither in a file nor on a server, and no files of a lost
// one: no server has started on it. The folder need not exist.
func Unused(ctx context.Context, dir string) (bool, error) {
	for _, name := range []string{databaseName, serverName} {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return false, nil // the caller that opens the database reports other errors
		}
	}
	held, err := fileWithoutDatabase(ctx, dir)
	return held == "" && err == nil, err
}

// markBegunAnewDone records that the new database of a marked folder exists.
func markBegunAnewDone(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, begunAnewName)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := os.WriteFile(filepath.Join(dir, begunAnewDoneName), nil, 0o600); err != nil {
		return fmt.Errorf("mark the folder: %w", err)
	}
	return sqlite.SyncDir(dir)
}

// markBegunAnew marks the folder if it has files without a database. The mark must exist before the
// database. Otherwise the start after a kill between the two would sweep the files.
func markBegunAnew(ctx context.Context, dir string) error {
	held, err := fileWithoutDatabase(ctx, dir)
	if err != nil || held == "" {
		return err
	}
	// The flag may be set permanently, in a unit or an environment file. A second loss must not go
	// unnoticed.
	if _, err := os.Stat(filepath.Join(dir, begunAnewDoneName)); err == nil {
		return fmt.Errorf("%s has lost its database again: --begin-anew (JOURNEYMAN_BEGIN_ANEW) works once. Restore a "+
			"backup into a new folder (journeyman restore FILE --data NEW), or remove the file %s to begin anew again",
			dir, begunAnewDoneName)
	}
	const text = "The database was created anew. Files that are older than this one are kept.\n"
	if err := os.WriteFile(filepath.Join(dir, begunAnewName), []byte(text), 0o600); err != nil {
		return fmt.Errorf("mark the folder: %w", err)
	}
	return sqlite.SyncDir(dir)
}

// begunAnew returns the time of the mark, the zero time without one.
func begunAnew(dir string) (time.Time, error) {
	info, err := os.Stat(filepath.Join(dir, begunAnewName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, fmt.Errorf("look for the mark of a new database: %w", err)
	}
	return info.ModTime(), nil
}

// anyFile returns the path of a file below a folder, or "" if there is none.
func anyFile(folder string) (found string, err error) {
	err = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, os.ErrNotExist):
			return nil
		case err == nil && e.IsDir():
			return nil
		}
		found = path // also for a folder that cannot be read, which is not new
		return fs.SkipAll
	})
	return found, err
}

// explainOpen adds advice to the error of a database that cannot be opened.
func explainOpen(err error) error {
	if sqlite.IsDamage(err) {
		return fmt.Errorf("%w; %s", err, DamageAdvice)
	}
	return err
}
