//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/matryer/is"
	"golang.org/x/sys/unix"

	"journeyman/runner/workspace"
	"journeyman/store/ordertest"
)

// escapesByShell are scripts that succeed, or print the secret, if they escape. $DB is the
// database, $PID the server's process, and $NEXT a file of another worker.
var escapesByShell = map[string]string{
	"read the database":             `cat "$DB"`,
	"read it through /proc":         `cat "/proc/1/root$DB" || cat "/proc/self/root$DB" || cat "/proc/1/cwd/../../journeyman.db"`,
	"read it from above":            `cat ../journeyman.db || cat ../../journeyman.db || cat /workspace/../journeyman.db`,
	"read it through a link":        `ln -sf "$DB" link && cat link`,
	"give it a second name":         `ln "$DB" second && cat second`,
	"read the neighbour's files":    `cat "$NEXT" || cat ../wrk_2/secret || ls ../wrk_2`,
	"change the database":           `echo x > "$DB" || echo x >> "$DB" || rm "$DB"`,
	"move it here":                  `mv "$DB" here`,
	"read the server's environment": `cat /proc/[0-9]*/environ | grep -a SERVER_SECRET || env | grep SECRET || set | grep ^SERVER_SECRET`,
	"read the server's arguments":   `tr '\0' '\n' < "/proc/$PID/cmdline" | grep -- -test.run`,
	"see the server's process":      `for p in /proc/[0-9]*; do case $(tr '\0' ' ' < $p/cmdline) in *-test"".run*) exit 0;; esac; done; exit 1`,
	"look into the first process":   `cat /proc/1/mem || cat /proc/1/environ || ls /proc/1/fd/ || cat /proc/1/maps | grep .`,
	"inherited files":               `ls "/proc/$$/fd" > fds; grep -v '^[012]$' fds || cat <&3 || cat <&4 || cat <&5 || cat <&6 || cat <&7`,
	"read other users' files":       `cat /etc/shadow || ls /root || ls /home || ls /var || ls /run || ls /sys`,
	"write into programs":           `touch /usr/x || touch /bin/x || touch /lib/x || echo x >> /bin/sh`,
	"write into the root":           `touch /x || mkdir /x || touch /etc/x || echo x >> /etc/passwd || touch /dev/x`,
	"replace the root's folders":    `mv /etc /etc2 || rm -rf /etc/passwd || rmdir /workspace || mv /workspace /w2`,
	"settings of the kernel":        `echo '|/workspace/x' > /proc/sys/kernel/core_pattern || echo b > /proc/sysrq-trigger || echo 1 > /proc/sys/vm/drop_caches`,
	"signal the server":             `kill -0 "$PID" || kill -9 "$PID"`,
	"calm the memory killer":        `echo -1000 > /proc/self/oom_score_adj`,
	"raise limits":                  `ulimit -H -n 100000 || ulimit -u 100000 || ulimit -f unlimited || ulimit -t unlimited`,
	"become root by a program":      `su -c id || sudo -n id || pkexec id || newgrp root`,
	"change the owner":              `touch mine && chown 0 mine`,
	"devices":                       `mknod disk b 254 0 || mknod mem c 1 1 || cat /dev/vda || cat /dev/mem || cat /dev/sda`,
	"mount by a program":            `mount -t tmpfs none /tmp || mount --bind / /tmp || umount /workspace || umount -l /usr`,
	"new namespaces by a program":   `unshare -r true || unshare -Ur mount -t tmpfs x /tmp || nsenter -t 1 -a true`,
	"server's socket by its path":   `./escape escape connect unix "$CONTROL"`,
	"server's abstract socket":      `./escape escape connect unix "$ABSTRACT"`,
	"server on loopback":            `./escape escape connect tcp "$LOOPBACK" || (exec 3<>"/dev/tcp/127.0.0.1/${LOOPBACK##*:}")`,
	"names over the network":        `./escape escape connect udp 1.1.1.1:53 || ./escape escape connect udp 127.0.0.53:53`,
	"names by broadcast":            `./escape escape connect udp 255.255.255.255:53 || ./escape escape connect udp 224.0.0.251:5353`,
	"hosts over the network":        `./escape escape connect tcp 1.1.1.1:443 || ./escape escape connect tcp '[2606:4700:4700::1111]:443'`,
	"the cloud's metadata":          `./escape escape connect tcp 169.254.169.254:80`,
	"hosts of this network":         `./escape escape connect tcp 10.0.0.1:22 || ./escape escape connect udp 192.168.0.1:53`,
	"all of a disk at once":         `fallocate -n -l 4G f || fallocate -l 4G f || truncate -s 4G f`,
	"larger TCP buffers":            `echo "4096 65536 67108864" > /proc/sys/net/ipv4/tcp_wmem`,
	"forward packets":               `echo 1 > /proc/sys/net/ipv4/ip_forward`,
	"leave the control group":       `echo 0 > /sys/fs/cgroup/cgroup.procs || echo max > /sys/fs/cgroup/memory.max`,
}

