package handlers_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers"
	"journeyman/handlers/serve"
	"journeyman/runner/model/offline"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

// A streamServer is a server as the program runs it, with the API of a site.
type streamServer struct {
	*http.Server
	site *site
	addr string
	tls  *tls.Config // of clients; nil for http
}

// serveStreams starts a server for at most most connections, with https if secure is set.
func (s *site) serveStreams(t testing.TB, most int, secure bool) *streamServer {
	t.Helper()
	return s.serveLimited(t, s.api, most, onlyProxies(t), secure)
}

// onlyProxies returns proxies that let this machine have all connections.
func onlyProxies(t testing.TB) serve.Proxies {
	t.Helper()
	proxies, err := serve.ParseProxies([]string{"127.0.0.1"})
	is.New(t).NoErr(err)
	return proxies
}

// serveLimited starts a server behind a listener with limits.
func (s *site) serveLimited(t testing.TB, h http.Handler, most int, proxies serve.Proxies, secure bool) *streamServer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	is.New(t).NoErr(err)
	srv := &streamServer{Server: serve.NewServer(h, handlers.Refuse, s.runner.Streams.Close), site: s, addr: ln.Addr().String()}
	var front net.Listener = serve.NewListener(ln, most, proxies, slog.New(slog.DiscardHandler),
		&s.store.Counters().ConnectionsRefused)
	if secure {
		web := httptest.NewUnstartedServer(nil)
		web.StartTLS() // only for its certificate
		defer web.Close()
		srv.tls = web.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		front = tls.NewListener(front, &tls.Config{Certificates: web.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}})
	}
	t.Cleanup(func() { srv.Close() })
	go srv.Serve(front) // ends with Close
	return srv
}

// dial opens a connection of HTTP/1 and sends text.
func (s *streamServer) dial(t testing.TB, text string) net.Conn {
	t.Helper()
	return dialed(t, s.addr, s.tls, text)
}

func dialed(t testing.TB, addr string, secure *tls.Config, text string) net.Conn {
	t.Helper()
	is := is.New(t)
	c, err := net.Dial("tcp", addr)
	is.NoErr(err)
	t.Cleanup(func() { c.Close() })
	is.NoErr(c.SetDeadline(time.Now().Add(2 * patience)))
	if secure != nil {
		cfg := secure.Clone()
		cfg.NextProtos, cfg.ServerName = []string{"http/1.1"}, "127.0.0.1"
		c = tls.Client(c, cfg)
	}
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

// asks returns the text of a GET request.
func (s *site) asks(path string, header ...string) string {
	text := "GET " + path + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + s.key + "\r\n"
	for _, h := range header {
		text += h + "\r\n"
	}
	return text + "\r\n"
}

// TestStreamThenRequests sends several requests over the connection of a stream, after its end and
// before.
func TestStreamThenRequests(t *testing.T) {
	_, s := onServer(t)
	id := s.newWorker(t, fields{})
	s.run(t, fields{"workerId": id, "taskId": "t", "input": scripted("say hello")})
	stream, me := s.asks("/api/workers/"+id+"?stream=true&taskId=t"), s.asks("/api/me")
	requests := []string{stream, stream, me, stream, me}
	for name, secure := range map[string]bool{"http": false, "https": true} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			srv := s.serveStreams(t, 100, secure)
			answered := func(in *bufio.Reader, request string) {
				resp, err := http.ReadResponse(in, nil)
				is.NoErr(err)
				body, err := io.ReadAll(resp.Body)
				is.NoErr(err) // the answer breaks off
				is.Equal(resp.StatusCode, 200)
				is.Equal(strings.HasSuffix(string(body), "data: [DONE]\n\n"), request == stream)
				is.True(!resp.Close) // the client may send another request
			}
			conn := srv.dial(t, "")
			in := bufio.NewReader(conn)
			for _, request := range requests { // one after the other
				_, err := io.WriteString(conn, request)
				is.NoErr(err)
				answered(in, request)
			}
			in = bufio.NewReader(srv.dial(t, strings.Join(requests, ""))) // at once
			for _, request := range requests {
				answered(in, request)
			}
			// The noise must be short. A server that closes a connection with bytes that it has not
			// read resets the connection, and its last answer may be lost.
			in = bufio.NewReader(srv.dial(t, stream+strings.Repeat("noise\r\n", 20)))
			answered(in, stream)
			resp, err := http.ReadResponse(in, nil)
			is.NoErr(err)
			is.Equal(resp.StatusCode, 400)
		})
	}
}

