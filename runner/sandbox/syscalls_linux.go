//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A callProfile lists the system calls that a filtered process may make.
type callProfile struct {
	// network permits sockets inside the process's own network namespace.
	network bool

	// counted means that a control group counts all memory of the process. Otherwise the filter
	// rejects calls that allocate memory which no figure of a process includes.
	counted bool

	// noCode rejects memory that can be executed: the process only runs the code that it has.
	noCode bool
}

// Offsets in struct seccomp_data, which the kernel passes to the filter. Arguments have 64
// bits, and the low half comes first on both architectures. The kernel only uses the low half
// of the arguments that are checked here.
const (
	atNumber = 0
	atArch   = 4
	atArg0   = 16
	atArg1   = 24
	atArg2   = 32
	atArg3   = 40
)

// newNamespaces are the flags of clone that ask for a new namespace.
const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// mapType masks the type of a mapping in the flags of mmap.
const mapType = 0xf

// The requests of ioctl that allocate blocks beyond the end of a file, like fallocate. The
// limit of a file's size does not cover such blocks.
const (
	ioctlReserve   = 0x40305828 // FS_IOC_RESVSP
	ioctlReserve64 = 0x4030582a // FS_IOC_RESVSP64
	ioctlZeroRange = 0x40305839 // FS_IOC_ZERO_RANGE
)

// punchHole is the one mode of fallocate that only frees blocks.
const punchHole = unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE

// load returns an instruction that reads a field of seccomp_data.
func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

// jump returns an instruction that compares the field with a value, and skips the next
// yes or no instructions.
func jump(compare uint16, with uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | compare | unix.BPF_K, Jt: yes, Jf: no, K: with}
}

// mask returns an instruction that clears all bits of the field outside bits.
func mask(bits uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: bits}
}

// ret returns an instruction that ends the filter with a verdict.
func ret(what uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: what}
}

func fail(errno unix.Errno) unix.SockFilter { return ret(unix.SECCOMP_RET_ERRNO | uint32(errno)) }

func allow() unix.SockFilter { return ret(unix.SECCOMP_RET_ALLOW) }

// callFilter returns the program that the kernel runs at every system call. It permits the
// listed calls, some of them only with certain arguments. Any other call fails with ENOSYS, as
// on a kernel without the call, so that libraries use an older call.
func callFilter(p callProfile) []unix.SockFilter {
	// On another architecture, and for x32 calls, the numbers have other meanings.
	f := []unix.SockFilter{load(atArch), jump(unix.BPF_JEQ, auditArch, 1, 0), ret(unix.SECCOMP_RET_KILL_PROCESS),
		load(atNumber), jump(unix.BPF_JGE, x32Bit, 0, 1), fail(unix.ENOSYS)}
	for _, rule := range p.rules() {
		// The checks end with a verdict, so the accumulator still holds the number at the next
		// rule.
		f = append(f, jump(unix.BPF_JEQ, rule.call, 0, uint8(len(rule.checks))))
		f = append(f, rule.checks...)
	}
	for _, r := range ranges(p.calls()) {
		f = append(f, jump(unix.BPF_JGE, r[0], 0, 2), jump(unix.BPF_JGT, r[1], 1, 0), allow())
	}
	return append(f, fail(unix.ENOSYS))
}

// calls returns the calls that are permitted with any arguments.
func (p callProfile) calls() []uint32 {
	calls := slices.Concat(allowed, allowedHere)
	if p.network {
		calls = append(calls, socketCalls...)
	}
	if p.counted {
		calls = append(calls, hiddenMemoryCalls...)
	}
	return calls
}

// ranges returns the first and the last number of each run of consecutive calls. A filter with
// ranges is shorter and faster than one with single calls.
func ranges(calls []uint32) (list [][2]uint32) {
	slices.Sort(calls)
	for _, call := range slices.Compact(calls) {
		if n := len(list); n > 0 && list[n-1][1]+1 == call {
			list[n-1][1] = call
		} else {
			list = append(list, [2]uint32{call, call})
		}
	}
	return list
}

// A callRule decides about one call by its arguments. Every path through its checks
// ends with a verdict.
type callRule struct {
	call   uint32
	checks []unix.SockFilter
}

