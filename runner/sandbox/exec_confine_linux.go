//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// confine takes from this process all that a command is not to have. It was
// started in namespaces of its own, in which it still has every right. The order
// matters: each step needs what a later one takes away.
func (spec *childSpec) confine(r *childReport) error {
	// Files that this program's own parent left open to it. Older kernels lack the
	// call; Go's files are closed at an exec anyway.
	_ = unix.CloseRange(reportFile+1, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	// Should memory run out after all, these go first, and give way to the service.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	_ = unix.Setpriority(unix.PRIO_PGRP, 0, 10)
	for _, step := range []func(*childReport) error{
		spec.openFolder, spec.becomeNobody, spec.enterRoot, restrictPaths, dropRights,
	} {
		if err := step(r); err != nil {
			return err
		}
	}
	return nil
}

// openFolder opens the workspace while this process may still go where it lies.
func (spec *childSpec) openFolder(*childReport) (err error) {
	spec.folder, err = unix.Open(spec.Folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open workspace: %w", err)
	}
	return nil
}

// becomeNobody changes to the user whom this namespace knows as insideID. The
// capabilities stay: they are rights over this namespace alone.
func (spec *childSpec) becomeNobody(*childReport) error {
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

// restrictPaths adds Landlock's rules, which hold even if a way out of the root
// should be found, and keep signals and abstract sockets within.
func restrictPaths(r *childReport) error {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil {
		r.Layers = append(r.Layers, layerLandlock)
		return nil // the root has nothing else in it
	}
	r.Landlock = abi
	writable := landlock.RWDirs(insideFolder, "/tmp").WithResolveUnix()
	if abi >= 2 {
		writable = writable.WithRefer() // asked of an older kernel, it would turn all rules off
	}
	err = landlock.V11.BestEffort().Restrict(writable,
		landlock.RODirs("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/proc", "/nix/store", "/gnu/store").IgnoreIfMissing(),
		landlock.RWFiles("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom").IgnoreIfMissing(),
		landlock.PathAccess(readDir, "/", "/dev"))
	if err != nil {
		return fmt.Errorf("restrict paths: %w", err)
	}
	return nil
}

// readDir is Landlock's right to list a folder.
const readDir = landlock.AccessFSSet(ll.AccessFSReadDir)

// dropRights gives up every capability, for good.
func dropRights(*childReport) error {
	for c := uintptr(0); ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			break // past the last there is
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
	// Else the command, which is the same user, could look into this process.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("set undumpable: %w", err)
	}
	return filterCalls()
}

// insideFolder is where a command finds its workspace.
const insideFolder = "/workspace"

// enterRoot makes a root of nothing but programs, the workspace and a /tmp in
// memory, and moves into it: what else the machine has is not there.
func (spec *childSpec) enterRoot(*childReport) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts private: %w", err)
	}
	// Any folder will do to build it on: what is there is reached no more by its name.
	root := &rootBuilder{at: "/tmp"}
	root.tmpfs("", "mode=755,size=1m")
	root.bindFolder(spec.folder, insideFolder)
	root.programs()
	root.settings()
	root.devices()
	root.tmpfs("tmp", fmt.Sprintf("mode=1777,size=%d,nr_inodes=100000", spec.Limits.Memory/4))
	root.proc()
	root.hide(spec.Hide)
	if root.err != nil {
		return fmt.Errorf("build root: %w", root.err)
	}
	return root.enter()
}

// A rootBuilder builds a root folder at a place; after an error it does nothing.
type rootBuilder struct {
	at  string
	err error
}

func (b *rootBuilder) do(what string, err error) {
	if b.err == nil && err != nil {
		b.err = fmt.Errorf("%s: %w", what, err)
	}
}

func (b *rootBuilder) path(name string) string { return filepath.Join(b.at, name) }

func (b *rootBuilder) folder(name string) {
	if b.err == nil {
		b.do("make /"+name, os.MkdirAll(b.path(name), 0o755))
	}
}

func (b *rootBuilder) file(name, contents string) {
	if b.err == nil {
		b.do("write /"+name, os.WriteFile(b.path(name), []byte(contents), 0o644))
	}
}

