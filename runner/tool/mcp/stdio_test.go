package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

func TestToolsOfAProgram(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newPool(t, quick, a("good"))
	names, note := f.offered("good")
	is.Equal(note, "")
	is.True(slices.Contains(names, "good__echo"))
	is.Equal(f.must("good", "echo", `{"text":"hi"}`), `"hi"`)
	is.Equal(f.must("good", "structured", `{}`), `{"n":1}`) // the text is equivalent
	is.Equal(f.refused("good", "fail", `{}`), "the moon is down")
	contains(t, f.refused("good", "refuse", `{}`), "not today")
	contains(t, f.refused("good", "none", `{}`), "unknown tool")
	contains(t, f.refused("good", "echo", `[1]`), "must be a JSON object")
	contains(t, f.refused("nobody", "echo", `{}`), "no longer configured")
}

func TestOfferedTools(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	some := a("good")
	some.Tools = []string{"echo", "pid"}
	all := a("other")
	all.AllWorkers, all.Tools = true, []string{"env"}
	f := newPool(t, quick, some, all)
	for _, tt := range []struct {
		wanted, names []string
		note          string
	}{
		{nil, []string{"other__env"}, ""},
		{[]string{"good"}, []string{"good__echo", "good__pid", "other__env"}, ""},
		{[]string{"good.pid", "good.pid"}, []string{"good__pid", "other__env"}, ""},
		{[]string{"good.pid", "good"}, []string{"good__echo", "good__pid", "other__env"}, ""},
		{[]string{"other"}, []string{"other__env"}, ""},
		{[]string{"good.die", "nobody", "nobody.x"}, []string{"other__env"}, "good.die, nobody"}, // what the operator does not allow is not there
	} {
		names, note := f.offered(tt.wanted...)
		is.Equal(names, tt.names)
		contains(t, note, tt.note)
		is.Equal(note == "", tt.note == "")
	}
	contains(t, f.refused("good", "die", `{}`), "no longer allowed") // although it was permitted when the turn began
}

func TestProgramSeesNoSecrets(t *testing.T) {
	t.Setenv("JOURNEYMAN_API_KEY", "jm_live_secret")
	is := is.New(t)
	s := a("good")
	s.Env = map[string]string{"TOKEN": "abc", "HOME": "/elsewhere"}
	f := newPool(t, quick, s)
	var env string
	is.NoErr(json.Unmarshal([]byte(f.must("good", "env", `{}`)), &env))
	lines := strings.Split(env, "\n")
	slices.Sort(lines)
	is.Equal(lines, []string{"HOME=/elsewhere", "PATH=" + os.Getenv("PATH"), "TOKEN=abc"})
}

func TestFilesOfAResultAreKept(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newPool(t, quick, a("good"))
	out := f.must("good", "image", `{}`)
	is.Equal(f.must("good", "image", `{}`), out) // a repeated call has the same result
	var got struct {
		Text  string
		Files []struct {
			Path, MediaType string
			Size            int
		}
	}
	is.NoErr(json.Unmarshal([]byte(out), &got))
	is.Equal(got.Text, "look")
	is.Equal(len(got.Files), 1)
	is.Equal(got.Files[0].MediaType, "image/png")
	data, err := f.ws.ReadFile(got.Files[0].Path, 0, 100)
	is.NoErr(err)
	is.Equal(string(data), "\x89PNG")
}

func TestLongResultKeepsHeadAndTail(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newPool(t, quick, a("good"))
	out := f.must("good", "long", `{}`)
	ordertest.Below(is, len(out), 256<<10) // limit of a tool result, even with six bytes per character
	is.True(strings.HasPrefix(out, `"begin`) && strings.HasSuffix(out, `end"`))
	contains(t, out, "bytes are left out")
}

func TestRunnerRestart(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newPool(t, quick, a("good"))
	first := f.must("good", "pid", `{}`)
	contains(t, f.refused("good", "die", `{}`), "ended during the call, which may have taken effect")
	is.True(f.must("good", "pid", `{}`) != first) // without a pause
	if storetest.Slowly() {
		contains(t, f.refused("good", "huge", `{}`), "exceeded")
	}
	is.Equal(f.must("good", "echo", `{"text":"again"}`), `"again"`)
}

func TestRepeatedFailuresBackOff(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	slow := quick
	slow.Backoff = time.Hour // limited to maxBackoff
	f := newPool(t, slow, a("exits"))
	_, note := f.offered("exits")
	contains(t, note, "exits")
	begun := time.Now()
	for range 100 {
		contains(t, f.refused("exits", "x", `{}`), "tried again in 10m0s")
	}
	ordertest.Below(is, time.Since(begun), time.Minute) // the pauses prevent a hundred starts
	is.Equal(strings.Count(f.log.String(), "no key in TOKEN"), 1)
}

