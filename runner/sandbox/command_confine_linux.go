//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"math"
	"os"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// confine takes away all rights that a command must not have. The process runs in namespaces of
// its own, in which it still has every right. The order matters: each step needs rights that a
// later step removes.
func (spec *childSpec) confine(r *childReport) error {
	// Close files that the service inherited from its own parent. Older kernels lack the call,
	// but Go closes its own files at an exec anyway.
	_ = unix.CloseRange(reportFile+1, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	raiseOOMScore()
	if abi, err := ll.LandlockGetABIVersion(); err == nil && !spec.NoLandlock {
		spec.abi = abi
	}
	for _, step := range []func(*childReport) error{
		spec.openFolder, spec.changeUser, spec.enterRoot, spec.startNetwork, spec.restrictPaths, spec.dropRights,
	} {
		if err := step(r); err != nil {
			return err
		}
	}
	return nil
}

// openFolder opens the workspace while this process can still reach it by its path.
func (spec *childSpec) openFolder(*childReport) (err error) {
	spec.folder, err = unix.Open(spec.Folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open workspace: %w", err)
	}
	return nil
}

// changeUser changes to the user with the number insideID in this namespace. The capabilities
// stay for now: they are only valid within this namespace.
func (spec *childSpec) changeUser(*childReport) error {
	if spec.Leave {
		if err := syscall.Setgroups(nil); err != nil {
			return fmt.Errorf("leave groups: %w", err)
		}
	}
	if err := syscall.Setresgid(insideID, insideID, insideID); err != nil {
		return fmt.Errorf("change group: %w", err)
	}
	if err := syscall.Setresuid(insideID, insideID, insideID); err != nil {
		return fmt.Errorf("change user: %w", err)
	}
	if err := unix.Sethostname([]byte("sandbox")); err != nil {
		return fmt.Errorf("set host name: %w", err)
	}
	return nil
}

// restrictPaths adds the rules of Landlock. They apply even if a command leaves its root
// folder. They also block signals and abstract sockets to processes outside.
func (spec *childSpec) restrictPaths(r *childReport) error {
	if spec.abi == 0 {
		r.Layers = append(r.Layers, layerLandlock)
		return nil // only the root folder confines the command
	}
	r.Landlock = spec.abi
	writable := landlock.RWDirs(insideFolder)
	if spec.NoNewFiles {
		writable = landlock.PathAccess(changeFiles, insideFolder)
	}
	writable, temporary := writable.WithResolveUnix(), landlock.RWDirs("/tmp").WithResolveUnix()
	if spec.abi >= 2 { // on an older kernel, this right would disable all rules
		writable, temporary = writable.WithRefer(), temporary.WithRefer()
	}
	zero := landlock.ROFiles // a writable mapping of /dev/zero is memory that the memoryWatch cannot count
	if spec.Counted {
		zero = landlock.RWFiles
	}
	config := landlock.V11
	config.HandledAccessNet = 0 // not needed: the network namespace reaches only the command itself
	err := config.BestEffort().Restrict(writable, temporary,
		landlock.RODirs("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/proc",
			"/nix/store", "/gnu/store").IgnoreIfMissing(),
		landlock.RWFiles("/dev/null", "/dev/full", "/dev/random", "/dev/urandom").IgnoreIfMissing(),
		zero("/dev/zero"), landlock.PathAccess(readDir, "/", "/dev"))
	if err != nil {
		return fmt.Errorf("restrict paths: %w", err)
	}
	return nil
}

// changeFiles are the Landlock rights for all operations on existing files. They do not include
// the creation of files.
const changeFiles = landlock.AccessFSSet(ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSReadDir |
	ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSRemoveFile | ll.AccessFSRemoveDir)

// readDir is the Landlock right to list a folder.
const readDir = landlock.AccessFSSet(ll.AccessFSReadDir)

// dropRights drops all capabilities permanently, and filters the system calls.
func (spec *childSpec) dropRights(*childReport) error {
	for c := uintptr(0); ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			break // beyond the last capability
		}
		if err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop ambient capabilities: %w", err)
	}
	none := [2]unix.CapUserData{}
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	// The command runs as the same user. Without this call it could read this process's memory.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("set undumpable: %w", err)
	}
	return callProfile{network: true, counted: spec.Counted}.filterCalls()
}

const (
	// tcpBuffer is the maximum size of a TCP socket's buffer, in bytes per direction.
	tcpBuffer = 256 << 10

	// socketOptions is the memory that a socket may use in addition to its buffers
	// (net.core.optmem_max).
	socketOptions = 128 << 10

	// mostSocket is the maximum size that is counted for a socket. On machines with large
	// default buffers, a command could otherwise have only a few sockets.
	mostSocket = 2 << 20
)

// startNetwork starts the loopback interface, the only interface of this network namespace. The
// interface stays down if the buffers of TCP cannot be limited.
func (spec *childSpec) startNetwork(r *childReport) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		r.Layers = append(r.Layers, layerLoopback) // the kernel has no IPv4
		spec.socket = mostSocket
		return nil
	}
	defer func() { _ = unix.Close(fd) }()
	spec.socket, err = socketMemory(fd)
	if err != nil {
		return fmt.Errorf("size of a socket's buffers: %w", err)
	}
	r.Socket = spec.socket
	if !boundTCP() && !spec.Counted {
		r.Layers = append(r.Layers, layerLoopback)
		return nil
	}
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("start loopback: %w", err)
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("start loopback: %w", err)
	}
	return nil
}

// socketMemory returns the maximum memory of one socket, in bytes: for sent data, for received
// data, and for options. A Unix socket uses at most twice the size of the data that it sends.
func socketMemory(fd int) (int, error) {
	send, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
	receive, receiveErr := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err := errors.Join(err, receiveErr); err != nil {
		return 0, err
	}
	return min(max(send+max(send, receive), 2*tcpBuffer)+socketOptions, mostSocket), nil
}

// boundTCP limits the buffers of TCP in this network namespace. It returns false in containers
// that forbid changes of kernel settings.
func boundTCP() bool {
	sizes := fmt.Appendf(nil, "4096 65536 %d\n", tcpBuffer)
	for _, name := range []string{"/proc/sys/net/ipv4/tcp_rmem", "/proc/sys/net/ipv4/tcp_wmem"} {
		if os.WriteFile(name, sizes, 0) != nil {
			return false
		}
	}
	return true
}
