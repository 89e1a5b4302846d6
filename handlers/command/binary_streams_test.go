package command_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

// TestIdleStreamMemory bounds the memory of an idle stream: 10,000 may take 600 MB.
func TestIdleStreamMemory(t *testing.T) {
	storetest.Long(t)
	is := is.New(t)
	const n = 500
	for kind, most := range map[string]float64{"worker": 60e3, "task": 60e3, "events": 60e3} {
		m := measured(t, "--max-streams", "100000", "--max-connections", "100000", "--rate-limit", "0",
			"--admin-password", "of the benchmark")
		request := m.idleRequest(t, kind)
		m.subscribe(t, request) // the first stream creates shared resources, which do not count
		before := m.usage(t)
		for range n {
			m.subscribe(t, request)
		}
		after := m.usage(t)
		for range 8 { // each collection halves the stacks that a request has grown
			after = m.usage(t)
		}
		each := (after.heap + after.stack - before.heap - before.stack) / n
		t.Logf("%s: %.0f bytes, %.2f goroutines", kind, each, (after.goroutines-before.goroutines)/n)
		ordertest.Below(is, each, most)                                   // an idle stream needs too much memory
		ordertest.Below(is, after.goroutines-before.goroutines, 5*n+n/10) // an idle stream needs too many goroutines
		m.kill()
	}
}

// A measuredProgram is a program that serves its profiles.
type measuredProgram struct {
	*instance
	profiles string
}

var profilerLogged = regexp.MustCompile(`"msg":"profiler","address":"([^"]+)"`)

func measured(b testing.TB, args ...string) measuredProgram {
	s := serve(b, b.TempDir(), append(args, "--pprof-addr", "127.0.0.1:0")...)
	return measuredProgram{s, s.await(b, s.stderr, profilerLogged)[1]}
}

// usage is the use of memory after a garbage collection, in bytes, and the number of goroutines.
type usage struct{ heap, stack, goroutines float64 }

func (m measuredProgram) usage(b testing.TB) usage {
	heap := m.profile(b, "heap?gc=1&debug=1")
	return usage{figure(b, heap, `# HeapAlloc = (\d+)`), figure(b, heap, `# Stack = (\d+)`),
		figure(b, m.profile(b, "goroutine?debug=1"), `goroutine profile: total (\d+)`)}
}

func (m measuredProgram) profile(b testing.TB, name string) []byte {
	is := is.New(b)
	resp, err := ownClient.Get(m.profiles + name)
	is.NoErr(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	is.NoErr(err)
	return text
}

func figure(b testing.TB, text []byte, pattern string) float64 {
	m := regexp.MustCompile(pattern).FindSubmatch(text)
	if m == nil {
		b.Fatalf("no %s", pattern)
	}
	n, err := strconv.ParseFloat(string(m[1]), 64)
	is.New(b).NoErr(err)
	return n
}

// idleRequest returns a request for an idle stream.
func (m measuredProgram) idleRequest(b testing.TB, kind string) string {
	head := " HTTP/1.1\r\nHost: " + strings.TrimPrefix(m.url, "http://") + "\r\n"
	byKey := head + "Authorization: Bearer " + m.key + "\r\n"
	asleep := m.mustPost(b, "/api/tasks", map[string]any{"input": offlineScript("wait 1h")}, "Prefer", "respond-async")
	switch kind {
	case "worker":
		return "GET /api/workers/" + asleep.ID + "/stream" + byKey + "\r\n"
	case "task":
		return "GET /api/workers/" + asleep.ID + "?stream=true" + byKey + "\r\n"
	}
	byCookie := head + "Cookie: " + m.signIn(b, "owner@localhost", "of the benchmark") + "\r\n\r\n"
	if kind == "events" {
		return "GET /events" + byCookie
	}
	return "GET /tasks/" + asleep.Metadata.TaskID + "/live" + byCookie
}

// subscribe sends a request for a stream and reads the header of the answer.
func (m measuredProgram) subscribe(b testing.TB, request string) net.Conn {
	conn, err := net.Dial("tcp", strings.TrimPrefix(m.url, "http://"))
	is.New(b).NoErr(err)
	b.Cleanup(func() { conn.Close() }) // it also keeps the connection until then
	if _, err = io.WriteString(conn, request); err != nil {
		b.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReaderSize(conn, 512), nil)
	if err != nil || resp.StatusCode != http.StatusOK {
		b.Fatalf("%v: %+v", err, resp)
	}
	return conn
}

// memoryMB reads a figure of the kernel about the program's memory (proc_pid_status(5)), such as
// VmRSS.
func memoryMB(b testing.TB, s *instance, name string) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	is.New(b).NoErr(err)
	return figure(b, status, name+`:\s+(\d+) kB`) / 1024
}
