package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"journeyman/store/gate"
	"journeyman/store/sqlite"
)

const (
	// partSuffix ends the names of backups that are being written or verified.
	partSuffix = ".part"

	// damagedSuffix ends the name of the empty file or object that marks a damaged backup.
	damagedSuffix = ".damaged"
)

// A folder is a destination on a disk of this machine.
type folder struct{ dir string }

func newFolder(dir string) (*folder, error) {
	dir, err := filepath.Abs(dir) // messages show the path, and readers may not know the working folder
	return &folder{dir}, err
}

func (f *folder) path(name string) string { return filepath.Join(f.dir, name) }

func (f *folder) room(atMost int64) error {
	var last int64
	if list, err := f.list(context.Background()); err == nil && len(list) > 0 {
		newest := slices.MaxFunc(list, func(a, b entry) int { return strings.Compare(a.name, b.name) })
		if info, err := os.Stat(f.path(newest.name)); err == nil {
			last = info.Size()
		}
	}
	return roomIn(f.dir, last, atMost)
}

// roomIn returns an error if the disk of a folder has too little room for a backup. The backup has at
// most atMost bytes. last is the size of the previous backup.
func roomIn(dir string, last, atMost int64) error {
	if last == 0 {
		return nil // the compression ratio is not known yet: the first backup may fit
	}
	needed := min(last+last/10, atMost)
	space, err := gate.Statfs(dir)
	// If the free space is unknown, try the backup all the same. Some file systems report no sizes.
	if err != nil || space.Total <= 0 || space.Free >= needed {
		return nil //nolint:nilerr // see above
	}
	return fmt.Errorf("it needs about %d MB, and %s has %d MB free: make room there, lower --backup-keep, or choose "+
		"another place", needed/1e6+1, dir, space.Free/1e6)
}

func (f *folder) put(_ context.Context, name string, _ int64, write func(w io.Writer) error) error {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(f.path(name)+partSuffix, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return writeFile(out, write)
}

func (f *folder) open(_ context.Context, name string) (io.ReadCloser, error) {
	file, err := os.Open(f.path(name) + partSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return os.Open(f.path(name))
	}
	return file, err
}

// finish renames a verified backup to its final name. The random part makes names unique across
// servers.
func (f *folder) finish(_ context.Context, name string, damaged bool) error {
	if damaged { // create the mark first: after a crash, a damaged backup must not lack its mark
		mark, err := os.OpenFile(f.path(name)+damagedSuffix, os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			err = errors.Join(mark.Sync(), mark.Close(), sqlite.SyncDir(f.dir))
		}
		if err != nil {
			return err
		}
	}
	if err := os.Rename(f.path(name)+partSuffix, f.path(name)); err != nil {
		return err
	}
	return sqlite.SyncDir(f.dir)
}

func (f *folder) list(context.Context) (list []entry, err error) {
	entries, err := os.ReadDir(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	marked := map[string]bool{}
	for _, e := range entries {
		if name, mark := strings.CutSuffix(e.Name(), damagedSuffix); mark {
			marked[name] = true
		}
	}
	for _, e := range entries {
		if _, ours := madeAt(e.Name()); ours && e.Type().IsRegular() {
			list = append(list, entry{e.Name(), marked[e.Name()]})
		}
	}
	return list, err
}

func (f *folder) remove(_ context.Context, name string) error {
	// Delete the mark last: without it, a damaged backup would count as a good one.
	for _, path := range []string{f.path(name), f.path(name) + partSuffix, f.path(name) + damagedSuffix} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (f *folder) clean(_ context.Context, before time.Time) error {
	entries, err := os.ReadDir(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		name, left := strings.CutSuffix(e.Name(), partSuffix)
		if mark, ok := strings.CutSuffix(e.Name(), damagedSuffix); ok {
			_, gone := os.Lstat(f.path(mark)) // the mark of a deleted backup
			name, left = mark, errors.Is(gone, fs.ErrNotExist)
		}
		at, ours := madeAt(name)
		if left && ours && at.Before(before) {
			err = errors.Join(err, os.Remove(f.path(e.Name())))
		}
	}
	if err != nil {
		return fmt.Errorf("remove old parts: %w", err)
	}
	return nil
}
