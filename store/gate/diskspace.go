package gate

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

	FreeFiles, Files int64 // files that can still be created, and the total; 0 if not counted
}

// A DiskLevel is a class of free disk space.
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
	diskMaxAge   = time.Second      // greatest age of a measurement that is still used
	fullRetry    = 10 * time.Second // time after a failed write in which new work is refused
	diskRecovery = time.Minute      // time with enough free space after which an alert ends
	leastFiles   = 1000             // with fewer free files, or less than one percent, the disk counts as full
)

// A diskWatch measures the disk and remembers which level was reported.
type diskWatch struct {
	dir              string
	statfs           func(dir string) (DiskSpace, error)
	reserve, warning DiskLimit
	now              func() time.Time
	log              *slog.Logger

	mu       sync.Mutex // guards the fields below
	space    DiskSpace
	level    DiskLevel
	measured time.Time // zero before the first measurement
	failed   time.Time // the last write that found no room; zero for none

	reported DiskLevel // the worst level reported since the alert began; DiskOK without an alert
	okSince  time.Time // zero unless reported is above DiskOK and the level is DiskOK
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
	// With a quota, writes can fail on a disk that has free space.
	if since := now.Sub(d.failed); !d.failed.IsZero() && since >= 0 && since < fullRetry {
		d.level = DiskFull
	}
	if d.level == before {
		return nil
	}
	attrs := []any{"free", space.Free, "total", space.Total, "disk", d.level.String()}
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

// levelOf returns the level of a disk with that space. A level ends only at a tenth above its
// limit, so that it does not change often.
func (d *diskWatch) levelOf(s DiskSpace) DiskLevel {
	below := func(limit int64, level DiskLevel) bool {
		if d.level >= level {
			limit += limit / 10
		}
		return s.Free < limit
	}
	switch {
	case below(d.reserve.Of(s.Total), DiskFull):
		return DiskFull
	case !d.reserve.IsZero() && s.Files > 0 && s.FreeFiles < min(leastFiles, s.Files/100):
		return DiskFull
	case below(d.warning.Of(s.Total), DiskLow):
		return DiskLow
	}
	return DiskOK
}

// noteFull records that a write failed for lack of space. The file system may report free space all
// the same.
func (d *diskWatch) noteFull() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed = d.now()
	_ = d.measure() // after an error, the level is DiskFull all the same
	d.level = DiskFull
}
