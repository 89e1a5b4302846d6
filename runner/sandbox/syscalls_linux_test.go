//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/matryer/is"
	"golang.org/x/sys/unix"
)

// A sysCall is a system call as seen by a filter.
type sysCall struct {
	nr   uint32
	args [6]uint32
}

// verdict runs a filter as the kernel would. The kernel checks the filter itself when the
// command tests install it.
func verdict(t *testing.T, f []unix.SockFilter, arch uint32, c sysCall) uint32 {
	t.Helper()
	data := binary.NativeEndian.AppendUint32(nil, c.nr)
	data = binary.NativeEndian.AppendUint32(data, arch)
	data = append(data, make([]byte, 8)...)
	for _, a := range c.args {
		data = binary.NativeEndian.AppendUint32(data, a)
		data = binary.NativeEndian.AppendUint32(data, 0)
	}
	var acc uint32
	for pc := 0; pc < len(f); pc++ {
		in := f[pc]
		holds := false
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			acc = binary.NativeEndian.Uint32(data[in.K:])
			continue
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			acc &= in.K
			continue
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			holds = acc == in.K
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			holds = acc >= in.K
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			holds = acc > in.K
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			holds = acc&in.K != 0
		default:
			t.Fatalf("instruction %d has code %#x", pc, in.Code)
		}
		if holds {
			pc += int(in.Jt)
		} else {
			pc += int(in.Jf)
		}
	}
	t.Fatal("the program has no end")
	return 0
}

