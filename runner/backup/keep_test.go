package backup_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner/backup"
	"journeyman/store"
	"journeyman/store/gate"
)

// A source writes archives of a few bytes and reports a fixed number of damaged files.
type source struct {
	damaged int
	begun   *bool
}

func (s source) Archive(_ context.Context, w io.Writer) (store.BackupReport, error) {
	if s.begun != nil {
		*s.begun = true
	}
	_, err := io.WriteString(w, "archive")
	return store.BackupReport{Damaged: s.damaged}, err
}

func (source) VerifyArchive(_ context.Context, r io.Reader, _ store.BackupReport) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

// write writes a backup dated on a day in May 2026, and returns its name.
func write(t testing.TB, to *backup.Target, day int, s source) string {
	t.Helper()
	w, err := to.Write(t.Context(), to.NewName(time.Date(2026, 5, day, 0, 0, 0, 0, time.UTC)), 1, s)
	is.New(t).NoErr(err)
	return w.Name
}

// TestPruneDamaged checks that damaged backups are counted separately and never replace a good one.
func TestPruneDamaged(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 20, 0, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		keep backup.Keep
		left []int // days: 1 to 3 are good ones, 4 to 9 are damaged
	}{
		"all":                     {backup.Keep{}, []int{1, 2, 3, 4, 5, 6, 7, 8, 9}},
		"two":                     {backup.Keep{Newest: 2}, []int{2, 3, 8, 9}},
		"old ones":                {backup.Keep{For: time.Hour}, []int{3, 9}}, // keeps the newest one and the newest good one
		"as many as are damaged":  {backup.Keep{Newest: 6}, []int{1, 2, 3, 4, 5, 6, 7, 8, 9}},
		"one, and none very long": {backup.Keep{Newest: 1, For: time.Hour}, []int{3, 9}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			to, dir := newTarget(t)
			names, want := map[int]string{}, map[string]bool{}
			for day := 1; day <= 9; day++ {
				names[day] = write(t, to, day, source{damaged: max(0, day-3)})
			}
			_, err := to.Prune(t.Context(), now, tt.keep, "")
			is.NoErr(err)
			for _, day := range tt.left {
				want[names[day]] = true
				if day > 3 {
					want[names[day]+".damaged"] = true // the mark is deleted or kept together with its backup
				}
			}
			left := map[string]bool{}
			for _, name := range namesIn(t, dir) {
				left[name] = true
			}
			is.Equal(left, want)
		})
	}
}

// TestPruneAfterTheClockWasSetBack keeps the backup that was made last, although an older one has
// a later name.
func TestPruneAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	for _, back := range []time.Duration{time.Second, 59 * time.Minute, 48 * time.Hour} {
		t.Run(back.String(), func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			s, dir, w := filled(t), filepath.Join(t.TempDir(), "to"), &watch{time.Date(2026, 5, 9, 0, 0, 0, 0, time.UTC)}
			k := keeperOn(t, s, dir, w.now, backup.Repeat{Every: "24h", Keep: 1})
			k.Tick(t.Context())
			w.at = w.at.Add(-back)
			k.Tick(t.Context())
			last := k.State().Runs[0]
			is.Equal(last.StartedAt, w.at)
			is.True(slices.Contains(namesIn(t, dir), last.Name)) // the newest backup was deleted
			w.at = w.at.Add(24 * time.Hour)
			k.Tick(t.Context())
			is.True(slices.Contains(namesIn(t, dir), k.State().Runs[0].Name))
		})
	}
}

// TestPruneAheadOfTheClock checks that a backup from a clock slightly ahead counts as the newest.
func TestPruneAheadOfTheClock(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	to, dir := newTarget(t)
	write(t, to, 1, source{})
	ahead := write(t, to, 2, source{})
	_, err := to.Prune(t.Context(), time.Date(2026, 5, 1, 23, 59, 50, 0, time.UTC), backup.Keep{Newest: 1}, "")
	is.NoErr(err)
	is.Equal(namesIn(t, dir), []string{ahead})
}

// TestMarksOfRemovedBackups checks that clean deletes marks whose backup was removed.
func TestMarksOfRemovedBackups(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	to, dir := newTarget(t)
	removed, kept := write(t, to, 1, source{damaged: 1}), write(t, to, 2, source{damaged: 1})
	is.NoErr(os.Remove(filepath.Join(dir, removed))) // as a user would
	_, err := to.Prune(t.Context(), time.Date(2026, 5, 20, 0, 0, 0, 0, time.UTC), backup.Keep{}, "")
	is.NoErr(err)
	is.Equal(namesIn(t, dir), []string{kept, kept + ".damaged"})
}

