//go:build amd64 || arm64

package sandbox

import (
	"strings"
	"testing"

	"github.com/matryer/is"
)

// TestQuotaOfCommands runs commands in a workspace with a quota. A command cannot write more, its files
// count when it has ended, and removed ones no longer.
func TestQuotaOfCommands(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	q := &testQuota{left: 3 << 20}
	w, s := open(t, t.TempDir(), Limits{Quota: q}), shell(t, ShellConfig{})
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
	is.True(q.Left() >= 0)
	r = run("echo x > c")
	is.True(strings.Contains(r.Note, "organization stores as much as it may"))
	is.True(run("rm a b").ExitCode == 0)
	is.True(q.Left() > 2<<20)
	is.NoErr(w.WriteFile("d", make([]byte, 1<<20)))
	is.True(q.Left() < 2<<20+1<<10)
}
