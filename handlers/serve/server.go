package serve

import (
	"context"
	"net/http"
	"net/http/pprof"
	"time"
)

// A Refusal answers a request on a connection that a Listener refuses. why is an error of store.
type Refusal func(w http.ResponseWriter, why error)

// NewServer returns an HTTP server for h. It has no write timeout, because a wait for a result may
// be long. Bodies have their own read deadlines. closeStreams ends the event streams when the server
// shuts down: an open one would delay Shutdown for the whole grace period.
func NewServer(h http.Handler, refuse Refusal, closeStreams func()) *http.Server {
	stop, cancel := context.WithCancel(context.Background())
	s := &http.Server{Handler: readOn(stop, answerMarked(h, refuse), afterAnswer()),
		ConnContext: markConn, ConnState: noteState,
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10}
	s.RegisterOnShutdown(closeStreams)
	s.RegisterOnShutdown(cancel) // a client that has its answer and still sends would delay it, too
	return s
}

// afterAnswer returns the limits of what is read after the answer. The size is more than that of the largest
// upload by default.
func afterAnswer() readOnLimits {
	return readOnLimits{size: 256 << 20, within: time.Minute, piece: 10 * time.Second}
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
