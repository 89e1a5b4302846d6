package handlers

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/r3labs/sse/v2"

	"journeyman/runner"
	"journeyman/store"
)

const (
	heartbeatEvery = 15 * time.Second
	writeWithin    = 10 * time.Second // a reader slower than that is cut off and comes back by id
	maxSubscribers = 10_000
)

// streams writes event streams. Each response has a private stream of the broker,
// so that a reader that stands still stops nobody else; what is sent comes from
// the runner, which knows what lies after any event.
type streams struct {
	broker *sse.Server
	pumps  sync.Map // stream id to *pump
	last   atomic.Int64
	open   atomic.Int64
}

// A source gives events; done says that there are no more after these.
type source interface {
	Next(ctx context.Context) (events []runner.Event, done bool, err error)
}

// A pump moves events from a source to one response. It runs in one goroutine.
type pump struct {
	id     string
	src    source
	broker *sse.Server
	ctx    context.Context // of the response
	cancel context.CancelFunc
	lastID string // never empty: an empty id would clear the client's
}

func newStreams() *streams {
	s := &streams{broker: sse.New()}
	// AutoReplay would rewrite ids, EventTTL drop events, and an unsplit newline
	// break a frame. The small buffer keeps an idle stream small.
	s.broker.AutoReplay, s.broker.AutoStream, s.broker.SplitData, s.broker.BufferSize = false, false, true, 4
	s.broker.Headers = map[string]string{"X-Accel-Buffering": "no", "Cache-Control": "no-cache, no-transform",
		"x-vercel-ai-ui-message-stream": "v1"}
	s.broker.OnSubscribe = func(id string, _ *sse.Subscriber) {
		if p, ok := s.pumps.Load(id); ok {
			p.(*pump).run()
		}
	}
	// By then the stream's only reader has gone, so nothing is left behind.
	s.broker.OnUnsubscribe = func(id string, _ *sse.Subscriber) { s.broker.RemoveStream(id) }
	return s
}

// serve writes what src gives until it is done or the client goes.
func (s *streams) serve(w http.ResponseWriter, r *request, src source, lastID string) error {
	if s.open.Add(1) > maxSubscribers {
		s.open.Add(-1)
		return store.Errorf(store.Busy, "there are %d open streams, the most there can be", maxSubscribers)
	}
	defer s.open.Add(-1)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	p := &pump{id: strconv.FormatInt(s.last.Add(1), 36), src: src, broker: s.broker, ctx: ctx, cancel: cancel, lastID: cmp.Or(lastID, "0")}
	s.pumps.Store(p.id, p)
	defer s.pumps.Delete(p.id)
	s.broker.CreateStream(p.id)
	sub := r.Clone(ctx)
	sub.URL = &url.URL{RawQuery: "stream=" + p.id}
	sub.Header.Del("Last-Event-ID")
	s.broker.ServeHTTP(&deadlineWriter{w, http.NewResponseController(w), cancel}, sub)
	return nil
}

// run moves events until there are no more. Publishing blocks only this pump.
func (p *pump) run() {
	for {
		ctx, cancel := context.WithTimeout(p.ctx, heartbeatEvery)
		events, done, err := p.src.Next(ctx)
		cancel()
		for _, e := range events {
			if p.ctx.Err() != nil {
				return
			}
			p.lastID = e.ID
			p.broker.Publish(p.id, &sse.Event{ID: []byte(e.ID), Data: e.Data})
		}
		switch {
		case p.ctx.Err() != nil:
			return
		case errors.Is(err, context.DeadlineExceeded):
			p.broker.Publish(p.id, &sse.Event{Comment: []byte("heartbeat")})
		case err != nil:
			p.cancel() // the client comes back with the last id it has
			return
		case done:
			p.broker.Publish(p.id, &sse.Event{ID: []byte(p.lastID), Data: []byte("[DONE]")})
			p.broker.Publish(p.id, &sse.Event{}) // an empty event ends the response
			return
		}
	}
}

// deadlineWriter cuts off a reader that does not read. The broker ignores write
// errors, so the writer ends the response itself.
type deadlineWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	cancel  context.CancelFunc
}

// Write writes within writeWithin or ends the response.
func (w *deadlineWriter) Write(b []byte) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(writeWithin)) // where it is not supported, TCP has its own
	n, err := w.ResponseWriter.Write(b)
	if err != nil {
		w.cancel()
	}
	return n, err
}

// Flush sends what was written.
func (w *deadlineWriter) Flush() {
	if err := w.control.Flush(); err != nil {
		w.cancel()
	}
}

// Unwrap gives the writer below, for http.ResponseController.
func (w *deadlineWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// wantsStream reports whether a GET asks for events.
func wantsStream(r *request) (bool, error) {
	if v := r.URL.Query().Get("stream"); v != "" {
		stream, err := strconv.ParseBool(v)
		if err != nil {
			return false, invalid("stream", "must be true or false")
		}
		return stream, nil
	}
	return strings.Contains(r.Header.Get("Accept"), "text/event-stream"), nil
}

// lastEventID is where a client goes on.
func lastEventID(r *request) string {
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		return id
	}
	return r.URL.Query().Get("lastEventId")
}

// streamTurn streams one turn to the client that sent its instruction.
func (a *API) streamTurn(w http.ResponseWriter, r *request, t store.Turn) error {
	return a.streams.serve(w, r, a.runner.TurnStream(t), "")
}

// streamTask streams a task: what was, and what is running or queued.
func (a *API) streamTask(w http.ResponseWriter, r *request, taskNum int64) error {
	last := lastEventID(r)
	src, err := a.runner.TaskStream(r.Context(), taskNum, last)
	if err != nil {
		return err
	}
	return a.streams.serve(w, r, src, last)
}

// streamWorker streams all tasks of a worker as they run.
func (a *API) streamWorker(w http.ResponseWriter, r *request) error {
	wrk, err := a.store.Worker(r.Context(), r.who.Caller, r.params.ByName("workerId"))
	if err != nil {
		return err
	}
	last := lastEventID(r)
	src, err := a.runner.WorkerStream(r.Context(), wrk.ID, last)
	if err != nil {
		return err
	}
	defer src.Close()
	return a.streams.serve(w, r, endless{src}, last)
}

// endless is a source that is never done.
type endless struct{ *runner.WorkerStream }

// Next waits for events.
func (e endless) Next(ctx context.Context) ([]runner.Event, bool, error) {
	events, err := e.WorkerStream.Next(ctx)
	return events, false, err
}