// escapesByCall are system calls that must fail.
var escapesByCall = map[string]func() error{
	"unshare":          func() error { return unix.Unshare(unix.CLONE_NEWUSER) },
	"clone":            func() error { return clone(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD), 0) },
	"clone3":           func() error { return clone(unix.SYS_CLONE3, 0, 0) },
	"setns":            func() error { return call(unix.SYS_SETNS, 0, 0, 0) },
	"mount":            func() error { return unix.Mount("x", "/tmp", "tmpfs", 0, "") },
	"umount":           func() error { return unix.Unmount("/workspace", unix.MNT_DETACH) },
	"pivot_root":       func() error { return unix.PivotRoot("/tmp", "/tmp") },
	"chroot":           func() error { return unix.Chroot("/tmp") },
	"open_tree":        func() error { _, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE); return err },
	"fsopen":           func() error { _, err := unix.Fsopen("tmpfs", 0); return err },
	"ptrace the first": func() error { return unix.PtraceAttach(1) },
	"ptrace itself":    func() error { return call(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0) },
	"process_vm_readv": func() error { return call(unix.SYS_PROCESS_VM_READV, 1, 0, 0) },
	"open by handle":   func() error { _, err := unix.OpenByHandleAt(0, unix.NewFileHandle(1, make([]byte, 8)), 0); return err },
	"bpf":              func() error { return call(unix.SYS_BPF, 0, 0, 0) },
	"perf":             func() error { return call(unix.SYS_PERF_EVENT_OPEN, 0, 0, 0) },
	"io_uring":         func() error { return call(unix.SYS_IO_URING_SETUP, 1, 0, 0) },
	"userfaultfd":      func() error { return call(unix.SYS_USERFAULTFD, 1, 0, 0) },
	"keyctl":           func() error { _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true); return err },
	"kernel module":    func() error { return unix.InitModule(nil, "") },
	"reboot":           func() error { return unix.Reboot(unix.LINUX_REBOOT_CMD_CAD_OFF) },
	"clock":            func() error { return unix.Settimeofday(&unix.Timeval{}) },
	"host name":        func() error { return unix.Sethostname([]byte("x")) },
	"kernel log":       func() error { _, err := unix.Klogctl(3, make([]byte, 100)); return err },
	"swap":             func() error { return call(unix.SYS_SWAPOFF, 0, 0, 0) },
	"setuid":           func() error { return unix.Setuid(0) },
	"setgid":           func() error { return unix.Setgid(0) },
	"setgroups":        func() error { return unix.Setgroups([]int{0}) },
	"capset":           capset,
	"new privileges":   func() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) },
	"ambient rights": func() error {
		return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_SYS_ADMIN, 0, 0)
	},
	"secret memory": func() error { return call(unix.SYS_MEMFD_SECRET, 0, 0, 0) },
	"huge pages": func() error {
		_, err := unix.Mmap(-1, 0, 2<<20, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_HUGETLB)
		return err
	},
	"memory locked":         func() error { return unix.Mlock(make([]byte, 1<<20)) },
	"thread with own files": func() error { return clone(unix.SYS_CLONE, unix.CLONE_VM|unix.CLONE_SIGHAND|unix.CLONE_THREAD, 0) },
	"queue of messages":     func() error { return call(unix.SYS_MQ_OPEN, 0, 0, 0) },
	"pair of TIPC":          func() error { return pairOf(unix.AF_TIPC) },
	"pair of the network":   func() error { return pairOf(unix.AF_INET) },
	"pair of Bluetooth":     func() error { return pairOf(unix.AF_BLUETOOTH) },
	"TIPC socket":           func() error { return socket(unix.AF_TIPC, unix.SOCK_SEQPACKET) },
	"XDP socket":            func() error { return socket(unix.AF_XDP, unix.SOCK_RAW) },
	"RDS socket":            func() error { return socket(unix.AF_RDS, unix.SOCK_SEQPACKET) },
	"CAN socket":            func() error { return socket(unix.AF_CAN, unix.SOCK_RAW) },
	"raw socket":            func() error { return socket(unix.AF_INET, unix.SOCK_RAW) },
	"SCTP socket":           func() error { _, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP); return err },
	"MPTCP socket":          func() error { _, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP); return err },
	"another interface":     changeInterface,
	"own filter replaced":   func() error { return unix.Prctl(unix.PR_SET_SECCOMP, 0, 0, 0, 0) },
	"blocks beyond": func() error {
		return withFile(func(fd int) error { return unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, 0, 1<<32) })
	},
	"blocks within": func() error { return withFile(func(fd int) error { return unix.Fallocate(fd, 0, 0, 1<<20) }) },
	"blocks reserved": func() error {
		return withFile(func(fd int) error {
			reserve := struct {
				kind, whence int16
				start, n     int64
				rest         [6]int32
			}{n: 1 << 32}
			return call(unix.SYS_IOCTL, uintptr(fd), ioctlReserve, uintptr(unsafe.Pointer(&reserve)))
		})
	},
	"flags of a file": func() error {
		return withFile(func(fd int) error { return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, 0x10) })
	},
	"netlink socket":    func() error { return socket(unix.AF_NETLINK, unix.SOCK_RAW) },
	"packet socket":     func() error { return socket(unix.AF_PACKET, unix.SOCK_RAW) },
	"vsock":             func() error { return socket(unix.AF_VSOCK, unix.SOCK_STREAM) },
	"kernel crypto":     func() error { return socket(unix.AF_ALG, unix.SOCK_SEQPACKET) },
	"real-time":         func() error { return unix.Setpriority(unix.PRIO_PROCESS, 0, -20) },
	"signal all others": signalOthers,
}

