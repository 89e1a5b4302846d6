package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// saveChecksEvery is the pause between two writes of the file of checks. A killed process repeats
// the checks since the last write.
const saveChecksEvery = time.Second

// The checks of a database file, as they are stored in the data folder.
type checks struct {
	Tables map[string]int64 `json:"tables"` // when each table was found sound, in Unix milliseconds

	// Stopped is the state of the database's files after the last clean stop: see fileState. Files in another
	// state are those of a killed process or a crashed machine, or somebody has written to them.
	Stopped string `json:"stopped,omitempty"`
}

// CheckDueTables looks for damage in the tables whose last check is older than every, and in all tables after
// an unclean stop. While requests use the database, it pauses most of the time. The times of the checks are
// stored in the data folder, so a restarted process continues. Damage that it finds is remembered: see Damage.
// It does nothing once damage is known, or for a database on a server.
func (s *Store) CheckDueTables(ctx context.Context, every time.Duration) (err error) {
	if s.file == nil || s.file.Damage() != nil {
		return nil
	}
	c, err := s.loadChecks()
	if err != nil {
		return err
	}
	checked := c.Tables
	// A time in the future comes from a clock that was wrong.
	due := func(table string) bool {
		age := s.now().Sub(time.UnixMilli(checked[table]))
		return age < 0 || age >= every
	}
	var found bool
	saved := time.Now()
	sound := func(table string) error {
		checked[table], found = s.now().UnixMilli(), true
		if time.Since(saved) < saveChecksEvery {
			return nil
		}
		saved, found = time.Now(), false
		return s.saveChecks(c)
	}
	err = s.file.CheckTables(ctx, due, sound)
	if found {
		err = errors.Join(err, s.saveChecks(c))
	}
	return err
}

// loadChecks returns the stored checks. A file that a person has damaged counts as missing.
func (s *Store) loadChecks() (c checks, err error) {
	text, err := os.ReadFile(filepath.Join(s.dir, checksName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, fmt.Errorf("read the times of checks: %w", err)
	}
	if json.Unmarshal(text, &c) != nil || c.Tables == nil {
		c = checks{Tables: map[string]int64{}}
	}
	return c, nil
}

// saveChecks stores the checks. A store that is read-only writes nothing: its disk may be full.
func (s *Store) saveChecks(c checks) error {
	if s.Gate.Writable() != nil {
		return nil
	}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return writeNote(s.dir, checksName, string(text))
}

// fileState returns the sizes and times of the files of the database in the folder dir.
func fileState(dir string) string {
	var state []string
	for _, name := range []string{databaseName, databaseName + "-wal"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
			state = append(state, fmt.Sprint(info.Size(), " ", info.ModTime().UnixNano()))
		}
	}
	return strings.Join(state, ", ")
}

// forgetChecks makes all tables due for a check, unless the database was closed in the state in which it is now.
// It is called before the database is opened. Disks lose and damage pages above all when a machine crashes.
func (s *Store) forgetChecks(log *slog.Logger) error {
	c, err := s.loadChecks()
	if err != nil || len(c.Tables) == 0 || c.Stopped == fileState(s.dir) {
		return err
	}
	log.Info("the database was not closed by a regular stop, or was written since: all its tables are checked for " +
		"damage in the background")
	// The removal needs no room, so it works on a full disk. A process that is killed again finds no checks.
	if err := os.Remove(filepath.Join(s.dir, checksName)); err != nil {
		return fmt.Errorf("forget the times of checks: %w", err)
	}
	return nil
}

// noteStopped stores the state of the closed database. The file is not synced: without it, the next start
// only checks more tables.
func (s *Store) noteStopped() error {
	c, err := s.loadChecks()
	state := fileState(s.dir)
	if err != nil || s.Gate.Writable() != nil || s.file.Damage() != nil || len(c.Tables) == 0 || c.Stopped == state {
		return err
	}
	c.Stopped = state
	text, err := json.Marshal(c)
	if err == nil {
		err = os.WriteFile(filepath.Join(s.dir, checksName), text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the times of checks: %w", err)
	}
	return nil
}
