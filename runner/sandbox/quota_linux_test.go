//go:build amd64 || arm64

package sandbox

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/workspace"
	"journeyman/store/ordertest"
)

// TestQuotaOfCommands runs commands in a workspace with a quota. A command cannot write more, its files
// count when it has ended, and removed ones no longer.
func TestQuotaOfCommands(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	q := &testQuota{left: 3 << 20}
	w, s := open(t, t.TempDir(), workspace.Limits{Quota: q}), shell(t, ShellConfig{})
	run := func(script string) Result {
		t.Helper()
		r, err := s.Run(t.Context(), w, Command{Script: script})
		is.NoErr(err)
		return r
	}
	is.Equal(run("head -c 2M /dev/zero > a").ExitCode, 0)
	is.Equal(q.Left(), int64(1<<20))
	r := run("head -c 2M /dev/zero > b")
	is.True(r.ExitCode != 0) // the file ends at what is left
	ordertest.AtLeast(is, q.Left(), 0)
	r = run("echo x > c")
	is.True(strings.Contains(r.Note, "organization stores as much as it may"))
	is.True(run("rm a b").ExitCode == 0)
	ordertest.Above(is, q.Left(), 2<<20)
	is.NoErr(w.WriteFile("d", make([]byte, 1<<20)))
	ordertest.Below(is, q.Left(), 2<<20+1<<10)
}

// TestQuotaOfCommandsBesideEachOther runs commands at once, in one workspace and in several. Each byte counts once, and a
// command is stopped that writes when others have used up the quota.
func TestQuotaOfCommandsBesideEachOther(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	q := &testQuota{left: 10 << 20}
	s := shell(t, ShellConfig{})
	w := open(t, t.TempDir(), workspace.Limits{Quota: q})
	is.NoErr(w.WriteFile("a", make([]byte, 4<<20)))
	var group sync.WaitGroup
	run := func(w *workspace.Workspace, script string, stopped *Stop) {
		group.Go(func() {
			r, err := s.Run(t.Context(), w, Command{Script: script})
			if err != nil {
				t.Error(err)
			}
			*stopped = r.Stopped
		})
	}
	stopped := make([]Stop, 4)
	for i, script := range []string{"sleep 2", "sleep 2", "sleep 1; rm a", "sleep 1; head -c 1M /dev/zero > b"} {
		run(w, script, &stopped[i])
	}
	group.Wait()
	is.Equal(q.Left(), int64(9<<20))
	is.Equal(stopped, make([]Stop, 4))

	many := make([]Stop, 4)
	for i := range many {
		run(open(t, t.TempDir(), workspace.Limits{Quota: q}), "head -c 8M /dev/zero > c; sleep 20", &many[i])
	}
	group.Wait()
	is.True(slices.Contains(many, StopDisk)) // before the command ends by itself
}
