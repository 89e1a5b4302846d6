package main

import (
	"syscall"
	"time"
)

// ownChild makes the kernel kill the child when this process dies: nobody else would stop it.
func ownChild() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// threadTime returns the CPU time of the current thread.
func threadTime() (t time.Duration, ok bool) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_THREAD, &u) != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