func (b *rootBuilder) link(name, target string) {
	if b.err == nil {
		b.do("link /"+name, os.Symlink(target, b.path(name)))
	}
}

func (b *rootBuilder) tmpfs(name, options string) {
	if name != "" {
		b.folder(name)
	}
	if b.err == nil {
		b.do("mount /"+name, unix.Mount("tmpfs", b.path(name), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options))
	}
}

// bind shows what is at source under name, with more restrictions but not fewer
// than it has.
func (b *rootBuilder) bind(source, name string, restrict uint64) {
	if b.err != nil {
		return
	}
	b.do("bind "+source, unix.Mount(source, b.path(name), "", unix.MS_BIND|unix.MS_REC, ""))
	if b.err == nil {
		b.do("restrict "+source, unix.MountSetattr(unix.AT_FDCWD, b.path(name), unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: restrict}))
	}
}

// bindFolder shows the open folder fd, which may lie where no name leads.
func (b *rootBuilder) bindFolder(fd int, name string) {
	b.folder(name)
	if b.err == nil {
		b.do("enter folder", unix.Fchdir(fd))
		b.bind(".", name, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	}
}

const readOnly = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV

// programs shows the folders of programs, those that are links as links.
func (b *rootBuilder) programs() {
	for _, name := range []string{"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix/store", "gnu/store"} {
		info, err := os.Lstat("/" + name)
		switch {
		case err != nil:
		case info.Mode()&os.ModeSymlink != 0:
			target, err := os.Readlink("/" + name)
			b.do("read link /"+name, err)
			b.link(name, target)
		case info.IsDir():
			b.folder(name)
			b.bind("/"+name, name, readOnly)
		}
	}
}

// settings shows what programs need of /etc and no more of it.
func (b *rootBuilder) settings() {
	b.folder("etc")
	for _, name := range []string{"alternatives", "fonts", "ld.so.cache", "localtime", "timezone", "mime.types", "magic", "services", "protocols"} {
		name = "etc/" + name
		info, err := os.Stat("/" + name)
		if err != nil {
			continue
		}
		if info.IsDir() {
			b.folder(name)
		} else {
			b.file(name, "")
		}
		b.bind("/"+name, name, readOnly)
	}
	b.file("etc/passwd", fmt.Sprintf("worker:x:%d:%d::/tmp:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n", insideID, insideID))
	b.file("etc/group", fmt.Sprintf("worker:x:%d:\nnogroup:x:65534:\n", insideID))
	b.file("etc/hosts", "127.0.0.1 localhost sandbox\n")
	b.file("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n")
}

func (b *rootBuilder) devices() {
	b.folder("dev")
	for _, name := range []string{"dev/null", "dev/zero", "dev/full", "dev/random", "dev/urandom"} {
		b.file(name, "")
		b.bind("/"+name, name, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
	}
	b.link("dev/fd", "/proc/self/fd")
	b.link("dev/stdin", "/proc/self/fd/0")
	b.link("dev/stdout", "/proc/self/fd/1")
	b.link("dev/stderr", "/proc/self/fd/2")
	b.link("dev/shm", "/tmp") // shared memory counts as what is in /tmp
}

// proc shows the processes of this namespace. In containers that hide parts of
// /proc the kernel refuses to show it anew; then there is none.
func (b *rootBuilder) proc() {
	b.folder("proc")
	if b.err == nil {
		_ = unix.Mount("proc", b.path("proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	}
}

// hide covers folders that lie in those of programs.
func (b *rootBuilder) hide(folders []string) {
	for _, folder := range folders {
		if info, err := os.Stat(b.path(folder)); err != nil || !info.IsDir() || b.err != nil {
			continue
		}
		b.do("hide "+folder, unix.Mount("tmpfs", b.path(folder), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_RDONLY, "mode=000,size=4k"))
	}
}

// enter makes the folder the root and lets go of the old one.
func (b *rootBuilder) enter() error {
	if err := unix.Chdir(b.at); err != nil {
		return fmt.Errorf("enter root: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil { // the old one now lies on top of the new
		return fmt.Errorf("change root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave old root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return fmt.Errorf("enter root: %w", err)
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("close root: %w", err)
	}
	return nil
}
