package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"journeyman/store/db"
	"journeyman/store/gate"
	"journeyman/store/sqlite"
)

// keptFree is the number of bytes of free pages that stay in the database file for the next writes.
const keptFree = 4 << 20

// Space is the used and free space of the database file, in bytes.
type Space = sqlite.Space

// Space returns the used and free space of the database file. It costs as much as one small query.
// For a database on a server it returns only the size.
func (s *Store) Space(ctx context.Context) (sp Space, err error) {
	if s.file != nil {
		return s.file.Space(ctx)
	}
	sp.File, err = s.server.Size(ctx)
	return sp, db.Unavailable(err)
}

// ReturnSpace makes the database file smaller by its free pages, except for keep bytes. It works in
// short transactions with pauses, so that other writes are hardly delayed, until ctx ends. It
// returns the number of returned bytes. For a database on a server it does nothing, because the server
// frees space by itself.
func (s *Store) ReturnSpace(ctx context.Context, keep int64) (n int64, err error) {
	if err := s.Gate.WritableIn(ctx); err != nil || s.file == nil {
		return 0, err
	}
	n, err = s.file.ReturnSpace(ctx, keep)
	s.counters.SpaceReturned.Add(n)
	if n > 0 && err == nil {
		err = s.file.Checkpoint(ctx) // only the checkpoint makes the file smaller
	}
	return n, db.Unavailable(err)
}

// returnSome is ReturnSpace after a pruning.
func (s *Store) returnSome(ctx context.Context) (int64, error) {
	sp, err := s.Space(ctx)
	if err != nil || sp.Free <= 2*keptFree {
		return 0, err
	}
	return s.ReturnSpace(ctx, keptFree)
}

// A VacuumPlan holds the sizes before and during a Vacuum, in bytes.
type VacuumPlan struct {
	Space
	Needs    int64 // free disk that it needs
	FreeDisk int64
}

// spareDisk is the free disk that Vacuum leaves.
const spareDisk = 16 << 20

// PlanVacuum returns what Vacuum would do in the data folder dir. Other processes may have the
// folder open.
func PlanVacuum(ctx context.Context, dir string) (p VacuumPlan, err error) {
	path := filepath.Join(dir, databaseName)
	if _, err := os.Stat(path); err != nil {
		return p, err // opening would create the file
	}
	if p.Space, err = sqlite.SpaceOf(ctx, path); err != nil {
		return p, explainOpen(err)
	}
	p.Needs = p.File - p.Free + spareDisk
	disk, err := gate.Statfs(dir)
	p.FreeDisk = disk.Free
	return p, err
}

// Vacuum writes the database of the data folder dir anew, without free pages. It returns the size of the
// new file. It returns ErrLocked if a process has the folder open, and a Busy error if the disk has too
// little room. After a crash, the database is either the old one or the new one.
func Vacuum(ctx context.Context, dir string) (size int64, err error) {
	lock, err := sqlite.Lock(dir)
	if err != nil {
		return 0, err
	}
	defer func() { _ = lock.Close() }() // the work is done, so an error here changes nothing
	p, err := PlanVacuum(ctx, dir)
	if err != nil {
		return 0, err
	}
	if p.FreeDisk < p.Needs {
		return 0, db.Errorf(db.Busy, "the disk has %d MB free, and the new database needs %d MB",
			megabytes(p.FreeDisk), megabytes(p.Needs))
	}
	path := filepath.Join(dir, databaseName)
	if err := sqlite.Rewrite(ctx, path); err != nil {
		return 0, fmt.Errorf("vacuum: %w", explainOpen(err))
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// megabytes returns a number of bytes in MB, rounded up.
func megabytes(bytes int64) int64 { return (bytes + 999_999) / 1_000_000 }
