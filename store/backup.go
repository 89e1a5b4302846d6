package store

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Backup writes the data folder as it is now to w, as a compressed tar: the
// database, the kept files and the workspaces. Writes go on meanwhile. The
// database is taken first, and kept files are neither changed nor removed before
// the end, so that whatever it names is there; a workspace file that changes meanwhile may be
// between two versions.
func (s *Store) Backup(ctx context.Context, w io.Writer) (err error) {
	s.backups.Lock()
	defer s.backups.Unlock()
	snapshot := filepath.Join(s.dir, "backup.tmp")
	if err := os.RemoveAll(snapshot); err != nil { // of a backup that was cut off
		return fmt.Errorf("back up: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(snapshot)) }()
	if err := s.snapshot(ctx, snapshot); err != nil {
		return fmt.Errorf("back up database: %w", err)
	}
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	if err := addFile(t, snapshot, databaseName); err != nil {
		return fmt.Errorf("back up database: %w", err)
	}
	for _, folder := range []string{"files", "workspaces"} {
		if err := s.addFolder(ctx, t, folder); err != nil {
			return fmt.Errorf("back up %s: %w", folder, err)
		}
	}
	if err := errors.Join(t.Close(), z.Close()); err != nil {
		return err
	}
	_ = s.noteBackup() // it is whole, noted or not
	return nil
}

// snapshot copies the database on a connection of its own, so that the writer
// goes on.
func (s *Store) snapshot(ctx context.Context, path string) (err error) {
	db, err := sql.Open("sqlite", dsn(filepath.Join(s.dir, databaseName), ""))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(ctx, `VACUUM INTO ?`, path)
	return err
}

func (s *Store) addFolder(ctx context.Context, t *tar.Writer, folder string) error {
	return filepath.WalkDir(filepath.Join(s.dir, folder), func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // removed while we walk, or there are no workspaces yet
		case err != nil:
			return err
		case !d.Type().IsRegular():
			return nil // a worker's links and pipes
		case filepath.Dir(path) == s.blobDir() && strings.HasPrefix(d.Name(), unnamedBlob):
			return nil // not kept yet
		}
		name, err := filepath.Rel(s.dir, path)
		if err != nil {
			return err
		}
		err = addFile(t, path, filepath.ToSlash(name))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ELOOP) {
			return nil // removed, or made a link, while we walk
		}
		return err
	})
}

// addFile adds what a file holds now. One that shrinks meanwhile is filled up: the
// archive has promised its size.
func addFile(t *tar.Writer, path, name string) error {
	// A worker may put a link in the place of its file meanwhile: not followed.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h := &tar.Header{Name: name, Size: info.Size(), Mode: int64(info.Mode().Perm()), ModTime: info.ModTime(), Format: tar.FormatPAX}
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.CopyN(t, io.MultiReader(f, zeros{}), info.Size())
	return err
}

// zeros never ends.
type zeros struct{}

// Read fills b.
func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// Restore makes the data folder dir out of a backup. It refuses a folder that
// holds anything, and checks the database it has written.
func Restore(ctx context.Context, dir string, r io.Reader) error {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty: a backup is restored into a new folder only", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	root, err := os.OpenRoot(dir) // no name in the archive leads out of it
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer root.Close()
	z, err := gzip.NewReader(r)
	if err != nil {
		return errors.New("restore: the file is not a backup")
	}
	t := tar.NewReader(z)
	for {
		h, err := t.Next()
		if err == io.EOF {
			if _, err := io.Copy(io.Discard, z); err != nil { // the checksum comes last
				return fmt.Errorf("restore: the backup is damaged: %w", err)
			}
			return checkRestored(ctx, dir)
		}
		if err == nil {
			err = restoreFile(root, h, t)
		}
		if err != nil {
			return fmt.Errorf("restore: the backup is damaged: %w", err)
		}
	}
}

func restoreFile(root *os.Root, h *tar.Header, t *tar.Reader) (err error) {
	if h.Typeflag != tar.TypeReg {
		return fmt.Errorf("%q is not a file", h.Name)
	}
	if err := root.MkdirAll(filepath.Dir(filepath.FromSlash(h.Name)), 0o700); err != nil {
		return err
	}
	f, err := root.OpenFile(filepath.FromSlash(h.Name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, fs.FileMode(h.Mode).Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(f, t)
	return errors.Join(err, f.Sync(), f.Close())
}

// checkRestored reports whether the database is there and whole.
func checkRestored(ctx context.Context, dir string) (err error) {
	path := filepath.Join(dir, databaseName)
	if _, err := os.Stat(path); err != nil {
		return errors.New("restore: the backup holds no database")
	}
	db, err := sql.Open("sqlite", dsn(path, ""))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var verdict string
	if err := db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&verdict); err != nil {
		return fmt.Errorf("restore: check the database: %w", err)
	}
	if verdict != "ok" {
		return fmt.Errorf("restore: the database is damaged: %s", verdict)
	}
	return syncDir(dir)
}
