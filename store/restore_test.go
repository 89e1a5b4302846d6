package store_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/storetest"
)

// A tarEntry is one entry of an archive.
type tarEntry struct {
	name string
	kind byte
	text string
	link string
	mode int64
}

// archiveOf packs entries without checking them.
func archiveOf(t testing.TB, entries ...tarEntry) []byte {
	t.Helper()
	is := is.New(t)
	var plain bytes.Buffer
	w := tar.NewWriter(&plain)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Linkname: e.link, Mode: e.mode, Format: tar.FormatPAX}
		if e.kind == tar.TypeReg {
			h.Size = int64(len(e.text))
		}
		is.NoErr(w.WriteHeader(h))
		if _, err := w.Write([]byte(e.text)); err != nil && e.kind == tar.TypeReg {
			t.Fatal(err)
		}
	}
	is.NoErr(w.Close())
	return zipped(t, plain.Bytes())
}

func zipped(t testing.TB, plain []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(plain); err != nil {
		t.Fatal(err)
	}
	is.New(t).NoErr(z.Close())
	return out.Bytes()
}

// databaseEntry returns the database of an empty store, as in a backup.
func databaseEntry(t testing.TB) tarEntry {
	t.Helper()
	s := storetest.Open(t, store.Options{})
	archive, _ := backup(t, s)
	_, content := unpack(t, archive)
	return tarEntry{name: "journeyman.db", kind: tar.TypeReg, text: content, mode: 0o644}
}

// restoreInto restores an archive into a new folder inside a separate folder. It checks the
// conditions that must be true for every archive.
func restoreInto(t testing.TB, archive []byte) (dir string, err error) {
	t.Helper()
	outer := t.TempDir()
	dir = filepath.Join(outer, "data")
	err = store.Restore(t.Context(), dir, bytes.NewReader(archive))
	for _, entry := range entriesOf(t, outer) {
		if entry.Name() != "data" {
			t.Errorf("%q is beside the folder", entry.Name())
		}
	}
	known := map[string]bool{"journeyman.db": true, "journeyman.db-wal": true, "journeyman.db-shm": true, "files": true, "workspaces": true}
	for _, entry := range entriesOf(t, dir) {
		if !known[entry.Name()] || err != nil {
			t.Errorf("%q is in the folder; restoring said %v", entry.Name(), err)
		}
	}
	walked := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode() != 0o600 && info.Mode() != fs.ModeDir|0o700 {
			t.Errorf("%s has the mode %s", path, info.Mode())
		}
		return err
	})
	if walked != nil {
		t.Error(walked)
	}
	return dir, err
}

func entriesOf(t testing.TB, dir string) []fs.DirEntry {
	t.Helper()
	entries, err := os.ReadDir(dir)
	is.New(t).NoErr(err)
	return entries
}

