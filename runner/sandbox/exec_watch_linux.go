//go:build amd64 || arm64

package sandbox

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// watchMemory ends this process, and so the command, when the command's processes
// and /tmp take more memory than they may. A limit of each process alone would
// leave them that much times their number.
func (spec *childSpec) watchMemory(r childReport) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if memoryInUse() > spec.Limits.Memory {
			r.Stopped = StopMemory
			r.exit()
		}
	}
}

// memoryInUse sums up what is in memory for the processes that /proc shows, files
// on disks apart, and for /tmp.
func memoryInUse() int64 {
	var sum int64
	var tmp unix.Statfs_t
	if unix.Statfs("/tmp", &tmp) == nil {
		sum = int64(tmp.Blocks-tmp.Bfree) * tmp.Bsize
	}
	proc, err := os.Open("/proc")
	if err != nil {
		return sum
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid != os.Getpid() {
			sum += memoryOf(name)
		}
	}
	return sum
}

// memoryOf is what of a process is in memory, or swapped out of it, and not in a
// file; 0 if it is gone.
func memoryOf(pid string) int64 {
	status, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return 0
	}
	var kib int64
	for lines := bufio.NewScanner(bytes.NewReader(status)); lines.Scan(); {
		name, value, _ := bytes.Cut(lines.Bytes(), []byte(":"))
		switch string(name) {
		case "RssAnon", "RssShmem", "VmSwap", "VmPTE":
			n, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(value, []byte("kB")))), 10, 64)
			if err == nil {
				kib += n
			}
		}
	}
	return kib << 10
}
