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

// streams writes event streams. Each response has a private stream of the broker,
// so that a reader that stands still stops nobody else; what is sent comes from
// the runner, which knows what lies after any event.
type streams struct {
	broker *sse.Server
	timing Timing
	most   int64    // open at once
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
	id      string
	src     source
	may     func(ctx context.Context) error // says whether the reader still may read
	broker  *sse.Server
	timing  Timing
	ctx     context.Context // of the response
	cancel  context.CancelFunc
	ahead   *atomic.Int64 // see deadlineWriter
	lastID  string        // never empty: an empty id would clear the client's
	said    time.Time     // when anything was sent last
	checked time.Time     // when may was asked last
}

func newStreams(timing Timing, most int) *streams {
	s := &streams{broker: sse.New(), timing: timing, most: int64(most)}
	// AutoReplay would rewrite ids, EventTTL drop events, and an unsplit newline
	// break a frame. The small buffer keeps an idle stream small.
	s.broker.AutoReplay, s.broker.AutoStream, s.broker.SplitData, s.broker.BufferSize = false, false, true, 4
	s.broker.Headers = streamHeaders()
	s.broker.OnSubscribe = func(id string, _ *sse.Subscriber) {
		if p, ok := s.pumps.Load(id); ok {
			p.(*pump).run()
		}
	}
	// By then the stream's only reader has gone, so nothing is left behind.
	s.broker.OnUnsubscribe = func(id string, _ *sse.Subscriber) { s.broker.RemoveStream(id) }
	return s
}

// streamHeaders are those of every event stream, besides its content type.
func streamHeaders() map[string]string {
	return map[string]string{"X-Accel-Buffering": "no", "Cache-Control": "no-cache, no-transform", "x-vercel-ai-ui-message-stream": "v1"}
}

// full refuses a stream more than there can be.
func (s *streams) full() error {
	if s.open.Load() < s.most {
		return nil
	}
	return store.Errorf(store.Busy, "there are %d open streams, the most there can be", s.most)
}

// serve writes what src gives until it is done, the client goes, or may gives a
// refusal.
func (s *streams) serve(w http.ResponseWriter, r *request, src source, lastID string, may func(ctx context.Context) error) error {
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		for name, value := range streamHeaders() {
			w.Header().Set(name, value)
		}
		return nil
	}
	if err := s.full(); err != nil {
		return err
	}
	s.open.Add(1)
	defer s.open.Add(-1)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	out := &deadlineWriter{ResponseWriter: w, control: http.NewResponseController(w), within: s.timing.WriteIn, cancel: cancel}
	out.ahead.Store(1) // the broker flushes once before the first event
	p := &pump{id: strconv.FormatInt(s.last.Add(1), 36), src: src, may: may, broker: s.broker, timing: s.timing,
		ctx: ctx, cancel: cancel, ahead: &out.ahead, lastID: cmp.Or(lastID, "0"), said: time.Now(), checked: time.Now()}
	s.pumps.Store(p.id, p)
	defer s.pumps.Delete(p.id)
	s.broker.CreateStream(p.id)
	sub := r.Clone(ctx)
	sub.URL = &url.URL{RawQuery: "stream=" + p.id}
	sub.Header.Del("Last-Event-ID")
	s.broker.ServeHTTP(out, sub)
	return nil
}

// run moves events until there are no more. Publishing blocks only this pump.
func (p *pump) run() {
	for p.step() {
	}
}

// step moves the next events and reports whether there may be more.
func (p *pump) step() (more bool) {
	ctx, cancel := context.WithTimeout(p.ctx, min(p.timing.BeatEvery, p.timing.CheckEvery))
	events, done, err := p.src.Next(ctx)
	cancel()
	p.ahead.Add(int64(len(events)))
	for _, e := range events {
		p.lastID = e.ID
		p.publish(&sse.Event{ID: []byte(e.ID), Data: e.Data})
	}
	switch {
	case p.ctx.Err() != nil:
		return false
	case err != nil && !errors.Is(err, context.DeadlineExceeded), !p.mayRead():
		p.cancel() // the client comes back with the last id it has
		return false
	case done:
		p.ahead.Add(1)
		p.publish(&sse.Event{ID: []byte(p.lastID), Data: []byte("[DONE]")})
		p.broker.Publish(p.id, &sse.Event{}) // an empty event ends the response
		return false
	case time.Since(p.said) >= p.timing.BeatEvery:
		p.ahead.Add(1)
		p.publish(&sse.Event{Comment: []byte("heartbeat")})
	}
	return true
}

