package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"journeyman/store/db"
	"journeyman/store/people"
)

// A BackupRun describes one backup that the server made by itself. The runs are stored in a file
// beside the database. So a restored folder has no runs, and the runs can be read even if the
// database is damaged.
type BackupRun struct {
	Name      string     `json:"name"`
	Path      string     `json:"path"` // the name with its place, for people
	StartedAt time.Time  `json:"startedAt"`
	EndedAt   *time.Time `json:"endedAt"` // nil while the run lasts, and if it crashed
	Size      int64      `json:"size"`    // bytes, as they are stored
	Error     string     `json:"error"`   // why the run made no backup; "" for a verified backup
	By        string     `json:"by"`      // the user who requested it; "" for a scheduled backup
	Waits     bool       `json:"waits"`   // no backup was made: the server waits for its first one since StartedAt
}

// Good reports whether the run made a backup that was verified.
func (r BackupRun) Good() bool { return r.EndedAt != nil && r.Error == "" && !r.Waits }

// Took returns the duration of the run, or 0 until it has ended.
func (r BackupRun) Took() time.Duration {
	if r.EndedAt == nil {
		return 0
	}
	return r.EndedAt.Sub(r.StartedAt)
}

// MaxBackupRuns is how many runs are kept.
const MaxBackupRuns = 20

// BackupRuns returns the last runs, the oldest first.
func (s *Store) BackupRuns() (runs []BackupRun, err error) {
	text, err := os.ReadFile(filepath.Join(s.dir, backupRunsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &runs)
	}
	if err != nil {
		return nil, fmt.Errorf("read the backup runs: %w", err)
	}
	return runs, nil
}

// SaveBackupRuns replaces the stored runs. The file is replaced atomically.
func (s *Store) SaveBackupRuns(runs []BackupRun) error {
	text, err := json.MarshalIndent(runs, "", "  ")
	if err != nil {
		return err
	}
	return writeNote(s.dir, backupRunsName, string(text))
}

// backupSizeTimeout bounds the duration of BackupSize.
const backupSizeTimeout = 10 * time.Second

// BackupSize returns an upper estimate of the size of a backup of the data folder dir, in bytes.
// The estimate is too low for a folder with very many files, or one that cannot be read.
func BackupSize(ctx context.Context, dir string) (size int64) {
	ctx, cancel := context.WithTimeout(ctx, backupSizeTimeout)
	defer cancel()
	for _, name := range append(archived[:], databaseName) {
		_ = addSizes(ctx, filepath.Join(dir, name), &size)
	}
	return size
}

// AuditBackup records that the caller has asked for a backup.
func (s *Store) AuditBackup(ctx context.Context, c people.Caller) error {
	return s.db.Write(ctx, func(tx db.Tx) error { return s.People.Audit(tx, c, "backup.request", "", nil) })
}
