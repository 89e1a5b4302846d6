package serve_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers/serve"
	"journeyman/store/storetest"
)

// uploading is a request whose client sends much more after the answer.
const uploading = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n"

// refuse answers without reading the body.
func refuse(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTeapot) }

// TestReadingOnMakesRoom fills a listener with clients that have their answers and still send. Others are served.
func TestReadingOnMakesRoom(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	g := newServer(t, 2, refuse)
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
	g := newServer(t, 100, refuse)
	for i := range 20 {
		c := g.dial(t, uploading)
		is.Equal(answerOn(t, c).StatusCode, http.StatusTeapot)
		if i%2 == 0 {
			go func() { _, _ = io.Copy(c, endless{}) }() // it ends with the connection
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), serve.ReadOnPiece/2)
	defer cancel()
	is.NoErr(g.Shutdown(ctx))
}

// endless is a reader that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// newFullGate returns a server for one connection, which is busy until the test ends.
func newFullGate(t *testing.T) *server {
	t.Helper()
	busy, done := make(chan struct{}), make(chan struct{})
	g := newServer(t, 1, func(_ http.ResponseWriter, r *http.Request) {
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
	conn := g.dial(t, uploading)
	for sent, until := 0, time.Now().Add(serve.RefusedFor+time.Second); time.Now().Before(until); sent++ {
		_, err := conn.Write(make([]byte, 1<<10))
		is.NoErr(err) // the connection is open
		<-time.After(20 * time.Millisecond)
	}
	resp := answerOn(t, conn)
	body, err := io.ReadAll(resp.Body)
	is.NoErr(err)
	is.Equal(resp.StatusCode, http.StatusServiceUnavailable)
	is.True(strings.Contains(string(body), "busy"))
}

// TestRefusedConnectionsMakeRoom fills the places of refused connections with clients that have their answers and
// still send. A further one is answered.
func TestRefusedConnectionsMakeRoom(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	g := newFullGate(t)
	for range serve.MaxRefused + 10 {
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
			srv := httptest.NewServer(serve.ReadOn(refuses, tt.size, tt.within, tt.piece))
			t.Cleanup(srv.Close)
			c := dial(t, srv.Listener.Addr().String(), "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000000\r\n\r\n")
			var err error
			piece := make([]byte, 64<<10)
			for sent := int64(0); tt.sends && err == nil && sent < 1<<40; sent += int64(len(piece)) {
				_, err = c.Write(piece)
			}
			if tt.sends {
				is.True(err != nil) // the connection was closed
				return
			}
			resp := answerOn(t, c)
			_, err = io.Copy(io.Discard, resp.Body)
			is.NoErr(err)
			is.Equal(resp.StatusCode, http.StatusTeapot)
			_, err = c.Read(piece)
			is.Equal(err, io.EOF)
		})
	}
}
