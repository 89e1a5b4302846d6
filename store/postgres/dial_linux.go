package postgres

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// giveUp makes the kernel end a connection after a time without acknowledgements from the other
// side. Without this setting, a query waits for a quarter of an hour if the network fails while it
// is sent.
func giveUp(_, _ string, c syscall.RawConn) error {
	var err error
	failed := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silence.Milliseconds()))
	})
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOPROTOOPT) { // a Unix socket
		err = nil
	}
	return errors.Join(failed, err)
}
