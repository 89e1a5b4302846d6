package store

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"journeyman/store/gate"
	"journeyman/store/sqlite"
)

// Restore creates the data folder dir from a backup, and checks the database. It refuses a
// folder that is not empty. If it fails, the folder is empty again.
//
// It extracts the database, files and workspaces alone. Other files of a data folder, such as the
// commands of MCP servers, must be written by the operator and are never extracted.
func Restore(ctx context.Context, dir string, r io.Reader) (err error) {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty: a backup is restored into a new folder only", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	root, err := os.OpenRoot(dir) // so that no name in the archive leads out of it
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer root.Close()
	if err := root.Chmod(".", 0o700); err != nil { // an existing folder may be open to other users
		return fmt.Errorf("restore: make %s private: %w", dir, err)
	}
	// A server would treat a partly restored folder as a complete one.
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("restore: %w", err), emptyFolder(root))
		}
	}()
	err = readBackup(r, func(h *tar.Header, t *tar.Reader) error {
		// The room is checked before each file, because a full disk would also stop the other
		// programs of the machine.
		if err := checkRoom(root, h); err != nil {
			return err
		}
		return restoreFile(ctx, root, h, t)
	})
	if err != nil {
		return err
	}
	return checkRestored(ctx, dir)
}

// checkTrailer reads a backup to its end, where its checksum is.
func checkTrailer(z io.Reader) error {
	n, err := io.Copy(io.Discard, io.LimitReader(z, maxTrailer+1))
	if err == nil && n > maxTrailer {
		err = errors.New("something follows its end")
	}
	if err != nil {
		return fmt.Errorf("the backup is damaged: %w", err)
	}
	return nil
}

// maxTrailer is the number of bytes that may follow the end of the tar, because writers fill up blocks.
const maxTrailer = 1 << 20

// emptyFolder removes the files that a restore has created.
func emptyFolder(root *os.Root) (err error) {
	for _, name := range append(archived[:], databaseName, databaseName+"-wal", databaseName+"-shm") {
		err = errors.Join(err, root.RemoveAll(name))
	}
	return err
}

// eachEntry calls do with each entry of a backup, in their order. It returns an error for an
// entry that no backup holds.
func eachEntry(t *tar.Reader, do func(h *tar.Header, t *tar.Reader) error) error {
	for {
		h, err := t.Next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("the backup is damaged: %w", err)
		}
		if err := checkEntry(h); err != nil {
			return err
		}
		if err := do(h, t); err != nil {
			return err
		}
	}
}

// checkEntry returns an error for an entry that no backup holds.
func checkEntry(h *tar.Header) error {
	name := h.Name
	if len(name) > maxArchivedName || strings.Count(name, "/") > maxArchivedDepth+1 {
		return fmt.Errorf("the backup is damaged: it holds the path %.100q..., which is too long", name)
	}
	top, below, nested := strings.Cut(name, "/")
	known := name == databaseName || nested && below != "" && slices.Contains(archived[:], top)
	if !known || !filepath.IsLocal(name) || path.Clean(name) != name {
		return fmt.Errorf("the file is not a backup: it holds %q; a backup holds only %s, %s/ and %s/",
			name, databaseName, archived[0], archived[1])
	}
	if h.Typeflag != tar.TypeReg {
		return fmt.Errorf("the file is not a backup: %q in it is not a plain file", name)
	}
	return nil
}

// reservedDisk is the number of bytes that stay free on the disk to which a backup is restored.
const reservedDisk = 16 << 20

// checkRoom returns an error if the disk has no room for one more file. A small archive can expand
// to very large files.
func checkRoom(root *os.Root, h *tar.Header) error {
	disk, err := gate.Statfs(root.Name())
	if err != nil {
		return fmt.Errorf("look for room on the disk: %w", err)
	}
	if h.Size > disk.Free-reservedDisk || disk.Files > 0 && disk.FreeFiles == 0 {
		return fmt.Errorf("the disk has no room for %q of %d bytes: %d are free", h.Name, h.Size, disk.Free)
	}
	return nil
}

// restoreFile writes one file that only its owner can read, whatever its mode was.
func restoreFile(ctx context.Context, root *os.Root, h *tar.Header, t *tar.Reader) (err error) {
	name := filepath.FromSlash(h.Name)
	if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("the backup is damaged: it holds %q twice", h.Name)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := io.Copy(f, &archiveReader{ctx: ctx, r: t}); err != nil {
		return err
	}
	return f.Sync()
}

// An archiveReader reads an archive, and returns its errors as damage of the backup. So they differ
// from errors of the disk to which the files are copied.
type archiveReader struct {
	ctx context.Context
	r   io.Reader
}

// Read fails if the archive is damaged, and when the context has ended.
func (a *archiveReader) Read(b []byte) (int, error) {
	if err := a.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := a.r.Read(b)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("the backup is damaged: %w", err)
	}
	return n, err
}

// checkRestored returns an error unless the database exists, is undamaged and is a database of this
// program.
func checkRestored(ctx context.Context, dir string) error {
	database := filepath.Join(dir, databaseName)
	if _, err := os.Stat(database); err != nil {
		return errors.New("the backup holds no database")
	}
	if err := sqlite.Check(ctx, database); err != nil {
		return err
	}
	return sqlite.SyncDir(dir)
}

// The bounds of a name in a backup. The walk holds one file open for each level of
// folders.
const (
	maxArchivedDepth = 200  // folders
	maxArchivedName  = 4096 // bytes
)

// readBackup calls do with each entry of a backup, and reads it to its last byte.
func readBackup(r io.Reader, do func(h *tar.Header, t *tar.Reader) error) error {
	z, err := gzip.NewReader(r)
	if err != nil {
		return errors.New("the file is not a backup")
	}
	if err := eachEntry(tar.NewReader(z), do); err != nil {
		return err
	}
	return checkTrailer(z)
}
