//go:build linux

package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// A sample is the use of resources at one moment of a soak.
type sample struct {
	resident, heap, wal, database int // bytes
	goroutines, descriptors       int
	tasks                         int
}

func (s sample) String() string {
	return fmt.Sprintf("RSS %.1f MB, heap %.1f MB, %d goroutines, %d descriptors, WAL %.1f MB, %d tasks, "+
		"%d bytes of the database a task", float64(s.resident)/1e6, float64(s.heap)/1e6, s.goroutines, s.descriptors,
		float64(s.wal)/1e6, s.tasks, s.database/max(s.tasks, 1))
}

// sample measures the program while it is idle.
func (w *world) sample() (s sample) {
	w.t.Helper()
	s.resident = w.now.resident(w.t)
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", w.now.cmd.Process.Pid))
	is.New(w.t).NoErr(err)
	s.descriptors = len(fds)
	a, err := w.now.send(w.t.Context(), "GET", "/metrics", nil)
	is.New(w.t).NoErr(err)
	metric := func(name string) int {
		_, rest, ok := strings.Cut(string(a.body), "\n"+name+" ")
		if !ok {
			w.t.Fatalf("no %s in /metrics", name)
		}
		line, _, _ := strings.Cut(rest, "\n")
		n, err := strconv.ParseFloat(line, 64)
		is.New(w.t).NoErr(err)
		return int(n)
	}
	s.goroutines, s.heap = metric("go_goroutines"), metric("go_memstats_heap_alloc_bytes")
	path := filepath.Join(w.dir, databaseName)
	for file, into := range map[string]*int{path: &s.database, path + "-wal": &s.wal} {
		info, err := os.Stat(file)
		is.New(w.t).NoErr(err)
		*into = int(info.Size())
	}
	s.tasks, err = strconv.Atoi(w.rows(`SELECT count(*) FROM tasks`)[0][0])
	is.New(w.t).NoErr(err)
	return s
}

// lowest returns the least value of a figure. Uncollected garbage and running work only add to it.
func lowest(samples []sample, figure func(sample) int) int {
	least := figure(samples[0])
	for _, s := range samples {
		least = min(least, figure(s))
	}
	return least
}

// TestFaultSoak runs clients for a long time: SOAK sets it, such as 20m. It prints the use of
// resources every minute, or ten times in all, and requires that this does not grow.
func TestFaultSoak(t *testing.T) {
	faults(t)
	t.Parallel()
	is := is.New(t)
	duration := time.Minute
	if s := os.Getenv("SOAK"); s != "" {
		var err error
		duration, err = time.ParseDuration(s)
		is.NoErr(err)
	}
	w := newWorld(t, "soak", setting{clients: 8})
	w.wait = 2 * time.Minute
	var samples []sample
	every := min(time.Minute, duration/10)
	for begun := time.Now(); time.Since(begun) < duration; {
		end := w.load()
		select {
		case <-time.After(every):
		case <-t.Context().Done():
		}
		end()
		w.sum.rounds++
		w.check()
		samples = append(samples, w.sample())
		t.Logf("%v: %v", time.Since(begun).Round(time.Second), samples[len(samples)-1])
	}
	if duration >= 10*time.Minute {
		isFlat(t, samples[len(samples)/3:])
	}
	ordertest.Below(is, samples[len(samples)-1].wal, 64<<20) // the log is not emptied
	w.end()
	if folders, err := filepath.Glob(filepath.Join(w.dir, "workspaces", "*")); err == nil {
		t.Logf("%d workspaces", len(folders))
	}
}

// isFlat requires that no figure of the second half of the samples is higher by a fifth.
func isFlat(t *testing.T, samples []sample) {
	t.Helper()
	half := len(samples) / 2
	for _, f := range []struct {
		name   string
		figure func(sample) int
	}{
		{"the resident memory", func(s sample) int { return s.resident }},
		{"the heap", func(s sample) int { return s.heap }},
		{"the number of goroutines", func(s sample) int { return s.goroutines }},
		{"the number of descriptors", func(s sample) int { return s.descriptors }},
		{"the write-ahead log", func(s sample) int { return s.wal }},
	} {
		before, after := lowest(samples[:half], f.figure), lowest(samples[half:], f.figure)
		t.Logf("%s is at least %d, and %d in the second half", f.name, before, after)
		if float64(after) > 1.2*float64(before) {
			t.Errorf("%s grows", f.name)
		}
	}
}
