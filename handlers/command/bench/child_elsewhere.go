//go:build !linux

package bench

import "syscall"

// ownChild has no effect here: only Linux ends a child with its parent.
func ownChild() *syscall.SysProcAttr { return nil }