// rules returns the rules of the calls whose arguments matter.
func (p callProfile) rules() []callRule {
	rules := []callRule{
		// No new namespaces: a command would have every right in its own. No thread with a
		// separate table of open files, because the memoryWatch would not count that table.
		{unix.SYS_CLONE, []unix.SockFilter{
			load(atArg0), jump(unix.BPF_JSET, newNamespaces, 2, 0), jump(unix.BPF_JSET, unix.CLONE_THREAD, 0, 2),
			jump(unix.BPF_JSET, unix.CLONE_FILES, 1, 0), fail(unix.EPERM), allow(),
		}},
		// TIOCSTI simulates input in a terminal, perhaps that of another user. TIOCLINUX pastes
		// a selection into a console, which has the same effect. The other requests allocate
		// blocks.
		{unix.SYS_IOCTL, []unix.SockFilter{
			load(atArg1), jump(unix.BPF_JEQ, unix.TIOCSTI, 4, 0), jump(unix.BPF_JEQ, unix.TIOCLINUX, 3, 0),
			jump(unix.BPF_JEQ, ioctlReserve, 2, 0), jump(unix.BPF_JEQ, ioctlReserve64, 1, 0),
			jump(unix.BPF_JEQ, ioctlZeroRange, 0, 1),
			fail(unix.ENOTTY), allow(),
		}},
		// Allocating blocks fills a disk faster than the diskWatch can notice. After
		// EOPNOTSUPP, libraries write zeros instead.
		{unix.SYS_FALLOCATE, []unix.SockFilter{
			load(atArg1), jump(unix.BPF_JEQ, punchHole, 1, 0), fail(unix.EOPNOTSUPP), allow(),
		}},
		// Container runtimes permit the same personalities. The others weaken the process, for
		// example by disabling address randomization.
		{unix.SYS_PERSONALITY, []unix.SockFilter{
			load(atArg0), jump(unix.BPF_JEQ, 0, 5, 0), jump(unix.BPF_JEQ, 8, 4, 0), jump(unix.BPF_JEQ, 0x20000, 3, 0),
			jump(unix.BPF_JEQ, 0x20008, 2, 0), jump(unix.BPF_JEQ, 0xffffffff, 1, 0), fail(unix.EPERM), allow(),
		}},
		{unix.SYS_MMAP, p.mapRule()},
	}
	if p.noCode {
		for _, call := range []uint32{unix.SYS_MPROTECT, unix.SYS_PKEY_MPROTECT} {
			rules = append(rules, callRule{call, append(refuseCode(), allow())})
		}
	}
	if p.network {
		rules = append(rules, networkRules()...)
	}
	if p.network && !p.counted {
		rules = append(rules, bufferRule())
	}
	if !p.counted {
		// Pages in a pipe are not counted for any process. After EINVAL, programs copy instead.
		for _, call := range []uint32{unix.SYS_SPLICE, unix.SYS_TEE, unix.SYS_VMSPLICE} {
			rules = append(rules, callRule{call, []unix.SockFilter{fail(unix.EINVAL)}})
		}
	}
	return rules
}

// mapRule rejects mappings of the machine's reserved huge pages. Without a control group it
// also rejects shared anonymous memory. After madvise, such memory is missing in the figures of
// the process, but still takes memory.
func (p callProfile) mapRule() []unix.SockFilter {
	var checks []unix.SockFilter
	if p.noCode {
		checks = refuseCode()
	}
	checks = append(checks, load(atArg3), jump(unix.BPF_JSET, unix.MAP_HUGETLB, 0, 1), fail(unix.ENOMEM))
	if !p.counted {
		checks = append(checks, jump(unix.BPF_JSET, unix.MAP_ANONYMOUS, 0, 3), mask(mapType),
			jump(unix.BPF_JEQ, unix.MAP_PRIVATE, 1, 0), fail(unix.EPERM))
	}
	return append(checks, allow())
}

// refuseCode returns the check of mmap and mprotect that rejects memory for code.
func refuseCode() []unix.SockFilter {
	return []unix.SockFilter{load(atArg2), jump(unix.BPF_JSET, unix.PROT_EXEC, 0, 1), fail(unix.EPERM)}
}

// socketType masks the type of a socket in an argument that also holds flags.
const socketType = 0xf

// networkRules permits Unix sockets, TCP and UDP, but no raw or other sockets. All permitted
// sockets stay in the network namespace where they are created.
func networkRules() []callRule {
	return []callRule{
		{unix.SYS_SOCKET, []unix.SockFilter{
			load(atArg0), jump(unix.BPF_JEQ, unix.AF_UNIX, 12, 0),
			jump(unix.BPF_JEQ, unix.AF_INET, 2, 0), jump(unix.BPF_JEQ, unix.AF_INET6, 1, 0), fail(unix.EAFNOSUPPORT),
			load(atArg1), mask(socketType),
			jump(unix.BPF_JEQ, unix.SOCK_STREAM, 1, 0), jump(unix.BPF_JEQ, unix.SOCK_DGRAM, 0, 4),
			load(atArg2), jump(unix.BPF_JEQ, 0, 3, 0), jump(unix.BPF_JEQ, unix.IPPROTO_TCP, 2, 0),
			jump(unix.BPF_JEQ, unix.IPPROTO_UDP, 1, 0), fail(unix.EPROTONOSUPPORT), allow(),
		}},
		{unix.SYS_SOCKETPAIR, []unix.SockFilter{
			load(atArg0), jump(unix.BPF_JEQ, unix.AF_UNIX, 1, 0), fail(unix.EAFNOSUPPORT), allow(),
		}},
	}
}

// bufferRule keeps the buffers of sockets at their default size, so that the number of sockets
// limits their memory. A call for a larger buffer succeeds without effect, like a call beyond
// the machine's own limit.
func bufferRule() callRule {
	return callRule{unix.SYS_SETSOCKOPT, []unix.SockFilter{
		load(atArg1), jump(unix.BPF_JEQ, unix.SOL_SOCKET, 0, 6),
		load(atArg2), jump(unix.BPF_JEQ, unix.SO_SNDBUF, 3, 0), jump(unix.BPF_JEQ, unix.SO_RCVBUF, 2, 0),
		jump(unix.BPF_JEQ, unix.SO_SNDBUFFORCE, 1, 0), jump(unix.BPF_JEQ, unix.SO_RCVBUFFORCE, 0, 1), fail(0), allow(),
	}}
}

// filterCalls permanently filters the calls of all threads of this process and of all processes
// that it starts. no_new_privs must be set before.
func (p callProfile) filterCalls() error {
	f := callFilter(p)
	// TSYNC: Go runs this process on several threads, and each thread has its own filter.
	program := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(f)
	if errno != 0 {
		return fmt.Errorf("filter system calls: %w", errno)
	}
	return nil
}
