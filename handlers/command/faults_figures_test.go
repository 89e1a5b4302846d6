//go:build linux

package command_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/storetest"
)

// TestFaultFigures measures the time from a kill to readiness, the time of a backup and its
// restore, and the time of tasks during a backup. It does so once, in a small data folder. With
// FIGURES=70000 in the environment, the database has a gigabyte, and the test needs 5 GB of disk.
func TestFaultFigures(t *testing.T) {
	is := is.New(t)
	tasks, kills, rounds, length := 500, 1, 1, time.Second
	many := os.Getenv("FIGURES")
	if many == "" {
		faults(t)
	} else {
		n, err := strconv.Atoi(many)
		is.NoErr(err)
		tasks, kills, rounds, length = n, 3, 5, 10*time.Second
	}
	dir, backup := t.TempDir(), filepath.Join(t.TempDir(), "folder.backup")
	s := serve(t, dir)
	words := strings.Repeat("These words are the answer of one step of many. ", 100)
	s.mustPost(t, "/api/tasks", map[string]any{"input": offlineScript("say "+words, "tool list_files {}", "say "+words,
		"tool list_files {}", "say "+words)})
	s.stop(t)
	storetest.Multiply(t, dir, tasks)
	info, err := os.Stat(filepath.Join(dir, databaseName))
	is.NoErr(err)
	t.Logf("the database has %d MB", info.Size()/1e6)
	s = serve(t, dir)
	for range rounds { // first, because the tasks below hold every slot
		besideLoad(t, s, dir, length)
	}
	for range kills {
		for range 50 {
			s.mustPost(t, "/api/tasks", map[string]any{"input": offlineScript("wait 1m", "say never")},
				"Prefer", "respond-async")
		}
		s.kill()
		begun := time.Now()
		s = serve(t, dir)
		storetest.Eventually(t, "readiness", func() bool {
			a, err := s.send(t.Context(), http.MethodGet, "/readyz", nil)
			return err == nil && a.status == http.StatusOK
		})
		t.Logf("ready %v after a kill", time.Since(begun).Round(time.Millisecond))
	}
	for _, args := range [][]string{
		{"backup", backup, "--data", dir},
		{"restore", "--check", backup},
		{"restore", backup, "--data", filepath.Join(t.TempDir(), "restored")},
	} {
		begun := time.Now()
		p := invocation{}.start(t, args...)
		<-p.exited
		is.Equal(p.cmd.ProcessState.ExitCode(), 0)
		t.Logf("%s: %v", strings.Join(args[:len(args)-1], " "), time.Since(begun).Round(time.Millisecond))
	}
	info, err = os.Stat(backup)
	is.NoErr(err)
	t.Logf("the backup has %d MB", info.Size()/1e6)
}

// besideLoad measures tasks for that time alone, and then during a backup. It logs the ratio of
// their 99th percentiles.
func besideLoad(t *testing.T, s *instance, dir string, length time.Duration) {
	t.Helper()
	end := time.Now().Add(length)
	alone := s.latencies(t, func() bool { return time.Now().After(end) })
	target := filepath.Join(t.TempDir(), "beside.backup")
	p := invocation{}.start(t, "backup", target, "--data", dir)
	beside := s.latencies(t, func() bool {
		select {
		case <-p.exited:
			return true
		default:
			return false
		}
	})
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Fatalf("the backup beside the load ended with %d: %s", code, p.stderr)
	}
	if err := os.Remove(target); err != nil {
		t.Fatal(err)
	}
	a, b := percentile99(alone), percentile99(beside)
	t.Logf("p99 of %d tasks alone: %v, of %d beside a backup: %v, ratio %.2f", len(alone), a, len(beside), b,
		float64(b)/float64(a))
}

// latencies runs tasks from four clients, each with a pause after it, until over returns true. Each
// client runs at least one.
func (s *instance) latencies(t *testing.T, over func() bool) []time.Duration {
	t.Helper()
	const clients = 4
	hello := map[string]any{"input": "Say hello."}
	took := make([][]time.Duration, clients)
	failed := make([]error, clients)
	var group sync.WaitGroup
	for i := range clients {
		group.Go(func() {
			for more := true; more; more = failed[i] == nil && !over() {
				begun := time.Now()
				var a reply
				if a, failed[i] = s.post(t.Context(), "/api/tasks", hello); a.status != http.StatusOK {
					failed[i] = errors.Join(failed[i], fmt.Errorf("status %d: %s", a.status, a.body))
				}
				took[i] = append(took[i], time.Since(begun))
				<-time.After(5 * time.Millisecond) // a moderate load
			}
		})
	}
	group.Wait()
	if err := errors.Join(failed...); err != nil {
		t.Fatal(err)
	}
	return slices.Concat(took...)
}

func percentile99(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)*99/100].Round(10 * time.Microsecond)
}