func TestRestoreAcceptsOnlyBackupEntries(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	database := databaseEntry(t)
	file := func(name string) tarEntry { return tarEntry{name: name, kind: tar.TypeReg, text: "x", mode: 0o777} }
	of := func(kind byte, name, link string) tarEntry {
		return tarEntry{name: name, kind: kind, link: link, mode: 0o777}
	}
	for name, tt := range map[string]struct {
		entries []tarEntry
		says    string // "" if the archive is restored
	}{
		"what a backup holds":       {[]tarEntry{file("files/ab/abcd"), file("workspaces/wrk_a/run.sh")}, ""},
		"servers to start":          {[]tarEntry{file("mcp.json")}, `holds "mcp.json"; a backup holds only journeyman.db, files/ and workspaces/`},
		"a socket's name":           {[]tarEntry{file("control.sock")}, "control.sock"},
		"a lock":                    {[]tarEntry{file("lock")}, "lock"},
		"a log of the database":     {[]tarEntry{file("journeyman.db-wal")}, "journeyman.db-wal"},
		"files itself":              {[]tarEntry{file("files")}, `holds "files"`},
		"absolute":                  {[]tarEntry{file("/etc/cron.d/x")}, "/etc/cron.d/x"},
		"absolute, of ours":         {[]tarEntry{file("/files/x")}, "/files/x"},
		"upward":                    {[]tarEntry{file("../x")}, "../x"},
		"upward within":             {[]tarEntry{file("files/../../x")}, "files/../../x"},
		"upward to another":         {[]tarEntry{file("files/../mcp.json")}, "files/../mcp.json"},
		"dots":                      {[]tarEntry{file("./files/x")}, "./files/x"},
		"doubled slash":             {[]tarEntry{file("files//x")}, "files//x"},
		"a name that begins alike":  {[]tarEntry{file("files.txt")}, "files.txt"},
		"case":                      {[]tarEntry{file("Files/x")}, "Files/x"},
		"a link":                    {[]tarEntry{of(tar.TypeSymlink, "workspaces/wrk_a/l", "/etc/passwd")}, "not a plain file"},
		"a link, then through it":   {[]tarEntry{of(tar.TypeSymlink, "workspaces/l", ".."), file("workspaces/l/mcp.json")}, "not a plain file"},
		"a hard link":               {[]tarEntry{of(tar.TypeLink, "workspaces/wrk_a/l", "journeyman.db")}, "not a plain file"},
		"a device":                  {[]tarEntry{of(tar.TypeChar, "workspaces/wrk_a/null", "")}, "not a plain file"},
		"a disk":                    {[]tarEntry{of(tar.TypeBlock, "workspaces/wrk_a/sda", "")}, "not a plain file"},
		"a pipe":                    {[]tarEntry{of(tar.TypeFifo, "workspaces/wrk_a/p", "")}, "not a plain file"},
		"a folder":                  {[]tarEntry{of(tar.TypeDir, "workspaces/wrk_a/", "")}, "workspaces/wrk_a/"},
		"a database that is a link": {[]tarEntry{of(tar.TypeSymlink, "journeyman.db", "/etc/passwd")}, "not a plain file"},
		"twice":                     {[]tarEntry{file("files/a"), file("files/a")}, `holds "files/a" twice`},
		"the database twice":        {[]tarEntry{database}, `holds "journeyman.db" twice`},
		"below a file":              {[]tarEntry{file("files/a"), file("files/a/b")}, "file exists"},
		"deep":                      {[]tarEntry{file("files/" + strings.Repeat("d/", 300) + "f")}, "too long"},
		"long":                      {[]tarEntry{file("files/" + strings.Repeat(strings.Repeat("n", 200)+"/", 30) + "f")}, "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			dir, err := restoreInto(t, archiveOf(t, append([]tarEntry{database}, tt.entries...)...))
			if tt.says == "" {
				is.NoErr(err)
				text, err := os.ReadFile(filepath.Join(dir, "workspaces", "wrk_a", "run.sh"))
				is.NoErr(err)
				is.Equal(string(text), "x")
				return
			}
			is.True(err != nil)
			if !strings.Contains(err.Error(), tt.says) {
				t.Errorf("says %q, want %q", err, tt.says)
			}
		})
	}
}

// TestRestoreChecksTheDatabase checks that archives without a valid database are refused.
func TestRestoreChecksTheDatabase(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	for name, tt := range map[string]struct{ text, says string }{
		"empty":        {"", "not created by this program"},
		"no database":  {strings.Repeat("not SQLite ", 1000), "database"},
		"cut in parts": {databaseEntry(t).text[:20_000], "database"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			_, err := restoreInto(t, archiveOf(t, tarEntry{name: "journeyman.db", kind: tar.TypeReg, text: tt.text}))
			is.True(says(err, tt.says))
		})
	}
	_, err := restoreInto(t, archiveOf(t))
	if err == nil || !strings.Contains(err.Error(), "holds no database") {
		t.Error(err)
	}
}

// TestRestoreRefusesBombs checks that archives are refused if their content is larger than the
// disk.
func TestRestoreRefusesBombs(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	var plain bytes.Buffer
	w := tar.NewWriter(&plain)
	is.NoErr(w.WriteHeader(&tar.Header{Name: "files/a", Typeflag: tar.TypeReg, Size: 1 << 60, Format: tar.FormatPAX}))
	_, err := restoreInto(t, zipped(t, plain.Bytes())) // independent of the following data
	is.True(says(err, "the disk has no room"))

	is.True(says(errOf(restoreInto(t, zipped(t, sparseTar(1<<60)))), "the disk has no room"))

	plain.Reset()
	is.NoErr(tar.NewWriter(&plain).Close())
	plain.Write(make([]byte, 8<<20)) // zeros after the end of the archive
	is.True(says(errOf(restoreInto(t, zipped(t, plain.Bytes()))), "something follows its end"))
}

// sparseTar returns an archive of one sparse file with an apparent size of size bytes. The tar
// package can read such archives, but cannot write them.
func sparseTar(size int64) []byte {
	record := func(key, value string) string {
		n := len(key) + len(value) + 3
		for n != len(fmt.Sprintf("%d %s=%s\n", n, key, value)) {
			n++
		}
		return fmt.Sprintf("%d %s=%s\n", n, key, value)
	}
	records := record("GNU.sparse.major", "1") + record("GNU.sparse.minor", "0") + record("GNU.sparse.name", "files/a") +
		record("GNU.sparse.realsize", fmt.Sprint(size))
	block := func(text string) []byte {
		b := make([]byte, (len(text)+511)/512*512)
		copy(b, text)
		return b
	}
	header := func(name string, kind byte, size int) []byte {
		b := make([]byte, 512)
		copy(b, name)
		copy(b[100:], "0000644\x000000000\x000000000\x00")
		copy(b[124:], fmt.Sprintf("%011o\x0000000000000\x00", size))
		copy(b[148:], "        ")
		b[156] = kind
		copy(b[257:], "ustar\x0000")
		sum := 0
		for _, c := range b {
			sum += int(c)
		}
		copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
		return b
	}
	var out []byte
	out = append(out, header("pax", 'x', len(records))...)
	out = append(out, block(records)...)
	out = append(out, header("files/a", '0', 512)...)
	out = append(out, block("0\n")...) // no data fragments
	return append(out, make([]byte, 1024)...)
}

