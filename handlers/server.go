package handlers

import (
	"context"
	"net"
	"net/http"
	"net/http/pprof"
	"sync"
	"time"

	"journeyman/runner"
)

// NewServer returns an HTTP server for h. It has no write timeout, because a wait for a result may
// be long. Bodies have their own read deadlines.
func NewServer(h http.Handler, rn *runner.Runner) *Server {
	s := &Server{taken: newTakenConns(), buffers: sync.Pool{New: func() any { return newStreamBuffers() }}}
	s.Server = &http.Server{Handler: answerMarked(h), ConnState: noteState,
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10}
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(markConn(ctx, c), serverKey{}, s)
	}
	s.RegisterOnShutdown(rn.Streams.Close) // an open event stream would delay Shutdown for the whole grace period
	return s
}

// Shutdown stops the server: it waits for requests and event streams until ctx ends.
func (s *Server) Shutdown(ctx context.Context) error {
	if err := s.Server.Shutdown(ctx); err != nil {
		return err
	}
	// No handler runs any more, so no further stream begins.
	select {
	case <-s.taken.stop():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close closes all connections.
func (s *Server) Close() error {
	err := s.Server.Close()
	s.taken.stop()
	s.taken.cut(func(connUse) bool { return true })
	return err
}

// Profiler serves Go's profiles under /debug/pprof/. It has no access control.
func Profiler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}
