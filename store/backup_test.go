package store_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/matryer/is"
	"golang.org/x/sys/unix"

	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// TestBackupAndRestore backs up a store in use with its database, files and workspaces. The
// restored folder opens as the same store.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	s := storetest.Open(t, store.Options{})
	who, secret := storetest.Caller(t, s, "Acme", "ann@acme.test", people.RoleOwner)
	blob, err := s.PutBlob(t.Context(), strings.NewReader("kept"), 100)
	is.NoErr(err)
	a, err := s.CreateTurn(t.Context(), store.NewTurn{Caller: who.Caller, NewWorker: &workers.NewWorker{}, Input: "x",
		Budget: store.BudgetLow})
	is.NoErr(err)
	work := filepath.Join(s.Dir(), "workspaces", a.Turn.WorkerID, "sub")
	makeFiles(t, work, map[string]string{"notes.txt": "notes", "new-notes.txt": ""}) // the latter is like a temporary file
	is.NoErr(os.Symlink("/etc/passwd", filepath.Join(work, "link")))

	at, err := s.LastBackup()
	is.NoErr(err)
	is.True(at.IsZero())
	archive, report := backup(t, s)
	is.Equal(report.String(), "")
	at, err = s.LastBackup()
	is.NoErr(err)
	ordertest.Below(is, time.Since(at), time.Minute) // the time of the last backup is old
	dir := filepath.Join(t.TempDir(), "restored")
	is.NoErr(store.Restore(t.Context(), dir, bytes.NewReader(archive)))

	r := storetest.Reopen(t, dir, store.Options{})
	is.NoErr(errOf(r.People.Authenticate(t.Context(), secret))) // keys remain valid
	is.Equal(r.Queued(), int64(1))
	at, err = r.LastBackup()
	is.NoErr(err)
	is.True(at.IsZero()) // the restored folder has no backup yet
	is.Equal(content(t, r, blob.SHA256), "kept")
	b, err := os.ReadFile(filepath.Join(dir, "workspaces", a.Turn.WorkerID, "sub", "notes.txt"))
	is.NoErr(err)
	is.Equal(string(b), "notes")
	is.NoErr(errOf(os.Lstat(filepath.Join(dir, "workspaces", a.Turn.WorkerID, "sub", "new-notes.txt"))))
	_, err = os.Lstat(filepath.Join(dir, "workspaces", a.Turn.WorkerID, "sub", "link"))
	is.True(os.IsNotExist(err)) // links are neither followed nor stored
}

func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	s := storetest.Open(t, store.Options{})
	whole, _ := backup(t, s)
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-6] ^= 1 // in the checksum
	for name, tt := range map[string]struct {
		archive []byte
		full    bool // the folder is not empty
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
				makeFiles(t, dir, map[string]string{"x": ""})
			}
			err := store.Restore(t.Context(), dir, bytes.NewReader(tt.archive))
			is.True(says(err, tt.says)) // with the reason
		})
	}
}

func TestMeasureStorage(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	s := storetest.Open(t, store.Options{})
	is.NoErr(errOf(s.PutBlob(t.Context(), strings.NewReader(strings.Repeat("x", 5000)), 10_000)))
	work := filepath.Join(s.Dir(), "workspaces", "wrk_x")
	makeFiles(t, work, map[string]string{"a": strings.Repeat("x", 300)})
	is.NoErr(os.Symlink("/", filepath.Join(work, "root"))) // must not be followed
	is.True(s.Storage().At.IsZero())                       // not measured yet
	is.NoErr(s.MeasureStorage(t.Context()))
	m := s.Storage()
	is.Equal(m.Files, int64(5000))
	is.Equal(m.Workspaces, int64(300))
	is.True(!m.At.IsZero())
	sum := int64(0)
	for _, k := range m.Kinds {
		sum += k.Bytes
	}
	sp, err := s.Space(t.Context())
	is.NoErr(err)
	ordertest.Above(is, sum, sp.File*9/10) // the kinds make up nearly the whole file
	ordertest.AtMost(is, sum, sp.File)     // the kinds make up nearly the whole file

	is.NoErr(os.WriteFile(filepath.Join(s.Dir(), "last-backup"), []byte("2026-0"), 0o600)) // truncated by a crash
	at, err := s.LastBackup()
	is.NoErr(err)
	is.True(at.IsZero())
}

