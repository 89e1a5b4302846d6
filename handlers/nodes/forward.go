package nodes

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"
)

// forwardedHeader marks a request that another node has forwarded. It is answered where it arrives, so
// no request goes in circles.
const forwardedHeader = "Journeyman-Forwarded"

func transport() *http.Transport {
	return &http.Transport{DialContext: (&net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}).DialContext,
		MaxIdleConnsPerHost: 32, IdleConnTimeout: time.Minute, DisableCompression: true}
}

// Front forwards the requests about workers that are placed on other nodes, and passes all others to
// next.
func (n *Nodes) Front(next http.Handler) http.Handler {
	if !n.cfg.Store.Shared() {
		return next
	}
	connections := transport()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == lookPath {
			n.serveLook(w, r)
			return
		}
		place := n.placeOf(r)
		if place == nil {
			next.ServeHTTP(w, r)
			return
		}
		proxy := &httputil.ReverseProxy{Transport: connections, FlushInterval: -1, Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(place)
			p.Out.Host = p.In.Host
			p.SetXForwarded()
			p.Out.Header.Set(forwardedHeader, "1")
		}, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			// Nothing was sent to a node that cannot be reached, so the request is still whole.
			if failed := (*net.OpError)(nil); errors.As(err, &failed) && failed.Op == "dial" {
				next.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Retry-After", "1")
			http.Error(w, `{"code":"node_gone","error":"the node of the worker has ended: send the request again"}`,
				http.StatusServiceUnavailable)
		}}
		proxy.ServeHTTP(w, r)
	})
}

// placeOf returns the address of the node to which a request is forwarded, or nil if it is answered
// here.
func (n *Nodes) placeOf(r *http.Request) *url.URL {
	workerID, ok := subject(r)
	if !ok || r.Header.Get(forwardedHeader) != "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), dialTimeout)
	defer cancel()
	place, err := n.cfg.Store.PlaceOf(ctx, workerID, n.cfg.Runner.ID())
	if err != nil || place == "" {
		return nil // the answer comes from the database, or says that it cannot be reached
	}
	u, err := url.Parse(place)
	if err != nil {
		return nil
	}
	return u
}

// subject returns the worker of a request that is better answered where the worker is placed: an
// instruction, or a stream of events.
func subject(r *http.Request) (workerID string, ok bool) {
	rest, found := strings.CutPrefix(r.URL.Path, "/api/workers/")
	workerID, rest, _ = strings.Cut(rest, "/")
	if !found || !strings.HasPrefix(workerID, "wrk_") {
		return "", false
	}
	switch {
	case r.Method == http.MethodPost && rest == "", r.Method == http.MethodGet && rest == "stream":
		return workerID, true
	case r.Method == http.MethodGet && rest == "":
		return workerID, r.URL.Query().Has("stream") || strings.Contains(r.Header.Get("Accept"), "text/event-stream")
	}
	return "", false
}
