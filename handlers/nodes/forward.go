package nodes

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

// streamWait is the longest time until a node begins to answer a forwarded request.
const streamWait = 5 * time.Second

func newTransport() *http.Transport {
	return &http.Transport{DialContext: (&net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}).DialContext,
		MaxIdleConnsPerHost: 32, IdleConnTimeout: time.Minute, DisableCompression: true,
		ResponseHeaderTimeout: streamWait, TLSHandshakeTimeout: dialTimeout}
}

// forwardedKey is the context key of a bool: whether a node has forwarded the request. It is false if the
// signature of such a request is wrong.
type forwardedKey struct{}

// Front takes the messages of the other nodes, and marks the requests that they forward. It passes all
// requests except messages to next.
func (n *Nodes) Front(next http.Handler) http.Handler {
	if !n.cfg.Store.Shared() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == newsPath:
			n.serveNews(w, r)
		case r.Header.Get(signatureHeader) == "" && r.Header.Get(clientHeader) == "":
			next.ServeHTTP(w, r)
		default:
			next.ServeHTTP(w, n.marked(r))
		}
	})
}

// marked returns a request that claims to come from a node, with the address of its client if the claim
// is true. Without a valid signature it is the request of a stranger; the node that has sent it may have
// another secret by mistake.
func (n *Nodes) marked(r *http.Request) *http.Request {
	trusted := n.signer.signed(r, nil)
	client := r.Header.Get(clientHeader)
	r = r.Clone(context.WithValue(r.Context(), forwardedKey{}, trusted))
	r.Header.Del(signatureHeader)
	r.Header.Del(clientHeader)
	if trusted {
		r.RemoteAddr = net.JoinHostPort(client, "0")
	} else if n.mayWarn() {
		n.cfg.Log.Warn("a request claims to come from a node, but its signature is wrong: check that all nodes have "+
			"the same --cluster-secret, the right --node-url and the same time", "remote", r.RemoteAddr)
	}
	return r
}

// Forwarded reports whether a node has forwarded a request.
func (n *Nodes) Forwarded(r *http.Request) bool {
	trusted, _ := r.Context().Value(forwardedKey{}).(bool)
	return trusted
}

// Forward lets the node on which a worker is placed answer a GET request. It returns false, and has
// written nothing, if the worker is not placed on another node, or if that node does not answer: then
// this node answers from the database. A request that another node has forwarded is always answered
// here, so no request goes in circles.
func (n *Nodes) Forward(w http.ResponseWriter, r *http.Request, workerID string) (answered bool) {
	if _, claims := r.Context().Value(forwardedKey{}).(bool); claims || !n.cfg.Store.Shared() {
		return false
	}
	ctx, cancel := context.WithTimeout(r.Context(), dialTimeout)
	place, err := n.cfg.Store.PlaceOf(ctx, workerID, n.cfg.Runner.ID())
	cancel()
	if err != nil || place.URL == "" {
		return false // the answer comes from the database, or says that it cannot be reached
	}
	return n.ForwardTo(w, r, place.RunnerID)
}

// ForwardTo is Forward for the node of a runner.
func (n *Nodes) ForwardTo(w http.ResponseWriter, r *http.Request, runnerID string) (answered bool) {
	if _, claims := r.Context().Value(forwardedKey{}).(bool); claims {
		return false
	}
	n.mu.Lock()
	p := n.peers[runnerID]
	n.mu.Unlock()
	if p == nil {
		return false // it is this one, is new, or has lost its lease
	}
	target, err := url.Parse(p.url)
	if err != nil {
		n.cfg.Log.Error("the address of a node is wrong", "url", p.url, "err", err)
		return false
	}
	return n.proxy(w, r, p, target)
}

// proxy lets a node answer a request. It ends an answer when the node has lost its lease, or when this
// one stops: the client asks again, and gets the rest.
func (n *Nodes) proxy(w http.ResponseWriter, r *http.Request, p *peer, target *url.URL) (answered bool) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(p.gone, cancel)()
	defer n.cfg.Runner.Streams.OnClose(cancel)()
	answered = true
	client, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		client = r.RemoteAddr
	}
	proxy := &httputil.ReverseProxy{Transport: n.forward, FlushInterval: -1,
		ErrorLog: slog.NewLogLogger(n.cfg.Log.Handler(), slog.LevelDebug),
		Rewrite: func(req *httputil.ProxyRequest) {
			req.Out.URL.Scheme, req.Out.URL.Host = target.Scheme, target.Host
			req.Out.Host = req.In.Host // the other node checks from which site a browser's request comes
			req.Out.Body, req.Out.ContentLength = nil, 0
			req.Out.Header.Set(clientHeader, client)
			n.signer.sign(req.Out, p.url, nil)
		},
		ModifyResponse: func(resp *http.Response) error {
			// The other node counts all connections from this node for one address. It may refuse a
			// client that is within its limits.
			if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable {
				return fmt.Errorf("the node answers with status %d", resp.StatusCode)
			}
			resp.Body = &forwardedBody{resp.Body, ctx, r.Context()}
			for name := range resp.Header {
				w.Header().Del(name) // the node has set it again
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			answered = r.Context().Err() != nil // nobody needs an answer then
			n.cfg.Log.Debug("forward to another node", "url", p.url, "err", err)
		}}
	proxy.ServeHTTP(w, r.WithContext(ctx))
	return answered
}

// A forwardedBody is the body of another node's answer. When the context of the forwarded request ends, the
// client sees the regular end of a stream, and no broken connection.
type forwardedBody struct {
	io.ReadCloser
	proxied, client context.Context
}

func (b *forwardedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && b.proxied.Err() != nil && b.client.Err() == nil {
		err = io.EOF
	}
	return n, err
}
