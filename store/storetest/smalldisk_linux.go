package storetest

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// SmallDisk returns a folder on a file system of its own with room for that many bytes. It skips the
// test if the process may not mount one.
func SmallDisk(t testing.TB, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		t.Skip("only root may mount a small disk here:", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// FillDisk fills the disk of a folder until only leave bytes are free. makeRoom frees the space again.
func FillDisk(t testing.TB, dir string, leave int64) (makeRoom func()) {
	t.Helper()
	path := filepath.Join(dir, "fill-"+rand.Text())
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(block)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	if info, err := f.Stat(); err != nil || leave > 0 && f.Truncate(max(0, info.Size()-leave)) != nil {
		t.Fatal("leave room on the disk")
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}