// TestOpenNewest checks which backup Open chooses from a folder, even if a clock was wrong.
func TestOpenNewest(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 10, 0, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		good, damaged []int // days in May
		opens         int
		note          string
	}{
		"the newest":                        {[]int{2, 9, 5}, nil, 9, ""},
		"a clock that was ahead once":       {[]int{2, 9, 25, 26}, nil, 9, "if it is behind, restore "},
		"a clock that is behind now":        {[]int{25, 26}, nil, 26, ""},
		"a clock that is a little behind":   {[]int{9, 10}, nil, 10, ""},
		"a damaged one":                     {[]int{2, 5}, []int{9}, 9, "the newest one without damage is "},
		"an older damaged one":              {[]int{2, 5}, []int{3}, 5, ""},
		"nothing but damaged ones":          {nil, []int{3, 4}, 4, "kept files were damaged"},
		"damaged ones of a clock ahead too": {[]int{2}, []int{26}, 2, "if it is behind, restore "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			to, dir := newTarget(t)
			names := map[int]string{}
			for _, day := range tt.good {
				names[day] = write(t, to, day, source{})
			}
			for _, day := range tt.damaged {
				names[day] = write(t, to, day, source{damaged: 1})
			}
			stored, err := backup.Open(t.Context(), backup.Storage{}, dir, noEnvironment, now.Add(-time.Minute))
			is.NoErr(err)
			is.NoErr(stored.Close())
			is.Equal(filepath.Base(stored.Path), names[tt.opens])
			notes := stored.Note
			if unsure := stored.Unsure; unsure != nil {
				notes += unsure.Error()
				is.True(strings.Contains(notes, stored.Path+";")) // it names both candidates
				is.True(strings.HasSuffix(notes, names[26]))
			}
			is.Equal(notes == "", tt.note == "")
			is.True(strings.Contains(notes, tt.note)) // the note about the other backups is missing
			named, err := backup.Open(t.Context(), backup.Storage{}, filepath.Join(dir, names[tt.opens]), noEnvironment, now)
			is.NoErr(err)
			is.NoErr(named.Close())
			is.NoErr(named.Unsure) // a backup named by the user is never unsure
		})
	}
}

// TestWriteWithoutRoom checks that Write fails before it reads data, if the last backup was larger
// than the free space.
func TestWriteWithoutRoom(t *testing.T) {
	t.Parallel()
	const much = 1 << 60
	is := is.New(t)
	to, dir := newTarget(t)
	first := write(t, to, 1, source{})
	space, err := gate.Statfs(dir)
	is.NoErr(err)
	single := filepath.Join(t.TempDir(), "one.tgz")
	file, err := backup.NewTarget(backup.Storage{}, single, noEnvironment)
	is.NoErr(err)
	for path, target := range map[string]*backup.Target{filepath.Join(dir, first): to, single: file} {
		name, begun := target.NewName(time.Now()), false
		w, err := target.Write(t.Context(), name, much, source{})
		is.NoErr(err) // the last backup was small or is missing, so this one may fit
		if path != single {
			is.NoErr(os.Remove(target.Path(w.Name)))
		}
		is.NoErr(os.Truncate(path, 2*space.Free+1e9)) // a sparse file uses no disk space
		_, err = target.Write(t.Context(), name, much, source{begun: &begun})
		is.True(err != nil && strings.Contains(err.Error(), "MB free: make room")) // the error does not say what to do
		is.True(!begun)                                                            // it writes until the disk is full
		is.Equal(len(namesIn(t, filepath.Dir(path))), 1)
		_, err = target.Write(t.Context(), name, 1000, source{})
		is.NoErr(err) // the data is small now
	}
}

// TestKeeperOfDamagedData makes backups of a folder with a damaged file. It keeps the good backups
// and limits the number of damaged ones.
func TestKeeperOfDamagedData(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s, dir, w := filled(t), filepath.Join(t.TempDir(), "to"), &watch{time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)}
	k := keeperOn(t, s, dir, w.now, backup.Repeat{Every: "24h", Keep: 1})
	k.Tick(t.Context())
	good := k.State().Good().Name
	files, err := filepath.Glob(filepath.Join(s.Dir(), "files", "*", "*"))
	is.NoErr(err)
	is.Equal(len(files), 1)
	is.NoErr(os.WriteFile(files[0], []byte("else"), 0o600))
	for range 3 {
		w.at = w.at.Add(24 * time.Hour)
		k.Tick(t.Context())
	}
	last := k.State().Runs[0].Name
	is.Equal(namesIn(t, dir), []string{good, last, last + ".damaged"})
}
