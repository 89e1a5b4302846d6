package store_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/storetest"
)

// A backup of a store in use holds database, files and workspaces, and makes a
// folder that opens as the same store.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := storetest.Open(t, store.Options{})
	who, secret := storetest.Caller(t, s, "Acme", "ann@acme.test", store.RoleOwner)
	blob, err := s.PutBlob(strings.NewReader("kept"), 100)
	is.NoErr(err)
	a, err := s.CreateTurn(t.Context(), store.NewTurn{Caller: who.Caller, NewWorker: &store.NewWorker{}, Input: "x", Budget: store.BudgetLow})
	is.NoErr(err)
	work := filepath.Join(s.Dir(), "workspaces", a.Turn.WorkerID, "sub")
	is.NoErr(os.MkdirAll(work, 0o700))
	is.NoErr(os.WriteFile(filepath.Join(work, "notes.txt"), []byte("notes"), 0o600))
	is.NoErr(os.WriteFile(filepath.Join(work, "new-notes.txt"), nil, 0o600)) // named like a file not yet kept
	is.NoErr(os.Symlink("/etc/passwd", filepath.Join(work, "link")))

	at, err := s.LastBackup()
	is.NoErr(err)
	is.True(at.IsZero())
	var archive bytes.Buffer
	is.NoErr(s.Backup(t.Context(), &archive))
	at, err = s.LastBackup()
	is.NoErr(err)
	is.True(time.Since(at) < time.Minute)
	dir := filepath.Join(t.TempDir(), "restored")
	is.NoErr(store.Restore(t.Context(), dir, bytes.NewReader(archive.Bytes())))

	r, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})
	is.NoErr(err)
	defer r.Close()
	_, err = r.Authenticate(t.Context(), secret)
	is.NoErr(err) // keys survive
	is.Equal(r.Queued(), int64(1))
	at, err = r.LastBackup()
	is.NoErr(err)
	is.True(at.IsZero()) // of this folder there is none yet
	f, err := r.OpenBlob(blob.SHA256)
	is.NoErr(err)
	is.NoErr(f.Close())
	b, err := os.ReadFile(filepath.Join(dir, "workspaces", a.Turn.WorkerID, "sub", "notes.txt"))
	is.NoErr(err)
	is.Equal(string(b), "notes")
	_, err = os.Lstat(filepath.Join(dir, "workspaces", a.Turn.WorkerID, "sub", "new-notes.txt"))
	is.NoErr(err)
	_, err = os.Lstat(filepath.Join(dir, "workspaces", a.Turn.WorkerID, "sub", "link"))
	is.True(os.IsNotExist(err)) // links are not followed, nor kept
}

func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Options{})
	var archive bytes.Buffer
	if err := s.Backup(t.Context(), &archive); err != nil {
		t.Fatal(err)
	}
	whole := archive.Bytes()
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-6] ^= 1 // in the checksum
	for name, tt := range map[string]struct {
		archive []byte
		full    bool // something is in the folder already
		says    string
	}{
		"a folder in use":  {archive: whole, full: true, says: "not empty"},
		"another file":     {archive: []byte("hello"), says: "not a backup"},
		"a flipped bit":    {archive: flipped, says: "damaged"},
		"a cut-off backup": {archive: whole[:len(whole)/2], says: "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			dir := filepath.Join(t.TempDir(), "new")
			if tt.full {
				is.NoErr(os.MkdirAll(dir, 0o700))
				is.NoErr(os.WriteFile(filepath.Join(dir, "x"), nil, 0o600))
			}
			err := store.Restore(t.Context(), dir, bytes.NewReader(tt.archive))
			is.True(err != nil && strings.Contains(err.Error(), tt.says)) // says why
		})
	}
}

func TestDiskUse(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := storetest.Open(t, store.Options{})
	_, err := s.PutBlob(strings.NewReader(strings.Repeat("x", 5000)), 10_000)
	is.NoErr(err)
	work := filepath.Join(s.Dir(), "workspaces", "wrk_x")
	is.NoErr(os.MkdirAll(work, 0o700))
	is.NoErr(os.WriteFile(filepath.Join(work, "a"), make([]byte, 300), 0o600))
	is.NoErr(os.Symlink("/", filepath.Join(work, "root"))) // not followed
	u, err := s.DiskUse(t.Context(), time.Minute)
	is.NoErr(err)
	is.True(u.Database > 4096)
	is.Equal(u.Files, int64(5000))
	is.Equal(u.Workspaces, int64(300))
	is.True(u.Free > 0)
	is.True(!u.Partly)
	u, err = s.DiskUse(t.Context(), -1)
	is.NoErr(err)
	is.True(u.Partly) // what it says is not all

	is.NoErr(os.WriteFile(filepath.Join(s.Dir(), "last-backup"), []byte("2026-0"), 0o600)) // cut off by a crash
	at, err := s.LastBackup()
	is.NoErr(err)
	is.True(at.IsZero())
}
