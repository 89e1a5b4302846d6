//go:build amd64 || arm64

package sandbox

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
)

func TestDiskWatch(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(d *diskWatch)
		want   bool
	}{
		"nothing happened":          {func(*diskWatch) {}, false},
		"nearly full":               {func(d *diskWatch) { d.reserve, d.begin.bytes = d.begin.total, d.begin.total+1 }, true},
		"nearly full before":        {func(d *diskWatch) { d.reserve, d.begin.bytes = d.begin.total, 0 }, false},
		"much written":              {func(d *diskWatch) { d.most, d.walked.bytes = 3, d.walked.bytes+1<<40 }, true},
		"many files made":           {func(d *diskWatch) { d.files, d.walked.files = 3, d.walked.files+1<<40 }, true},
		"much written by others":    {func(d *diskWatch) { d.walked.bytes += 1 << 40 }, false},
		"unseen, after a while":     {func(d *diskWatch) { d.most, d.walked.bytes, d.when = 3, 0, d.when.Add(-walkEvery) }, true},
		"unseen, for a short while": {func(d *diskWatch) { d.most, d.walked.bytes, d.when = 3, 0, time.Now() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			w := open(t, filepath.Join(t.TempDir(), "ws"), Limits{})
			is.NoErr(w.WriteFile("a/b/c", []byte("four")))
			folder, err := w.root.Open(".")
			is.NoErr(err)
			defer folder.Close()
			d, err := watchDisk(w, folder)
			is.NoErr(err)
			is.Equal(d.most, w.limits.TotalSize)
			tt.change(d)
			is.Equal(d.exceeded(time.Now()), tt.want)
		})
	}
}

func TestDiskWatchCounts(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	w := open(t, filepath.Join(t.TempDir(), "ws"), Limits{})
	is.NoErr(w.WriteFile("a/b", []byte("four")))
	is.NoErr(w.WriteFile("c", []byte("three")))
	d := &diskWatch{w: w, most: 1000, files: 1000}
	files, bytes := d.used()
	is.Equal(files, 4) // the workspace itself, a, a/b and c
	is.Equal(bytes, int64(9))
	is.NoErr(w.root.MkdirAll(strings.Repeat("d/", tooDeep+1), 0o755))
	files, _ = d.used()
	is.True(files > d.files) // deeper than can be walked counts as full
}
