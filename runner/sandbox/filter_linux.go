//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"os"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// ownProgram is this program's file, even where it has been replaced meanwhile.
func ownProgram() (string, error) { return "/proc/self/exe", nil }

// filterAddressSpace is what a filter may map beyond what it has mapped when it
// starts: a detector of races has mapped terabytes by then.
const filterAddressSpace = 2 << 30

// confineFilter takes from this process all it could do besides computing: opening
// files and connections, starting programs, and more than its share.
func confineFilter() error {
	mapped := mappedMemory()
	for what, n := range map[int]uint64{unix.RLIMIT_CPU: uint64(filterTime.Seconds()), unix.RLIMIT_FSIZE: 0,
		unix.RLIMIT_AS: mapped + filterAddressSpace, unix.RLIMIT_CORE: 0, unix.RLIMIT_NOFILE: 16} {
		var now unix.Rlimit
		if err := unix.Getrlimit(what, &now); err != nil {
			return fmt.Errorf("read limit %d: %w", what, err)
		}
		least := min(n, now.Max)
		if err := unix.Setrlimit(what, &unix.Rlimit{Cur: least, Max: least}); err != nil {
			return fmt.Errorf("set limit %d: %w", what, err)
		}
	}
	if err := landlock.V11.BestEffort().Restrict(); err != nil { // sets no_new_privs, too
		return fmt.Errorf("restrict paths: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	return filterCalls()
}

// mappedMemory is the address space in use, in bytes.
func mappedMemory() uint64 {
	var pages uint64
	text, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		_, err = fmt.Sscan(strings.TrimSpace(string(text)), &pages)
	}
	if err != nil {
		return 1 << 30 // as much as a plain program has
	}
	return pages * uint64(os.Getpagesize())
}
