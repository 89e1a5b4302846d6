//go:build linux

package command_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
)

// A balancer passes requests and mails to nodes in turn. As usual balancers do, it takes the next node
// if one cannot be reached, and sends nothing twice.
type balancer struct {
	web  *httptest.Server
	mail net.Listener
	http *http.Transport

	mu    sync.Mutex // guards the fields below
	nodes []*node
	next  int
}

func newBalancer(t testing.TB) *balancer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	is.New(t).NoErr(err)
	b := &balancer{mail: ln, http: &http.Transport{MaxIdleConnsPerHost: 64}}
	b.web = httptest.NewServer(b)
	t.Cleanup(func() {
		_ = ln.Close() // ends serveMail
		b.http.CloseIdleConnections()
		b.web.CloseClientConnections()
		b.web.Close()
	})
	go b.serveMail()
	return b
}

// use makes the balancer use a node, or not any more.
func (b *balancer) use(n *node, use bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.nodes = slices.DeleteFunc(b.nodes, func(other *node) bool { return other == n })
	if use {
		b.nodes = append(b.nodes, n)
	}
}

// candidates returns the nodes in the order in which a request tries them.
func (b *balancer) candidates() []*node {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next++
	if len(b.nodes) == 0 {
		return nil
	}
	i := b.next % len(b.nodes)
	return slices.Concat(b.nodes[i:], b.nodes[:i])
}

// ServeHTTP passes a request to a node.
func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client is gone
	}
	for _, n := range b.candidates() {
		out := r.Clone(r.Context())
		out.URL.Scheme, out.URL.Host, out.RequestURI = "http", n.web, ""
		out.Body = io.NopCloser(bytes.NewReader(body))
		resp, err := b.http.RoundTrip(out)
		if failed := (*net.OpError)(nil); errors.As(err, &failed) && failed.Op == "dial" {
			continue
		}
		if err != nil {
			panic(http.ErrAbortHandler) // the node may have received the request
		}
		pass(w, resp)
		return
	}
	w.WriteHeader(http.StatusServiceUnavailable)
}

// pass sends an answer to the client as it comes. It breaks the connection if the node does.
func pass(w http.ResponseWriter, resp *http.Response) {
	defer resp.Body.Close()
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	out, buf := http.NewResponseController(w), make([]byte, 32<<10)
	if out.Flush() != nil { // the client of an idle stream waits for its header
		return
	}
	for {
		n, err := resp.Body.Read(buf)
		if _, failed := w.Write(buf[:n]); failed != nil {
			return // the client is gone
		}
		if err == io.EOF {
			return
		}
		if err != nil || out.Flush() != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

// serveMail passes the connections of mail to nodes.
func (b *balancer) serveMail() {
	for {
		client, err := b.mail.Accept()
		if err != nil {
			return
		}
		go b.passMail(client)
	}
}

func (b *balancer) passMail(client net.Conn) {
	defer client.Close()
	for _, n := range b.candidates() {
		server, err := net.DialTimeout("tcp", n.mail, time.Second)
		if err != nil {
			continue
		}
		go func() { _, _ = io.Copy(server, client); _ = server.Close() }() // either end ends both
		_, _ = io.Copy(client, server)
		_ = server.Close()
		return
	}
}
