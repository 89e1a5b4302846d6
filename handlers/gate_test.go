package handlers_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers"
	"journeyman/store/storetest"
)

// A gateServer is a server behind a gate.
type gateServer struct{ addr string }

func newGateServer(t *testing.T, most int, h http.HandlerFunc) gateServer {
	t.Helper()
	is := is.New(t)
	s := newServer(t, idle)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	is.NoErr(err)
	proxies, err := handlers.ParseProxies([]string{"127.0.0.1"}) // so that one address may have all connections
	is.NoErr(err)
	srv := handlers.NewServer(h, s.runner)
	t.Cleanup(func() { srv.Close() })
	go srv.Serve(handlers.NewGate(ln, most, proxies)) // ends with Close
	return gateServer{ln.Addr().String()}
}

// dial opens a connection, and sends a request where there is one.
func (g gateServer) dial(t *testing.T, request string) net.Conn {
	t.Helper()
	is := is.New(t)
	c, err := net.Dial("tcp", g.addr)
	is.NoErr(err)
	t.Cleanup(func() { c.Close() })
	is.NoErr(c.SetDeadline(time.Now().Add(patience)))
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	return c
}

func answerOn(t *testing.T, c net.Conn) *http.Response {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	is.New(t).NoErr(err)
	return resp
}

func getOf(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n" }

// TestIdleMakesRoom fills a gate with idle connections. The gate closes the longest idle one for a
// new connection.
func TestIdleMakesRoom(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	g := newGateServer(t, 2, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
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
	g := newGateServer(t, 1, func(w http.ResponseWriter, r *http.Request) {
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
