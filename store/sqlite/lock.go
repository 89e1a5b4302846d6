package sqlite

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

// lockName is the file that processes lock in a data folder.
const lockName = "lock"

// nodeLockPrefix begins the names of the files that nodes lock in addition: see LockNode.
const nodeLockPrefix = lockName + "-"

// Lock locks a data folder for this process until the returned file is closed. The
// kernel releases the lock when the process ends, however it ends. Lock returns ErrLocked
// after lockPatience if another process holds the lock.
func Lock(dir string) (*os.File, error) { return lock(dir, lockName, unix.LOCK_EX) }

// LockNode locks a data folder together with other processes that call LockNode with other names. It
// returns ErrLocked if a process holds the lock of Lock, or that of the same name.
func LockNode(dir, name string) (*NodeLock, error) {
	shared, err := lock(dir, lockName, unix.LOCK_SH)
	if err != nil {
		return nil, err
	}
	own, err := lock(dir, nodeLockPrefix+name, unix.LOCK_EX)
	if err != nil {
		return nil, errors.Join(err, shared.Close())
	}
	return &NodeLock{shared, own}, nil
}

// A NodeLock is a lock of LockNode. Its file contains a note for the next process that gets the lock.
type NodeLock struct{ shared, own *os.File }

// Close releases the lock. The note remains.
func (l *NodeLock) Close() error { return errors.Join(l.shared.Close(), l.own.Close()) }

// maxNote is the greatest length of a note, in bytes.
const maxNote = 1000

// Note returns the note, which an earlier process may have written. It is empty if there is none.
func (l *NodeLock) Note() (string, error) {
	text, err := io.ReadAll(io.NewSectionReader(l.own, 0, maxNote))
	if err != nil {
		return "", fmt.Errorf("read lock file: %w", err)
	}
	return string(text), nil
}

// SetNote replaces the note. A crash of the machine may leave another text.
func (l *NodeLock) SetNote(text string) error {
	_, err := l.own.WriteAt([]byte(text), 0)
	if err == nil {
		err = l.own.Truncate(int64(len(text)))
	}
	if err != nil {
		return fmt.Errorf("write lock file: %w", err)
	}
	return nil
}

// lock locks a file of a folder. how is LOCK_EX or LOCK_SH.
func lock(dir, name string, how int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	for waited := time.Duration(0); errors.Is(err, unix.EWOULDBLOCK) && waited < lockPatience; waited += lockInterval {
		time.Sleep(lockInterval)
		err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
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

// Locked reports whether another process has the data folder locked by Lock or LockNode. It creates no
// file.
func Locked(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for lock files: %w", err)
	}
	for _, e := range entries {
		if e.Name() != lockName && !strings.HasPrefix(e.Name(), nodeLockPrefix) {
			continue
		}
		if locked, err := isLocked(filepath.Join(dir, e.Name())); locked || err != nil {
			return locked, err
		}
	}
	return false, nil
}

// isLocked reports whether another process holds the exclusive lock of a file.
func isLocked(name string) (bool, error) {
	f, err := os.Open(name)
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
