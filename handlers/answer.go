package handlers

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"journeyman/store"
)

// forever is a wait without an end of its own.
const forever = time.Duration(1<<63 - 1)

// A preference is what a client prefers about waiting (RFC 7240).
type preference struct {
	async   bool
	wait    time.Duration // forever unless waits
	waits   bool
	applied string
}

// prefer reads the Prefer header. What is not understood is not followed, as the
// RFC wants.
func prefer(r *http.Request) preference {
	p := preference{wait: forever}
	var applied []string
	for _, field := range strings.Split(strings.Join(r.Header.Values("Prefer"), ","), ",") {
		field, _, _ = strings.Cut(field, ";")
		name, arg, _ := strings.Cut(strings.TrimSpace(field), "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "respond-async":
			if !p.async {
				p.async = true
				applied = append(applied, "respond-async")
			}
		case "wait":
			n, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(arg), `"`), 10, 31)
			if err == nil && !p.waits {
				p.waits, p.wait = true, time.Duration(n)*time.Second
				applied = append(applied, "wait="+strconv.FormatUint(n, 10))
			}
		}
	}
	p.applied = strings.Join(applied, ", ")
	return p
}

func markReplay(w http.ResponseWriter, replayed bool) {
	if replayed {
		w.Header().Set("Idempotency-Replayed", "true")
	}
}

// answer tells a client of its accepted turn: as a stream, at once, or when it has
// ended. patient clients wait unless they prefer otherwise.
func (a *API) answer(w http.ResponseWriter, r *request, accepted store.Accepted, stream, patient bool) error {
	t := accepted.Turn
	approvals, _ := knowsApprovals(r) // checked before the turn was accepted
	markReplay(w, accepted.Replayed)
	w.Header().Set("Location", "/api/tasks/"+t.TaskID)
	if stream {
		return a.streamTurn(w, r, t, approvals)
	}
	p := prefer(r.Request)
	if p.applied != "" {
		w.Header().Set("Preference-Applied", p.applied)
	}
	wait := p.wait
	if (p.async || !patient) && !p.waits {
		wait = 0
	}
	status := http.StatusOK
	h := &held{w: w}
	if err := a.await(r.Context(), h, t.ID, wait); errors.Is(err, context.DeadlineExceeded) && r.Context().Err() == nil {
		if p.async {
			status = http.StatusAccepted
		}
	} else if err != nil {
		return h.fail(err, r.id)
	}
	wrk, err := a.store.WorkerOfTurn(r.Context(), t)
	if err != nil {
		return h.fail(err, r.id)
	}
	v, err := a.turnRun(r.Context(), wrk, t, approvals)
	if err != nil {
		return h.fail(err, r.id)
	}
	return h.finish(status, v)
}

// await waits until the turn has ended, at most for wait, and keeps the response
// alive meanwhile: clients and proxies give up on a connection that is silent for
// 30 or 60 seconds, and spaces ahead of JSON mean nothing.
func (a *API) await(ctx context.Context, h *held, turnID string, wait time.Duration) error {
	if wait == 0 {
		return context.DeadlineExceeded
	}
	if wait < forever {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	ended := make(chan error, 1)
	go func() { ended <- a.runner.Wait(ctx, turnID) }() // ends with ctx, and nobody leaves here before
	keep := time.NewTimer(a.cfg.Timing.SilentFor)
	defer keep.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-keep.C:
			h.space()
			keep.Reset(a.cfg.Timing.SpaceEvery)
		}
	}
}

// held is a response that may have begun with spaces.
type held struct {
	w     http.ResponseWriter
	begun bool
}

func (h *held) space() {
	if !h.begun {
		h.begun = true
		h.w.Header().Set("Content-Type", "application/json")
		h.w.Header().Set("X-Accel-Buffering", "no") // a proxy must pass the spaces on
		h.w.WriteHeader(http.StatusOK)
	}
	_, _ = h.w.Write([]byte(" ")) // if the client has gone, its context says so
	_ = http.NewResponseController(h.w).Flush()
}

// finish writes the result.
func (h *held) finish(status int, v any) error {
	if !h.begun {
		return respond(h.w, status, v)
	}
	body, err := marshal(v)
	if err == nil {
		_, _ = h.w.Write(body) // the client may have gone
	}
	return err
}

// fail gives the error back to be answered or, where the response has begun, puts
// it into the body: the status cannot be changed any more.
func (h *held) fail(err error, requestID string) error {
	if !h.begun {
		return err
	}
	p := problemOf(err)
	body, _ := marshal(map[string]string{"error": p.Message, "message": p.Message, "code": p.Code, "requestId": requestID}) // strings
	_, _ = h.w.Write(body)                                                                                                  // the client may have gone
	return nil
}
