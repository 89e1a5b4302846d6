package store

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

// WatchDisk measures the disk now, and raises or ends the alert about it. Its caller calls it
// every few seconds.
func (s *Store) WatchDisk(ctx context.Context) error {
	d := &s.disk
	d.mu.Lock()
	err := d.measure()
	event, after := d.nextEvent()
	d.mu.Unlock()
	if err == nil {
		err = s.endFull(ctx)
	}
	// A store that is still read-only raises the alert later.
	if err != nil || event == "" || s.Writable() != nil {
		return err
	}
	// If the alert cannot be written, the next call tries again, because reported has not changed.
	if err := s.alertServer(ctx, TopicDisk, event); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reported, d.okSince = after, time.Time{}
	return d.saveReported()
}

// nextEvent returns the event to report, "" for none, and the value of reported after it.
func (d *diskWatch) nextEvent() (event string, after DiskLevel) {
	if d.level > DiskOK {
		d.okSince = time.Time{}
	}
	switch {
	case d.level > d.reported && d.level == DiskFull:
		return EventDiskFull, DiskFull
	case d.level > d.reported:
		return EventDiskLow, DiskLow
	case d.level > DiskOK || d.reported == DiskOK:
		return "", d.reported
	}
	now := d.now()
	if d.okSince.IsZero() || now.Before(d.okSince) {
		d.okSince = now
	}
	if now.Sub(d.okSince) < diskRecovery {
		return "", d.reported
	}
	return EventDiskOK, DiskOK
}

func (d *diskWatch) saveReported() error {
	path := filepath.Join(d.dir, diskReportedName)
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
	text, err := os.ReadFile(filepath.Join(d.dir, diskReportedName))
	switch {
	case err != nil:
	case string(text) == DiskFull.String()+"\n":
		d.reported = DiskFull
	default: // also for an empty file: the full disk had no room for the content
		d.reported = DiskLow
	}
}
