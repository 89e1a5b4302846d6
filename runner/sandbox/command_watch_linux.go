//go:build amd64 || arm64

package sandbox

import (
	"context"
	"time"
)

// A machineWatch stops a command before the machine's memory is used up. It covers memory that
// no count of the command includes, such as the kernel's memory for file locks or mappings.
type machineWatch struct {
	begin   int64 // bytes available when the command began
	reserve int64 // bytes that must stay available; 0 if unknown
}

// watchMachine returns a machineWatch for a command that begins now.
func watchMachine() machineWatch {
	total, available := machineMemory()
	return machineWatch{begin: available, reserve: min(total/10, 1<<30)}
}

// exceeded reports whether less memory than the reserve is available, and less than when the
// command began.
func (m machineWatch) exceeded() bool {
	_, available := machineMemory()
	return available < m.reserve && available < m.begin
}

// machineMemory returns the machine's memory and the memory available to programs, in bytes.
// Both are 0 if /proc lacks these figures.
func machineMemory() (total, available int64) {
	f, _ := procFigures("/proc/meminfo", "MemTotal", "MemAvailable")
	return f[0], f[1]
}

const (
	watchEvery   = 20 * time.Millisecond // pause between two checks of a command
	machineEvery = 5                     // every fifth check includes the machine's memory
)

// watch stops a command that exceeds a limit which is visible from outside its namespaces. It
// returns when ctx ends.
func watch(ctx context.Context, stop context.CancelCauseFunc, disk *diskWatch, machine machineWatch) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		switch {
		case disk.exceeded(time.Now()):
			stop(stopped(StopDisk))
			return
		case n%machineEvery == 0 && machine.exceeded():
			stop(stopped(StopMemory))
			return
		}
	}
}
