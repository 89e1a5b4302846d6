package command_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"golang.org/x/sys/unix"

	"journeyman/store/storetest"
)

// TestNoDescriptorLeft takes every file descriptor from the running program. It still answers
// health checks, refuses other requests with a reason by HTTP and SMTP, and recovers by itself.
func TestNoDescriptorLeft(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	is := is.New(t)
	s := serve(t, t.TempDir())
	mailAddr := s.await(t, s.stdout, mailPrinted)[1]
	byKey := "HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + s.key + "\r\n"
	me := "GET /api/me " + byKey + "Connection: close\r\n\r\n"
	idle := s.ask(t, "GET /api/me "+byKey+"\r\n")
	is.Equal(readStatus(t, idle), 200)
	give := s.takeDescriptors(t)

	is.Equal(readStatus(t, s.ask(t, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")), 200)

	// Requests without their bodies use the remaining descriptors: such a connection is not idle.
	busy := "POST /api/tasks " + byKey + "Content-Type: application/json\r\nContent-Length: 10\r\n\r\n"
	storetest.Eventually(t, "a refusal", func() bool {
		s.ask(t, busy)
		return readStatus(t, s.ask(t, me)) == 503
	})
	_, err := idle.Read(make([]byte, 1))
	is.Equal(err, io.EOF) // an idle connection is closed first
	is.Equal(readStatus(t, s.ask(t, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")), 200)
	is.True(readStatus(t, s.ask(t, "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")) != 0) // the answer may report a fault
	for range 3 {                                                                    // silent clients hold spare descriptors only for a moment
		s.ask(t, "")
	}
	// Connections that have just ended may free a descriptor for the next request.
	storetest.Eventually(t, "a refusal again", func() bool {
		s.ask(t, busy)
		return readStatus(t, s.ask(t, me)) == 503
	})
	storetest.Eventually(t, "a refusal by SMTP that says why", func() bool {
		s.ask(t, busy)
		return strings.HasPrefix(greeting(t, mailAddr), "421 4.3.2 no file descriptor left")
	})

	give()
	storetest.Eventually(t, "an answer", func() bool { return readStatus(t, s.ask(t, me)) == 200 })
	storetest.Eventually(t, "mail again", func() bool { return strings.HasPrefix(greeting(t, mailAddr), "220 ") })
	s.stop(t)
}

// takeDescriptors lowers the limit of the program to its open descriptors. The returned function
// restores the limit.
func (s *instance) takeDescriptors(t *testing.T) (give func()) {
	t.Helper()
	pid := s.cmd.Process.Pid
	first := 0 // the lowest free descriptor: the limit is a number that no descriptor may reach
	for ; ; first++ {
		if _, err := os.Lstat(filepath.Join("/proc", strconv.Itoa(pid), "fd", strconv.Itoa(first))); err != nil {
			break
		}
	}
	var old unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &old); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(first), Max: old.Max}, nil); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &old, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// ask sends a request on a new connection.
func (s *instance) ask(t *testing.T, request string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprint(c, request); err != nil {
		t.Fatal(err)
	}
	return c
}

// readStatus reads the status of the answer on a connection. It returns 0 if there is none.
func readStatus(t *testing.T, c net.Conn) int {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// greeting returns the first line of a mail server.
func greeting(t *testing.T, addr string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line
}
