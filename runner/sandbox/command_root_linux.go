//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// enterRoot builds a root folder with programs, the workspace and a /tmp in memory, and makes
// it this process's root. No other file of the machine can be reached then.
func (spec *childSpec) enterRoot(r *childReport) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts private: %w", err)
	}
	root := &rootBuilder{at: "/tmp"} // any folder is possible: the mount hides its files
	root.tmpfs("", "mode=755,size=1m")
	root.bindFolder(spec.folder, insideFolder)
	root.programs()
	root.settings()
	root.devices(spec.abi > 0 || spec.Counted)
	root.tmpfs("tmp", fmt.Sprintf("mode=1777,size=%d,nr_inodes=100000", spec.Limits.Memory/4))
	root.proc()
	root.hide(spec.Hide)
	root.enter()
	if root.err != nil {
		return fmt.Errorf("build root: %w", root.err)
	}
	if !hasProc() {
		r.Layers = append(r.Layers, layerProc)
	}
	return nil
}

// A rootBuilder builds a root folder. After the first error its methods do nothing.
type rootBuilder struct {
	at  string // where the root folder is built
	err error
}

// do executes one step, unless an earlier step has failed.
func (b *rootBuilder) do(what string, step func() error) {
	if b.err != nil {
		return
	}
	if err := step(); err != nil {
		b.err = fmt.Errorf("%s: %w", what, err)
	}
}

func (b *rootBuilder) path(name string) string { return filepath.Join(b.at, name) }

func (b *rootBuilder) folder(name string) {
	b.do("make /"+name, func() error { return os.MkdirAll(b.path(name), 0o755) })
}

func (b *rootBuilder) file(name, contents string) {
	b.do("write /"+name, func() error { return os.WriteFile(b.path(name), []byte(contents), 0o644) })
}

func (b *rootBuilder) link(name, target string) {
	b.do("link /"+name, func() error { return os.Symlink(target, b.path(name)) })
}

func (b *rootBuilder) tmpfs(name, options string) {
	b.folder(name)
	b.do("mount /"+name, func() error {
		return unix.Mount("tmpfs", b.path(name), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options)
	})
}

// bind mounts the file or folder source at name. restrict adds restrictions to those of the
// source, which a namespace cannot remove.
func (b *rootBuilder) bind(source, name string, restrict uint64) {
	b.do("bind "+source, func() error {
		return unix.Mount(source, b.path(name), "", unix.MS_BIND|unix.MS_REC, "")
	})
	b.do("restrict "+source, func() error {
		attr := &unix.MountAttr{Attr_set: restrict}
		return unix.MountSetattr(unix.AT_FDCWD, b.path(name), unix.AT_RECURSIVE, attr)
	})
}

