//go:build !linux

package postgres

import "syscall"

// giveUp does nothing, because only Linux has the setting. On other systems, the kernel uses its
// own timeout.
func giveUp(_, _ string, _ syscall.RawConn) error { return nil }
