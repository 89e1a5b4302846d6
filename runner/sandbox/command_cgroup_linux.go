//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Control groups (cgroup v2) are folders of a special file system. Creating a folder creates a
// group, and its files contain limits and figures. A group that distributes controllers to the
// groups below it must have no processes of its own. So this process moves into a group of its
// own, beside the groups of commands.

const (
	serverGroup  = "journeyman"          // name of the group that this process moves into
	commandGroup = "journeyman-command-" // prefix of the names of commands' groups
)

// A groups creates a control group for each command.
type groups struct {
	dir  string // groups are created below this group
	next atomic.Uint64

	// The kernel fills a new folder with files, and it removes a folder that contains files.
	// Tests replace both functions to simulate this in an ordinary folder.
	mkdir, rmdir func(dir string) error
}

// findGroups returns a groups below this process's own group. If this service may manage the
// parent group, it is below the parent group instead. The error is the reason why there is
// none.
func findGroups() (*groups, error) {
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, errors.New("/proc/self/cgroup cannot be read")
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, errors.New("/proc/self/mountinfo cannot be read")
	}
	mount, own, err := ownGroup(string(self), string(mounts))
	if err != nil {
		return nil, err
	}
	return openGroups(mount, own, os.Getpid())
}

// ownGroup returns the mount point of cgroup v2 and the path of this process's group below it.
// Its arguments are the contents of /proc/self/cgroup and /proc/self/mountinfo.
func ownGroup(self, mounts string) (mount, own string, err error) {
	for line := range strings.Lines(self) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			own = strings.TrimSpace(path)
		}
	}
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		kind := slices.Index(fields, "-") + 1
		if kind < 6 || kind >= len(fields) || fields[kind] != "cgroup2" {
			continue
		}
		below, err := filepath.Rel(fields[3], own)
		// A path with ".." is outside this process's cgroup namespace.
		if own == "" || err != nil || strings.HasPrefix(below, "..") || strings.HasPrefix(own, "/..") {
			return "", "", errors.New("this process's own control group is not mounted")
		}
		return fields[4], below, nil
	}
	return "", "", errors.New("cgroup v2 is not mounted")
}

// openGroups prepares the group own below mount, or its parent group, for the groups of
// commands. pid is this process.
func openGroups(mount, own string, pid int) (*groups, error) {
	dir := filepath.Join(mount, own)
	if above := filepath.Dir(dir); dir != mount && isDelegated(dir, above) && distributes(above) {
		dir = above
	}
	g := &groups{dir: dir, mkdir: makeGroup, rmdir: unix.Rmdir}
	if !distributes(dir) {
		if err := g.distribute(pid); err != nil {
			return nil, err
		}
	}
	old, err := filepath.Glob(filepath.Join(dir, commandGroup+"*"))
	if err != nil {
		return nil, err
	}
	for _, group := range old {
		_ = unix.Rmdir(group) // left over from a crash; the kernel keeps a group in use
	}
	return g, nil
}

func makeGroup(dir string) error { return os.Mkdir(dir, 0o755) }

// isDelegated reports whether this service may manage the group above dir. It may if this
// process has moved into dir before, or if the system has delegated the group above.
func isDelegated(dir, above string) bool {
	if filepath.Base(dir) == serverGroup {
		return true
	}
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		var value [1]byte
		if n, err := unix.Getxattr(above, name, value[:]); err == nil && n == 1 && value[0] == '1' {
			return true
		}
	}
	return false
}

// controllers returns the controllers that limit a command.
func controllers() []string { return []string{"memory", "pids"} }

// distributes reports whether the controllers are enabled for the groups below dir.
func distributes(dir string) bool { return has(dir, "cgroup.subtree_control", controllers()) }

// has reports whether a file of a group contains all the names.
func has(dir, file string, names []string) bool {
	text, err := os.ReadFile(filepath.Join(dir, file))
	listed := strings.Fields(string(text))
	return err == nil && !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(listed, name) })
}

