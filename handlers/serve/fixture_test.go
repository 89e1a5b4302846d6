package serve_test

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers"
	"journeyman/handlers/serve"
)

// patience is the time that a test waits for what should come at once.
const patience = 30 * time.Second

// A server is one behind a listener that lets this machine have all its connections.
type server struct {
	*http.Server
	addr string
}

// newServer serves h behind a listener with at most most connections.
func newServer(t *testing.T, most int, h http.HandlerFunc) *server {
	t.Helper()
	is := is.New(t)
	proxies, err := serve.ParseProxies([]string{"127.0.0.1"})
	is.NoErr(err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	is.NoErr(err)
	srv := &server{serve.NewServer(h, handlers.Refuse, func() {}), ln.Addr().String()}
	served := make(chan error, 1)
	go func() {
		served <- srv.Serve(serve.NewListener(ln, most, proxies, slog.New(slog.DiscardHandler), new(atomic.Int64)))
	}()
	t.Cleanup(func() { _ = srv.Close(); <-served })
	return srv
}

// dial opens a connection to the server and sends text.
func (s *server) dial(t testing.TB, text string) net.Conn {
	t.Helper()
	return dial(t, s.addr, text)
}

func dial(t testing.TB, addr, text string) net.Conn {
	t.Helper()
	is := is.New(t)
	c, err := net.Dial("tcp", addr)
	is.NoErr(err)
	t.Cleanup(func() { _ = c.Close() })
	is.NoErr(c.SetDeadline(time.Now().Add(2 * patience)))
	_, err = io.WriteString(c, text)
	is.NoErr(err)
	return c
}

func answerOn(t testing.TB, c net.Conn) *http.Response {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	is.New(t).NoErr(err)
	return resp
}
