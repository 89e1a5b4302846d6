package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// ErrLocked means that another process has the data folder open.
var ErrLocked = errors.New("data folder is in use by another process: stop that one, or choose another folder")

// A forked child holds copies of all descriptors until it calls exec, so a lock that was just
// released can look held for some milliseconds. Lock tries for this long.
const (
	lockPatience = 100 * time.Millisecond
	lockInterval = 5 * time.Millisecond
)

// Lock locks a data folder for this process until the returned file is closed. The
// kernel releases the lock when the process ends, however it ends. Lock returns ErrLocked
// after lockPatience if another process holds the lock.
func Lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	for waited := time.Duration(0); errors.Is(err, unix.EWOULDBLOCK) && waited < lockPatience; waited += lockInterval {
		time.Sleep(lockInterval)
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", dir, ErrLocked)
		}
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return f, nil
}

// Locked reports whether another process has the data folder locked. It creates no file.
func Locked(dir string) (bool, error) {
	f, err := os.Open(filepath.Join(dir, "lock"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open lock file: %w", err)
	}
	defer f.Close() // which releases the lock, too
	// Shared, and only for a moment: a server that starts now tries again for some seconds.
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}