// backup returns a backup of a store, and the report about it.
func backup(t testing.TB, s *store.Store) ([]byte, store.BackupReport) {
	t.Helper()
	var archive bytes.Buffer
	report, err := s.Backup(t.Context(), &archive)
	is.New(t).NoErr(err)
	return archive.Bytes(), report
}

// unpack returns the names and sizes in a backup, and the content of all files as one text.
func unpack(t testing.TB, archive []byte) (names map[string]int64, content string) {
	t.Helper()
	is := is.New(t)
	z, err := gzip.NewReader(bytes.NewReader(archive))
	is.NoErr(err)
	var all strings.Builder
	names = map[string]int64{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return names, all.String()
		}
		if err == nil {
			names[h.Name] = h.Size
			_, err = io.Copy(&all, r)
		}
		is.NoErr(err)
	}
}

// makeFiles creates files with the given content below dir.
func makeFiles(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	is := is.New(t)
	for name, text := range files {
		path := filepath.Join(dir, name)
		is.NoErr(os.MkdirAll(filepath.Dir(path), 0o700))
		is.NoErr(os.WriteFile(path, []byte(text), 0o600))
	}
}

// TestBackupFollowsNothing replaces a folder and a file of a workspace during a backup, after the
// backup has listed the workspace.
func TestBackupFollowsNothing(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	storetest.Embedded(t)
	const secret = "the secret of somebody else"
	noise := make([]byte, 2<<20) // not compressible, so the writer is called during the read
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	for name, swap := range map[string]func(path, outside, other string) error{
		"for a link to outside":             func(path, outside, _ string) error { return os.Symlink(outside, path) },
		"for a link to another's workspace": func(path, _, other string) error { return os.Symlink(other, path) },
		"for a link to another, relative":   func(path, _, _ string) error { return os.Symlink("../wrk_b", path) },
		"for a link to a folder of links":   func(path, outside, _ string) error { return os.Symlink(filepath.Join(outside, "links"), path) },
		"for a pipe":                        func(path, _, _ string) error { return unix.Mkfifo(path, 0o600) },
		"for nothing":                       func(string, string, string) error { return nil },
		"for a file":                        func(path, _, _ string) error { return os.WriteFile(path, []byte("plain"), 0o600) },
		"for a link to itself":              func(path, _, _ string) error { return os.Symlink(path, path) },
		"for a folder that holds such links": func(path, outside, _ string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.Symlink(filepath.Join(outside, "shadow"), filepath.Join(path, "shadow")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			s := storetest.Open(t, store.Options{})
			outside := t.TempDir()
			makeFiles(t, outside, map[string]string{"shadow": secret})
			is.NoErr(os.MkdirAll(filepath.Join(outside, "links"), 0o700))
			is.NoErr(os.Symlink(filepath.Join(outside, "shadow"), filepath.Join(outside, "links", "shadow")))
			work := filepath.Join(s.Dir(), "workspaces")
			makeFiles(t, work, map[string]string{"wrk_a/1": string(noise), "wrk_a/2/shadow": "own", "wrk_a/3": "own"})
			hidden := filepath.Join(work, "wrk_b") // its content must be found only once
			makeFiles(t, hidden, map[string]string{"shadow": secret})
			var once sync.Once
			written := 0
			var archive bytes.Buffer
			_, err := s.Backup(t.Context(), writerFunc(func(b []byte) (int, error) {
				if written += len(b); written > 1<<20 {
					once.Do(func() {
						for _, path := range []string{filepath.Join(work, "wrk_a", "2"), filepath.Join(work, "wrk_a", "3")} {
							is.NoErr(os.RemoveAll(path))
							is.NoErr(swap(path, outside, hidden))
						}
					})
				}
				return archive.Write(b)
			}))
			is.NoErr(err)
			names, content := unpack(t, archive.Bytes())
			is.Equal(names["workspaces/wrk_a/1"], int64(len(noise)))
			is.Equal(strings.Count(content, secret), 1) // only in its own place
			_, found := names["workspaces/wrk_b/shadow"]
			is.True(found)
		})
	}
}

