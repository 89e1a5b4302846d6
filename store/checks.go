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
)

// saveChecksEvery is the pause between two writes of the file of checks. A killed process repeats
// the checks since the last write.
const saveChecksEvery = time.Second

// CheckDueTables looks for damage in the tables whose last check is older than every. While
// requests use the database, it pauses most of the time. The times of the checks are stored in the
// data folder, so a restarted process continues. Damage that it finds is remembered: see Damage. It
// does nothing once damage is known, or for a database on a server.
func (s *Store) CheckDueTables(ctx context.Context, every time.Duration) (err error) {
	if s.file == nil || s.file.Damage() != nil {
		return nil
	}
	checked, err := s.loadChecks()
	if err != nil {
		return err
	}
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
		return s.saveChecks(checked)
	}
	err = s.file.CheckTables(ctx, due, sound)
	if found {
		err = errors.Join(err, s.saveChecks(checked))
	}
	return err
}

// loadChecks returns the times at which tables were found sound, in Unix milliseconds. A file that
// a person has damaged counts as missing.
func (s *Store) loadChecks() (map[string]int64, error) {
	text, err := os.ReadFile(filepath.Join(s.dir, checksName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the times of checks: %w", err)
	}
	checked := map[string]int64{}
	if json.Unmarshal(text, &checked) != nil || checked == nil {
		checked = map[string]int64{}
	}
	return checked, nil
}

// saveChecks stores the times. A store that is read-only writes nothing: its disk may be full.
func (s *Store) saveChecks(checked map[string]int64) error {
	if s.Writable() != nil {
		return nil
	}
	text, err := json.Marshal(checked)
	if err != nil {
		return err
	}
	return writeNote(s.dir, checksName, string(text))
}