func TestNewToolNeedsPermission(t *testing.T) {
	t.Parallel()
	f := newPool(t, quick, a("good"))
	f.must("good", "grow", `{}`) // the server reports the change
	storetest.Eventually(t, "the new tool is offered", func() bool { names, _ := f.offered("good"); return slices.Contains(names, "good__grown") })
}

func TestCancellingACall(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newPool(t, quick, a("good"))
	f.must("good", "pid", `{}`)
	why := errors.New("the task was cancelled")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
	_, err := f.call(ctx, "good", "hang", `{}`)
	is.True(errors.Is(err, why))
	storetest.Eventually(t, "the server hears of it", func() bool { return strings.Contains(f.log.String(), "hang was cancelled") })
	is.Equal(f.must("good", "echo", `{"text":"alive"}`), `"alive"`)
}

func TestCallTimeout(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	is := is.New(t)
	good, frozen := a("good"), a("frozen")
	good.Timeout, frozen.Timeout = 5*time.Second, 2*time.Second
	f := newPool(t, quick, good, frozen)
	f.offered("good", "frozen") // they take their time to start
	pid := f.must("good", "pid", `{}`)
	contains(t, f.refused("good", "hang", `{}`), "did not answer within 5s")
	is.Equal(f.must("good", "pid", `{}`), pid) // the program is not restarted
	contains(t, f.refused("frozen", "fine", `{}`), "did not answer")
	storetest.Eventually(t, "what does not answer at all is ended", func() bool { return strings.Contains(f.log.String(), "no longer answers") })
}

// TestHostilePrograms runs each hostile program. Nothing may hang or grow, and the model must
// get an error.
func TestHostilePrograms(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	for mode, tt := range map[string]struct{ connects, call, says string }{
		"line":     {"not available", "", ""},
		"string":   {"not available", "", ""},
		"exits":    {"not available", "", ""},
		"flood":    {"", "refused", "ended during the call"},
		"chatter":  {"", "phew", ""},
		"banner":   {"", "welcome", ""},
		"asks":     {"", "asked", ""},
		"stranger": {"", "sorry", ""},
		"strange":  {"", "refused", ""},
		"wrong":    {"", "refused", ""},
		"empty":    {"", `""`, ""},
		"stderr":   {"", `""`, ""},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newPool(t, quick, a(mode))
			names, note := f.offered(mode)
			if tt.connects != "" {
				is.Equal(len(names), 0)
				contains(t, note, mode)
				contains(t, f.log.String(), tt.connects)
				return
			}
			is.Equal(names, []string{mode + "__fine"})
			if tt.call == "refused" {
				contains(t, f.refused(mode, "fine", `{}`), tt.says)
				return
			}
			contains(t, f.must(mode, "fine", `{}`), tt.call)
			contains(t, f.must(mode, "fine", `null`), tt.call) // as without arguments
			is.Equal(strings.Contains(f.log.String(), "Banner of the server"), mode == "banner")
			ordertest.Below(is, len(f.log.String()), 300<<10) // the log is limited
		})
	}
}

func TestHostileLists(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newPool(t, quick, a("many"), a("pages"), a("schemas"), a("names"))
	names, note := f.offered("many")
	is.Equal(len(names), maxTurnTools)
	contains(t, note, "many.t00100")
	names, _ = f.offered("many.t00007", "pages")
	is.Equal(names, []string{"many__t00007", "pages__fine"})
	names, _ = f.offered("schemas")
	is.Equal(names, []string{"schemas__fine", "schemas__either"})
	names, _ = f.offered("names")
	is.Equal(len(names), 4)
	for _, name := range names {
		ordertest.AtMost(is, len(name), 64)
		is.True(!notInNames.MatchString(name))
	}
	is.Equal(names[1], "names__a_b_c_"+strings.TrimPrefix(names[1], "names__a_b_c_"))
	is.True(names[1] != names[2]) // although both names become a_b_c
}

func TestProgramThatDoesNotAnswerBlocksNobody(t *testing.T) {
	t.Parallel()
	hasty := quick
	hasty.Toolset, hasty.Connect = 50*time.Millisecond, 500*time.Millisecond
	for _, mode := range []string{"mute", "garbage"} { // garbage prints a banner and no answer
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newPool(t, hasty, a(mode))
			names, note := f.offered(mode)
			is.Equal(len(names), 0)
			contains(t, note, mode)
			storetest.Eventually(t, "it is given up", func() bool { return strings.Contains(f.log.String(), "did not begin to answer within 500ms") })
		})
	}
}

