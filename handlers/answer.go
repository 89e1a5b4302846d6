package handlers

import (
	"context"
	"errors"
	"net/http"
	"time"

	"journeyman/runner"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/workers"
)

// accept checks the rest of the body, passes the instruction to the runner, and answers as the
// client asked. If patient is set, the client waits for the result unless it asks for something
// else.
func (a *API) accept(w http.ResponseWriter, r *request, b *Body, instruction runner.Instruction,
	patient bool) (err error) {
	stream := b.flag("stream")
	if err := b.check(w, r); err != nil {
		return err
	}
	// Every check that can refuse the request runs before Accept, which is the first change.
	if err := a.checkAnswer(r, stream); err != nil {
		return err
	}
	if instruction.IdempotencyKey, err = b.idempotencyKey(r); err != nil {
		return err
	}
	instruction.Files, instruction.Log = b.files, []any{"request", r.id}
	accepted, watch, err := a.runner.AcceptWatched(r.Context(), instruction)
	defer watch.Leave()
	if err != nil {
		return err
	}
	return a.answer(w, r, accepted, watch, stream, patient)
}

// checkAnswer refuses a request whose answer the client could not read. It runs before the turn is
// accepted: otherwise the turn would run and nobody would get its result.
func (a *API) checkAnswer(r *request, stream bool) error {
	if stream {
		return a.shares.streams.Check(holderOf(r.who))
	}
	return nil
}

// answer writes the response for an accepted turn: as a stream, at once, or when the turn has
// ended. For patient, see accept. watch is the Watch of the turn.
func (a *API) answer(w http.ResponseWriter, r *request, accepted store.Accepted, watch *runner.Watch,
	stream, patient bool) error {
	t := accepted.Turn
	markReplay(w, accepted.Replayed)
	w.Header().Set("Location", a.cfg.BaseURL+"/api/tasks/"+t.TaskID) // no id needs escaping
	if stream {
		return a.streamTurn(w, r, t)
	}
	p := prefer(r.Request)
	if p.applied != "" {
		w.Header().Set("Preference-Applied", p.applied)
	}
	// A wait time in the Prefer header replaces the default of the endpoint.
	wait := p.wait
	if (p.async || !patient) && !p.waits {
		wait = 0
	}
	status := http.StatusOK
	h := &heldResponse{w: w}
	conv, err := a.await(r.Context(), h, watch, wait)
	switch over := errors.Is(err, context.DeadlineExceeded) && r.Context().Err() == nil; {
	case over && p.async: // the turn goes on
		status = http.StatusAccepted
	case err != nil && !over:
		return h.fail(r.Context(), waitProblem(r, t, err), r.id)
	}
	v, err := a.turnRun(r.Context(), accepted, conv, r.sdk)
	if err != nil {
		return h.fail(r.Context(), err, r.id)
	}
	return h.finish(status, v)
}

// turnRun returns the run view of a turn. conv is the conversation up to the end of the turn. If
// conv is nil, or if the turn is older than the request, turnRun reads the conversation from the store.
func (a *API) turnRun(ctx context.Context, accepted store.Accepted, conv *store.Conversation,
	sdk view.SDK) (view.Run, error) {
	if conv != nil && !accepted.Replayed && accepted.Answered == nil {
		// The run view holds only these fields of the worker, and they never change.
		wrk := workers.Worker{ID: accepted.Turn.WorkerID, CreatedAt: accepted.WorkerCreatedAt}
		return a.views.LastTurnRun(ctx, wrk, *conv, sdk)
	}
	wrk, err := a.store.WorkerOfTurn(ctx, accepted.Turn)
	if err != nil {
		return view.Run{}, err
	}
	return a.views.TurnRun(ctx, wrk, accepted.Turn, sdk)
}

// waitProblem returns the error of a failed wait. It adds the ids of the task and the turn, so that
// the client can read the result later. It returns err unchanged if the client has disconnected.
func waitProblem(r *request, t store.Turn, err error) error {
	if r.Context().Err() != nil {
		return err
	}
	p := *ProblemOf(err) // a copy: the Problem may be shared
	p.TaskID, p.TurnID = t.TaskID, t.ID
	if p.Status == http.StatusServiceUnavailable {
		p.Message += ": GET /api/tasks/" + t.TaskID + " then has the result"
	}
	return &p
}

// await waits until the turn has ended, but not longer than wait. Clients and proxies close a
// connection that is silent for 30 or 60 seconds. So await writes spaces meanwhile: JSON allows
// them before the value. It returns the conversation as Watch.Result does.
func (a *API) await(ctx context.Context, h *heldResponse, watch *runner.Watch, wait time.Duration) (
	conv *store.Conversation, err error) {
	if wait == 0 { // a space would send status 200, but the status may become 202
		return nil, context.DeadlineExceeded
	}
	if wait < forever {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	ended := make(chan struct{})
	go func() { // ends with ctx; await returns only after it
		conv, err = watch.Result(ctx)
		close(ended)
	}()
	keep := time.NewTimer(a.cfg.Timing.SilentFor)
	defer keep.Stop()
	for {
		select {
		case <-ended:
			return conv, err
		case <-keep.C:
			h.space()
			keep.Reset(a.cfg.Timing.SpaceEvery)
		}
	}
}

// A heldResponse is a response that may begin with spaces while the client waits. Only one
// goroutine uses it.
type heldResponse struct {
	w     http.ResponseWriter
	begun bool // the headers have been sent
}

// space writes one space. The first one sends status 200, so a later error can only be reported in
// the body.
func (h *heldResponse) space() {
	if !h.begun {
		h.begun = true
		h.w.Header().Set("Content-Type", "application/json")
		h.w.Header().Set("X-Accel-Buffering", "no") // a proxy must pass the spaces on
		h.w.WriteHeader(http.StatusOK)
	}
	_, _ = h.w.Write([]byte(" ")) // the context of a disconnected client ends
	_ = http.NewResponseController(h.w).Flush()
}

// finish writes the result.
func (h *heldResponse) finish(status int, v any) error {
	if !h.begun {
		return respond(h.w, status, v)
	}
	body, err := view.Marshal(v)
	if err == nil {
		_, _ = h.w.Write(body) // the client may have disconnected
	}
	return err
}

// fail returns err, so that the caller answers with it. If the response has begun, its status is
// sent, so fail writes the error into the body.
func (h *heldResponse) fail(ctx context.Context, err error, requestID string) error {
	if !h.begun || Left(ctx, err) {
		return err
	}
	DescribeRefusal(ctx, err)
	body, _ := view.Marshal(ProblemOf(err).view(requestID)) // strings marshal without an error
	_, _ = h.w.Write(body)                                  // the client may have disconnected
	return nil
}