func TestCallFilter(t *testing.T) {
	t.Parallel()
	permitted := uint32(unix.SECCOMP_RET_ALLOW)
	refused := func(errno unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(errno) }
	sock := func(nr uint32, args ...uint32) sysCall { c := sysCall{nr: nr}; copy(c.args[:], args); return c }
	const thread = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_THREAD
	for name, tt := range map[string]struct {
		call                       sysCall
		plain, shell, shellCounted uint32 // the verdicts of the three profiles
	}{
		"read":             {sock(unix.SYS_READ), permitted, permitted, permitted},
		"last":             {sock(math.MaxInt16), refused(unix.ENOSYS), refused(unix.ENOSYS), refused(unix.ENOSYS)},
		"mount":            {sock(unix.SYS_MOUNT), refused(unix.ENOSYS), refused(unix.ENOSYS), refused(unix.ENOSYS)},
		"clone3":           {sock(unix.SYS_CLONE3), refused(unix.ENOSYS), refused(unix.ENOSYS), refused(unix.ENOSYS)},
		"fork":             {sock(unix.SYS_CLONE, uint32(unix.SIGCHLD)), permitted, permitted, permitted},
		"thread":           {sock(unix.SYS_CLONE, thread), permitted, permitted, permitted},
		"thread's files":   {sock(unix.SYS_CLONE, thread&^unix.CLONE_FILES), refused(unix.EPERM), refused(unix.EPERM), refused(unix.EPERM)},
		"user namespace":   {sock(unix.SYS_CLONE, unix.CLONE_NEWUSER), refused(unix.EPERM), refused(unix.EPERM), refused(unix.EPERM)},
		"thread, new net":  {sock(unix.SYS_CLONE, thread|unix.CLONE_NEWNET), refused(unix.EPERM), refused(unix.EPERM), refused(unix.EPERM)},
		"Unix socket":      {sock(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_SEQPACKET), refused(unix.ENOSYS), permitted, permitted},
		"TCP":              {sock(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC), refused(unix.ENOSYS), permitted, permitted},
		"TCP by its name":  {sock(unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_TCP), refused(unix.ENOSYS), permitted, permitted},
		"UDP":              {sock(unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, unix.IPPROTO_UDP), refused(unix.ENOSYS), permitted, permitted},
		"MPTCP":            {sock(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP), refused(unix.ENOSYS), refused(unix.EPROTONOSUPPORT), refused(unix.EPROTONOSUPPORT)},
		"SCTP":             {sock(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_SEQPACKET, unix.IPPROTO_SCTP), refused(unix.ENOSYS), refused(unix.EPROTONOSUPPORT), refused(unix.EPROTONOSUPPORT)},
		"raw":              {sock(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_UDP), refused(unix.ENOSYS), refused(unix.EPROTONOSUPPORT), refused(unix.EPROTONOSUPPORT)},
		"ping":             {sock(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP), refused(unix.ENOSYS), refused(unix.EPROTONOSUPPORT), refused(unix.EPROTONOSUPPORT)},
		"netlink":          {sock(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW), refused(unix.ENOSYS), refused(unix.EAFNOSUPPORT), refused(unix.EAFNOSUPPORT)},
		"packets":          {sock(unix.SYS_SOCKET, unix.AF_PACKET, unix.SOCK_DGRAM), refused(unix.ENOSYS), refused(unix.EAFNOSUPPORT), refused(unix.EAFNOSUPPORT)},
		"pair":             {sock(unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_STREAM), refused(unix.ENOSYS), permitted, permitted},
		"TIPC pair":        {sock(unix.SYS_SOCKETPAIR, unix.AF_TIPC, unix.SOCK_STREAM), refused(unix.ENOSYS), refused(unix.EAFNOSUPPORT), refused(unix.EAFNOSUPPORT)},
		"buffer":           {sock(unix.SYS_SETSOCKOPT, 3, unix.SOL_SOCKET, unix.SO_SNDBUF), refused(unix.ENOSYS), refused(0), permitted},
		"forced buffer":    {sock(unix.SYS_SETSOCKOPT, 3, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE), refused(unix.ENOSYS), refused(0), permitted},
		"another option":   {sock(unix.SYS_SETSOCKOPT, 3, unix.SOL_SOCKET, unix.SO_REUSEADDR), refused(unix.ENOSYS), permitted, permitted},
		"option of TCP":    {sock(unix.SYS_SETSOCKOPT, 3, unix.SOL_TCP, unix.SO_SNDBUF), refused(unix.ENOSYS), permitted, permitted},
		"memory":           {sock(unix.SYS_MMAP, 0, 1, 3, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE), permitted, permitted, permitted},
		"shared file":      {sock(unix.SYS_MMAP, 0, 1, 3, unix.MAP_SHARED), permitted, permitted, permitted},
		"shared memory":    {sock(unix.SYS_MMAP, 0, 1, 3, unix.MAP_SHARED|unix.MAP_ANONYMOUS), refused(unix.EPERM), refused(unix.EPERM), permitted},
		"shared, checked":  {sock(unix.SYS_MMAP, 0, 1, 3, unix.MAP_SHARED_VALIDATE|unix.MAP_ANONYMOUS), refused(unix.EPERM), refused(unix.EPERM), permitted},
		"droppable memory": {sock(unix.SYS_MMAP, 0, 1, 3, unix.MAP_DROPPABLE|unix.MAP_ANONYMOUS), refused(unix.EPERM), refused(unix.EPERM), permitted},
		"huge pages":       {sock(unix.SYS_MMAP, 0, 1, 3, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_HUGETLB), refused(unix.ENOMEM), refused(unix.ENOMEM), refused(unix.ENOMEM)},
		"memfd":            {sock(unix.SYS_MEMFD_CREATE), refused(unix.ENOSYS), refused(unix.ENOSYS), permitted},
		"secret memory":    {sock(unix.SYS_MEMFD_SECRET), refused(unix.ENOSYS), refused(unix.ENOSYS), refused(unix.ENOSYS)},
		"System V memory":  {sock(unix.SYS_SHMGET), refused(unix.ENOSYS), refused(unix.ENOSYS), permitted},
		"splice":           {sock(unix.SYS_SPLICE), refused(unix.EINVAL), refused(unix.EINVAL), permitted},
		"blocks":           {sock(unix.SYS_FALLOCATE, 3, 0), refused(unix.EOPNOTSUPP), refused(unix.EOPNOTSUPP), refused(unix.EOPNOTSUPP)},
		"blocks beyond":    {sock(unix.SYS_FALLOCATE, 3, unix.FALLOC_FL_KEEP_SIZE), refused(unix.EOPNOTSUPP), refused(unix.EOPNOTSUPP), refused(unix.EOPNOTSUPP)},
		"a hole":           {sock(unix.SYS_FALLOCATE, 3, punchHole), permitted, permitted, permitted},
		"reserved blocks":  {sock(unix.SYS_IOCTL, 3, ioctlReserve), refused(unix.ENOTTY), refused(unix.ENOTTY), refused(unix.ENOTTY)},
		"reserved, 64":     {sock(unix.SYS_IOCTL, 3, ioctlReserve64), refused(unix.ENOTTY), refused(unix.ENOTTY), refused(unix.ENOTTY)},
		"zeroed blocks":    {sock(unix.SYS_IOCTL, 3, ioctlZeroRange), refused(unix.ENOTTY), refused(unix.ENOTTY), refused(unix.ENOTTY)},
		"typing":           {sock(unix.SYS_IOCTL, 0, unix.TIOCSTI), refused(unix.ENOTTY), refused(unix.ENOTTY), refused(unix.ENOTTY)},
		"pasting":          {sock(unix.SYS_IOCTL, 0, unix.TIOCLINUX), refused(unix.ENOTTY), refused(unix.ENOTTY), refused(unix.ENOTTY)},
		"terminal's size":  {sock(unix.SYS_IOCTL, 0, unix.TIOCGWINSZ), permitted, permitted, permitted},
		"personality":      {sock(unix.SYS_PERSONALITY, 0xffffffff), permitted, permitted, permitted},
		"without chance":   {sock(unix.SYS_PERSONALITY, 0x40000), refused(unix.EPERM), refused(unix.EPERM), refused(unix.EPERM)},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			is.Equal(verdict(t, callFilter(callProfile{}), auditArch, tt.call), tt.plain)
			is.Equal(verdict(t, callFilter(callProfile{network: true}), auditArch, tt.call), tt.shell)
			is.Equal(verdict(t, callFilter(callProfile{network: true, counted: true}), auditArch, tt.call), tt.shellCounted)
		})
	}
	is := is.New(t)
	f := callFilter(callProfile{network: true, counted: true})
	is.Equal(verdict(t, f, unix.AUDIT_ARCH_I386, sysCall{nr: unix.SYS_READ}), uint32(unix.SECCOMP_RET_KILL_PROCESS))
	is.Equal(verdict(t, f, auditArch, sysCall{nr: x32Bit | unix.SYS_READ}), refused(unix.ENOSYS))
	for nr := range uint32(1000) { // exactly the listed calls, and those with a rule
		c := sysCall{nr: nr}
		listed := false
		for _, n := range (callProfile{network: true, counted: true}).calls() {
			listed = listed || n == nr
		}
		for _, rule := range (callProfile{network: true, counted: true}).rules() {
			listed = listed || rule.call == nr
		}
		is.Equal(verdict(t, f, auditArch, c) != refused(unix.ENOSYS), listed)
	}
}