// TestHungProgramIsRestarted freezes a server after a good start. Its tools are then
// missing in toolsets, so no call can detect the problem.
func TestHungProgramIsRestarted(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	is := is.New(t)
	hasty := quick
	// Long enough for a healthy program, even on a busy machine: otherwise the new one would
	// also be considered frozen.
	hasty.Toolset, hasty.Answer, hasty.Fresh = 2*time.Second, 2*time.Second, time.Nanosecond
	f := newPool(t, hasty, a("good"))
	first := f.must("good", "pid", `{}`)
	pid, err := strconv.Atoi(strings.Trim(first, `"`))
	is.NoErr(err)
	is.NoErr(syscall.Kill(pid, syscall.SIGSTOP))
	storetest.Eventually(t, "the program is frozen", func() bool { // the signal may take a moment
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err != nil || strings.Contains(string(stat), ") T ") // other systems have no /proc
	})
	storetest.Eventually(t, "another is there", func() bool {
		names, _ := f.offered("good")
		return len(names) > 0
	})
	is.True(f.must("good", "pid", `{}`) != first) // the dead program answers
}

func TestProgramThatDoesNotReadBlocksNobody(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newPool(t, quick, a("deaf"))
	f.offered("deaf")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	begun := time.Now()
	_, err := f.call(ctx, "deaf", "fine", `{"text":"`+strings.Repeat("x", 1<<20)+`"}`) // fills the pipe
	is.True(errors.Is(err, context.Canceled))
	ordertest.Below(is, time.Since(begun), 20*time.Second) // the call did not end with its turn
}

func TestStopEndsAllPrograms(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newPool(t, quick, a("good"), a("stubborn"))
	pids := []string{f.must("good", "pid", `{}`), f.must("good", "fork", `{}`), f.must("stubborn", "pid", `{}`)}
	result := make(chan error, 1)
	go func() { _, err := f.call(t.Context(), "good", "hang", `{}`); result <- err }()
	f.Stop()
	is.True(<-result != nil) // calls in progress fail
	for _, quoted := range pids {
		pid, err := strconv.Atoi(strings.Trim(quoted, `"`))
		is.NoErr(err)
		storetest.Eventually(t, "process "+quoted+" is gone", func() bool { return syscall.Kill(pid, 0) != nil })
	}
	contains(t, f.refused("good", "echo", `{"text":"hi"}`), "not available")
	f.Stop() // a second call has no effect
}

func TestManyCallsAtOnce(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newPool(t, quick, a("good"))
	f.Start()
	const n = 100
	results := make(chan string, n)
	for i := range n {
		go func() {
			out, err := f.call(t.Context(), "good", "echo", `{"text":"`+strconv.Itoa(i)+`"}`)
			if err != nil {
				out = err.Error()
			}
			results <- out
		}()
	}
	seen := map[string]bool{}
	for range n {
		seen[<-results] = true
	}
	is.Equal(len(seen), n)                                             // each call gets its own result
	is.Equal(strings.Count(f.log.String(), "connected to the MCP"), 1) // one program for all calls
}

func TestRepeatableOnTrust(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	trusted := a("good")
	trusted.TrustHints = true
	f := newPool(t, quick, trusted, a("other"))
	repeatable := map[string]bool{}
	for _, o := range f.Toolset(t.Context(), []string{"good", "other"}, f.Secret).Tools {
		repeatable[o.Name] = f.Tool(o).Spec().Repeatable
	}
	is.True(repeatable["good__echo"])
	is.True(!repeatable["good__die"])
	is.True(!repeatable["other__echo"]) // the hint of an untrusted server is ignored
}

func TestStatus(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newPool(t, quick, a("good"), Server{Name: "none", Command: "no-such-program"})
	status := f.Status(t.Context())
	is.Equal(len(status), 2)
	is.NoErr(status[0].Err)
	ordertest.Above(is, len(status[0].Tools), 5) // tools are missing
	contains(t, status[1].Err.Error(), `no program "no-such-program"`)
}

func TestProgramInItsFolder(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	script := filepath.Join(dir, "tools.sh")
	is.NoErr(os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700))
	for _, tt := range []struct{ command, dir, path string }{
		{"./tools.sh", dir, script}, {script, "", script}, {"tools.sh", "", script}, {"sh", "", "/usr/bin/sh"}, {"./none", dir, ""}, {"none", dir, ""},
	} {
		path, err := lookPath(tt.command, tt.dir, []string{"PATH=" + dir + ":/usr/bin"})
		is.Equal(path, tt.path)
		is.Equal(err != nil, tt.path == "")
	}
}
