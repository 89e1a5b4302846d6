package handlers_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers"
	"journeyman/store"
	"journeyman/store/storetest"
)

// A deafClient writes a whole request before it reads the answer, as many HTTP libraries do.
type deafClient struct {
	t    testing.TB
	conn net.Conn
}

func (s *site) deaf(t testing.TB) deafClient {
	t.Helper()
	return dialDeaf(t, strings.TrimPrefix(s.url, "http://"))
}

func dialDeaf(t testing.TB, address string) deafClient {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	is.New(t).NoErr(err)
	t.Cleanup(func() { conn.Close() })
	is.New(t).NoErr(conn.SetDeadline(time.Now().Add(patience)))
	return deafClient{t, conn}
}

// send writes the head and size bytes of a body, chunked or not, and then reads the status of the answer.
func (c deafClient) send(head string, size int, chunked bool) (status int, body string) {
	c.t.Helper()
	is := is.New(c.t)
	framing, last := fmt.Sprintf("Content-Length: %d\r\n\r\n", size), ""
	if chunked {
		framing, last = "Transfer-Encoding: chunked\r\n\r\n", "0\r\n\r\n"
	}
	_, err := io.WriteString(c.conn, head+framing)
	is.NoErr(err)
	piece := bytes.Repeat([]byte("x"), 64<<10)
	if strings.Contains(head, "boundary=b") { // the body is one file that does not end
		copy(piece, "--b\r\nContent-Disposition: form-data; name=f; filename=a\r\n\r\n")
	}
	for sent := 0; sent < size; sent += len(piece) {
		data := piece
		if chunked {
			data = fmt.Appendf(nil, "%x\r\n%s\r\n", len(piece), piece)
		}
		if _, err := c.conn.Write(data); err != nil {
			c.t.Fatalf("after %d bytes: %v", sent, err)
		}
	}
	_, err = io.WriteString(c.conn, last)
	is.NoErr(err)
	return c.answer()
}

func (c deafClient) answer() (status int, body string) {
	c.t.Helper()
	is := is.New(c.t)
	resp, err := http.ReadResponse(bufio.NewReader(c.conn), nil)
	is.NoErr(err)
	raw, err := io.ReadAll(resp.Body)
	is.NoErr(err)
	return resp.StatusCode, string(raw)
}

// largeBody is more than the buffers of both kernels hold.
const largeBody = 32 << 20

// TestRefusedUploadsGetTheirAnswer sends large bodies that are refused for different reasons, by a client
// that reads nothing until it has sent all. It still gets the answer.
func TestRefusedUploadsGetTheirAnswer(t *testing.T) {
	t.Parallel()
	form := "Content-Type: multipart/form-data; boundary=b\r\n"
	for name, tt := range map[string]struct {
		path, header string
		setup        option
		status       int
		code         string
	}{
		"a large JSON body": {"/api/tasks", "Content-Type: application/json\r\n", idle, 413, "too_large"},
		"a large form": {"/api/tasks", form, func(set *settings) {
			set.api.Uploads.RequestSize = 1 << 20
		}, 413, ""},
		"no key":          {"/api/tasks", "Authorization: Bearer none\r\n" + form, idle, 401, "unauthorized"},
		"no such path":    {"/api/nothing", form, idle, 404, "not_found"},
		"no such method":  {"/api/me", form, idle, 405, "method_not_allowed"},
		"another type":    {"/api/tasks", "Content-Type: text/plain\r\n", idle, 415, "unsupported_media_type"},
		"too many":        {"/api/tasks", form, func(set *settings) { set.api.RateLimit = 1 }, 429, "rate_limited"},
		"a full disk":     {"/api/tasks", form, idle, 503, "storage"},
		"a large message": {"/mcp", "Content-Type: application/json\r\n", idle, 413, ""},
	} {
		for _, chunked := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", chunked ", chunked), func(t *testing.T) {
				t.Parallel()
				is := is.New(t)
				s := newServer(t, tt.setup)
				switch tt.status {
				case 429:
					for s.do(t, "GET", "/api/me", "").status != 429 {
						continue
					}
				case 503:
					s.store.ReadOnly(store.ReadOnlyError(store.CodeStorage, "the disk is full"))
				}
				head := "POST " + tt.path + " HTTP/1.1\r\nHost: x\r\n" + tt.header
				if !strings.Contains(head, "Authorization") {
					head += "Authorization: Bearer " + s.key + "\r\n"
				}
				status, body := s.deaf(t).send(head, largeBody, chunked)
				is.Equal(status, tt.status)
				is.True(strings.Contains(body, tt.code))
			})
		}
	}
}

