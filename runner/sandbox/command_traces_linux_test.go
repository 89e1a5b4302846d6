//go:build amd64 || arm64

package sandbox

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
)

// findTraces prints each file below /proc, and each line of commands about mounts, that matches
// the pattern in TRACE. It skips files without an end.
const findTraces = `
find /proc -maxdepth 4 \( -name kcore -o -name kmsg -o -name 'kpage*' -o -name pagemap -o -name clear_refs \
	-o -name mem -o -name smaps -o -name net \) -prune -o -type f -print0 2>/dev/null |
	xargs -0 -n 100 timeout 10 grep -asH -e "$TRACE"
find /proc -maxdepth 5 -type l -printf '%p -> %l\n' 2>/dev/null | grep -e "$TRACE"
for c in env set 'df -a' 'df /workspace' 'pwd -P' mount findmnt 'cat /etc/mtab' 'stat -f /workspace' 'ls -la /workspace/..'; do
	eval "$c" 2>&1 | grep -a -e "$TRACE" | sed "s|^|$c: |"
done
true`

// TestNoTraceOfTheDataFolder looks for the path of the data folder in everything that a command can
// read about itself and the machine.
func TestNoTraceOfTheDataFolder(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPrison(t)
	p.shell = shell(t, ShellConfig{})
	// The brackets keep the pattern from matching itself in the arguments of grep.
	name := strings.TrimPrefix(p.dir, os.TempDir())
	script := "TRACE='" + name[:1] + "[" + name[1:2] + "]" + name[2:] + "'\n" + findTraces
	r := ran(t, p.shell, p.w, Command{Script: script, Timeout: time.Minute})
	is.Equal(r.ExitCode, 0)
	if strings.TrimSpace(r.Output+r.Errors) != "" {
		t.Errorf("a command sees the data folder:\n%s", r.Output+r.Errors)
	}
	// The same search finds what may be seen: the folder inside.
	r = ran(t, p.shell, p.w, Command{Script: "TRACE='/[w]orkspace'\n" + findTraces, Timeout: time.Minute})
	is.True(strings.Contains(r.Output, "cwd -> /workspace\n"))
	is.True(strings.Contains(r.Output, "df /workspace: "))
	// Without a list of mounts, df still answers for a path, and for the folder that it stands in.
	r = ran(t, p.shell, p.w, Command{Script: "cat /proc/self/mountinfo /proc/1/mounts; cd /workspace && pwd -P && df . /tmp 2>/dev/null | wc -l"})
	is.Equal(r.Output, "/workspace\n3\n")
}
