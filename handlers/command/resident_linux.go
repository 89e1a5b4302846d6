package command

import (
	"bufio"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// releaseStart returns memory that only the start needed to the system: free memory of the heap, and
// the pages of the program itself. The kernel keeps those pages in its cache, and maps a
// page again when the program uses it. Without this call they count as memory of the process until
// memory is short. A failure costs that memory only, so releaseStart ignores errors.
//
// Kernels from 6.18 map the whole folio of a page that the program uses again, which has up to
// 2 MiB. There the pages of an idle server grow from 10 MB to 27 MB again within a second, by some
// 50 page faults. The system can still take these pages at any time.
func releaseStart() {
	debug.FreeOSMemory()
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer f.Close()
	for _, r := range unchangedRanges(f, program) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, r.from, r.to-r.from, unix.MADV_DONTNEED)
	}
}

// An addressRange is a part of the address space.
type addressRange struct{ from, to uintptr }

// unchangedRanges returns the ranges of smaps that map the program and are not writable. It leaves
// out ranges with a page that differs from the program's file. The kernel can read each page of the
// result again. A page that differs, for example after a relocation or with a breakpoint, would be
// lost. For the format of smaps, see proc_pid_smaps(5).
func unchangedRanges(smaps io.Reader, program string) (ranges []addressRange) {
	var r addressRange
	ours := false
	for in := bufio.NewScanner(smaps); in.Scan(); {
		name, rest, _ := strings.Cut(in.Text(), " ")
		if !strings.HasSuffix(name, ":") { // the first line of a range: FROM-TO PERMISSIONS ... FILE
			from, to, _ := strings.Cut(name, "-")
			a, errFrom := strconv.ParseUint(from, 16, 64)
			b, errTo := strconv.ParseUint(to, 16, 64)
			r = addressRange{uintptr(a), uintptr(b)}
			ours = errFrom == nil && errTo == nil && strings.HasSuffix(rest, " "+program) && rest[1] != 'w'
			continue
		}
		if ours && name == "Anonymous:" && strings.TrimSpace(rest) == "0 kB" {
			ranges = append(ranges, r)
		}
	}
	return ranges
}
