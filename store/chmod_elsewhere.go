//go:build !linux

package store

import (
	"os"

	"golang.org/x/sys/unix"
)

// chmodIn changes the mode of base in the open folder dir. It never follows a link.
func chmodIn(dir *os.File, base string, mode uint32) error {
	return unix.Fchmodat(int(dir.Fd()), base, mode, unix.AT_SYMLINK_NOFOLLOW)
}
