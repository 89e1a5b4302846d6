//go:build amd64 || arm64

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner/workspace"
	"journeyman/store/ordertest"
)

// TestMain lets this test program also run in other roles: the first process of a command, a
// hostile program inside a sandbox, and a server that is killed.
func TestMain(m *testing.M) {
	filters := preparedFilters()
	maps.Copy(filters, testFilters)
	BeFilter(os.Args, filters)
	switch {
	case IsChild(os.Args):
		Child()
	case len(os.Args) > 2 && os.Args[1] == "escape":
		os.Exit(escape(os.Args[2], os.Args[3:]))
	case len(os.Args) > 3 && os.Args[1] == "serve":
		os.Exit(serve(os.Args[2], os.Args[3]))
	case len(os.Args) == 3 && os.Args[1] == "run-program":
		os.Exit(runProgram(os.Args[2]))
	}
	os.Exit(m.Run())
}

// shell returns a confining Shell. On a machine that cannot confine commands, it checks that
// NewShell returns an error, and skips the rest of the test.
func shell(t *testing.T, cfg ShellConfig) *Shell {
	t.Helper()
	found := Detect(t.Context())
	s, err := NewShell(found, cfg)
	if found.Possible {
		is.New(t).NoErr(err)
		return s
	}
	is.New(t).True(errors.Is(err, ErrUnconfined) || cfg.Unsafe)
	t.Skipf("commands cannot be confined here, nothing else is tested: %v", found.Err)
	return nil
}

// ran runs a command and returns its result. The shell must be able to run it.
func ran(t *testing.T, s *Shell, w *workspace.Workspace, c Command) Result {
	t.Helper()
	r, err := s.Run(t.Context(), w, c)
	is.New(t).NoErr(err)
	return r
}

func TestRun(t *testing.T) {
	t.Parallel()
	s := shell(t, ShellConfig{})
	w := open(t, filepath.Join(t.TempDir(), "ws"), workspace.Limits{})
	is.New(t).NoErr(w.WriteFile("sub/in.txt", []byte("from the service\n")))
	for name, tt := range map[string]struct {
		script string
		code   int
		output string
	}{
		"both outputs in order": {"exec 2>&1; echo one; echo two >&2; echo three", 0, "one\ntwo\nthree\n"},
		"standard output":       {"echo one; echo two >&2; echo three", 0, "one\nthree\n"},
		"exit code":             {"exit 7", 7, ""},
		"ended by a signal":     {"kill -9 $$", 137, ""},
		"ended by itself":       {"kill -TERM $$", 143, ""},
		"no such program":       {"no-such-program 2>/dev/null", 127, ""},
		"workspace":             {"pwd; cat sub/in.txt", 0, "/workspace\nfrom the service\n"},
		"service's file":        {"echo more >> sub/other.txt && cp sub/in.txt sub/copy && mv sub/copy sub/in.txt && echo can", 0, "can\n"},
		"pipes and processes":   {"seq 1000 | sort -n | tail -n 1", 0, "1000\n"},
		"no input":              {"cat; echo end", 0, "end\n"},
		"binary output":         {`printf 'a\377b'`, 0, "a\ufffdb"},
		"temporary files":       {"echo x > /tmp/x && cat /tmp/x && test -w $HOME", 0, "x\n"},
		"devices":               {"echo x > /dev/null && head -c 3 /dev/zero | wc -c", 0, "3\n"},
		"orphans are reaped": {`(for i in $(seq 20); do sleep 0 & done); for i in $(seq 200); do
			set -- /proc/[0-9]*; test $# -lt 8 && break; sleep 0.05; done; echo $(($# < 8))`, 0, "1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			r := ran(t, s, w, Command{Script: tt.script})
			is.Equal(r.Output, tt.output)
			is.Equal(r.ExitCode, tt.code)
			is.Equal(r.Stopped, Stop(""))
			ordertest.Above(is, r.Duration, 0) // the command took no time
		})
	}
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	s := &Shell{confined: true}
	w := open(t, filepath.Join(t.TempDir(), "ws"), workspace.Limits{})
	for name, c := range map[string]Command{
		"empty":        {Script: " \n"},
		"too long":     {Script: strings.Repeat("x", MaxScript+1)},
		"NUL":          {Script: "echo a\x00b"},
		"too slow":     {Script: "true", Timeout: MaxTimeout + 1},
		"no time left": {Script: "true", Timeout: -1},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Run(t.Context(), w, c)
			is.New(t).Equal(kind(err), workspace.Invalid)
		})
	}
}