func call(nr, a, b, c uintptr) error {
	if _, _, errno := unix.RawSyscall(nr, a, b, c); errno != 0 {
		return errno
	}
	return nil
}

// clone ends a created child process immediately.
func clone(nr, a, b uintptr) error {
	pid, _, errno := unix.RawSyscall(nr, a, b, 0)
	if pid == 0 && errno == 0 {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	if errno == unix.EINVAL {
		return nil // the filter allowed the call, and the kernel rejected its arguments
	}
	if errno != 0 {
		return errno
	}
	return nil
}

func socket(family, kind int) error {
	_, err := unix.Socket(family, kind, 0)
	return err
}

func pairOf(family int) error {
	_, err := unix.Socketpair(family, unix.SOCK_STREAM, 0)
	return err
}

// changeInterface stops the loopback interface.
func changeInterface() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

func withFile(try func(fd int) error) error {
	f, err := os.Create("file")
	if err != nil {
		return err
	}
	defer f.Close()
	return try(int(f.Fd()))
}

func capset() error {
	all := [2]unix.CapUserData{{Effective: 1 << unix.CAP_SYS_ADMIN, Permitted: 1 << unix.CAP_SYS_ADMIN}}
	return unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &all[0])
}

// signalOthers returns an error if there is no process other than the first one, which handles
// all signals.
func signalOthers() error {
	for pid := 2; pid < 1<<12; pid++ {
		_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", pid)) // a thread of this process
		_, first := os.Stat(fmt.Sprintf("/proc/1/task/%d", pid))
		if err != nil && first != nil && pid != os.Getppid() && unix.Kill(pid, 0) == nil {
			return nil
		}
	}
	return unix.ESRCH
}

// escape runs inside the sandbox. It returns 0 if it escapes.
func escape(name string, args []string) int {
	var err error
	switch try := escapesByCall[name]; {
	case name == "connect":
		err = connect(args[0], args[1])
	case name == "memory":
		takeMemory(args[0])
	case name == "bomb":
		taken, _ := strconv.ParseInt(args[1], 10, 64)
		err = bomb(args[0], taken)
	case name == "processes":
		err = takeProcesses()
	case try == nil:
		err = fmt.Errorf("there is no escape %q", name)
	default:
		err = try()
	}
	if err != nil {
		fmt.Println("held:", err)
		return 3
	}
	fmt.Println("escaped")
	return 0
}

