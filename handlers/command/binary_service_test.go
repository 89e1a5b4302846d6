//go:build linux

package command_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/storetest"
)

// TestReadinessEndsFirst stops a server behind a load balancer. It becomes unready with a reason,
// and answers requests until the delay ends. A second signal kills it.
func TestReadinessEndsFirst(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := serve(t, t.TempDir(), "--drain-delay", "1h", "--model", "offline")
	s.signal(t, syscall.SIGTERM)
	var ready struct {
		Status string
		Checks map[string]string
	}
	storetest.Eventually(t, "the end of readiness", func() bool {
		a, err := s.send(t.Context(), http.MethodGet, "/readyz", nil)
		return err == nil && a.status == http.StatusServiceUnavailable && json.Unmarshal(a.body, &ready) == nil
	})
	is.Equal(ready.Checks["server"], "stopping")
	is.Equal(ready.Checks["database"], "ok")
	a, err := s.send(t.Context(), http.MethodGet, "/healthz", nil)
	is.NoErr(err)
	is.Equal(a.status, http.StatusOK) // the process must not count as dead
	v := s.mustPost(t, "/api/tasks", map[string]any{"input": offlineScript("say done")})
	is.Equal(v.OutputText, "done")
	s.signal(t, syscall.SIGTERM)
	is.Equal(s.wait(t), -1) // killed by the signal
}

// TestStopClosesMailSessions stops a server while a mail server is connected.
func TestStopClosesMailSessions(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := serve(t, t.TempDir(), "--model", "offline")
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.await(t, s.stdout, mailPrinted)[1])
	is.NoErr(err)
	defer conn.Close()
	is.NoErr(conn.SetDeadline(time.Now().Add(patience)))
	lines := bufio.NewReader(conn)
	_, err = lines.ReadString('\n')
	is.NoErr(err)
	s.stop(t)
	rest, err := io.ReadAll(lines)
	is.NoErr(err)
	is.Equal(string(rest), "421 4.3.2 The server stops, try again later\r\n")
}

// A manager is a fake service manager that servers notify.
type manager struct {
	path string
	conn *net.UnixConn
	told []string // the messages that arrived
}

func newManager(t *testing.T) *manager {
	t.Helper()
	dir, err := os.MkdirTemp("", "notify") // the path of the test's folder may be too long for an address
	is.New(t).NoErr(err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	m := &manager{path: filepath.Join(dir, "s")}
	if m.conn, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.path, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.conn.Close() })
	return m
}

// until reads messages until one contains the line, and returns that message.
func (m *manager) until(t *testing.T, line string) []string {
	t.Helper()
	is.New(t).NoErr(m.conn.SetReadDeadline(time.Now().Add(patience)))
	buf := make([]byte, 4096)
	for {
		n, err := m.conn.Read(buf)
		if err != nil {
			t.Fatalf("the service manager has not been told %q, but %q: %v", line, m.told, err)
		}
		m.told = append(m.told, string(buf[:n]))
		lines := strings.Split(string(buf[:n]), "\n")
		if slices.Contains(lines, line) {
			return lines
		}
	}
}

// TestServiceManager checks the notifications of a start, of work and of a stop.
func TestServiceManager(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m := newManager(t)
	s := invocation{env: []string{"NOTIFY_SOCKET=" + m.path, "WATCHDOG_USEC=300000"}}.
		serve(t, "", testKey, serveArgs(t.TempDir(), "--model", "offline")...)
	m.until(t, "READY=1")
	is.True(strings.Contains(m.told[0], "STATUS=Opening the data folder")) // a long start must not count as hanging
	is.True(strings.Contains(m.told[0], "EXTEND_TIMEOUT_USEC="))
	for range 3 {
		is.Equal(m.until(t, "WATCHDOG=1")[0], "STATUS=Serving on "+s.url+", 0 turns are running")
	}
	s.signal(t, syscall.SIGTERM)
	last := m.until(t, "STOPPING=1")
	is.True(strings.HasPrefix(last[2], "EXTEND_TIMEOUT_USEC=")) // the grace period may be longer than the manager's time-out
	is.Equal(s.wait(t), 0)
	is.NoErr(m.conn.SetReadDeadline(time.Now())) // messages after the end would have arrived
	_, err := m.conn.Read(make([]byte, 10))
	is.True(err != nil) // no keep-alive message follows the stop
}
