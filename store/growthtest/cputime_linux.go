package growthtest

import (
	"time"

	"golang.org/x/sys/unix"
)

// used returns the CPU time of this thread, or of all threads.
func used(all bool) time.Duration {
	who := unix.RUSAGE_THREAD
	if all {
		who = unix.RUSAGE_SELF
	}
	var u unix.Rusage
	if err := unix.Getrusage(who, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