// TestStreamNoise sends more bytes after the request of an open stream than the server should read.
func TestStreamNoise(t *testing.T) {
	is, s := onServer(t, withTiming(handlers.Timing{BeatEvery: 50 * time.Millisecond}))
	srv := s.serveStreams(t, 100, false)
	id := s.newWorker(t, fields{})
	conn := srv.dial(t, s.asks("/api/workers/"+id+"/stream"))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	is.NoErr(err)
	is.NoErr(conn.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)))
	n, err := conn.Write(make([]byte, 64<<20))
	is.True(err != nil)
	ordertest.Below(is, n, 64<<20) // the server has read everything
	s.run(t, fields{"workerId": id, "input": scripted("say still here")})
	lines := bufio.NewReader(resp.Body)
	for line := ""; !strings.Contains(line, `"delta":"still`); {
		line, err = lines.ReadString('\n')
		is.NoErr(err)
	}
	is.NoErr(conn.Close())
	storetest.Eventually(t, "the failure of a heartbeat", func() bool { return s.api.OpenStreams() == 0 })
}

// TestStreamClientDisconnects closes connections of idle streams in each way. Their resources are
// released, although nothing is written.
func TestStreamClientDisconnects(t *testing.T) {
	t.Parallel()
	for name, secure := range map[string]bool{"http": false, "https": true} {
		t.Run(name, func(t *testing.T) {
			const most = 3
			is, s := onServer(t, withTiming(handlers.Timing{BeatEvery: time.Hour}), func(set *settings) {
				set.API.Limits.Requests, set.API.Limits.Streams = 4*most, 4*most
			})
			srv := s.serveStreams(t, most, secure)
			path := "/api/workers/" + s.newWorker(t, fields{}) + "/stream"
			for _, end := range []func(c net.Conn){
				func(c net.Conn) { c.Close() },
				func(c net.Conn) { tcpOf(c).SetLinger(0); tcpOf(c).Close() }, // a reset
				func(c net.Conn) { tcpOf(c).CloseWrite() },
			} {
				var conns []net.Conn
				storetest.Eventually(t, "room for as many connections as before", func() bool {
					conn := srv.dial(t, s.asks(path))
					if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil && resp.StatusCode == 200 {
						conns = append(conns, conn)
					}
					return len(conns) == most
				})
				is.Equal(s.api.OpenStreams(), int64(most))
				for _, c := range conns {
					end(c)
				}
				storetest.Eventually(t, "no stream that is left", func() bool { return s.api.OpenStreams() == 0 })
			}
		})
	}
}

// tcpOf returns the TCP connection below c, which may use TLS.
func tcpOf(c net.Conn) *net.TCPConn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return c.(*net.TCPConn)
}

