//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// denied are the calls that no command has a use for and that lead into parts of
// the kernel, or to processes, that are none of its business. Those that only one
// architecture has are in deniedHere.
var denied = []uint32{
	// Other views of the file system.
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT,
	unix.SYS_FSPICK, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_STATMOUNT, unix.SYS_LISTMOUNT,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
	unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK,
	// Other namespaces. clone is looked at below.
	unix.SYS_UNSHARE, unix.SYS_SETNS,
	// Other processes.
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD, unix.SYS_PROCESS_MADVISE,
	unix.SYS_PROCESS_MRELEASE,
	// Doors into the kernel.
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL, unix.SYS_SYSLOG, unix.SYS_ACCT, unix.SYS_VHANGUP,
	// The machine itself.
	unix.SYS_REBOOT, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	// Memory that the count of a command's memory would miss.
	unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_SHMGET, unix.SYS_MSGGET, unix.SYS_SEMGET, unix.SYS_MQ_OPEN,
}

// Where in what a filter sees, struct seccomp_data, its parts are. Arguments have
// 64 bits, the lower half first.
const (
	atNumber = 0
	atArch   = 4
	atArg0   = 16
	atArg1   = 24
)

// newNamespaces are the flags of clone that make namespaces.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// callFilter is the program that the kernel runs at each system call.
func callFilter() []unix.SockFilter {
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	// Each jump skips yes or no of the instructions that follow it.
	jump := func(test uint16, k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | test, K: k, Jt: yes, Jf: no}
	}
	end := func(what uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: what}
	}
	fail := func(errno unix.Errno) unix.SockFilter { return end(unix.SECCOMP_RET_ERRNO | uint32(errno)) }
	allow := end(unix.SECCOMP_RET_ALLOW)

	// Numbers mean other calls on another architecture, and in x32 on this one.
	f := []unix.SockFilter{load(atArch), jump(unix.BPF_JEQ, auditArch, 1, 0), end(unix.SECCOMP_RET_KILL_PROCESS),
		load(atNumber), jump(unix.BPF_JGE, x32Bit, 0, 1), fail(unix.ENOSYS)}
	for _, nr := range slices.Concat(denied, deniedHere) {
		f = append(f, jump(unix.BPF_JEQ, nr, 0, 1), fail(unix.EPERM))
	}
	return append(f,
		// A filter cannot see clone3's flags. Without it libraries use clone.
		jump(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1), fail(unix.ENOSYS),
		jump(unix.BPF_JEQ, unix.SYS_CLONE, 0, 4), load(atArg0), jump(unix.BPF_JSET, newNamespaces, 0, 1), fail(unix.EPERM), allow,
		// Sockets talk within the command, and to nothing else.
		jump(unix.BPF_JEQ, unix.SYS_SOCKET, 0, 4), load(atArg0), jump(unix.BPF_JEQ, unix.AF_UNIX, 1, 0), fail(unix.EACCES), allow,
		// Typing into a terminal that is somebody else's, too.
		jump(unix.BPF_JEQ, unix.SYS_IOCTL, 0, 4), load(atArg1), jump(unix.BPF_JEQ, unix.TIOCSTI, 0, 1), fail(unix.EPERM), allow,
		allow)
}

// filterCalls puts the filter on all threads of this process and all it will
// start, for good. no_new_privs must be set.
func filterCalls() error {
	f := callFilter()
	program := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(f)
	if errno != 0 {
		return fmt.Errorf("filter system calls: %w", errno)
	}
	return nil
}
