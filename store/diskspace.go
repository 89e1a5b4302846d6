package store

import (
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A DiskSpace is the room on the file system of the data folder.
type DiskSpace struct {
	Free, Total int64 // bytes; Free is the part that this process may use

	FreeFiles, Files int64 // files that may be created, and that there may be; 0 if nobody counts them
}

// DiskLevel says how much of the disk is left.
type DiskLevel int

// The levels of a disk.
const (
	DiskOK   DiskLevel = iota
	DiskLow            // below the warning
	DiskFull           // below the reserve, or a write has failed: no new work is taken
)

// String returns the level in one word, for logs and programs.
func (l DiskLevel) String() string { return [...]string{"ok", "low", "full"}[l] }

const (
	diskFresh  = time.Second      // age up to which a measurement counts
	fullRetry  = 10 * time.Second // after a failed write, new work is refused for that long
	diskCalm   = time.Minute      // with room, before an alert is over
	leastFiles = 1000             // fewer free files count as a full disk, or one percent of all
)

// A diskWatch measures the disk and remembers which level was reported.
type diskWatch struct {
	dir              string
	statfs           func(dir string) (DiskSpace, error)
	reserve, warning DiskLimit
	now              func() time.Time
	log              *slog.Logger

	mu       sync.Mutex // guards what follows
	space    DiskSpace
	level    DiskLevel
	measured time.Time // zero before the first measurement
	failed   time.Time // the last write that found no room; zero for none

	reported  DiskLevel // the worst level reported since the alert began; DiskOK without an alert
	calmSince time.Time // zero unless reported is above DiskOK and the level is DiskOK
}

// Statfs measures the file system of a folder.
func Statfs(dir string) (s DiskSpace, err error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return s, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	size := int64(fs.Bsize) //nolint:unconvert // types differ between systems

	return DiskSpace{Free: int64(fs.Bavail) * size, Total: int64(fs.Blocks) * size, //nolint:gosec,unconvert // likewise
		FreeFiles: int64(fs.Ffree), Files: int64(fs.Files)}, nil //nolint:gosec // likewise
}

// measure sets the level. d.mu is held.
func (d *diskWatch) measure() error {
	now := d.now()
	space, err := d.statfs(d.dir)
	if err != nil {
		return err
	}
	before := d.level
	d.space, d.measured, d.level = space, now, d.levelOf(space)
	// A quota refuses writes on a disk that has room.
	if since := now.Sub(d.failed); !d.failed.IsZero() && since >= 0 && since < fullRetry {
		d.level = DiskFull
	}
	if d.level == before {
		return nil
	}
	attrs := []any{"free", space.Free, "total", space.Total, "level", d.level.String()}
	switch d.level {
	case DiskFull:
		d.log.Error("the disk of the data folder is full, no new work is taken", attrs...)
	case DiskLow:
		d.log.Warn("the disk of the data folder has little room", attrs...)
	default:
		d.log.Info("the disk of the data folder has room again", attrs...)
	}
	return nil
}

// levelOf returns the level of a disk with that space. A level ends only a tenth above its
// limit, so that it does not change all the time.
func (d *diskWatch) levelOf(s DiskSpace) DiskLevel {
	below := func(limit int64, level DiskLevel) bool {
		if d.level >= level {
			limit += limit / 10
		}
		return s.Free < limit
	}
	switch {
	case below(d.reserve.of(s.Total), DiskFull):
		return DiskFull
	case !d.reserve.IsZero() && s.Files > 0 && s.FreeFiles < min(leastFiles, s.Files/100):
		return DiskFull
	case below(d.warning.of(s.Total), DiskLow):
		return DiskLow
	}
	return DiskOK
}

// noteFull notes that a write has found no room, whatever the disk says.
func (d *diskWatch) noteFull() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed = d.now()
	_ = d.measure() // the level is full all the same
	d.level = DiskFull
}

// A fullStart is the state of a store that was opened on a full disk.
type fullStart struct {
	schema string
	log    *slog.Logger
	end    func() // nil unless the store is read-only because of the disk
}
