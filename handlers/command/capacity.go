package command

import (
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
)

// Limits holds the flags that limit the resources of all clients together. A flag that is 0 follows
// the machine.
type Limits struct {
	MaxConnections int `min:"0" help:"Number of connections, and of requests in progress; one organization or address gets at most half, one key a quarter. As many as a quarter of the memory and the file descriptors allow by default."`
	MaxStreams     int `min:"0" help:"Number of event streams; one organization or address gets at most half, one key a quarter. Three quarters of --max-connections by default."`
	MaxUploads     int `min:"0" help:"MiB of large request bodies in transit; one organization or address gets at most half, one key a quarter. An eighth of the memory by default."`
	MaxMail        int `name:"max-mail-connections" min:"0" help:"Number of mail connections, of which one network gets a tenth. An eighth of the file descriptors and at most 500 by default."`

	MailMemory int64 `kong:"-"` // most bytes of mails being received
}

// A Capacity holds the resources that this machine has for the process.
type Capacity struct {
	Memory int64 // bytes
	Files  int   // file descriptors
}

// Constants that derive limits from a Capacity.
const (
	connMemory  = 32 << 10 // bytes that a connection counts for; an idle event stream takes up to twice as much
	mostConns   = 100_000
	mostUploads = 1024 // MiB
	mostMail    = 500
	mailMemory  = 256 << 20 // most bytes of mails being received

	ownFiles  = 128 // descriptors of the database, logs, listeners and calls to other servers
	turnFiles = 8   // descriptors of a turn: its model call, and the pipes and files of its tools
)

// MachineCapacity returns the capacity of this machine, or of the container that the process
// runs in. Go's runtime has raised the soft limit of descriptors to the hard one.
func MachineCapacity() Capacity {
	c := Capacity{Memory: memoryLimit(os.DirFS("/")), Files: 1024}
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		c.Files = int(min(limit.Cur, math.MaxInt32)) // it may be "infinity"
	}
	return c
}

// unknownMemory is assumed if the system does not report its memory.
const unknownMemory = 2 << 30

// memoryLimit returns the memory that the process may use: that of the machine, or less where
// a cgroup limits it. root is the root of the file system.
func memoryLimit(root fs.FS) int64 {
	limit := int64(unknownMemory)
	if text, err := fs.ReadFile(root, "proc/meminfo"); err == nil {
		_, rest, _ := strings.Cut(string(text), "MemTotal:")
		if fields := strings.Fields(rest); len(fields) > 0 {
			if kib, err := strconv.ParseInt(fields[0], 10, 64); err == nil {
				limit = kib << 10
			}
		}
	}
	for _, file := range cgroupFiles(root) {
		text, err := fs.ReadFile(root, file)
		if err != nil {
			continue
		}
		// No limit is the word max, or a number beyond any memory.
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
			limit = min(limit, n)
		}
	}
	return limit
}

// cgroupFiles returns the files that may limit the memory of the process: of its cgroup and
// of all above it, in version 2, and of the whole container in version 1.
func cgroupFiles(root fs.FS) []string {
	files := []string{"sys/fs/cgroup/memory/memory.limit_in_bytes"}
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return files
	}
	for line := range strings.Lines(string(text)) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/")
		if !ok {
			continue
		}
		for name = path.Clean("/" + name); ; name = path.Dir(name) {
			files = append(files, path.Join("sys/fs/cgroup", name, "memory.max"))
			if name == "/" {
				return files
			}
		}
	}
	return files
}

// Fit sets the limits that follow the machine, and lowers those that need more descriptors than
// there are: without a free descriptor, the process can neither accept a connection nor open a
// file.
func (l *Limits) Fit(c Capacity, p *Program) {
	free := c.Files - min(c.Files/2, ownFiles+turnFiles*p.Concurrency)
	mailConns := max(2, min(free/8, mostMail))
	setLimit(p.Log, "--max-mail-connections", &l.MaxMail, mailConns, free/2)
	free -= l.MaxMail
	memory := int(min(c.Memory/4/connMemory, mostConns))
	setLimit(p.Log, "--max-connections", &l.MaxConnections, max(4, min(free, memory)), free)
	setLimit(p.Log, "--max-streams", &l.MaxStreams, max(4, l.MaxConnections/4*3), math.MaxInt32)
	setLimit(p.Log, "--max-uploads", &l.MaxUploads, int(max(16, min(c.Memory>>23, mostUploads))), math.MaxInt32)
	l.MailMemory = min(c.Memory/8, mailMemory)
	if os.Getenv("GOMEMLIMIT") == "" {
		// Near the limit the garbage collector runs more often, so that the system does not kill
		// the process.
		debug.SetMemoryLimit(c.Memory / 10 * 9)
	}
	p.Log.Debug("limits", "memory_mib", c.Memory>>20, "descriptors", c.Files, "connections", l.MaxConnections,
		"streams", l.MaxStreams, "uploads_mib", l.MaxUploads, "mail_connections", l.MaxMail)
}

// setLimit sets a limit that is 0 to its default, and lowers one that exceeds most.
func setLimit(log *slog.Logger, flag string, limit *int, byDefault, most int) {
	switch {
	case *limit == 0:
		*limit = byDefault
	case *limit > most:
		log.Warn("the limit of file descriptors (ulimit -n) is too low for a flag", "flag", flag, "value", *limit,
			"used", most)
		*limit = most
	}
}
