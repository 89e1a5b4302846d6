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
	"strings"
	"time"
)

// streamWait is the longest time until a node begins to answer a forwarded request.
const streamWait = 5 * time.Second

// newTransport returns a transport for messages, or for forwarded requests.
func newTransport() *http.Transport {
	return &http.Transport{DialContext: (&net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}).DialContext,
		MaxIdleConnsPerHost: 32, IdleConnTimeout: time.Minute, DisableCompression: true,
		ResponseHeaderTimeout: streamWait, TLSHandshakeTimeout: dialTimeout}
}

// forwardedKey is the context key of a bool. It is true in a request that a node has forwarded, and false
// in one that only claims so: its signature is wrong. Other requests have no such value.
type forwardedKey struct{}

// Front returns a handler that receives the messages of the other nodes, and marks the requests that they
// forward. It passes all requests except messages to next.
func (n *Nodes) Front(next http.Handler) http.Handler {
	if !n.cfg.Store.Shared() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == changesPath:
			n.serveChanges(w, r)
		case r.Header.Get(signatureHeader) == "" && r.Header.Get(clientHeader) == "":
			next.ServeHTTP(w, r)
		default:
			next.ServeHTTP(w, n.marked(w, r))
		}
	})
}

// marked returns a copy of a request that claims to come from a node. If the signature is valid, the copy
// has the address of the client whose request the node forwards. Otherwise it is treated like a request of
// any client: a stranger may have sent it, or a node with another secret. The answer tells the verdict.
func (n *Nodes) marked(w http.ResponseWriter, r *http.Request) *http.Request {
	v := n.signer.check(r, nil)
	client := r.Header.Get(clientHeader)
	w.Header().Set(signatureHeader, string(v))
	r = r.Clone(context.WithValue(r.Context(), forwardedKey{}, v == fits))
	r.Header.Del(signatureHeader)
	r.Header.Del(clientHeader)
	if v == fits {
		r.RemoteAddr = net.JoinHostPort(client, "0")
	} else if n.mayWarn() {
		n.cfg.Log.Warn("a request claims to come from a node, but its signature is wrong", "wrong", string(v),
			"remote", r.RemoteAddr)
	}
	return r
}

// Forwarded reports whether a node has forwarded a request.
func (n *Nodes) Forwarded(r *http.Request) bool {
	trusted, _ := r.Context().Value(forwardedKey{}).(bool)
	return trusted
}

// Forward forwards a GET request to the node on which a worker is placed, and writes that node's answer.
// It returns false, and writes nothing, if the worker is not placed on another node, or if that node does
// not answer. The caller then answers from the database. Forward never forwards a request that another
// node has forwarded: two nodes could send it to each other forever.
func (n *Nodes) Forward(w http.ResponseWriter, r *http.Request, workerID string) (answered bool) {
	if _, claims := r.Context().Value(forwardedKey{}).(bool); claims || !n.cfg.Store.Shared() {
		return false
	}
	ctx, cancel := context.WithTimeout(r.Context(), dialTimeout)
	place, err := n.cfg.Store.PlaceOf(ctx, workerID, n.cfg.Runner.ID())
	cancel()
	if err != nil || place.URL == "" {
		return false // the caller reads the database, or reports that it cannot be reached
	}
	return n.ForwardTo(w, r, place.RunnerID)
}

// ForwardTo forwards a request to the node of a runner, as Forward does.
func (n *Nodes) ForwardTo(w http.ResponseWriter, r *http.Request, runnerID string) (answered bool) {
	if _, claims := r.Context().Value(forwardedKey{}).(bool); claims {
		return false
	}
	n.mu.Lock()
	p := n.peers[runnerID]
	n.mu.Unlock()
	if p == nil {
		return false // the node is this one, is not in the list yet, or has lost its lease
	}
	target, err := url.Parse(p.url)
	if err != nil {
		n.cfg.Log.Error("the URL of a node is not valid", "url", p.url, "err", err)
		return false
	}
	return n.proxy(w, r, p, target)
}

// proxy forwards a request to a node and copies the answer. It ends the answer when that node has lost its
// lease, or when this server stops. The client then connects again, and gets the missing events.
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
			req.Out.Host = req.In.Host // the other node compares it with the origin of a browser's request
			req.Out.Body, req.Out.ContentLength = nil, 0
			req.Out.Header.Set(clientHeader, client)
			n.signer.sign(req.Out, p.url, nil)
		},
		ModifyResponse: func(resp *http.Response) error {
			misfit, known := misfitOf(resp)
			n.note(p, misfit, known)
			if !passesOn(r, resp) {
				return fmt.Errorf("the node answers with status %d", resp.StatusCode)
			}
			resp.Header.Del(signatureHeader)
			resp.Body = &forwardedBody{resp.Body, ctx, r.Context()}
			for name := range resp.Header {
				w.Header().Del(name) // the node's answer has this header, too
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			answered = r.Context().Err() != nil // the client has disconnected, so no answer is needed
			n.cfg.Log.Debug("forward a request to another node", "url", p.url, "err", err)
		}}
	proxy.ServeHTTP(w, r.WithContext(ctx))
	return answered
}

// passesOn reports whether the client gets another node's answer. Otherwise this node answers from the database.
func passesOn(r *http.Request, resp *http.Response) bool {
	switch v := verdict(resp.Header.Get(signatureHeader)); {
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode == http.StatusServiceUnavailable:
		// The other node counts all connections from this node towards the limit of one address. So it may
		// refuse a client that is within its own limit.
		return false
	case v == "":
		return false // no node has answered
	case v != fits, strings.HasPrefix(r.URL.Path, internalPath):
		// The other node does not know that this node has accepted the request. No error of it is for the client.
		return resp.StatusCode < http.StatusBadRequest
	}
	return true
}

// A forwardedBody is the body of another node's answer. When this server ends the forwarded request, the
// client gets the regular end of a stream, and no broken connection.
type forwardedBody struct {
	io.ReadCloser
	proxied context.Context // of the forwarded request
	client  context.Context // of the client's request
}

// Read reads the body. It returns io.EOF if this server has ended the forwarded request.
func (b *forwardedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && b.proxied.Err() != nil && b.client.Err() == nil {
		err = io.EOF
	}
	return n, err
}