func connect(network, address string) error {
	c, err := net.DialTimeout(network, address, 3*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	// The first datagram to a port without a listener seems to arrive.
	for range 2 {
		if _, err = c.Write([]byte("x")); err != nil {
			return err
		}
	}
	return nil
}

// takeMemory allocates and uses the given number of MiB.
func takeMemory(mib string) {
	n, _ := strconv.Atoi(mib)
	b := make([]byte, n<<20)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	time.Sleep(10 * time.Second) // gives the memory watch time to stop this process; not reached if it works
	fmt.Println(len(b))
}

// takeProcesses starts more processes than the limit.
func takeProcesses() error {
	for range 700 {
		if err := exec.Command("sleep", "1000").Start(); err != nil {
			return err
		}
	}
	return nil
}

// TestEscapes runs hostile commands in each way in which this machine can confine them. If the
// user is root, it runs them as an ordinary user, too.
func TestEscapes(t *testing.T) {
	long(t)
	if os.Getenv("SERVER_SECRET") == "" {
		t.Setenv("SERVER_SECRET", theSecret)
	}
	p := newPrison(t)
	cfg := ShellConfig{Hide: []string{p.dir}, Limits: ShellLimits{Memory: 512 << 20, Processes: 100, FileSize: 16 << 20}}
	for name, s := range confinements(t, cfg) {
		p.shell = s
		t.Run(name, func(t *testing.T) { p.escape(t) })
	}
	if os.Geteuid() == 0 && p.shell != nil {
		t.Run("ordinary user", func(t *testing.T) {
			out := asNobody(t, "^TestEscapes$")
			t.Logf("%s", out)
			is.New(t).True(bytes.Contains(out, []byte("--- PASS: TestEscapes/")))
		})
	}
}

// escape makes all escape attempts.
func (p *prison) escape(t *testing.T) {
	t.Run("shell", func(t *testing.T) { p.escapeByShell(t) })
	t.Run("calls", func(t *testing.T) { p.escapeByCalls(t) })
	t.Run("bombs", func(t *testing.T) { p.escapeByBombs(t) })
	t.Run("hidden memory", func(t *testing.T) { p.escapeByHiddenMemory(t) })
	t.Run("daemons", func(t *testing.T) { p.escapeByDaemons(t) })
	is := is.New(t)
	for _, name := range []string{p.path("journeyman.db"), p.neighbour} {
		data, err := os.ReadFile(name)
		is.NoErr(err)
		is.Equal(string(data), theSecret) // no command has changed it
	}
	select {
	case who := <-p.reached:
		t.Fatalf("a command reached %s", who)
	default:
	}
}

func (p *prison) escapeByShell(t *testing.T) {
	for name, script := range escapesByShell {
		t.Run(name, func(t *testing.T) {
			r := p.run(t, script, 20*time.Second)
			if r.ExitCode == 0 || r.Stopped != "" || strings.Contains(r.Output+r.Errors, theSecret) {
				t.Fatalf("it ended with %d %q:\n%s", r.ExitCode, r.Stopped, r.Output+r.Errors)
			}
		})
	}
	t.Run("the service follows a link", func(t *testing.T) {
		is := is.New(t)
		r := p.run(t, `ln -sfn "$DB" trap && ln -sfn / rootlink`, 20*time.Second)
		is.Equal(r.ExitCode, 0)
		_, err := p.w.ReadFile("trap", 0, 100)
		is.Equal(kind(err), workspace.Invalid)
		is.Equal(kind(p.w.WriteFile("rootlink"+p.path("journeyman.db"), nil)), workspace.Invalid)
	})
	t.Run("become root by a bit", func(t *testing.T) {
		is := is.New(t)
		r := p.run(t, `cp /bin/sh sh && chmod 6755 sh; ./sh -p -c 'id -u'; ./sh -p -c 'grep -E "^(Uid|Cap(Prm|Eff|Bnd)|NoNewPrivs)" /proc/self/status'`, 20*time.Second)
		is.Equal(r.Output, "1000\nUid:\t1000\t1000\t1000\t1000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"+
			"CapBnd:\t0000000000000000\nNoNewPrivs:\t1\n")
		if os.Geteuid() != 0 {
			return
		}
		info, err := os.Stat(p.path("workspaces/wrk_1/sh"))
		is.NoErr(err)
		ordertest.Above(is, info.Sys().(*syscall.Stat_t).Uid, 1000) // an unprivileged user of the machine
	})
}

func (p *prison) escapeByCalls(t *testing.T) {
	for name := range escapesByCall {
		t.Run(name, func(t *testing.T) {
			r := p.run(t, "./escape escape '"+name+"'", 20*time.Second)
			if r.ExitCode != 3 || !strings.HasPrefix(r.Output, "held: ") {
				t.Fatalf("it ended with %d:\n%s", r.ExitCode, r.Output+r.Errors)
			}
		})
	}
}

// patience is the time limit of a command that another limit must stop. A machine that is busy and short
// of memory takes its time.
const patience = time.Minute

// escapeByBombs uses more of each resource than a command may use. The server must not be
// affected.
func (p *prison) escapeByBombs(t *testing.T) {
	for name, tt := range map[string]struct {
		script  string
		timeout time.Duration
		stopped Stop // "" if the command itself must fail
	}{
		"processes":          {`exec ./escape escape processes`, patience, ""},
		"fork bomb":          {`bomb() { bomb | bomb & }; bomb; sleep 1000`, 2 * time.Second, StopTimeout},
		"memory of one":      {`head -c 2000000000 /dev/zero | tail -c 2000000000`, patience, StopMemory},
		"memory of many":     {`for i in 1 2 3 4 5 6; do (head -c 100000000 /dev/zero; exec sleep 1000) | tail -c 100000000 & done; wait`, patience, StopMemory},
		"memory of /tmp":     {`for i in 1 2 3 4 5 6 7 8 9 10; do dd if=/dev/zero of=/tmp/$i bs=1M count=15 || exit 1; done`, patience, ""},
		"one large file":     {`dd if=/dev/zero of=large bs=1M count=100`, patience, ""},
		"many large files":   {`for i in $(seq 100); do dd if=/dev/zero of=large$i bs=1M count=15 2>/dev/null || exit 1; done; sleep 10`, patience, StopDisk},
		"files in deep ones": {`while :; do mkdir d && cd d || exit 1; dd if=/dev/zero of=f bs=1M count=1 2>/dev/null; done`, patience, StopDisk},
		"many files":         {`mkdir many; i=0; while :; do i=$((i+1)); : > many/$i; done`, patience, StopDisk},
		"time":               {`while :; do :; done`, time.Second, StopTimeout},
		"time of processors": {`ulimit -t 1; while :; do :; done`, patience, ""},
	} {
		t.Run(name, func(t *testing.T) {
			peak := watchPeak(t)
			r := p.run(t, tt.script, tt.timeout)
			t.Logf("%s: %d MiB of the machine's memory, %v: %d %q", name, peak()>>20, r.Duration, r.ExitCode, r.Stopped)
			if r.Stopped != tt.stopped || r.ExitCode == 0 {
				t.Fatalf("it ended with %d %q after %v:\n%.500s", r.ExitCode, r.Stopped, r.Duration, r.Output)
			}
			r = p.run(t, "rm -rf large* d many mine second && echo well", patience)
			is.New(t).Equal(r.Output, "well\n")
		})
	}
	t.Run("output", func(t *testing.T) {
		is := is.New(t)
		r := p.run(t, "yes | head -c 200000000; echo the end", 20*time.Second)
		ordertest.Below(is, len(r.Output), 70<<10) // the output is limited
		is.True(strings.HasSuffix(r.Output, "the end\n"))
		is.True(strings.Contains(r.Output, "\n[... 1999"))
	})
}

// escapeByDaemons leaves a process behind in every possible way.
func (p *prison) escapeByDaemons(t *testing.T) {
	marker := fmt.Sprintf("777.%d", os.Getpid())
	for name, script := range map[string]string{
		"background":       `sleep M &`,
		"no hangup":        `nohup sleep M > /dev/null 2>&1 &`,
		"session":          `setsid sleep M > /dev/null 2>&1 < /dev/null &`,
		"twice forked":     `(setsid sh -c 'setsid sleep M & exit' &) ; exit 0`,
		"deaf to signals":  `(trap '' TERM INT HUP QUIT; setsid sleep M) &`,
		"output held open": `setsid sleep M & exit 0`,
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			r := p.run(t, strings.ReplaceAll(script, "M", marker), 20*time.Second)
			is.Equal(r.ExitCode, 0)
			ordertest.Below(is, r.Duration, 15*time.Second) // the command was not stopped in time
			is.Equal(len(processes(t, marker)), 0)          // Run returns after their end
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		is := is.New(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := p.shell.Run(ctx, p.w, Command{Script: "setsid sleep " + marker + " & sleep " + marker})
			ended <- err
		}()
		eventually(t, "the processes", func() bool { return len(processes(t, marker)) > 0 })
		cancel()
		is.Equal(<-ended, context.Canceled)
		is.Equal(len(processes(t, marker)), 0)
	})
}
