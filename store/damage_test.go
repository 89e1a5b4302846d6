package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// filledFolder returns a closed data folder with enough tasks for some hundred pages.
func filledFolder(t testing.TB) string {
	t.Helper()
	f := newFixture(t)
	f.startRunner("r")
	for i := range 120 {
		n := f.turn()
		n.Input = fmt.Sprintf("Task %d: %s", i, strings.Repeat("some text ", i))
		f.accept(n)
		f.finish(f.claimOne("r"))
	}
	is.New(t).NoErr(f.Close())
	return f.Dir()
}

// everyRow returns all rows of all tables of a database file as text, or the first error.
func everyRow(t testing.TB, path string) (rows []string, err error) {
	t.Helper()
	db := storetest.OpenFile(t, path)
	defer db.Close()
	for _, table := range storetest.Query(t, db, `SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name`) {
		list, err := db.QueryContext(t.Context(), `SELECT * FROM "`+table[0]+`" NOT INDEXED`)
		if err != nil {
			return nil, err
		}
		columns, err := list.Columns()
		if err != nil {
			return nil, err
		}
		for list.Next() {
			values, into := make([]any, len(columns)), make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			if err := list.Scan(into...); err != nil {
				return nil, err
			}
			rows = append(rows, fmt.Sprint(table[0], values))
		}
		if err := errors.Join(list.Err(), list.Close()); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// A wreck is a way to damage one page of a database file.
type wreck struct {
	name string
	do   func(r *rand.Rand, page []byte, first bool)
}

// wrecks returns damages to tree pages that disks and stray writes can cause. A changed byte inside
// a text is not included: SQLite has no checksums, so it cannot be detected.
func wrecks() []wreck {
	return []wreck{
		{"zeros", func(_ *rand.Rand, page []byte, _ bool) { clear(page) }},
		{"noise", func(r *rand.Rand, page []byte, _ bool) {
			for i := range page {
				page[i] = byte(r.Uint32())
			}
		}},
		{"a flipped byte in the header", func(r *rand.Rand, page []byte, first bool) {
			at := r.IntN(8)
			if first {
				at = r.IntN(100)
			}
			page[at] ^= byte(1 + r.IntN(255))
		}},
		{"flipped cell pointers", func(r *rand.Rand, page []byte, first bool) {
			at := 8
			if first {
				at = 108
			}
			for range 3 {
				page[at+r.IntN(8)] ^= byte(1 + r.IntN(255))
			}
		}},
	}
}

// treePages returns the numbers of the pages of tables and indexes.
func treePages(t testing.TB, path string) (pages []int64) {
	t.Helper()
	const query = `SELECT pageno FROM dbstat WHERE pagetype IN ('leaf', 'internal') ORDER BY pageno`
	for _, row := range storetest.FileRows(t, path, query) {
		n, err := strconv.ParseInt(row[0], 10, 64)
		is.New(t).NoErr(err)
		pages = append(pages, n)
	}
	return pages
}

// TestWreckedPages damages pages of a database. Either the start fails, or the check finds the
// damage, or every row is unchanged. Writes to a database with known damage are refused.
func TestWreckedPages(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	folder := filledFolder(t)
	whole, err := os.ReadFile(store.DatabasePath(folder))
	is.NoErr(err)
	truth, err := everyRow(t, store.DatabasePath(folder))
	is.NoErr(err)
	pages, size := treePages(t, store.DatabasePath(folder)), int64(4096)
	counts := map[string]int{}
	for round := range storetest.Rounds(1000, 12) {
		r := rand.New(rand.NewPCG(1, uint64(round)))
		w, page := wrecks()[round%len(wrecks())], pages[r.IntN(len(pages))]
		if round%20 == 0 {
			page = 1 // it contains the header of the file
		}
		dir := t.TempDir()
		damaged := append([]byte(nil), whole...)
		w.do(r, damaged[(page-1)*size:page*size], page == 1)
		is.NoErr(os.WriteFile(store.DatabasePath(dir), damaged, 0o600))
		counts[wreckedOutcome(t, dir, truth, fmt.Sprintf("round %d: %s in page %d", round, w.name, page))]++
		is.NoErr(os.RemoveAll(dir))
	}
	t.Log(counts)
}

func wreckedOutcome(t *testing.T, dir string, truth []string, what string) string {
	t.Helper()
	s, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})
	if err != nil {
		if errors.Is(err, store.ErrLocked) || len(err.Error()) < 20 {
			t.Errorf("%s: the refusal does not say what is wrong: %v", what, err)
		}
		return "refused"
	}
	checked := s.CheckDatabase(t.Context())
	told := s.Damage() != nil
	_, _, err = s.Workers.CreateWorker(t.Context(), people.Caller{}, workers.NewWorker{Title: "x"}, db.IdempotencyKey{})
	if told && !db.IsKind(err, db.Damaged) {
		t.Errorf("%s: a write to a damaged database: %v", what, err)
	}
	if err := s.Close(); err != nil && !told {
		t.Errorf("%s: close: %v", what, err)
	}
	if told {
		return "told"
	}
	if checked != nil {
		t.Errorf("%s: the check fails without damage: %v", what, checked)
	}
	rows, err := everyRow(t, store.DatabasePath(dir))
	if err != nil {
		t.Errorf("%s: not told, and reads fail: %v", what, err)
		return "wrong"
	}
	if strings.Join(rows, "\n") != strings.Join(truth, "\n") {
		t.Errorf("%s: not told, and rows differ", what)
		return "wrong"
	}
	return "harmless"
}

