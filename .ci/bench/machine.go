package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// The names of the figures with which other figures are compared.
const (
	barePosts = "machine: bare POST"
	syncs     = "machine: 4 KiB written and synced"
)

// bare starts an HTTP server in this process that answers every request at once.
func bare() (address string, stop func() error, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	answer := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{}`)) // the client may have disconnected
	}
	web := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(answer)}
	go func() { _ = web.Serve(ln) }() // until Close
	return "http://" + ln.Addr().String(), web.Close, nil
}

// measureMachine measures this machine without the server: requests that are answered at once, and
// small writes that are synced one after the other.
func measureMachine(ctx context.Context, s *session) (err error) {
	address, stop, err := bare()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	c := newClient(address, "none")
	defer c.http.CloseIdleConnections()
	r, err := loop{32, s.For, func(ctx context.Context, _ int) error {
		_, err := c.do(ctx, "POST", "/", `{}`)
		return err
	}}.run(ctx)
	if err != nil {
		return err
	}
	s.add(Figure{Name: barePosts, Value: r.rate(), Unit: "/s", Times: r.times()})
	return s.measureSyncs(ctx)
}

// measureSyncs appends to a file and syncs it, as a database does with its log.
func (s *session) measureSyncs(ctx context.Context) (err error) {
	f, err := os.Create(filepath.Join(s.dir, "syncs"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	page := make([]byte, 4096)
	r, err := loop{1, s.For, func(context.Context, int) error {
		if _, err := f.Write(page); err != nil {
			return err
		}
		return f.Sync()
	}}.run(ctx)
	if err == nil {
		s.add(Figure{Name: syncs, Value: r.rate(), Unit: "/s", Times: r.times()})
	}
	return err
}

// machine returns the value of a reference figure, 0 if it was not measured.
func (s *session) machine(name string) float64 {
	if f := s.report.find(name); f != nil {
		return f.Value
	}
	return 0
}
