//go:build amd64 || arm64

package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// A cgroupTree is a folder that imitates cgroup v2 with ordinary files.
type cgroupTree struct {
	t    *testing.T
	root string
}

func newCgroupTree(t *testing.T) cgroupTree {
	t.Helper()
	return cgroupTree{t, t.TempDir()}
}

// group creates a group with the files that the kernel would create.
func (c cgroupTree) group(path, available, distributed string, pids ...int) string {
	c.t.Helper()
	dir := filepath.Join(c.root, path)
	is.New(c.t).NoErr(os.MkdirAll(dir, 0o755))
	c.put(path, "cgroup.controllers", available)
	c.put(path, "cgroup.subtree_control", distributed)
	procs := ""
	for _, pid := range pids {
		procs += strconv.Itoa(pid) + "\n"
	}
	c.put(path, "cgroup.procs", procs)
	if path != "" {
		c.put(path, "cgroup.events", "populated 1\n")
	}
	return dir
}

func (c cgroupTree) put(path, file, text string) {
	c.t.Helper()
	is.New(c.t).NoErr(os.WriteFile(filepath.Join(c.root, path, file), []byte(text), 0o644))
}

func (c cgroupTree) read(dir, file string) string {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, file))
	is.New(c.t).NoErr(err)
	return string(text)
}

// asKernel makes a groups create and remove folders with ordinary files, as the kernel does.
func (c cgroupTree) asKernel(g *groups) {
	g.mkdir = func(dir string) error {
		for _, file := range []string{"memory.max", "memory.oom.group", "pids.max", "cgroup.kill"} { // no swap
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, file), nil, 0o644); err != nil {
				return err
			}
		}
		return os.WriteFile(filepath.Join(dir, "memory.events"), []byte("low 0\nmax 7\noom 0\noom_kill 0\noom_group_kill 0\n"), 0o644)
	}
	g.rmdir = os.RemoveAll
}

const both = "cpuset cpu io memory pids\n"

func TestOwnGroup(t *testing.T) {
	t.Parallel()
	const mounts = "24 30 0:22 / /proc rw - proc proc rw\n" +
		"31 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
	for name, tt := range map[string]struct{ self, mounts, mount, own, says string }{
		"service":      {"0::/system.slice/j.service\n", mounts, "/sys/fs/cgroup", "system.slice/j.service", ""},
		"hybrid":       {"4:memory:/x\n0::/\n", strings.ReplaceAll(mounts, "/sys/fs/cgroup", "/sys/fs/cgroup/unified"), "/sys/fs/cgroup/unified", ".", ""},
		"bound part":   {"0::/pod/one\n", strings.ReplaceAll(mounts, "0:26 /", "0:26 /pod"), "/sys/fs/cgroup", "one", ""},
		"old alone":    {"4:memory:/x\n", mounts, "", "", "not mounted"},
		"not mounted":  {"0::/\n", "24 30 0:22 / /proc rw - proc proc rw\n", "", "", "cgroup v2 is not mounted"},
		"outside":      {"0::/../other\n", mounts, "", "", "not mounted"},
		"another part": {"0::/other\n", strings.ReplaceAll(mounts, "0:26 /", "0:26 /pod"), "", "", "not mounted"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			mount, own, err := ownGroup(tt.self, tt.mounts)
			if tt.says != "" {
				is.True(err != nil && strings.Contains(err.Error(), tt.says))
				return
			}
			is.NoErr(err)
			is.Equal(mount, tt.mount)
			is.Equal(own, tt.own)
		})
	}
}

func TestOpenGroups(t *testing.T) {
	t.Parallel()
	const pid, own = 100, "system.slice/j.service"
	for name, tt := range map[string]struct {
		make func(c cgroupTree)
		own  string
		dir  string // groups are created below it
		says string // the reason why there are none
	}{
		"delegated":            {func(c cgroupTree) { c.group(own, both, "", pid) }, own, own, ""},
		"root of all":          {func(c cgroupTree) { c.group("", both, "", 1, pid) }, "", "", ""},
		"root, in use already": {func(c cgroupTree) { c.group("", both, "memory pids", 1, pid) }, "", "", ""},
		"started again": {func(c cgroupTree) {
			c.group(own, both, "memory pids")
			c.group(own+"/"+serverGroup, "memory pids", "", pid)
		}, own + "/" + serverGroup, own, ""},
		"no memory":        {func(c cgroupTree) { c.group(own, "cpu pids", "", pid) }, own, "", "not delegated"},
		"no controllers":   {func(c cgroupTree) { c.group("", "hugetlb\n", "", pid) }, "", "", "not delegated"},
		"with others":      {func(c cgroupTree) { c.group(own, both, "", pid, 200) }, own, "", "other processes"},
		"with a neighbour": {func(c cgroupTree) { c.group(own, both, "", 200) }, own, "", "other processes"},
		"beside others of the machine": {func(c cgroupTree) {
			c.group("system.slice", both, "memory pids")
			c.group(own, both, "", pid, 200)
		}, own, "", "other processes"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			c := newCgroupTree(t)
			tt.make(c)
			// The kernel creates the files of the group that the process moves into.
			is.NoErr(os.MkdirAll(filepath.Join(c.root, own, serverGroup), 0o755))
			c.put(own+"/"+serverGroup, "cgroup.procs", "")
			stale := filepath.Join(c.root, tt.own, commandGroup+"7-1")
			is.NoErr(os.MkdirAll(stale, 0o755))
			g, err := openGroups(c.root, tt.own, pid)
			if tt.says != "" {
				is.True(err != nil && strings.Contains(err.Error(), tt.says))
				return
			}
			is.NoErr(err)
			is.Equal(g.dir, filepath.Join(c.root, tt.dir))
			if name == "delegated" {
				is.Equal(c.read(filepath.Join(g.dir, serverGroup), "cgroup.procs"), strconv.Itoa(pid))
			}
			if name == "delegated" || name == "root of all" {
				is.Equal(c.read(g.dir, "cgroup.subtree_control"), "+memory +pids")
			}
			if tt.dir == tt.own {
				_, err = os.Stat(stale)
				is.True(os.IsNotExist(err)) // left over from a crash
			}
		})
	}
}

func TestGroup(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	c := newCgroupTree(t)
	g := &groups{dir: c.group("", both, "memory pids")}
	c.asKernel(g)
	one, err := g.begin(1<<30, 100)
	is.NoErr(err)
	two, err := g.begin(1<<20, 1)
	is.NoErr(err)
	is.True(one.dir != two.dir)
	is.Equal(c.read(one.dir, "memory.max"), "1073741824")
	is.Equal(c.read(one.dir, "pids.max"), "132") // plus the threads of the first process
	is.Equal(c.read(one.dir, "memory.oom.group"), "1")
	is.True(!one.outOfMemory())
	is.NoErr(os.WriteFile(filepath.Join(one.dir, "memory.events"), []byte("max 70\noom 1\noom_kill 4\noom_group_kill 1\n"), 0o644))
	is.True(one.outOfMemory())
	is.NoErr(one.end())
	is.NoErr(two.end())
	left, err := filepath.Glob(filepath.Join(g.dir, commandGroup+"*"))
	is.NoErr(err)
	is.Equal(len(left), 0)

	g.mkdir = makeGroup // no limit files: a group without limits must not be used
	_, err = g.begin(0, 0)
	is.True(err != nil)
	left, err = filepath.Glob(filepath.Join(g.dir, commandGroup+"*"))
	is.NoErr(err)
	is.Equal(len(left), 0)
}
