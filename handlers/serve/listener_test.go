package serve_test

import (
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/storetest"
)

func getOf(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n" }

// TestIdleMakesRoom fills a listener with idle connections. The listener closes the longest idle one for a
// new connection.
func TestIdleMakesRoom(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	g := newServer(t, 2, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	var conns []net.Conn
	for range 2 {
		c := g.dial(t, getOf("/"))
		is.Equal(answerOn(t, c).StatusCode, 200)
		conns = append(conns, c)
	}
	// The server reports the end of a request after its answer.
	storetest.Eventually(t, "room for one more", func() bool { return answerOn(t, g.dial(t, getOf("/"))).StatusCode == 200 })
	// On a busy machine the second connection may have become idle first.
	ended := make(chan error, len(conns))
	for _, c := range conns {
		go func() { _, err := c.Read(make([]byte, 1)); ended <- err }()
	}
	is.Equal(<-ended, io.EOF) // the connection that was idle for the longest time
}

// TestHealthBeyondTheLimit sends requests to a full server, which refuses everything except health
// checks.
func TestHealthBeyondTheLimit(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	busy, done := make(chan struct{}), make(chan struct{})
	g := newServer(t, 1, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/busy" {
			close(busy)
			<-done
		}
	})
	g.dial(t, getOf("/busy"))
	<-busy
	for path, status := range map[string]int{"/healthz": 200, "/readyz": 200, "/": 503, "/api/me": 503} {
		resp := answerOn(t, g.dial(t, getOf(path)))
		is.Equal(resp.StatusCode, status)
		is.Equal(resp.Header.Get("Retry-After") != "", status == 503)
		is.True(resp.Close) // the next connection may be accepted
	}
	close(done)
}
