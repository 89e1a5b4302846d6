//go:build linux

package command_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err := m.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	for {
		n, err := m.conn.Read(buf)
		if err != nil {
			t.Fatalf("the service manager has not been told %q, but %q: %v", line, m.told, err)
		}
		m.told = append(m.told, string(buf[:n]))
		lines := strings.Split(string(buf[:n]), "\n")
		for _, l := range lines {
			if l == line {
				return lines
			}
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
	s.signal(t, syscall.SIGHUP)
	is.True(regexp.MustCompile(`^MONOTONIC_USEC=\d+$`).MatchString(m.until(t, "RELOADING=1")[1])) // of this reload
	m.until(t, "READY=1")
	s.signal(t, syscall.SIGTERM)
	last := m.until(t, "STOPPING=1")
	is.True(strings.HasPrefix(last[2], "EXTEND_TIMEOUT_USEC=")) // the grace period may be longer than the manager's time-out
	is.Equal(s.wait(t), 0)
	is.NoErr(m.conn.SetReadDeadline(time.Now())) // messages after the end would have arrived
	_, err := m.conn.Read(make([]byte, 10))
	is.True(err != nil) // no keep-alive message follows the stop
}

// passing returns an invocation whose process gets listening sockets, as from systemd. The
// environment must hold the process id, which only a shell can set in time.
func passing(t *testing.T, names []string, sockets ...net.Listener) (c invocation) {
	t.Helper()
	c.wrap = []string{"sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`}
	for _, ln := range sockets {
		f, err := ln.(interface{ File() (*os.File, error) }).File()
		if err != nil {
			t.Fatal(err)
		}
		c.files = append(c.files, f)
		t.Cleanup(func() { _ = f.Close() })
	}
	c.env = []string{"LISTEN_FDS=" + strconv.Itoa(len(sockets)), "LISTEN_FDNAMES=" + strings.Join(names, ":")}
	return c
}

func listenAt(t *testing.T, network, address string) net.Listener {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	return ln
}

// TestPassedSockets serves on sockets that were open before the server started: two for HTTP, one
// for mail. A request that arrives before the start, or between two servers, waits for its answer.
func TestPassedSockets(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	first, second, smtp := listenAt(t, "tcp", "127.0.0.1:0"), listenAt(t, "tcp", "127.0.0.1:0"), listenAt(t, "tcp", "127.0.0.1:0")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // the stop waits for open connections
	health := func(ln net.Listener) chan error {
		done := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+ln.Addr().String()+"/healthz", nil)
			if err == nil {
				var resp *http.Response
				if resp, err = client.Do(req); err == nil {
					_ = resp.Body.Close()
				}
			}
			done <- err
		}()
		return done
	}
	programPath(t) // the build may take longer than a client waits
	early := health(first)
	dir := t.TempDir()
	c := passing(t, []string{"http", "http", "smtp"}, first, second, smtp)
	s := c.serve(t, "", testKey, serveArgs(dir, "--model", "offline", "--addr", "256.0.0.1:1")...)
	is.Equal(s.url, "http://"+first.Addr().String())
	is.NoErr(<-early)
	is.NoErr(<-health(second))
	is.Equal(s.await(t, s.stdout, mailPrinted)[1], smtp.Addr().String())
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", smtp.Addr().String())
	is.NoErr(err)
	is.NoErr(conn.SetDeadline(time.Now().Add(patience)))
	greeting, err := bufio.NewReader(conn).ReadString('\n')
	is.NoErr(err)
	is.True(strings.HasPrefix(greeting, "220 ")) // the mail server answers on the passed socket
	is.NoErr(conn.Close())
	s.stop(t)

	waiting := health(second) // waits in the socket's queue while no server runs
	s = c.serve(t, "", testKey, serveArgs(dir, "--model", "offline")...)
	is.NoErr(<-waiting)
	s.stop(t)
}

func TestPassedSocketsAreNamed(t *testing.T) {
	t.Parallel()
	c := passing(t, []string{"journeyman.socket"}, listenAt(t, "tcp", "127.0.0.1:0"))
	c.start(t, serveArgs(t.TempDir())...).exitedWith(t, 1,
		regexp.QuoteMeta(`socket "journeyman.socket": it must be named http or smtp (FileDescriptorName=)`))
}
