package main

import (
	"net"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"
)

// A far is a proxy that makes a server distant: data arrives at the other side after half of a round trip.
type far struct {
	net.Listener
	server string // its address
	delay  time.Duration
}

// newFar starts a proxy on a free port. The caller closes it. Its connections end with their clients.
func newFar(server string, roundTrip time.Duration) (*far, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &far{ln, server, roundTrip / 2}
	go f.accept()
	return f, nil
}

func (f *far) accept() {
	for {
		near, err := f.Accept()
		if err != nil {
			return // closed
		}
		server, err := net.Dial("tcp", f.server)
		if err != nil {
			_ = near.Close() // the client gets a closed connection
			continue
		}
		go f.forward(server, near)
		go f.forward(near, server)
	}
}

// A parcel is data in transit.
type parcel struct {
	data []byte
	due  time.Time // arrival time
}

// forward copies data from from to to until one of them ends. Then it closes both.
func (f *far) forward(to, from net.Conn) {
	way := make(chan parcel, 1024)
	go func() {
		for p := range way {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.data); err != nil {
				_ = from.Close() // ends the loop below
			}
		}
		_, _ = to.Close(), from.Close() // one of them has ended already
	}()
	defer close(way)
	for {
		buffer := make([]byte, 16<<10)
		n, err := from.Read(buffer)
		if n > 0 {
			way <- parcel{buffer[:n], time.Now().Add(f.delay)}
		}
		if err != nil {
			return
		}
	}
}

// newBalancer returns a load balancer that passes requests to the servers of urls in turn.
func newBalancer(urls []*url.URL) *httputil.ReverseProxy {
	var requests atomic.Uint64
	transport := newClient("", "").http.Transport
	return &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(urls[requests.Add(1)%uint64(len(urls))])
	}}
}