// distribute enables the controllers for the groups below g.dir. For that, this process must
// leave g.dir. After an error it moves back. Only the root group of a machine may keep its
// processes.
func (g *groups) distribute(pid int) error {
	if !has(g.dir, "cgroup.controllers", controllers()) {
		return fmt.Errorf("the controllers memory and pids are not delegated to %s", g.dir)
	}
	_, err := os.Stat(filepath.Join(g.dir, "cgroup.events"))
	isRoot := errors.Is(err, fs.ErrNotExist)
	if !isRoot {
		if err := g.leave(pid); err != nil {
			return err
		}
	}
	err = setGroup(g.dir, "cgroup.subtree_control", "+"+strings.Join(controllers(), " +"))
	if err == nil {
		return nil
	}
	if !isRoot {
		err = errors.Join(err, setGroup(g.dir, "cgroup.procs", strconv.Itoa(pid)))
	}
	return fmt.Errorf("controllers cannot be used below %s: %w", g.dir, err)
}

// leave moves this process into a group of its own below g.dir. It returns an error if other
// processes are in g.dir, because they would have to move too.
func (g *groups) leave(pid int) error {
	text, err := os.ReadFile(filepath.Join(g.dir, "cgroup.procs"))
	if err != nil {
		return fmt.Errorf("the processes in %s cannot be read", g.dir)
	}
	if others := strings.Fields(string(text)); len(others) != 1 || others[0] != strconv.Itoa(pid) {
		return fmt.Errorf("other processes share the control group %s with this one", g.dir)
	}
	// The group may exist from an earlier start of this service.
	own := filepath.Join(g.dir, serverGroup)
	if err := g.mkdir(own); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("no control group can be made below %s: %w", g.dir, err)
	}
	if err := setGroup(own, "cgroup.procs", strconv.Itoa(pid)); err != nil {
		return fmt.Errorf("move to the control group %s: %w", own, err)
	}
	return nil
}

// setGroup writes to an existing file of a group.
func setGroup(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// A group is the control group of one command.
type group struct {
	groups *groups
	dir    string
	folder *os.File // open folder of the group: a process is started in the group with it
}

// childThreads is the number of threads reserved for the child, in addition to the command's
// limit.
const childThreads = 32

// begin creates a group with limits of memory, in bytes, and of processes and threads. The
// caller must call end.
func (g *groups) begin(memory int64, processes int) (*group, error) {
	dir := filepath.Join(g.dir, fmt.Sprintf("%s%d-%d", commandGroup, os.Getpid(), g.next.Add(1)))
	if err := g.mkdir(dir); err != nil {
		return nil, fmt.Errorf("make control group: %w", err)
	}
	c := &group{groups: g, dir: dir}
	err := errors.Join(
		setGroup(dir, "memory.max", strconv.FormatInt(memory, 10)),
		setGroup(dir, "pids.max", strconv.Itoa(processes+childThreads)),
	)
	for file, value := range map[string]string{
		"memory.swap.max":  "0", // missing in kernels without swap
		"memory.oom.group": "1", // missing before Linux 4.19
	} {
		if missing := setGroup(dir, file, value); !errors.Is(missing, fs.ErrNotExist) {
			err = errors.Join(err, missing)
		}
	}
	if err == nil {
		c.folder, err = os.Open(dir)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("limit control group: %w", err), c.end())
	}
	return c, nil
}

// outOfMemory reports whether the kernel killed the command because it exceeded its memory
// limit.
func (c *group) outOfMemory() bool {
	text, err := os.ReadFile(filepath.Join(c.dir, "memory.events"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if name, n, _ := strings.Cut(strings.TrimSpace(line), " "); name == "oom_kill" && n != "0" {
			return true
		}
	}
	return false
}

// groupEnd is how long end waits for the group's processes. They are killed with the child, but
// may stay in the kernel's count for a short time.
const groupEnd = 5 * time.Second

// end kills the remaining processes of the group and removes it.
func (c *group) end() error {
	if c.folder != nil {
		_ = c.folder.Close()
	}
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		err := c.groups.rmdir(c.dir)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if time.Since(begun) > groupEnd {
			return fmt.Errorf("remove control group: %w", err)
		}
		_ = setGroup(c.dir, "cgroup.kill", "1") // missing before Linux 5.14
	}
}
