package command_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers/command"
	"journeyman/runner/backup"
	"journeyman/store"
	"journeyman/store/storetest"
)

// TestRestoreBesideBackupsFromTheFuture checks that nothing is restored from a folder with backups
// from the future, unless the operator names one.
func TestRestoreBesideBackupsFromTheFuture(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	storetest.Embedded(t)
	st, dir := storetest.Open(t, store.Options{}), t.TempDir()
	target, err := backup.NewTarget(backup.Storage{To: dir}, dir, os.Getenv)
	is.NoErr(err)
	var paths []string
	for _, ahead := range []time.Duration{0, 48 * time.Hour} {
		w, err := target.Write(t.Context(), target.NewName(time.Now().Add(ahead)), 1, st)
		is.NoErr(err)
		paths = append(paths, target.Path(w.Name))
	}
	restored := filepath.Join(t.TempDir(), "restored")
	p := programOn(t, restored)
	err = (&command.Restore{File: dir}).Run(p)
	is.True(err != nil && strings.Contains(err.Error(), paths[0]) && strings.Contains(err.Error(), paths[1])) // the error names both
	_, err = os.Stat(restored)
	is.True(os.IsNotExist(err)) // nothing is restored
	is.NoErr((&command.Restore{File: dir, Check: true}).Run(p))
	is.True(strings.Contains(p.Stderr.(*bytes.Buffer).String(), paths[1])) // the check names the other one
	is.NoErr((&command.Restore{File: paths[1]}).Run(p))
	_, err = os.Stat(restored)
	is.NoErr(err)
}
