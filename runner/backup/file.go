package backup

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"journeyman/store/sqlite"
)

// A file is a destination for one backup, under a name that the user chose. A new backup replaces the
// previous one after it is verified.
type file struct {
	to        string
	temporary string // holds the new backup until it is verified
}

func (f *file) path(string) string { return f.to }

func (f *file) room(atMost int64) error {
	var last int64 // the previous backup stays until the new one is verified
	if info, err := os.Stat(f.to); err == nil {
		last = info.Size()
	}
	return roomIn(filepath.Dir(f.to), last, atMost)
}

func (f *file) put(_ context.Context, _ string, _ int64, write func(w io.Writer) error) error {
	out, err := os.CreateTemp(filepath.Dir(f.to), filepath.Base(f.to)+".*.tmp")
	if err != nil {
		return err
	}
	f.temporary = out.Name()
	return writeFile(out, write)
}

// writeFile writes a new file durably, and removes it after an error.
func writeFile(out *os.File, write func(w io.Writer) error) error {
	err := errors.Join(write(sqlite.NewFlusher(out)), out.Sync(), out.Close())
	if err != nil {
		err = errors.Join(err, os.Remove(out.Name()))
	}
	return err
}

func (f *file) open(context.Context, string) (io.ReadCloser, error) { return os.Open(f.temporary) }

func (f *file) finish(context.Context, string, bool) error {
	if err := os.Rename(f.temporary, f.to); err != nil {
		return err
	}
	return sqlite.SyncDir(filepath.Dir(f.to))
}

func (f *file) remove(context.Context, string) error {
	if err := os.Remove(f.temporary); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (f *file) list(context.Context) ([]entry, error) { return nil, nil }

func (f *file) clean(context.Context, time.Time) error { return nil }
