package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/storetest"
)

func openAt(t *testing.T, dir string, c *clock) (*store.Store, error) {
	t.Helper()
	s, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{Now: c.now, PasswordMemory: 64,
		DiskReserve: store.DiskLimit{Share: 0.1}})
	if err == nil {
		t.Cleanup(func() { _ = s.Close() })
	}
	return s, err
}

// TestStartOnFullDisk opens stores on a disk without one free byte, after a clean end and after a
// kill that left a write-ahead log: reads work, writes are refused, and all goes on by itself.
func TestStartOnFullDisk(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	for name, killed := range map[string]bool{"closed": false, "killed": true} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			dir, c := storetest.SmallDisk(t, "8m"), newClock()
			s, err := openAt(t, dir, c)
			is.NoErr(err)
			owner, key := storetest.Caller(t, s, "Acme", "ann@acme.test", store.RoleOwner)
			_, _, err = s.CreateWorker(t.Context(), owner.Caller, store.NewWorker{Title: "W"}, store.IdempotencyKey{})
			is.NoErr(err)
			if killed { // the files as they are while the process runs
				dir = copyOf(t, dir, storetest.SmallDisk(t, "8m"))
			} else {
				is.NoErr(s.Close())
			}
			makeRoom := storetest.FillDisk(t, dir, 0)
			s, err = openAt(t, dir, c)
			is.NoErr(err)
			id, err := s.Authenticate(t.Context(), key)
			is.NoErr(err) // people can sign their requests
			list, _, err := s.Workers(t.Context(), id.Caller, store.WorkerQuery{Limit: 5})
			is.NoErr(err)
			is.Equal(len(list), 1) // what was acknowledged is there
			create := func() error {
				_, _, err := s.CreateWorker(t.Context(), id.Caller, store.NewWorker{Title: "W"}, store.IdempotencyKey{})
				return err
			}
			e, ok := errors.AsType[*store.Error](create())
			is.True(ok && e.Kind == store.Busy && e.Code == store.CodeStorage) // refused with the reason
			// The log of a killed process is copied into the database at the start, which frees room.
			full := func() bool { return s.Room() != nil && (killed || s.Writable() != nil) }
			is.True(full()) // every write is refused
			is.NoErr(s.WatchDisk(t.Context()))
			is.True(full()) // still
			makeRoom()
			c.advance(2 * time.Second)
			is.NoErr(s.WatchDisk(t.Context()))
			is.NoErr(s.Writable()) // it has room and takes writes
			is.NoErr(create())
			is.NoErr(s.Damage())
			is.NoErr(s.CheckDatabase(t.Context()))
		})
	}
}

// copyOf copies the files of a data folder to another.
func copyOf(t *testing.T, from, to string) string {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestFullDiskInTheMiddle fills the disk while turns are accepted. Nothing that was acknowledged is
// lost, a running turn ends in the bytes that the log has already, and the database is whole.
func TestFullDiskInTheMiddle(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	dir, c := storetest.SmallDisk(t, "8m"), newClock()
	s, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{Now: c.now}) // without a reserve
	is.NoErr(err)
	f := &fixture{t: t, clock: c, Store: s}
	f.owner, _ = storetest.Caller(t, s, "Acme", "ann@acme.test", store.RoleOwner)
	f.worker = f.newWorker(f.owner, store.NewWorker{Title: "Scribe", Instructions: "Help."})
	f.startRunner("r")
	f.accept(f.turn())
	running := f.claimOne("r")
	n := f.turn()
	n.Input = strings.Repeat("A long instruction. ", 1000)
	makeRoom := storetest.FillDisk(t, dir, 256<<10)
	accepted := int64(0)
	for err == nil {
		if _, err = f.CreateTurn(t.Context(), n); err == nil {
			accepted++
		}
	}
	e, ok := errors.AsType[*store.Error](err)
	is.True(ok && e.Kind == store.Busy && e.Code == store.CodeStorage) // the disk, and no internal error
	is.NoErr(f.Damage())
	is.Equal(f.finish(running).Status, store.Completed) // in the log, which begins anew
	blob := strings.Repeat("b", 1<<20)
	_, err = f.PutBlob(strings.NewReader(blob), 2<<20)
	is.True(store.IsKind(err, store.Busy)) // an upload is refused alike
	left, err := f.UnnamedBlobs()
	is.NoErr(err)
	is.Equal(len(left), 0) // nothing half done stays
	makeRoom()
	c.advance(11 * time.Second)
	is.NoErr(f.Room())
	f.accept(n)
	is.Equal(f.Queued(), accepted+1)
	is.NoErr(f.CheckDatabase(t.Context()))
	is.NoErr(f.Close())
	storetest.Sound(t, dir)
}

// TestNewFolderOnFullDisk creates no half of a data folder.
func TestNewFolderOnFullDisk(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	dir := storetest.SmallDisk(t, "1m")
	makeRoom := storetest.FillDisk(t, dir, 0)
	_, err := openAt(t, filepath.Join(dir, "data"), newClock())
	is.True(err != nil && strings.Contains(err.Error(), "make room")) // it says what to do
	makeRoom()
	s, err := store.Open(context.Background(), filepath.Join(dir, "data"), storetest.Schema(t), store.Options{})
	is.NoErr(err)
	is.NoErr(s.Close())
}

// TestLeftovers starts beside the files that killed processes leave, and beside files of others.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	f := newFixture(t)
	dir := f.Dir()
	is.NoErr(f.Close())
	gone := []string{".journeyman-backup.tmp", "backup.tmp", "secret.key.tmp", "journeyman.db.v2.tmp",
		".journeyman-journeyman.db.v1.tmp", "files/.journeyman-ABC.tmp", "files/new-123"}
	work := []string{"workspaces/w/.journeyman-DEF.tmp", "workspaces/w/deep/er/.journeyman-GHI.tmp"}
	stay := []string{"notes.tmp", "files/other.tmp", "files/.hidden", "journeyman.db.v2", "workspaces/w/a.tmp",
		"workspaces/w/.journeyman-x", "mcp.json"}
	for _, name := range append(append(gone, work...), stay...) {
		path := filepath.Join(dir, name)
		is.NoErr(os.MkdirAll(filepath.Dir(path), 0o700))
		is.NoErr(os.WriteFile(path, []byte("x"), 0o600))
	}
	outside := filepath.Join(t.TempDir(), ".journeyman-outside.tmp")
	is.NoErr(os.WriteFile(outside, nil, 0o600))
	is.NoErr(os.Symlink(filepath.Dir(outside), filepath.Join(dir, "workspaces/w/link")))
	s, err := openAt(t, dir, f.clock)
	is.NoErr(err)
	n, err := s.SweepWorkspaces(t.Context(), time.Now().Add(-time.Hour))
	is.NoErr(err)
	is.Equal(n, 0) // they are new: this process may write them
	n, err = s.SweepWorkspaces(t.Context(), time.Now().Add(time.Hour))
	is.NoErr(err)
	is.Equal(n, len(work))
	for _, name := range append(gone, work...) {
		_, err := os.Lstat(filepath.Join(dir, name))
		is.True(errors.Is(err, os.ErrNotExist)) // a leftover is gone
	}
	for _, path := range append([]string{outside}, stay...) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		_, err := os.Lstat(path)
		is.NoErr(err) // a file of others stays
	}
}
