package store

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// chmodIn changes the mode of base in the open folder dir. It never follows a link.
// Kernels before 6.6 have no system call for that, so it changes the mode by way of a
// handle that has no access to the file.
func chmodIn(dir *os.File, base string, mode uint32) error {
	fd, err := unix.Openat(int(dir.Fd()), base, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return unix.ELOOP
	}
	return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), mode)
}
