package gate

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// This file watches the free space of the data folder's disk, so that new work is refused before
// a write fails. Work that was accepted may use the reserve.

// DiskReportedName is the file that exists while an alert about the disk is open. So a server that
// is restarted on a larger disk can report the end of the alert.
const DiskReportedName = "disk-alert"

// WatchDisk measures the disk now, and raises or ends the alert about it. Its caller calls it
// every few seconds.
//
// notify records that the level has changed, and ready ends a start on a full disk. WatchDisk calls ready before
// notify, and notify only while writes are taken.
func (g *Gate) WatchDisk(ctx context.Context, ready func(context.Context) error,
	notify func(context.Context, DiskLevel) error) error {
	d := &g.disk
	d.mu.Lock()
	err := d.measure()
	level, changed := d.nextLevel()
	d.mu.Unlock()
	if err == nil {
		err = ready(ctx)
	}
	// While writes are refused, the alert has to wait.
	if err != nil || !changed || g.Writable() != nil {
		return err
	}
	// If the alert cannot be written, the next call tries again, because reported has not changed.
	if err := notify(ctx, level); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reported, d.okSince = level, time.Time{}
	return d.saveReported()
}

// nextLevel returns the level to report, and whether there is one.
func (d *diskWatch) nextLevel() (level DiskLevel, changed bool) {
	if d.level > DiskOK {
		d.okSince = time.Time{}
	}
	switch {
	case d.level > d.reported && d.level == DiskFull:
		return DiskFull, true
	case d.level > d.reported:
		return DiskLow, true
	case d.level > DiskOK || d.reported == DiskOK:
		return d.reported, false
	}
	now := d.now()
	if d.okSince.IsZero() || now.Before(d.okSince) {
		d.okSince = now
	}
	if now.Sub(d.okSince) < diskRecovery {
		return d.reported, false
	}
	return DiskOK, true
}

func (d *diskWatch) saveReported() error {
	path := filepath.Join(d.dir, DiskReportedName)
	if d.reported == DiskOK {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	// On a full disk this may fail. Then the alert is lost only by a restart.
	_ = os.WriteFile(path, []byte(d.reported.String()+"\n"), 0o600)
	return nil
}

// loadReported reads the level that an earlier process has reported.
func (d *diskWatch) loadReported() {
	text, err := os.ReadFile(filepath.Join(d.dir, DiskReportedName))
	switch {
	case err != nil:
	case string(text) == DiskFull.String()+"\n":
		d.reported = DiskFull
	default: // also for an empty file: the full disk had no room for the content
		d.reported = DiskLow
	}
}

// Disk returns the space of the data folder's disk and its level. It measures at most once a
// second. If the disk cannot be measured, the last measurement counts.
func (g *Gate) Disk() (DiskSpace, DiskLevel) {
	d := &g.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if age := d.now().Sub(d.measured); age < 0 || age >= diskMaxAge { // negative after the clock was set back
		_ = d.measure() // WatchDisk reports the error
	}
	return d.space, d.level
}

// DiskLimits returns, in bytes, the free space below which a disk of that size counts as low, and that below which it
// counts as full. 0 means no limit.
func (g *Gate) DiskLimits(total int64) (warning, reserve int64) {
	return g.disk.warning.Of(total), g.disk.reserve.Of(total)
}

// Measure returns the present space of the data folder's disk.
func (g *Gate) Measure() (DiskSpace, error) { return g.disk.statfs(g.disk.dir) }

// NoteFull records that a write failed for lack of space. The file system may report free space all
// the same.
func (g *Gate) NoteFull() { g.disk.noteFull() }