// bindFolder mounts the open folder fd, which this user may not be able to reach by its path.
func (b *rootBuilder) bindFolder(fd int, name string) {
	b.folder(name)
	b.do("enter folder", func() error { return unix.Fchdir(fd) })
	b.bind(".", name, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}

const readOnly = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV

// programs mounts the machine's folders of programs, read-only. It copies symbolic links among
// them, such as /bin, as links.
func (b *rootBuilder) programs() {
	for _, name := range []string{"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix/store", "gnu/store"} {
		info, err := os.Lstat("/" + name)
		switch {
		case err != nil: // this machine has no such folder
		case info.Mode()&os.ModeSymlink != 0:
			target, err := os.Readlink("/" + name)
			b.do("read link /"+name, func() error { return err })
			b.link(name, target)
		case info.IsDir():
			b.folder(name)
			b.bind("/"+name, name, readOnly)
		}
	}
}

// programSettings returns the paths in /etc, without the leading slash, that programs read at
// every start. None of them may contain a secret.
func programSettings() []string {
	var all []string
	for _, pattern := range []string{"alternatives", "fonts", "ld.so.cache", "localtime", "timezone", "mime.types",
		"magic", "services", "protocols", "chromium.d", "ghostscript", "ImageMagick-*", "java-*", "libreoffice", "papersize", "perl",
		"python3*", "R", "ssl/certs", "ssl/openssl.cnf", "texmf"} {
		names, _ := filepath.Glob("/etc/" + pattern) // fails only for invalid patterns
		for _, name := range names {
			all = append(all, name[1:])
		}
	}
	return all
}

// settings mounts the files in /etc that programs need. It also writes files that list only the
// command's own user and host.
func (b *rootBuilder) settings() {
	b.folder("etc")
	for _, name := range programSettings() {
		info, err := os.Stat("/" + name)
		if err != nil {
			continue
		}
		if info.IsDir() {
			b.folder(name)
		} else {
			b.folder(filepath.Dir(name))
			b.file(name, "")
		}
		b.bind("/"+name, name, readOnly)
	}
	b.file("etc/passwd", fmt.Sprintf("worker:x:%d:%d::/tmp:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
		insideID, insideID))
	b.file("etc/group", fmt.Sprintf("worker:x:%d:\nnogroup:x:65534:\n", insideID))
	b.file("etc/hosts", "127.0.0.1 localhost sandbox\n")
	b.file("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n")
}

// devices mounts the devices that every program expects. A writable mapping of /dev/zero is
// memory that the memoryWatch cannot count. Unless real is set, a file of zeros replaces it.
func (b *rootBuilder) devices(real bool) {
	b.folder("dev")
	for _, name := range []string{"dev/null", "dev/zero", "dev/full", "dev/random", "dev/urandom"} {
		b.file(name, "")
		if name == "dev/zero" && !real {
			b.do("make /dev/zero", func() error { return os.Truncate(b.path(name), zeroFile) })
			continue
		}
		b.bind("/"+name, name, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
	}
	b.link("dev/fd", "/proc/self/fd")
	b.link("dev/stdin", "/proc/self/fd/0")
	b.link("dev/stdout", "/proc/self/fd/1")
	b.link("dev/stderr", "/proc/self/fd/2")
	b.link("dev/shm", "/tmp") // so that the limit of /tmp also limits shared memory
}

// zeroFile is the size of the file that replaces /dev/zero. The file takes no memory.
const zeroFile = 1 << 40

// proc mounts a /proc with the processes of this namespace. Containers that hide parts of /proc
// do not allow that. Commands then have no /proc.
func (b *rootBuilder) proc() {
	b.folder("proc")
	b.do("mount /proc", func() error {
		_ = unix.Mount("proc", b.path("proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
		return nil
	})
}

// hide covers folders that are inside the folders of programs. Their names stay visible: commands see
// an empty folder that they cannot enter.
func (b *rootBuilder) hide(folders []string) {
	for _, folder := range folders {
		if info, err := os.Stat(b.path(folder)); err != nil || !info.IsDir() {
			continue
		}
		b.do("hide "+folder, func() error {
			flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV | unix.MS_RDONLY)
			return unix.Mount("tmpfs", b.path(folder), "tmpfs", flags, "mode=000,size=4k")
		})
	}
}

// enter makes the new folder the root of this process, and unmounts the old root.
//
// In a mount namespace, /proc/PID/mountinfo shows for each mount the path of its source, and so
// would show where the data folder is. The kernel leaves out mounts that are not below the
// process's root. So the new root is a detached copy, which is in no namespace, and the namespace
// keeps nothing but an empty folder. The list of mounts is empty then, in all processes inside.
// The copy lasts as long as this process, which holds it open.
func (b *rootBuilder) enter() {
	b.do("close root", func() error {
		return unix.MountSetattr(unix.AT_FDCWD, b.at, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	})
	root := -1
	b.do("detach root", func() (err error) {
		root, err = unix.OpenTree(unix.AT_FDCWD, b.at, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		return err
	})
	b.do("mount empty folder", func() error {
		flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_RDONLY)
		return unix.Mount("tmpfs", b.at, "tmpfs", flags, "mode=555,size=4k")
	})
	b.do("enter empty folder", func() error { return unix.Chdir(b.at) })
	b.do("change root", func() error { return unix.PivotRoot(".", ".") }) // the old root now covers the new one
	b.do("leave old root", func() error { return unix.Unmount(".", unix.MNT_DETACH) })
	b.do("enter root", func() error { return unix.Fchdir(root) })
	b.do("change root again", func() error { return unix.Chroot(".") })
}
