//go:build unix

package sandbox

import (
	"syscall"
	"time"
)

// exitCode returns the exit code of a process as shells report it. After a signal, the code
// is 128 plus the signal's number.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// commandEnvironment returns the complete environment of a command. It includes nothing of this
// service's own environment, which contains keys.
func commandEnvironment(dir, home string) []string {
	return []string{"PATH=" + commandPath, "HOME=" + home,
		"TMPDIR=/tmp", "PWD=" + dir, "LANG=C.UTF-8", "TERM=dumb", "USER=worker", "LOGNAME=worker", "SHELL=/bin/sh"}
}

// ProcessTime returns the CPU time that this process has used. A filter compares it with
// FilterTime, to stop early and return a partial result.
func ProcessTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0 // the kernel's own limit still ends the process
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
