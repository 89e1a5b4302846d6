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
	event, after := d.news()
	d.mu.Unlock()
	if err == nil {
		err = s.endFull(ctx)
	}
	// A store that takes no writes yet raises the alert later.
	if err != nil || event == "" || s.Writable() != nil {
		return err
	}
	// If the alert cannot be written, the next call tries again, because reported has not changed.
	if err := s.alertServer(ctx, TopicDisk, event); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reported, d.calmSince = after, time.Time{}
	return d.saveReported()
}

// news returns the event to report, "" for none, and the value of reported after it.
func (d *diskWatch) news() (event string, after DiskLevel) {
	if d.level > DiskOK {
		d.calmSince = time.Time{}
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
	if d.calmSince.IsZero() || now.Before(d.calmSince) {
		d.calmSince = now
	}
	if now.Sub(d.calmSince) < diskCalm {
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
	// On a full disk this may fail. Then only a restart forgets the alert.
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
	default: // an empty file, too: a full disk took no content
		d.reported = DiskLow
	}
}
