//go:build !linux

package postgres

import "syscall"

// giveUp does nothing: only Linux has the setting. The kernel gives up a connection after a time
// of its own.
func giveUp(_, _ string, _ syscall.RawConn) error { return nil }
