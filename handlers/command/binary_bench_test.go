package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers/command/bench"
	"journeyman/store/storetest"
)

// TestBench measures briefly and compares two runs. The schedules are left out, because they
// become due after a minute.
func TestBench(t *testing.T) {
	storetest.Long(t)
	t.Parallel()
	is := is.New(t)
	saved := filepath.Join(t.TempDir(), "figures.json")
	args := []string{"bench", "--for", "100ms", "--tasks", "1,300", "--readers", "1,100",
		"--only", "machine,memory,tasks,followups,first-event,fanout,webhooks,mail,disk,tables", "--json", saved}
	first := invocation{}.start(t, args...)
	<-first.exited // within the time limit of the package
	is.Equal(first.cmd.ProcessState.ExitCode(), 0)
	report, err := bench.Load(saved)
	is.NoErr(err)
	named := map[string]bench.Figure{}
	for _, f := range report.Figures {
		named[f.Name] = f
	}
	for _, name := range []string{"machine: bare POST", "memory idle", "tasks, 1 clients", "tasks, 256 clients",
		"turns of 10-turn tasks, 32 clients", "first event", "events to 1 readers", "CPU of an event to one of 100 readers",
		"tasks to delivered, 10 webhooks", "mails to completed, 32 connections", "database a task",
		"start with 300 tasks: ready", "list of 50, 300 tasks", "run view, 1 tasks"} {
		f, ok := named[name]
		is.True(ok && f.Value > 0)                               // the figure was measured
		is.True(strings.Contains(first.stdout.String(), f.Name)) // the table shows the figure
	}
	second := invocation{}.run(t, "bench", "--for", "100ms", "--only", "first-event", "--compare", saved)
	is.Equal(second.cmd.ProcessState.ExitCode(), 0)
	is.True(strings.Contains(second.stdout.String(), "better by"))
	is.True(strings.Contains(second.stderr.String(), "measuring first-event")) // progress is not on the standard output
}

// TestBenchRunningServer measures a running server.
func TestBenchRunningServer(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	is := is.New(t)
	s := serve(t, t.TempDir())
	p := invocation{}.run(t, "bench", "--url", s.url, "--key", s.key, "--for", "100ms", "--only", "tasks,disk")
	is.Equal(p.cmd.ProcessState.ExitCode(), 0)
	is.True(strings.Contains(p.stdout.String(), "tasks, 32 clients"))
	is.True(!strings.Contains(p.stdout.String(), "database a task")) // the test cannot measure its data folder
}

func TestBenchWithoutServer(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := invocation{}.run(t, "bench", "--url", "http://127.0.0.1:1", "--key", "k", "--only", "tasks")
	is.Equal(p.cmd.ProcessState.ExitCode(), 1)
	is.Equal(p.stdout.String(), "") // there are no figures
	is.True(strings.Contains(p.stderr.String(), "measure tasks: "))
	is.True(strings.Contains(p.stderr.String(), "connection refused"))
}

func TestBenchRefusals(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	file := filepath.Join(t.TempDir(), "report.json")
	text, err := json.Marshal(bench.Report{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"unknown measure":   {[]string{"--only", "speed"}, `no measure is named "speed"`},
		"no time":           {[]string{"--for", "0s"}, `--for: must be at least`},
		"no key":            {[]string{"--url", "http://127.0.0.1:1"}, `--url and --key`},
		"no numbers":        {[]string{"--tasks", "many"}, `--tasks`},
		"descending":        {[]string{"--readers", "5,1"}, `--readers: must be positive and ascending`},
		"no earlier report": {[]string{"--compare", file}, `is no report`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			invocation{}.run(t, append([]string{"bench"}, tt.args...)...).exitedWith(t, 1, `^journeyman: .*(?:`+tt.says+`)`)
		})
	}
}