func TestRunStops(t *testing.T) {
	t.Parallel()
	s := shell(t, ShellConfig{})
	w := open(t, filepath.Join(t.TempDir(), "ws"), workspace.Limits{})
	is := is.New(t)
	begun := time.Now()
	r := ran(t, s, w, Command{Script: "echo begun; trap '' TERM INT HUP; sleep 1000 & wait; sleep 1000", Timeout: 3 * time.Second})
	is.Equal(r.Stopped, StopTimeout)
	is.Equal(r.ExitCode, 137)
	is.Equal(r.Output, "begun\n")                          // earlier output is kept
	ordertest.Below(is, time.Since(begun), 20*time.Second) // the command was not stopped in time

	gone := errors.New("the turn was cancelled")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { cancel(gone) })
	_, err := s.Run(ctx, w, Command{Script: "sleep 1000"})
	is.True(errors.Is(err, gone))
	ordertest.Below(is, time.Since(begun), 40*time.Second) // the command was not stopped in time
}

// TestServerKilled kills a server with SIGKILL while it runs a command.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	shell(t, ShellConfig{})
	marker := fmt.Sprintf("1000.%d", os.Getpid())
	server := exec.Command("/proc/self/exe", "serve", filepath.Join(t.TempDir(), "ws"), marker)
	is.NoErr(server.Start())
	eventually(t, "the processes", func() bool { return len(processes(t, marker)) > 0 })
	is.NoErr(server.Process.Kill())
	_ = server.Wait()
	eventually(t, "the end of the processes", func() bool { return len(processes(t, marker)) == 0 })
}

// serve runs a command that does not end.
func serve(dir, marker string) int {
	w, err := workspace.Open(dir, workspace.Limits{})
	if err == nil {
		s := &Shell{confined: true, cfg: ShellConfig{Limits: ShellLimits{}.withDefaults()}}
		_, err = s.Run(context.Background(), w, Command{Script: "setsid sleep " + marker + " & sleep " + marker})
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// processes returns the processes of this machine that have marker as an argument.
func processes(t *testing.T, marker string) []string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	is.New(t).NoErr(err)
	var found []string
	for _, p := range all {
		line, err := os.ReadFile(p)
		args := strings.Split(string(line), "\x00")
		if err == nil && args[0] == "sleep" && strings.Contains(string(line), "\x00"+marker+"\x00") {
			found = append(found, p)
		}
	}
	return found
}

// eventually is storetest.Eventually, which tests of this package must not import.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(time.Minute); !ok(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestUnconfined(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	_, err := NewShell(Confinement{}, ShellConfig{})
	is.True(errors.Is(err, ErrUnconfined))
	s, err := NewShell(Confinement{}, ShellConfig{Unsafe: true})
	is.NoErr(err)
	is.True(!s.Confined())
}

func TestUnconfinedRun(t *testing.T) {
	t.Parallel()
	s, err := NewShell(Confinement{}, ShellConfig{Unsafe: true})
	is.New(t).NoErr(err)
	w := open(t, filepath.Join(t.TempDir(), "ws"), workspace.Limits{})
	for name, tt := range map[string]struct {
		command Command
		want    Result
	}{
		"fails":     {Command{Script: "echo one; echo two >&2; exit 3"}, Result{ExitCode: 3, Output: "one\n", Errors: "two\n"}},
		"workspace": {Command{Script: "echo x > f; cat f"}, Result{Output: "x\n"}},
		"times out": {Command{Script: "echo a; sleep 1000 & sleep 1000", Timeout: 3 * time.Second},
			Result{ExitCode: 137, Output: "a\n", Stopped: StopTimeout}},
		"own environment": {Command{Script: "env | grep -c ^GO"}, Result{ExitCode: 1, Output: "0\n"}},
		"leaves nothing":  {Command{Script: "sleep 1000 & echo started"}, Result{Output: "started\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			r := ran(t, s, w, tt.command)
			ordertest.Below(is, r.Duration, 30*time.Second) // the command was not stopped in time
			r.Duration = 0
			is.Equal(r, tt.want)
		})
	}
}

func TestWorkerUser(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	all := userRange{0, 1 << 32}
	is.Equal(workerUser("/a/wrk_1", all), workerUser("/b/wrk_1", all)) // independent of the data folder
	is.True(workerUser("/a/wrk_1", all) != workerUser("/a/wrk_2", all))
	for _, users := range []userRange{all, {0, 65536}, {100000, 65536}, {0, 2000}} {
		u := workerUser("/a/wrk_1", users)
		ordertest.Above(is, u, users.first)            // in the available range
		ordertest.Below(is, u, users.first+users.size) // in the available range
	}
	ordertest.Above(is, workerUser("x", userRange{0, 1}), 0) // never root
	ordertest.Above(is, machineUsers().size, 0)
}

func BenchmarkRun(b *testing.B) {
	found := Detect(b.Context())
	s, err := NewShell(found, ShellConfig{})
	if errors.Is(err, ErrUnconfined) {
		b.Fatal(found.Err)
	}
	w, err := workspace.Open(filepath.Join(b.TempDir(), "ws"), workspace.Limits{})
	is.New(b).NoErr(err)
	defer w.Close()
	for b.Loop() {
		r, err := s.Run(b.Context(), w, Command{Script: "true"})
		if err != nil || r.ExitCode != 0 {
			b.Fatal(r, err)
		}
	}
}
