package store_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/sqlite"
	"journeyman/store/storetest"
)

// TestBackupOfADamagedDatabase checks that the backup fails before its first byte. The damage is
// either already known, or found by the backup.
func TestBackupOfADamagedDatabase(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	dir := filledFolder(t)
	pages := treePages(t, store.DatabasePath(dir))
	f, err := os.OpenFile(store.DatabasePath(dir), os.O_RDWR, 0)
	is.NoErr(err)
	_, err = f.WriteAt(make([]byte, 4096), (pages[len(pages)-1]-1)*4096)
	is.NoErr(errors.Join(err, f.Close()))
	s := storetest.Reopen(t, dir, store.Options{})
	for range 2 {
		var archive bytes.Buffer
		is.True(db.IsKind(errOf(s.Backup(t.Context(), &archive)), db.Damaged)) // the backup must fail
		is.Equal(archive.Len(), 0)
	}
	at, err := s.LastBackup()
	is.NoErr(err)
	is.True(at.IsZero()) // a refused backup does not count
}

// TestBackupNamesDamagedFiles changes and removes stored files from outside. The backup contains
// all remaining files. The backup and its check name the damaged ones.
func TestBackupNamesDamagedFiles(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	f := newFixture(t)
	var sums []string
	n := f.turn()
	for _, text := range []string{"sound", "changed", "lost"} {
		blob, err := f.PutBlob(t.Context(), strings.NewReader(text), 100)
		is.NoErr(err)
		sums = append(sums, blob.SHA256)
		n.Attachments = append(n.Attachments, store.File{WorkerID: f.worker.ID, Path: text, Title: text, MediaType: "text/plain",
			Size: blob.Size, SHA256: blob.SHA256})
	}
	f.accept(n)
	whole, report := backup(t, f.Store)
	is.Equal(report.Damaged, 0)
	checked, err := store.CheckBackup(t.Context(), bytes.NewReader(whole), t.TempDir())
	is.NoErr(err)
	is.Equal([]any{checked.Damaged, checked.Files}, []any{0, int64(3)})
	ordertest.Above(is, checked.Rows, 10)   // the check must read the database
	ordertest.Above(is, checked.Tables, 10) // the check must read the database

	is.NoErr(os.WriteFile(f.BlobPath(sums[1]), []byte("chanGed"), 0o600))
	is.NoErr(os.Remove(f.BlobPath(sums[2])))
	archive, report := backup(t, f.Store)
	checked, err = store.CheckBackup(t.Context(), bytes.NewReader(archive), t.TempDir())
	is.NoErr(err)
	for _, r := range []store.BackupReport{report, checked.BackupReport} {
		is.Equal(r.Damaged, 2)
		is.True(strings.Contains(r.String(), sums[1]+`" (its content has another SHA-256`))
		is.True(strings.Contains(r.String(), sums[2]+`" (it is missing)`))
	}
}

// TestCheckBackupSweeps checks a backup next to folders of a killed check, of a running check, and
// of other programs.
func TestCheckBackupSweeps(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	f := newFixture(t)
	archive, _ := backup(t, f.Store)
	scratch := t.TempDir()
	for _, name := range []string{"journeyman-check-1", "journeyman-check-2", "journeyman-check-mine", "journeyman-detect-1"} {
		is.NoErr(os.MkdirAll(filepath.Join(scratch, name, "files"), 0o700))
		is.NoErr(os.WriteFile(filepath.Join(scratch, name, "journeyman.db"), []byte("x"), 0o600))
	}
	is.NoErr(os.WriteFile(filepath.Join(scratch, "journeyman-check-3"), nil, 0o600)) // not a folder
	lock, err := sqlite.Lock(filepath.Join(scratch, "journeyman-check-2"))
	is.NoErr(err)
	defer lock.Close()
	is.NoErr(errOf(store.CheckBackup(t.Context(), bytes.NewReader(archive), scratch)))
	left, err := filepath.Glob(filepath.Join(scratch, "*"))
	is.NoErr(err)
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	is.Equal(left, []string{"journeyman-check-2", "journeyman-check-3", "journeyman-check-mine", "journeyman-detect-1"})
}

// TestCheckBackup checks that it accepts the same archives as Restore, and leaves no files.
func TestCheckBackup(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	scratch := t.TempDir()
	f := newFixture(t)
	whole, _ := backup(t, f.Store)
	for name, tt := range map[string]struct {
		archive []byte
		says    string
	}{
		"whole":      {whole, ""},
		"cut":        {whole[:len(whole)/2], "damaged"},
		"no backup":  {[]byte("hello"), "not a backup"},
		"a byte off": {append(append(bytes.Clone(whole[:len(whole)/2]), whole[len(whole)/2]^1), whole[len(whole)/2+1:]...), "damaged"},
		"followed":   {append(bytes.Clone(whole), archiveOf(t, databaseEntry(t))...), ""}, // two gzip members
	} {
		_, err := store.CheckBackup(t.Context(), bytes.NewReader(tt.archive), scratch)
		if tt.says == "" {
			is.NoErr(err)
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	left, err := os.ReadDir(scratch)
	is.NoErr(err)
	is.Equal(len(left), 0)
}

// TestBackupToAFullDisk checks that the writer's error is returned.
func TestBackupToAFullDisk(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	f := newFixture(t)
	full := errors.New("no space left")
	r, w := io.Pipe()
	is.NoErr(r.CloseWithError(full))
	is.True(errors.Is(errOf(f.Backup(t.Context(), w)), full))
}