// TestDueTables damages a table after its check. The next check that is due finds the damage, also in
// another process. A check that was cut off does not begin anew.
func TestDueTables(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	dir, now := filledFolder(t), time.Now()
	open := func() *store.Store {
		s, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{Now: func() time.Time { return now }})
		is.NoErr(err)
		return s
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s := open()
	is.True(errors.Is(s.CheckDueTables(ended, time.Hour), context.Canceled))
	is.NoErr(s.CheckDueTables(t.Context(), time.Hour))
	is.NoErr(s.Close())
	damageTable(t, dir, true)
	for _, tt := range []struct {
		what  string
		after time.Duration
		found bool
	}{
		{"no check is due", 59 * time.Minute, false},
		{"the check is due", 2 * time.Minute, true},
		{"damage is found again after a restart", 0, true},
		{"the clock was set back", -5 * time.Hour, true},
	} {
		now = now.Add(tt.after)
		s := open()
		err := s.CheckDueTables(t.Context(), time.Hour)
		if (err != nil) != tt.found || (s.Damage() != nil) != tt.found {
			t.Errorf("%s: the check returns %v", tt.what, err)
		}
		if tt.found {
			is.NoErr(s.CheckDueTables(t.Context(), time.Hour)) // known damage is not looked for again
		}
		_ = s.Close()
	}
}

// damageTable overwrites a page of an empty table. If silent is set, as a disk does that loses data: the time of
// the file stays.
func damageTable(t *testing.T, dir string, silent bool) {
	t.Helper()
	is := is.New(t)
	root := storetest.Rows(t, dir, `SELECT rootpage FROM sqlite_schema WHERE name = 'alert_messages'`)[0][0]
	page, err := strconv.ParseInt(root, 10, 64)
	is.NoErr(err)
	info, err := os.Stat(store.DatabasePath(dir))
	is.NoErr(err)
	f, err := os.OpenFile(store.DatabasePath(dir), os.O_RDWR, 0)
	is.NoErr(err)
	_, err = f.WriteAt([]byte(strings.Repeat("\xee", 4096)), (page-1)*4096)
	is.NoErr(errors.Join(err, f.Close()))
	if silent {
		is.NoErr(os.Chtimes(store.DatabasePath(dir), time.Time{}, info.ModTime()))
	}
}

// TestCheckAfterUncleanStop damages a table just after its check. The next start checks all tables if the
// process was killed, or if the files were written after its end, and also if it is killed again during the
// check. Otherwise no check is due.
func TestCheckAfterUncleanStop(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	for name, tt := range map[string]struct {
		killed, again, silent bool
		found                 bool
	}{
		"regular, and a disk that loses a page": {silent: true},
		"regular, and a page that was written":  {found: true},
		"killed":                                {killed: true, silent: true, found: true},
		"killed twice":                          {killed: true, again: true, silent: true, found: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			open := func(dir string) *store.Store {
				s, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})
				is.NoErr(err)
				return s
			}
			// end ends the process of a folder, and returns the folder that it leaves.
			end := func(s *store.Store, kill bool) string {
				t.Helper()
				left := s.Dir()
				if kill {
					is.NoErr(s.StartRunner(t.Context(), "run_x", time.Minute))
					left = t.TempDir()
					is.NoErr(storetest.Copy(t, s.Dir(), left))
				}
				is.NoErr(s.Close())
				return left
			}
			dir := filledFolder(t)
			s := open(dir)
			is.NoErr(s.CheckDueTables(t.Context(), time.Hour))
			dir = end(s, tt.killed)
			damageTable(t, dir, tt.silent)
			if tt.again {
				dir = end(open(dir), true)
			}
			s = open(dir)
			err := s.CheckDueTables(t.Context(), time.Hour)
			is.Equal(err != nil, tt.found)
			is.NoErr(s.Close())
		})
	}
}

