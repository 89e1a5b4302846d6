package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"journeyman/store/pattern"
	"journeyman/store/sqlite"
)

// unfinishedVacuum begins the names of the files that an interrupted sqlite.Rewrite leaves behind.
const unfinishedVacuum = databaseName + ".vacuum.tmp"

// sweepTemp removes unfinished files of a killed process from the data folder and the folder of
// kept files. The lock must be held. Other nodes may be writing such files, so only old ones are removed
// from a shared folder.
func (s *Store) sweepTemp() error {
	inFolder := func(name string) bool { return isTemp(name) || strings.HasPrefix(name, unfinishedVacuum) }
	return errors.Join(s.removeNamed(s.dir, inFolder), s.removeNamed(s.blobDir(), isTemp))
}

// removeNamed removes the entries of a folder for whose names ours returns true.
func (s *Store) removeNamed(dir string, ours func(name string) bool) error {
	entries, err := readDir(dir)
	for _, e := range entries {
		if ours(e.Name()) && (s.node == nil || s.isAbandoned(e)) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	if err != nil {
		return fmt.Errorf("remove unfinished files: %w", err)
	}
	return nil
}

// isAbandoned reports whether nobody has written an unfinished file for orphanAge. No request takes so
// long.
func (s *Store) isAbandoned(e fs.DirEntry) bool {
	info, err := e.Info()
	return err == nil && s.now().Sub(info.ModTime()) > orphanAge
}

// SweepWorkspaces removes unfinished files from the workspaces that are older than begun, when this
// process started. Among nodes it removes only those that nobody has written for a day. It returns their
// number. It follows no link.
func (s *Store) SweepWorkspaces(ctx context.Context, begun time.Time) (n int, err error) {
	root, err := os.OpenRoot(filepath.Join(s.dir, "workspaces"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("remove unfinished files: %w", err)
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(path string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || !e.Type().IsRegular() || !isTemp(e.Name()) {
			return nil //nolint:nilerr // a worker may remove its folders, or make them unreadable
		}
		info, err := e.Info()
		if err != nil || !info.ModTime().Before(begun) || s.node != nil && !s.isAbandoned(e) {
			return nil //nolint:nilerr // the file is being written, or no longer exists
		}
		if err := s.Gate.WritableIn(ctx); err != nil { // maintenance may begin in the middle of a sweep
			return err
		}
		if root.Remove(path) == nil {
			n++
		}
		return nil
	})
	return n, err
}

// checkPrefix begins the names of the folders in which backups are checked.
const checkPrefix = "journeyman-check-"

// checkFolder creates a folder in scratch, and removes those that killed processes have left there.
// remove deletes the folder.
func checkFolder(scratch string) (dir string, remove func() error, err error) {
	if err := sweepChecks(scratch); err != nil {
		return "", nil, err
	}
	for {
		if dir, err = os.MkdirTemp(scratch, checkPrefix); err != nil {
			return "", nil, err
		}
		lock, err := sqlite.Lock(dir) // as long as this process lives
		switch {
		case err == nil && stillNamed(lock):
			return dir, func() error { return errors.Join(os.RemoveAll(dir), lock.Close()) }, nil
		case err == nil: // another process has removed the folder as a leftover: see sweepChecks
			_ = lock.Close()
		case !errors.Is(err, sqlite.ErrLocked) && !errors.Is(err, fs.ErrNotExist):
			return "", nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
}

// stillNamed reports whether an open file still has its name.
func stillNamed(f *os.File) bool {
	named, err := os.Stat(f.Name())
	if err != nil {
		return false
	}
	opened, err := f.Stat()
	return err == nil && os.SameFile(named, opened)
}

// sweepChecks removes the folders of checkFolder that no process uses any more.
func sweepChecks(scratch string) error {
	entries, err := readDir(scratch)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() || !scratchFolder.Compiled().MatchString(e.Name()) || !strings.HasPrefix(e.Name(), checkPrefix) {
			continue
		}
		dir := filepath.Join(scratch, e.Name())
		lock, err := sqlite.Lock(dir)
		if err != nil {
			continue // a process of this or another user checks a backup there
		}
		err = errors.Join(os.RemoveAll(dir), lock.Close())
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("remove what a killed check has left: %w", err)
		}
	}
	return nil
}

// scratchFolder matches the names of the short-lived folders that the program creates, by
// os.MkdirTemp, in the temporary folder of the machine. Other processes of the program may run
// there.
const scratchFolder pattern.Pattern = `^journeyman-(check|detect)-[0-9]+$`

// sweepScratch removes the folders of killed processes from the temporary folder of the machine. It
// keeps those that a process may still use. That folder may hold thousands of names of other
// programs.
func sweepScratch(now time.Time) {
	scratch, err := os.Open(os.TempDir())
	if err != nil {
		return // the store does not need the folder
	}
	names, _ := scratch.Readdirnames(-1) // after an error, the names before it are used
	_ = scratch.Close()                  // nothing was written
	for _, name := range names {
		if !strings.HasPrefix(name, "journeyman-") || !scratchFolder.Compiled().MatchString(name) {
			continue
		}
		path := filepath.Join(os.TempDir(), name)
		if info, err := os.Lstat(path); err == nil && info.IsDir() && now.Sub(info.ModTime()) > orphanAge {
			_ = os.RemoveAll(path) // the folder of another user stays
		}
	}
}
