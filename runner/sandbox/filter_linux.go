//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"os"
	"time"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// ownProgram returns a path of this program that stays valid if its file is replaced.
func ownProgram() (string, error) { return "/proc/self/exe", nil }

// filterSlack is the memory, in MiB, that the kernel allows a filter's process beyond its
// limit. watchFilter ends the process earlier and reports the reason.
const filterSlack = 64

// filterAddressSpace is the additional address space of a filter's process. Go reserves much
// more than it uses, and the race detector reserves even more.
const filterAddressSpace = 2 << 30

// confineFilter confines this process, so that it can only compute. It cannot open files or
// connections, start programs, or exceed its memory (in MiB) and CPU time. If the machine runs
// out of memory, the kernel kills this process before the server.
func confineFilter(memory int) error {
	if err := limitFilter(memory, filterCPU, 0); err != nil {
		return err
	}
	if err := landlock.V11.BestEffort().Restrict(); err != nil { // sets no_new_privs, too
		return fmt.Errorf("restrict paths: %w", err)
	}
	return restrictCalls(callProfile{noCode: true})
}

// confineMaker confines this process as confineFilter does, except that it can read and write below a folder.
func confineMaker(memory int, folder string) error {
	if err := limitFilter(memory, prepareCPU, prepareFile); err != nil {
		return err
	}
	if err := landlock.V11.BestEffort().Restrict(landlock.RWDirs(folder)); err != nil {
		return fmt.Errorf("restrict paths: %w", err)
	}
	return restrictCalls(callProfile{}) // it maps memory for the code that it compiles
}

// limitFilter limits the further memory (in MiB) and CPU time of this process, and the size of its files.
func limitFilter(memory int, cpu time.Duration, file uint64) error {
	mapped, data := mappedMemory()
	seconds := uint64((ProcessTime() + cpu) / time.Second) // the kernel counts from the start
	err := limitProcess(0, map[int]uint64{unix.RLIMIT_CPU: seconds, unix.RLIMIT_FSIZE: file,
		unix.RLIMIT_AS: mapped + filterAddressSpace, unix.RLIMIT_DATA: data + uint64(memory+filterSlack)*slowdown<<20,
		unix.RLIMIT_CORE: 0, unix.RLIMIT_NOFILE: 16})
	raiseOOMScore()
	return err
}

// restrictCalls leaves this process only the system calls of the profile.
func restrictCalls(p callProfile) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	return p.filterCalls()
}

// peakMemory returns a function that returns the most bytes that this process has had in memory. The function also
// works in a confined process. It returns 0 if it does not know.
func peakMemory() func() int64 {
	f, err := os.Open("/proc/self/status")
	return func() int64 {
		if err != nil {
			return 0
		}
		text := make([]byte, 4<<10)
		n, _ := f.ReadAt(text, 0) // it ends with io.EOF
		return figuresIn(text[:n], "VmHWM")[0]
	}
}

// mappedMemory returns the address space of this process, and the writable private part of it,
// in bytes.
func mappedMemory() (all, data uint64) {
	figures, err := procFigures("/proc/self/status", "VmSize", "VmData")
	if err != nil {
		return 1 << 30, 256 << 20 // about the size of a plain Go program
	}
	return uint64(figures[0]), uint64(figures[1])
}
