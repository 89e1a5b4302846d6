//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// A memoryWatch sums the memory of a command that has no control group. It counts the
// processes, /tmp, sockets and tables of open files. The system call filter blocks other ways
// to allocate memory.
type memoryWatch struct {
	limit  int64 // bytes
	socket int64 // maximum memory of the buffers of one socket, in bytes
}

const (
	memoryIdle  = 25 * time.Millisecond // pause between two counts
	memoryEvery = 10 * time.Millisecond // pause if more than an eighth of the limit is used
	memoryPause = 8                     // minimum pause, as a multiple of a count's duration

	tmpInode = 1 << 10 // bytes of kernel memory for one file in /tmp
	openFile = 8 << 10 // bytes for an open file, such as a pipe with its smallest buffer

	// A command is stopped beyond this multiple of the limit, even if its processes share
	// memory. Finding out how much they share would take too long.
	mostShared = 8

	// Maximum number of repeated counts beyond the limit while processes begin or end. Such a
	// count may count shared memory more than once.
	mostRecounts = 5
)

// watch waits for the end of the command. If the command exceeds its memory, watch ends this
// process, and so the command. A limit for each process would not be enough, because a command
// can have many processes.
func (m memoryWatch) watch(r *childReport, ended <-chan error) error {
	for {
		begun := time.Now()
		used, steady := m.inUse()
		for n := 0; n < mostRecounts && used > m.limit && !steady; n++ {
			used, steady = m.inUse()
		}
		if used > m.limit {
			childReport{Stopped: StopMemory, Landlock: r.Landlock, Layers: r.Layers, Began: true}.exit()
		}
		// Counts are more frequent beyond an eighth of the limit, but take at most a ninth of
		// the time.
		pause := memoryIdle
		if used > m.limit/8 {
			pause = memoryEvery
		}
		select {
		case err := <-ended:
			return err
		case <-time.After(max(pause, memoryPause*time.Since(begun))):
		}
	}
}

// inUse returns the memory of the command, in bytes. Memory that processes share counts for
// each of them, unless the sum would then exceed the limit. steady reports whether the same
// processes existed during the whole count. Only then is the sum of their shares at most their
// total memory.
func (m memoryWatch) inUse() (sum int64, steady bool) {
	sum = tmpInUse() + socketsInUse()*m.socket
	processes := m.processes()
	for _, p := range processes {
		sum += p.anonymous + p.other
	}
	if sum <= m.limit || sum > mostShared*m.limit {
		return sum, true
	}
	// Reading a share is slow. The largest processes come first, so that few are needed to
	// prove that the command is below its limit.
	before := livingProcesses()
	slices.SortFunc(processes, func(a, b processMemory) int { return cmp.Compare(b.anonymous, a.anonymous) })
	for _, p := range processes {
		sum -= p.anonymous - min(p.share(), p.anonymous)
		if sum <= m.limit {
			return sum, true
		}
	}
	return sum, slices.Equal(before, livingProcesses())
}

// tmpInUse returns the memory of the files in /tmp, in bytes.
func tmpInUse() int64 {
	var tmp unix.Statfs_t
	if unix.Statfs("/tmp", &tmp) != nil {
		return 0
	}
	return int64(tmp.Blocks-tmp.Bfree)*tmp.Bsize + int64(tmp.Files-tmp.Ffree)*tmpInode
}

// socketsInUse returns how many sockets exist in this network namespace. A closed socket
// counts until its data has been read.
func socketsInUse() int64 {
	data, err := os.ReadFile("/proc/net/sockstat")
	if err != nil {
		return 0
	}
	// The first line of the file is "sockets: used N".
	line, _, _ := bytes.Cut(data, []byte("\n"))
	n, err := strconv.ParseInt(string(bytes.TrimPrefix(line, []byte("sockets: used "))), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// processMemory is the memory of one process, in bytes.
type processMemory struct {
	dir       string // of the figures in /proc: that of a thread if the first thread has ended
	anonymous int64  // resident and not part of a file; processes may share it
	other     int64  // swapped memory, page tables and open files
}

// processes returns the memory of all processes in /proc except this one. It excludes files in
// /tmp, because tmpInUse counts them.
func (m memoryWatch) processes() []processMemory {
	var all []processMemory
	for _, pid := range processIDs() {
		all = append(all, memoryOf(pid))
	}
	return all
}

// processIDs returns the identifiers of all processes in /proc except this one.
func processIDs() []string {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1) // after an error it returns the names so far
	own := strconv.Itoa(os.Getpid())
	return slices.DeleteFunc(names, func(name string) bool { return name[0] < '1' || name[0] > '9' || name == own })
}

// livingProcesses returns the sorted identifiers of all processes in /proc, except this
// one, that have memory. A process that is ending has none.
func livingProcesses() []string {
	living := slices.DeleteFunc(processIDs(), func(pid string) bool { return memoryOf(pid).anonymous == 0 })
	slices.Sort(living)
	return living
}

// memoryOf returns the memory of a process, zeros if the process has ended. A process whose first thread
// has ended goes on, but shows its memory only in the folders of its other threads.
func memoryOf(pid string) processMemory {
	dir := "/proc/" + pid
	m, found := memoryIn(dir)
	if found {
		return m
	}
	threads, err := os.ReadDir(dir + "/task")
	if err != nil {
		return processMemory{dir: dir, anonymous: unread(err)}
	}
	for _, thread := range threads {
		if other, found := memoryIn(dir + "/task/" + thread.Name()); found {
			return other
		}
	}
	return m
}

// memoryIn returns the figures in a folder of a process or thread. found reports whether it has any: a
// thread that has ended has none.
func memoryIn(dir string) (m processMemory, found bool) {
	f, err := procFigures(dir+"/status", "RssAnon", "VmSwap", "VmPTE", "FDSize")
	m = processMemory{dir: dir, anonymous: f[0] + unread(err), other: f[1] + f[2] + max(f[3]-leastTable, 0)*openFile}
	return m, m.anonymous > 0 || f[2] > 0
}

// unread returns the memory that counts for figures that could not be read. If the process has ended, it
// is 0. Otherwise it is more than any limit, because an error must not hide memory.
func unread(err error) int64 {
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return 0
	}
	return 1 << 50
}

// leastTable is the number of open files that the smallest table of a process can hold.
const leastTable = 64

// share returns the process's share of its anonymous memory, in bytes. Memory that n processes
// share counts as one nth (Pss_Anon in smaps_rollup). Without that figure, all memory of the
// process counts: old kernels and ending processes lack it.
func (p processMemory) share() int64 {
	if f, _ := procFigures(p.dir+"/smaps_rollup", "Pss_Anon"); f[0] > 0 {
		return f[0]
	}
	m, _ := memoryIn(p.dir)
	return m.anonymous
}
