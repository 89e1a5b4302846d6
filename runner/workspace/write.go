package workspace

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
)

// WriteFile writes data to the file at name, and creates the folders above it. The file is on
// the disk when WriteFile returns. Readers get either the old contents or the new, even after a
// crash. An existing file keeps its permissions. WriteFile rejects a symbolic link, because the
// target has a path of its own.
func (w *Workspace) WriteFile(name string, data []byte) error {
	p, err := filePath(name)
	if err != nil {
		return err
	}
	w.writes.Lock()
	defer w.writes.Unlock()
	return w.replace(p, data)
}

// Edit replaces the contents of the file at name by the result of change, as WriteFile does. No
// other write through w happens in between. If change returns an error, Edit returns that error
// and does not change the file. Edit rejects files larger than Limits.FileSize.
func (w *Workspace) Edit(name string, change func(old []byte) ([]byte, error)) error {
	p, err := filePath(name)
	if err != nil {
		return err
	}
	w.writes.Lock()
	defer w.writes.Unlock()
	old, err := w.ReadFile(p, 0, w.limits.FileSize+1)
	if err != nil {
		return err
	}
	if err := w.checkSize(p, int64(len(old))); err != nil {
		return err
	}
	data, err := change(old)
	if err != nil {
		return err
	}
	return w.replace(p, data)
}

// Remove deletes the file or link at name.
func (w *Workspace) Remove(name string) error {
	p, err := filePath(name)
	if err != nil {
		return err
	}
	w.writes.Lock()
	defer w.writes.Unlock()
	info, err := w.root.Lstat(p)
	if err != nil {
		return explain(p, err)
	}
	if info.IsDir() {
		return wantFile(p, info.Mode())
	}
	if err := w.root.Remove(p); err != nil {
		return explain(p, err)
	}
	w.release(1, entry(p, info).room)
	return w.sync(path.Dir(p))
}

func (w *Workspace) checkSize(p string, size int64) error {
	if size > w.limits.FileSize {
		return Errorf(TooLarge, "%q would be larger than a file can be, %d bytes", p, w.limits.FileSize)
	}
	return nil
}

// replace implements WriteFile. w.writes is held.
func (w *Workspace) replace(p string, data []byte) error {
	if err := w.checkSize(p, int64(len(data))); err != nil {
		return err
	}
	old, err := w.replaceable(p)
	if err != nil {
		return err
	}
	if err := w.makeFolders(path.Dir(p)); err != nil {
		return err
	}
	// Reserve before the write: a rejected write must change nothing.
	files, grow, mode := 1, int64(len(data)), fs.FileMode(0o644)
	if old != nil {
		files, grow, mode = 0, grow-room(old), old.Mode().Perm()
	}
	if err := w.reserve(files, grow); err != nil {
		return err
	}
	if err := w.swapIn(p, data, mode); err != nil {
		w.release(files, grow)
		return explain(p, err)
	}
	return nil
}

// replaceable returns the file at p that a write will replace, or nil if there is none. It
// rejects anything other than a regular file.
func (w *Workspace) replaceable(p string) (fs.FileInfo, error) {
	info, err := w.root.Lstat(p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, explain(p, err)
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		return info, wantFile(p, info.Mode())
	}
	target, err := w.root.Readlink(p)
	if err != nil {
		return nil, explain(p, err)
	}
	// Reject a link that leads outside here, so that the message below does not contain its
	// target.
	if _, err := w.root.Stat(p); err != nil {
		return nil, explain(p, err)
	}
	return nil, Errorf(Invalid, "%q is a symbolic link to %q; write to that file instead", p, target)
}

// makeFolders creates the folder at dir and its parents. Each counts as a file.
func (w *Workspace) makeFolders(dir string) error {
	info, err := w.root.Stat(dir)
	if err == nil {
		return wantFolder(dir, info.Mode())
	}
	if dir == "." || !errors.Is(err, fs.ErrNotExist) {
		return explain(dir, err)
	}
	if err := w.makeFolders(path.Dir(dir)); err != nil {
		return err
	}
	if err := w.reserve(1, 0); err != nil {
		return err
	}
	if err := w.root.Mkdir(dir, 0o755); err != nil {
		w.release(1, 0)
		if info, again := w.root.Stat(dir); again == nil && info.IsDir() {
			return nil // another Workspace has created it meanwhile
		}
		return explain(dir, err)
	}
	return w.sync(path.Dir(dir))
}

// swapIn writes data to a temporary file and renames the file to p.
func (w *Workspace) swapIn(p string, data []byte, mode fs.FileMode) error {
	temp, err := w.scratch(path.Dir(p), mode, func(f io.Writer) error {
		_, err := io.Copy(f, bytes.NewReader(data))
		return err
	})
	if err != nil {
		return err
	}
	if err := w.root.Rename(temp, p); err != nil {
		return errors.Join(err, w.root.Remove(temp))
	}
	return w.sync(path.Dir(p))
}

// scratch creates a temporary file in the folder at dir and calls fill to write it. It returns
// the path when the file is on the disk. After an error it removes the file.
func (w *Workspace) scratch(dir string, mode fs.FileMode, fill func(io.Writer) error) (string, error) {
	temp := path.Join(dir, scratchPrefix+rand.Text()+scratchSuffix)
	f, err := w.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return "", err
	}
	err = fill(f)
	// Before the rename: otherwise a power failure could leave a name without contents.
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, w.root.Remove(temp))
	}
	return temp, nil
}

// sync makes the names in the folder at dir survive a power failure.
func (w *Workspace) sync(dir string) error {
	f, err := w.open(dir, wantFolder)
	if err != nil {
		return err
	}
	defer f.Close()
	return syncFolder(f)
}