// TestLostDatabase removes the database of a folder. The next start fails unless the option
// BeginAnew is set.
func TestLostDatabase(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	for name, tt := range map[string]struct {
		file string // a file that remains in the folder
		lose func(path string) error
		says string
	}{
		"missing, with files":      {"files/ab/abc", os.Remove, "the database is lost"},
		"missing, with workspaces": {"workspaces/wrk_1/notes.txt", os.Remove, "the database is lost"},
		"empty, with files":        {"files/ab/abc", func(path string) error { return os.Truncate(path, 0) }, "--begin-anew"},
		"missing, nothing else":    {"", os.Remove, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			dir := t.TempDir()
			is.NoErr(storetest.Reopen(t, dir, store.Options{}).Close())
			if tt.file != "" {
				makeFiles(t, dir, map[string]string{tt.file: "x"})
			}
			is.NoErr(tt.lose(store.DatabasePath(dir)))
			s, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})
			if tt.says == "" {
				is.NoErr(err)
				is.NoErr(s.Close())
				return
			}
			is.True(says(err, tt.says)) // the folder is no new one, and the message contains the remedy
			is.NoErr(storetest.Reopen(t, dir, store.Options{BeginAnew: true}).Close())
			if tt.file != "" {
				is.NoErr(errOf(os.Stat(filepath.Join(dir, tt.file)))) // the files remain
			}
		})
	}
}

// TestBegunAnew begins anew in a folder that has lost its database. The old files stay, although no
// row refers to them. Later files are swept as usual.
func TestBegunAnew(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	dir, future := t.TempDir(), func() time.Time { return time.Now().Add(72 * time.Hour) }
	leave := func(first string) (blob, folder string) {
		name := first + strings.Repeat("0", 62)
		blob = filepath.Join(dir, "files", first, name)
		folder = filepath.Join(dir, "workspaces", "wrk_1.tasks", "tsk_"+first)
		is.NoErr(os.MkdirAll(filepath.Dir(blob), 0o700))
		is.NoErr(os.WriteFile(blob, []byte("x"), 0o600))
		is.NoErr(os.MkdirAll(folder, 0o700))
		return blob, folder
	}
	oldBlob, oldFolder := leave("00")
	for range 2 { // the mark remains at later starts
		s := storetest.Reopen(t, dir, store.Options{BeginAnew: true, Now: future})
		newBlob, newFolder := leave("01")
		for _, path := range []string{newBlob, newFolder} {
			later := time.Now().Add(time.Hour)
			is.NoErr(os.Chtimes(path, later, later))
		}
		blobs := int64(0)
		for range 64 { // together, these calls check every file
			n, err := s.SweepBlobs(t.Context())
			is.NoErr(err)
			blobs += n
		}
		folders, err := s.SweepFolders(t.Context())
		is.NoErr(err)
		is.Equal(blobs, int64(1))
		is.Equal(folders, int64(1))
		for _, path := range []string{oldBlob, oldFolder} {
			is.NoErr(errOf(os.Stat(path))) // the file remains
		}
		is.NoErr(s.Close())
	}
}

// TestUnusedFolder looks for data in folders of a server with a database in a file, of one with a
// database on a server, and of none.
func TestUnusedFolder(t *testing.T) {
	t.Parallel()
	for name, unused := range map[string]bool{"": true, "notes.txt": true, "journeyman.db": false, "database-server": false,
		"files/ab/abc": false, "workspaces/wrk_1/notes.txt": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			dir := t.TempDir()
			if name != "" {
				makeFiles(t, dir, map[string]string{name: "x"})
			}
			got, err := store.Unused(t.Context(), dir)
			is.NoErr(err)
			is.Equal(got, unused)
		})
	}
}
