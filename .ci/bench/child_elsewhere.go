//go:build !linux

package main

import (
	"syscall"
	"time"
)

// ownChild has no effect here: only Linux ends a child with its parent.
func ownChild() *syscall.SysProcAttr { return nil }

// threadTime returns false: only Linux counts the CPU time of one thread.
func threadTime() (t time.Duration, ok bool) { return 0, false }
