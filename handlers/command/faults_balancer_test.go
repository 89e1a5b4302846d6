//go:build linux

package command_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
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
	b.web = httptest.NewServer(&httputil.ReverseProxy{Transport: b, FlushInterval: -1,
		Rewrite:      func(r *httputil.ProxyRequest) { r.Out.URL.Scheme = "http" },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }})
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

// RoundTrip passes a request to a node.
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err // the client is gone
		}
	}
	for _, n := range b.candidates() {
		r.URL.Host, r.Body = n.web, io.NopCloser(bytes.NewReader(body))
		resp, err := b.http.RoundTrip(r)
		if failed := (*net.OpError)(nil); errors.As(err, &failed) && failed.Op == "dial" {
			continue
		}
		return resp, err // after an error, the node may have received the request
	}
	return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: http.NoBody, Request: r}, nil
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