// TestServerStopsStreams shuts down a server that has streams, connections that wait for a request
// after a stream, and a client that does not read.
func TestServerStopsStreams(t *testing.T) {
	t.Parallel()
	for name, secure := range map[string]bool{"http": false, "https": true} {
		t.Run(name, func(t *testing.T) {
			is, s := onServer(t)
			srv := s.serveStreams(t, 100, secure)
			id := s.newWorker(t, fields{})
			s.run(t, fields{"workerId": id, "taskId": "t", "input": scripted("say hello")})
			var open, waiting []*bufio.Reader
			for range 3 {
				in := bufio.NewReader(srv.dial(t, s.asks("/api/workers/"+id+"/stream")))
				resp, err := http.ReadResponse(in, nil)
				is.NoErr(err)
				open = append(open, bufio.NewReader(resp.Body))
				in = bufio.NewReader(srv.dial(t, s.asks("/api/workers/"+id+"?stream=true&taskId=t")))
				resp, err = http.ReadResponse(in, nil)
				is.NoErr(err)
				_, err = io.Copy(io.Discard, resp.Body)
				is.NoErr(err)
				waiting = append(waiting, in)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			is.NoErr(srv.Shutdown(ctx))
			is.Equal(s.api.OpenStreams(), int64(0)) // Shutdown waits for all streams
			for _, in := range slices.Concat(open, waiting) {
				_, err := io.ReadAll(in)
				is.NoErr(err) // the last chunk is missing
			}
		})
	}
}

// TestServerStopsInTime shuts a server down while a stream cannot end. Close closes its connection.
func TestServerStopsInTime(t *testing.T) {
	is, s := onServer(t, withModel(flood{offline.New(), strings.Repeat("x", 64<<10), 32}), withTiming(handlers.Timing{WriteIn: time.Hour}))
	srv := s.serveStreams(t, 100, false)
	id := s.newWorker(t, fields{})
	stuck := srv.dial(t, s.asks("/api/workers/"+id+"/stream"))
	is.NoErr(stuck.(*net.TCPConn).SetReadBuffer(4 << 10))
	_, err := io.ReadFull(stuck, make([]byte, 12))
	is.NoErr(err)
	s.run(t, fields{"workerId": id, "input": "talk"})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	is.True(errors.Is(srv.Shutdown(ctx), context.DeadlineExceeded)) // it does not wait for the stream
	is.Equal(s.api.OpenStreams(), int64(1))
	is.NoErr(srv.Close())
	storetest.Eventually(t, "no stream that is left", func() bool { return s.api.OpenStreams() == 0 })
}

// TestStreamOfPostThenRequest sends bodies of each kind. No part of them may be read as the next
// request.
func TestStreamOfPostThenRequest(t *testing.T) {
	_, s := onServer(t)
	srv := s.serveStreams(t, 100, false)
	id := s.newWorker(t, fields{})
	body := encode(fields{"workerId": id, "stream": true, "input": scripted("say hello")})
	head := "POST /api/tasks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + s.key + "\r\n"
	form := streamedForm(id, strings.Repeat("x", 100<<10)) // as long as a body that takes a share
	formHead := head + "Content-Type: multipart/form-data; boundary=B\r\n"
	head += "Content-Type: application/json\r\n"
	for name, request := range map[string]string{
		"length":   fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body), body),
		"chunked":  fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", head, len(body), body),
		"form":     fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", formHead, len(form), form),
		"trailers": fmt.Sprintf("%sTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n%x\r\n%s\r\n0\r\nA: b\r\n\r\n", head, len(body), body),
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			in := bufio.NewReader(srv.dial(t, request+s.asks("/api/me")))
			for _, want := range []string{"data: [DONE]", "}"} {
				resp, err := http.ReadResponse(in, nil)
				is.NoErr(err)
				got, err := io.ReadAll(resp.Body)
				is.NoErr(err)
				is.Equal(resp.StatusCode, 200)
				is.True(strings.HasSuffix(strings.TrimSpace(string(got)), want)) // the answer is another one
			}
		})
	}
	storetest.Eventually(t, "the end of the uploads", func() bool { return s.api.UploadsUnderWay() == 0 })
}

// streamedForm returns a form with the boundary B that asks for a stream and has a file.
func streamedForm(workerID, file string) string {
	var b strings.Builder
	for _, f := range [][2]string{{"workerId", workerID}, {"stream", "true"}, {"input", scripted("say hello")}} {
		fmt.Fprintf(&b, "--B\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n%s\r\n", f[0], f[1])
	}
	fmt.Fprintf(&b, "--B\r\nContent-Disposition: form-data; name=\"files\"; filename=\"a.txt\"\r\n\r\n%s\r\n--B--\r\n", file)
	return b.String()
}

// TestStreamLeavesNothing opens and ends streams, and counts goroutines. It is not parallel,
// because other tests have goroutines too.
func TestStreamLeavesNothing(t *testing.T) {
	s := newServer(t)
	srv := s.serveStreams(t, 1000, false)
	id := s.newWorker(t, fields{})
	s.run(t, fields{"workerId": id, "taskId": "t", "input": scripted("say hello")})
	before := runtime.NumGoroutine()
	paths := []string{"/api/workers/" + id + "/stream", "/api/workers/" + id + "?stream=true&taskId=t"}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for range 125 {
				disconnect(t, srv.addr, s.asks(paths[random.IntN(2)]), random)
			}
		})
	}
	wg.Wait()
	storetest.Eventually(t, "no stream that is left", func() bool { return s.api.OpenStreams() == 0 })
	storetest.Eventually(t, "no goroutine that is left", func() bool { return runtime.NumGoroutine() < before+5 })
}

// disconnect sends a request, reads part of the answer, and closes the connection in a random way.
func disconnect(t *testing.T, addr, request string, random *rand.Rand) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request[:len(request)-random.IntN(2)]); err != nil { // it may lack its last byte
		t.Error(err)
	}
	if random.IntN(3) > 0 {
		_ = conn.SetReadDeadline(time.Now().Add(time.Duration(random.IntN(20)) * time.Millisecond))
		_, _ = io.CopyN(io.Discard, conn, random.Int64N(2000)) // an idle stream has no more bytes
	}
	if random.IntN(2) == 0 {
		_ = conn.(*net.TCPConn).SetLinger(0) // a reset
	}
}

func answerOn(t testing.TB, c net.Conn) *http.Response {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	is.New(t).NoErr(err)
	return resp
}