// TestRestoreHostileArchives restores archives with random combinations of dangerous entries.
// restoreInto checks the result of each.
func TestRestoreHostileArchives(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	database := databaseEntry(t)
	names := []string{"mcp.json", "files/a", "files/a/b", "files", "workspaces/l", "workspaces/l/x", "workspaces/../lock", "/x", "..", ".", "",
		"files/\x01", "workspaces/ü", "journeyman.db", "journeyman.db-wal", "../data/files/q", "workspaces/wrk_a/" + strings.Repeat("y", 300), "C:\\x", "files\\x"}
	links := []string{"", "/", "..", "/etc/passwd", "l", "../../..", "journeyman.db"}
	kinds := []byte{tar.TypeReg, tar.TypeReg, tar.TypeReg, tar.TypeSymlink, tar.TypeLink, tar.TypeDir, tar.TypeFifo, tar.TypeChar, tar.TypeBlock}
	for seed := range storetest.Rounds(300, 60) {
		r := rand.New(rand.NewPCG(uint64(seed), 9))
		var entries []tarEntry
		for range 1 + r.IntN(4) {
			entries = append(entries, tarEntry{name: names[r.IntN(len(names))], kind: kinds[r.IntN(len(kinds))], link: links[r.IntN(len(links))], text: "x", mode: int64(r.IntN(0o10000))})
		}
		if r.IntN(2) == 0 {
			entries = append(entries, database)
		}
		if _, err := restoreInto(t, archiveOf(t, entries...)); t.Failed() {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func FuzzRestore(f *testing.F) {
	f.Add([]byte{}, true)
	f.Add(sparseTar(100), true)
	for _, name := range []string{"mcp.json", "files/a", "../x"} {
		var plain bytes.Buffer
		w := tar.NewWriter(&plain)
		is.New(f).NoErr(w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 1, Mode: 0o777}))
		_, _ = w.Write([]byte("x"))
		f.Add(plain.Bytes(), true)
	}
	f.Fuzz(func(t *testing.T, archive []byte, zip bool) {
		if zip {
			archive = zipped(t, archive)
		}
		_, _ = restoreInto(t, archive) // restoreInto checks the result in any case
	})
}

// TestRestoreKeepsItsFolderPrivate checks that Restore restricts the permissions of an existing
// folder.
func TestRestoreKeepsItsFolderPrivate(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	dir := t.TempDir()
	is.NoErr(os.Chmod(dir, 0o755)) //nolint:gosec // that is the test
	is.NoErr(store.Restore(t.Context(), dir, bytes.NewReader(archiveOf(t, databaseEntry(t)))))
	info, err := os.Stat(dir)
	is.NoErr(err)
	is.Equal(info.Mode().Perm(), fs.FileMode(0o700))
}

func TestOpenClosesItsFolder(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	for name, tt := range map[string]struct {
		mode  fs.FileMode
		files []string
		says  string // of the error; "" if the folder opens
		log   string
	}{
		"private":            {0o700, nil, "", ""},
		"private, of others": {0o700, []string{"notes.txt"}, "", ""},
		"new":                {0o755, nil, "", "was=0755"},
		"with servers":       {0o750, []string{"mcp.json"}, "", "was=0750"},
		"a new disk":         {0o755, []string{"lost+found"}, "", "was=0755"},
		"in use":             {0o777, []string{"journeyman.db", "notes.txt"}, "", "was=0777"},
		"somebody else's":    {0o777, []string{"notes.txt"}, `mode 0777) and holds "notes.txt", which belongs to another program`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			dir := filepath.Join(t.TempDir(), "data")
			is.NoErr(os.Mkdir(dir, 0o700))
			for _, name := range tt.files {
				is.NoErr(os.WriteFile(filepath.Join(dir, name), nil, 0o600))
			}
			is.NoErr(os.Chmod(dir, tt.mode))
			var log bytes.Buffer
			s, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
			info, statErr := os.Stat(dir)
			is.NoErr(statErr)
			if tt.says != "" {
				is.True(says(err, tt.says))
				is.Equal(info.Mode().Perm(), tt.mode) // the mode is unchanged
				return
			}
			is.NoErr(err)
			is.NoErr(s.Close())
			is.Equal(info.Mode().Perm(), fs.FileMode(0o700))
			is.True(strings.Contains(log.String(), tt.log))
			is.Equal(log.Len() > 0, tt.log != "")
		})
	}
}
