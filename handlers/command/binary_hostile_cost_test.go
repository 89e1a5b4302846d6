//go:build linux

package command_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/storetest"
)

// limitMemory puts a process and its later children into a cgroup of hostileLimit bytes, if this
// machine allows it. It returns what it did.
func limitMemory(t *testing.T, pid int) string {
	t.Helper()
	for _, limit := range []string{"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory.max"} {
		root, file := filepath.Split(limit)
		group := filepath.Join(root, fmt.Sprintf("journeyman-test-%d", pid))
		if os.Mkdir(group, 0o755) != nil {
			continue
		}
		// A folder that is no cgroup lacks these files, and would accept new ones.
		write := func(name, value string) error {
			f, err := os.OpenFile(filepath.Join(group, name), os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString(value)
			return errors.Join(err, f.Close())
		}
		if write(file, strconv.Itoa(hostileLimit)) != nil || write("cgroup.procs", strconv.Itoa(pid)) != nil {
			_ = os.Remove(group) // it has no process
			continue
		}
		t.Cleanup(func() {
			storetest.Eventually(t, "the end of the group", func() bool {
				err := os.Remove(group) // after the processes have ended
				return err == nil || errors.Is(err, fs.ErrNotExist)
			})
		})
		return "the server is limited by " + group
	}
	return "this machine lets us limit nothing: memory is only measured"
}

// cpu returns the CPU time of the server and of its children that have ended.
func (h *victim) cpu() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", h.cmd.Process.Pid))
	if err != nil {
		return 0 // the process has ended, which another check reports
	}
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	sum := 0
	for _, s := range f[11:15] {
		n, err := strconv.Atoi(s)
		is.New(h.t).NoErr(err)
		sum += n
	}
	return time.Duration(sum) * 10 * time.Millisecond // the clock tick of all Linux systems
}

// resetPeak resets the peak of the server's memory, if the kernel can.
func (h *victim) resetPeak() {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", h.cmd.Process.Pid), []byte("5"),
		0) // otherwise the peak includes earlier attacks
}

// peak returns the peak of the server's resident memory.
func (h *victim) peak() uint64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		return 0
	}
	kib, err := strconv.ParseUint(string(m[1]), 10, 64)
	is.New(h.t).NoErr(err)
	return kib << 10
}

// watchHealth polls /healthz until the returned function is called, which returns the longest time
// of an answer. A sample counts only if another server of the test answered at once meanwhile:
// otherwise the machine was busy.
func watchHealth(t *testing.T, base string) func() time.Duration {
	control := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	client := &http.Client{Transport: &http.Transport{}, Timeout: patience}
	took := func(address string) time.Duration {
		begun := time.Now()
		res, err := client.Get(address)
		if err != nil {
			return patience
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return patience
		}
		return time.Since(begun)
	}
	var slowest time.Duration
	var running sync.WaitGroup
	stop := make(chan struct{})
	running.Go(func() {
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			select {
			case <-stop:
				tick.Stop()
				return
			case <-tick.C:
			}
			controlled := make(chan time.Duration, 1)
			go func() { controlled <- took(control.URL) }()
			d := took(base + "/healthz")
			if delay := <-controlled; d-delay > slowest {
				slowest = d - delay
			}
		}
	})
	return func() time.Duration {
		close(stop)
		running.Wait()
		control.Close()
		client.CloseIdleConnections()
		return slowest
	}
}

// readers returns the number of processes of a server that read documents.
func readers(t *testing.T, s *instance) int {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	is.New(t).NoErr(err)
	n := 0
	for _, p := range all {
		line, err := os.ReadFile(p)
		if err != nil || !bytes.Contains(line, []byte("\x00-filter\x00")) {
			continue
		}
		status, err := os.ReadFile(filepath.Join(filepath.Dir(p), "status"))
		if err == nil && bytes.Contains(status, fmt.Appendf(nil, "\nPPid:\t%d\n", s.cmd.Process.Pid)) {
			n++
		}
	}
	return n
}

// TestCancelKillsReader cancels a task that reads an endless document.
func TestCancelKillsReader(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	document := hostilePDFs()["pages in a circle"]
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/pdf")
		_, _ = w.Write(document)
	}))
	defer web.Close()
	s := serve(t, t.TempDir(), "--allow-private-network")
	script := offlineScript(toolLine("web_fetch", map[string]any{"url": web.URL}))
	v := s.mustPost(t, "/api/tasks", map[string]any{"input": script}, "Prefer", "respond-async")
	storetest.Eventually(t, "the reader", func() bool { return readers(t, s) == 1 })
	a, err := s.post(t.Context(), "/api/tasks/"+v.Metadata.TaskID+"/cancel", nil)
	if err != nil || a.status != http.StatusOK {
		t.Fatalf("cancel answered %d, %v", a.status, err)
	}
	if n := readers(t, s); n != 0 {
		t.Errorf("%d readers are left", n)
	}
}