// TestExpectingClientSendsNothing checks that a client that waits for "100 Continue" gets a refusal at once,
// without being told to send.
func TestExpectingClientSendsNothing(t *testing.T) {
	is, s := onServer(t, idle)
	c := s.deaf(t)
	_, err := io.WriteString(c.conn, "POST /api/tasks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer none\r\nExpect: 100-continue\r\n"+
		"Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n")
	is.NoErr(err)
	begun := time.Now()
	status, _ := c.answer()
	is.Equal(status, 401)
	_, err = c.conn.Read(make([]byte, 1))
	is.Equal(err, io.EOF) // the connection is closed
	is.True(time.Since(begun) < 8*time.Second)
}

// uploading is a request whose client sends much more after the answer.
const uploading = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n"

// refuse answers without reading the body.
func refuse(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTeapot) }

// TestReadingOnMakesRoom fills a gate with clients that have their answers and still send. Others are served.
func TestReadingOnMakesRoom(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	g := newGateServer(t, 2, refuse)
	for range 2 {
		is.Equal(answerOn(t, g.dial(t, uploading)).StatusCode, http.StatusTeapot)
	}
	for range 20 {
		// The server reports that it reads on after it has sent the answer.
		storetest.Eventually(t, "room for one more", func() bool {
			return answerOn(t, g.dial(t, uploading)).StatusCode == http.StatusTeapot
		})
	}
}

// TestReadingOnEndsAtShutdown shuts a server down while clients have their answers and still send. They do not
// delay it.
func TestReadingOnEndsAtShutdown(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	g := newGateServer(t, 100, refuse)
	for i := range 20 {
		c := g.dial(t, uploading)
		is.Equal(answerOn(t, c).StatusCode, http.StatusTeapot)
		if i%2 == 0 {
			go func() { _, _ = io.Copy(c, endless{}) }() // it ends with the connection
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), handlers.ReadOnPiece/2)
	defer cancel()
	is.NoErr(g.Shutdown(ctx))
}

// endless is a reader that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// newFullGate returns a server for one connection, which is busy until the test ends.
func newFullGate(t *testing.T) *streamServer {
	t.Helper()
	busy, done := make(chan struct{}), make(chan struct{})
	g := newGateServer(t, 1, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/busy" {
			close(busy)
			<-done
		}
	})
	t.Cleanup(func() { close(done) })
	g.dial(t, getOf("/busy"))
	<-busy
	return g
}

// TestRefusedConnectionReadsOn sends a large body to a full server, for longer than a refused client
// that sends nothing may stay. It gets the answer.
func TestRefusedConnectionReadsOn(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	g := newFullGate(t)
	conn := dialDeaf(t, g.addr)
	_, err := io.WriteString(conn.conn, uploading)
	is.NoErr(err)
	for sent, until := 0, time.Now().Add(handlers.RefusedFor+time.Second); time.Now().Before(until); sent++ {
		_, err := conn.conn.Write(make([]byte, 1<<10))
		is.NoErr(err) // the connection is open
		<-time.After(20 * time.Millisecond)
	}
	status, body := conn.answer()
	is.Equal(status, http.StatusServiceUnavailable)
	is.True(strings.Contains(body, "busy"))
}

// TestRefusedConnectionsMakeRoom fills the places of refused connections with clients that have their answers and
// still send. A further one is answered.
func TestRefusedConnectionsMakeRoom(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	g := newFullGate(t)
	for range handlers.MaxRefused + 10 {
		// As above, a place is free only after the server has reported that it reads on.
		storetest.Eventually(t, "an answer", func() bool {
			resp, err := http.ReadResponse(bufio.NewReader(g.dial(t, uploading)), nil)
			return err == nil && resp.StatusCode == http.StatusServiceUnavailable
		})
	}
	is.Equal(answerOn(t, g.dial(t, getOf("/healthz"))).StatusCode, http.StatusOK)
}

// TestReadingOnIsBounded checks that the server stops to read at each of the limits.
func TestReadingOnIsBounded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		size          int64
		within, piece time.Duration
		sends         bool // the client goes on sending
	}{
		"bytes":          {1 << 20, time.Hour, time.Hour, true},
		"time":           {1 << 60, 300 * time.Millisecond, time.Hour, true},
		"a silent pause": {1 << 60, time.Hour, 100 * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			refuses := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTeapot) })
			srv := httptest.NewServer(handlers.ReadOn(refuses, tt.size, tt.within, tt.piece))
			t.Cleanup(srv.Close)
			c := dialDeaf(t, srv.Listener.Addr().String())
			_, err := io.WriteString(c.conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000000\r\n\r\n")
			is.NoErr(err)
			piece := make([]byte, 64<<10)
			for sent := int64(0); tt.sends && err == nil && sent < 1<<40; sent += int64(len(piece)) {
				_, err = c.conn.Write(piece)
			}
			if tt.sends {
				is.True(err != nil) // the connection was closed
				return
			}
			status, _ := c.answer()
			is.Equal(status, http.StatusTeapot)
			_, err = c.conn.Read(piece)
			is.Equal(err, io.EOF)
		})
	}
}
