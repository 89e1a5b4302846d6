//go:build amd64 || arm64

package sandbox

import (
	"path/filepath"
	"testing"
	"time"

	"journeyman/runner/workspace"

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
		"much written":              {func(d *diskWatch) { d.most.Bytes, d.walked.bytes = 3, d.walked.bytes+1<<40 }, true},
		"many files made":           {func(d *diskWatch) { d.most.Files, d.walked.files = 3, d.walked.files+1<<40 }, true},
		"a little near the limit":   {func(d *diskWatch) { d.held.Bytes, d.most.Bytes, d.walked.bytes = 3, 3, d.walked.bytes+2*leastStep }, true},
		"much written by others":    {func(d *diskWatch) { d.walked.bytes += 1 << 40 }, false},
		"right after a long walk":   {func(d *diskWatch) { d.most.Bytes, d.walked.bytes, d.took = 3, d.walked.bytes+1<<40, time.Hour }, false},
		"unseen, after a while":     {func(d *diskWatch) { d.most.Bytes, d.walked.bytes, d.when = 3, 0, d.when.Add(-walkEvery) }, true},
		"unseen, for a short while": {func(d *diskWatch) { d.most.Bytes, d.walked.bytes, d.when = 3, 0, time.Now() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			w := open(t, filepath.Join(t.TempDir(), "ws"), workspace.Limits{})
			is.NoErr(w.WriteFile("a/b/c", []byte("four")))
			folder, err := w.OpenFolder()
			is.NoErr(err)
			defer folder.Close()
			d, err := watchDisk(w, folder, workspace.Holding{Files: 4, Bytes: 4})
			is.NoErr(err)
			is.Equal(d.most, workspace.Holding{Files: w.Limits().Files, Bytes: w.Limits().TotalSize})
			tt.change(d)
			is.Equal(d.exceeded(time.Now()), tt.want)
		})
	}
}
