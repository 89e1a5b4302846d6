package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/gate"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

func openAt(t *testing.T, dir string, c *clock) (*store.Store, error) {
	t.Helper()
	s, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{Now: c.now, PasswordMemory: 64,
		DiskReserve: gate.DiskLimit{Share: 0.1}})
	if err == nil {
		t.Cleanup(func() { _ = s.Close() })
	}
	return s, err
}

// TestStartOnFullDisk opens stores on a full disk, after a regular stop and after a kill with a
// write-ahead log. Reads succeed and writes are refused. When the disk has space, writes succeed
// again without a restart.
func TestStartOnFullDisk(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	for name, killed := range map[string]bool{"closed": false, "killed": true} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			dir, c := storetest.SmallDisk(t, "8m"), newClock()
			s, err := openAt(t, dir, c)
			is.NoErr(err)
			owner, key := storetest.Caller(t, s, "Acme", "ann@acme.test", people.RoleOwner)
			_, _, err = s.Workers.CreateWorker(t.Context(), owner.Caller, workers.NewWorker{Title: "W"}, db.IdempotencyKey{})
			is.NoErr(err)
			if killed { // the files while the process runs
				dir = copyOf(t, dir, storetest.SmallDisk(t, "8m"))
			} else {
				is.NoErr(s.Close())
			}
			makeRoom := storetest.FillDisk(t, dir, 0)
			s, err = openAt(t, dir, c)
			is.NoErr(err)
			id, err := s.People.Authenticate(t.Context(), key)
			is.NoErr(err) // requests can be authenticated
			list, _, err := s.Workers.List(t.Context(), id.Caller, workers.Query{Limit: 5})
			is.NoErr(err)
			is.Equal(len(list), 1) // acknowledged data is present
			create := func() error {
				_, _, err := s.Workers.CreateWorker(t.Context(), id.Caller, workers.NewWorker{Title: "W"}, db.IdempotencyKey{})
				return err
			}
			e, ok := errors.AsType[*db.Error](create())
			is.True(ok && e.Kind == db.Busy && e.Code == db.CodeStorage) // refused, with the reason
			// At the start, the log of a killed process is copied into the database, which frees
			// space.
			full := func() bool { return s.Gate.Room() != nil && (killed || s.Gate.Writable() != nil) }
			is.True(full()) // every write is refused
			is.NoErr(s.WatchDisk(t.Context()))
			is.True(full()) // still full
			makeRoom()
			c.advance(2 * time.Second)
			is.NoErr(s.WatchDisk(t.Context()))
			is.NoErr(s.Gate.Writable()) // the disk has space, and writes succeed
			is.NoErr(create())
			is.NoErr(s.Damage())
			is.NoErr(s.CheckDatabase(t.Context()))
		})
	}
}

// copyOf copies the files of a data folder to another folder.
func copyOf(t *testing.T, from, to string) string {
	t.Helper()
	is.New(t).NoErr(os.CopyFS(to, os.DirFS(from)))
	return to
}

// TestFullDiskInTheMiddle fills the disk while turns are accepted. No acknowledged data is lost,
// and the database is intact. A running turn can end in the space that the log already has.
func TestFullDiskInTheMiddle(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	dir, c := storetest.SmallDisk(t, "8m"), newClock()
	s, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{Now: c.now}) // without a reserve
	is.NoErr(err)
	f := &fixture{t: t, clock: c, Store: s}
	f.owner, _ = storetest.Caller(t, s, "Acme", "ann@acme.test", people.RoleOwner)
	f.worker = f.newWorker(f.owner, workers.NewWorker{Title: "Scribe", Instructions: "Help."})
	running := running(f)
	n := f.turn()
	n.Input = strings.Repeat("A long instruction. ", 1000)
	makeRoom := storetest.FillDisk(t, dir, 256<<10)
	accepted := int64(0)
	for err == nil {
		if _, err = f.CreateTurn(t.Context(), n); err == nil {
			accepted++
		}
	}
	e, ok := errors.AsType[*db.Error](err)
	is.True(ok && e.Kind == db.Busy && e.Code == db.CodeStorage) // the disk, not an internal error
	is.NoErr(f.Damage())
	is.Equal(f.finish(running).Status, store.Completed) // in the reused log
	blob := strings.Repeat("b", 1<<20)
	// An upload is refused, too.
	is.True(db.IsKind(errOf(f.PutBlob(t.Context(), strings.NewReader(blob), 2<<20)), db.Busy))
	left, err := f.UnnamedBlobs()
	is.NoErr(err)
	is.Equal(len(left), 0) // no partial file remains
	makeRoom()
	c.advance(11 * time.Second)
	is.NoErr(f.Gate.Room())
	f.accept(n)
	is.Equal(f.Queued(), accepted+1)
	is.NoErr(f.CheckDatabase(t.Context()))
	is.NoErr(f.Close())
	storetest.Sound(t, dir)
}

// TestNewFolderOnFullDisk checks that no partial data folder is created.
func TestNewFolderOnFullDisk(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	dir := storetest.SmallDisk(t, "1m")
	makeRoom := storetest.FillDisk(t, dir, 0)
	is.True(says(errOf(openAt(t, filepath.Join(dir, "data"), newClock())), "make room")) // with the remedy
	makeRoom()
	is.NoErr(storetest.Reopen(t, filepath.Join(dir, "data"), store.Options{}).Close())
}

// TestLeftovers starts a store beside files of killed processes and files of others.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	f := newFixture(t)
	dir := f.Dir()
	is.NoErr(f.Close())
	gone := []string{".journeyman-backup.tmp", "journeyman.db.vacuum.tmp", "journeyman.db.vacuum.tmp-journal",
		".journeyman-journeyman.db.v1.tmp", "files/.journeyman-ABC.tmp"}
	work := []string{"workspaces/w/.journeyman-DEF.tmp", "workspaces/w/deep/er/.journeyman-GHI.tmp"}
	stay := []string{"notes.tmp", "files/other.tmp", "files/.hidden", "journeyman.db.v2", "workspaces/w/a.tmp",
		"workspaces/w/.journeyman-x", "mcp.json"}
	for _, name := range append(append(gone, work...), stay...) {
		makeFiles(t, dir, map[string]string{name: "x"})
	}
	outside := filepath.Join(t.TempDir(), ".journeyman-outside.tmp")
	is.NoErr(os.WriteFile(outside, nil, 0o600))
	is.NoErr(os.Symlink(filepath.Dir(outside), filepath.Join(dir, "workspaces/w/link")))
	s, err := openAt(t, dir, f.clock)
	is.NoErr(err)
	n, err := s.SweepWorkspaces(t.Context(), time.Now().Add(-time.Hour))
	is.NoErr(err)
	is.Equal(n, 0) // the files are new, and this process might be writing them
	n, err = s.SweepWorkspaces(t.Context(), time.Now().Add(time.Hour))
	is.NoErr(err)
	is.Equal(n, len(work))
	for _, name := range append(gone, work...) {
		is.True(errors.Is(errOf(os.Lstat(filepath.Join(dir, name))), os.ErrNotExist)) // a leftover was not deleted
	}
	for _, path := range append([]string{outside}, stay...) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		is.NoErr(errOf(os.Lstat(path))) // a file of others was deleted
	}
}
