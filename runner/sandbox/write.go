package sandbox

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"
	"syscall"
)

// WriteFile makes data the contents of the file at name, and the folders it is to
// be in. The file is on the disk when it returns, and whoever reads it meanwhile,
// or after a crash, sees the old contents or the new, never a mix. A file that was
// there keeps its permissions. A symbolic link is refused: its target has a path
// of its own.
func (w *Workspace) WriteFile(name string, data []byte) error {
	p, err := filePath(name)
	if err != nil {
		return err
	}
	w.writes.Lock()
	defer w.writes.Unlock()
	return w.replace(p, data)
}

// Edit makes what change makes of the contents of the file at name its contents,
// as WriteFile would. Nothing else done through w comes between. An error of
// change is returned as it is, and the file left alone. A file over
// Limits.FileSize is refused.
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

// Remove deletes the file or link at name, for good.
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
	w.release(1, entry(p, info).Size)
	return w.sync(path.Dir(p))
}

func (w *Workspace) checkSize(p string, size int64) error {
	if size > w.limits.FileSize {
		return errorf(TooLarge, "%q would be larger than a file can be, %d bytes", p, w.limits.FileSize)
	}
	return nil
}

// replace is WriteFile with w.writes held.
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
	files, grow, mode := 1, int64(len(data)), fs.FileMode(0o644)
	if old != nil {
		files, grow, mode = 0, grow-old.Size(), old.Mode().Perm()
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

// replaceable describes the file at p, nil if there is none, and refuses anything
// there that is not a file.
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
	if _, err := w.root.Stat(p); err != nil {
		return nil, explain(p, err) // says so if it leads outside; then the target is not told
	}
	return nil, errorf(Invalid, "%q is a symbolic link to %q; write to that file instead", p, target)
}

// makeFolders makes the folder at dir and those above it, each counted.
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
			return nil // made by another Workspace since we looked
		}
		return explain(dir, err)
	}
	return w.sync(path.Dir(dir))
}

// swapIn writes data beside p and puts it in its place.
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

// Files in the making have names of this form, which nothing else may have.
const (
	scratchPrefix = ".journeyman-"
	scratchSuffix = ".tmp"
)

// isScratch says whether name is that of a file in the making.
func isScratch(name string) bool {
	return strings.HasPrefix(name, scratchPrefix) && strings.HasSuffix(name, scratchSuffix)
}

// scratch makes a new file in the folder at dir, has fill write it, and gives its
// path once it is on the disk. It leaves nothing behind if that fails.
func (w *Workspace) scratch(dir string, mode fs.FileMode, fill func(io.Writer) error) (string, error) {
	temp := path.Join(dir, scratchPrefix+rand.Text()+scratchSuffix)
	f, err := w.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return "", err
	}
	err = fill(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, w.root.Remove(temp))
	}
	return temp, nil
}

// sync brings the names in the folder at dir to the disk.
func (w *Workspace) sync(dir string) error {
	f, err := w.open(dir, wantFolder)
	if err != nil {
		return err
	}
	defer f.Close()
	return syncFolder(f)
}

// syncFolder brings the names in an open folder to the disk, where the system has
// a way to ask for that.
func syncFolder(f *os.File) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	err := f.Sync()
	if errors.Is(err, syscall.EINVAL) {
		return nil // some network file systems do it by themselves and refuse to be told
	}
	return err
}