func (p *pump) publish(e *sse.Event) {
	if p.ctx.Err() == nil {
		p.said = time.Now()
		p.broker.Publish(p.id, e)
	}
}

// mayRead is false once the reader's key is revoked or what it reads is closed to
// it. A check that fails otherwise is no refusal.
func (p *pump) mayRead() bool {
	if time.Since(p.checked) < p.timing.CheckEvery {
		return true
	}
	p.checked = time.Now()
	err := p.may(p.ctx)
	return !store.IsKind(err, store.Unauthorized) && !store.IsKind(err, store.Forbidden) && !store.IsKind(err, store.NotFound)
}

// deadlineWriter cuts off a reader that does not read. The broker ignores write
// errors, so the writer ends the response itself. The broker also flushes after
// each event: where more are on their way already, the last of them does it for
// all, since each flush is a system call.
type deadlineWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	within  time.Duration
	cancel  context.CancelFunc
	ahead   atomic.Int64 // flushes still to come for what the pump has begun to send
	armed   time.Time    // when the deadline was set
}

// Write writes in time or ends the response. Setting a deadline costs as much as
// the rest, so one serves for all writes within a tenth of it.
func (w *deadlineWriter) Write(b []byte) (int, error) {
	if now := time.Now(); now.Sub(w.armed) > w.within/10 {
		w.armed = now
		_ = w.control.SetWriteDeadline(now.Add(w.within)) // where it is not supported, TCP has its own
	}
	n, err := w.ResponseWriter.Write(b)
	if err != nil {
		w.cancel()
	}
	return n, err
}

// Flush sends what was written, unless more follows at once.
func (w *deadlineWriter) Flush() {
	if w.ahead.Add(-1) > 0 {
		return
	}
	if err := w.control.Flush(); err != nil {
		w.cancel()
	}
}

// Unwrap gives the writer below, for http.ResponseController.
func (w *deadlineWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// wantsStream reports whether a GET asks for events.
func wantsStream(r *request, query url.Values) (bool, error) {
	if v := query.Get("stream"); v != "" {
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
func (a *API) streamTurn(w http.ResponseWriter, r *request, t store.Turn, approvals bool) error {
	src := a.runner.TurnStream(t)
	if approvals {
		src.WithApprovals()
	}
	return a.streams.serve(w, r, src, "", func(ctx context.Context) error {
		_, err := a.identify(ctx, r.Request)
		return err
	})
}

// streamTask streams a task: what was, and what is running or queued.
func (a *API) streamTask(w http.ResponseWriter, r *request, task store.Task, approvals bool) error {
	last := lastEventID(r)
	src, err := a.runner.TaskStream(r.Context(), task.Num, last)
	if err != nil {
		return err
	}
	if approvals {
		src.WithApprovals()
	}
	return a.streams.serve(w, r, src, last, func(ctx context.Context) error {
		who, _, err := a.identifyReader(ctx, r.Request)
		if err == nil {
			_, _, err = a.store.Task(ctx, who.Caller, task.ID)
		}
		return err
	})
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
	return a.streams.serve(w, r, endless{src}, last, func(ctx context.Context) error {
		who, _, err := a.identifyReader(ctx, r.Request)
		if err == nil {
			_, err = a.store.Worker(ctx, who.Caller, wrk.ID)
		}
		return err
	})
}

// endless is a source that is never done.
type endless struct{ *runner.WorkerStream }

// Next waits for events.
func (e endless) Next(ctx context.Context) ([]runner.Event, bool, error) {
	events, err := e.WorkerStream.Next(ctx)
	return events, false, err
}