// TestBackupBesideASwapper repeatedly replaces a folder by a link during backups.
func TestBackupBesideASwapper(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	s := storetest.Open(t, store.Options{})
	outside := t.TempDir()
	makeFiles(t, outside, map[string]string{"f": "a secret"})
	work := filepath.Join(s.Dir(), "workspaces", "wrk_a")
	makeFiles(t, work, map[string]string{"d/f": "own"})
	is.NoErr(os.Symlink(outside, filepath.Join(work, "link")))
	stop, swapped := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		for err == nil {
			select {
			case <-stop:
				swapped <- nil
				return
			default:
				for _, move := range [][2]string{{"d", "own"}, {"link", "d"}, {"d", "link"}, {"own", "d"}} {
					err = errors.Join(err, os.Rename(filepath.Join(work, move[0]), filepath.Join(work, move[1])))
				}
			}
		}
		swapped <- err
	}()
	for range storetest.Rounds(30, 3) {
		archive, _ := backup(t, s)
		_, content := unpack(t, archive)
		is.True(!strings.Contains(content, "a secret")) // the backup contains a file from outside
	}
	close(stop)
	is.NoErr(<-swapped)
}

// TestBackupReportsSkippedFiles checks that a backup continues after a file that it cannot read.
func TestBackupReportsSkippedFiles(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	s := storetest.Open(t, store.Options{})
	work := filepath.Join(s.Dir(), "workspaces", "wrk_a")
	makeFiles(t, work, map[string]string{"kept": "x"})
	deep, err := os.OpenRoot(work)
	is.NoErr(err)
	for range 300 {
		is.NoErr(deep.Mkdir("d", 0o700))
		next, err := deep.OpenRoot("d")
		is.NoErr(err)
		is.NoErr(deep.Close())
		deep = next
	}
	is.NoErr(deep.Close())
	archive, report := backup(t, s)
	is.Equal(report.Unread, 1)
	is.True(strings.HasPrefix(report.String(), `1 files or folders could not be read and are not in the backup: "workspaces/wrk_a/d/d/`))
	is.True(strings.HasSuffix(report.String(), `(its path is too long)`))
	names, _ := unpack(t, archive)
	is.Equal(names["workspaces/wrk_a/kept"], int64(1))
}

// unprivileged is an environment variable with the data folder that TestBackupUnprivileged backs up
// in a separate process.
const unprivileged = "STORE_TEST_UNPRIVILEGED"

// TestBackupUnprivileged backs up a folder as an ordinary user. A worker has removed its own
// permissions on some files, and one file belongs to another user.
func TestBackupUnprivileged(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	if dir := os.Getenv(unprivileged); dir != "" {
		backupUnprivileged(t, dir)
		return
	}
	is := is.New(t)
	// Other users may be unable to enter t.TempDir and the folder of the sources.
	top, err := os.MkdirTemp("/tmp", "store-unprivileged-") //nolint:usetesting
	is.NoErr(err)
	defer func() { is.NoErr(os.RemoveAll(top)) }()
	dir := filepath.Join(top, "data")
	work := filepath.Join(dir, "workspaces", "wrk_a")
	makeFiles(t, top, map[string]string{"schema.sql": storetest.Schema(t)})
	makeFiles(t, work, map[string]string{"none": "no rights", "folder/in": "in no rights", "listed/in": "in a folder that cannot be entered", "theirs": "not ours"})
	const nobody = 65534
	root := os.Getuid() == 0
	if root {
		is.NoErr(filepath.WalkDir(top, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Base(path) == "theirs" {
				return err
			}
			return os.Lchown(path, nobody, nobody)
		}))
	}
	for name, mode := range map[string]fs.FileMode{"none": 0, "folder": 0, "listed": 0o400, "theirs": 0} {
		is.NoErr(os.Chmod(filepath.Join(work, name), mode))
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run", "^TestBackupUnprivileged$", "-test.v")
	cmd.Dir = top // storetest.Schema finds schema.sql there
	cmd.Env = append(os.Environ(), "TMPDIR="+top, unprivileged+"="+dir, "STORE_TEST_THEIRS="+fmt.Sprint(root))
	if root {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestBackupUnprivileged")) {
		t.Errorf("%v: %s", err, out)
	}
}

func backupUnprivileged(t *testing.T, dir string) {
	is := is.New(t)
	s := storetest.Reopen(t, dir, store.Options{BeginAnew: true})
	archive, report := backup(t, s)
	names, content := unpack(t, archive)
	for _, want := range []string{"no rights", "in no rights", "in a folder that cannot be entered"} {
		is.True(strings.Contains(content, want))
	}
	if os.Getenv("STORE_TEST_THEIRS") == "true" {
		is.Equal(report.String(), `1 files or folders could not be read and are not in the backup: "workspaces/wrk_a/theirs" (permission denied)`)
		_, found := names["workspaces/wrk_a/theirs"]
		is.True(!found)
	}
}
