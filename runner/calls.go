package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
	"journeyman/store"
)

// maxToolOutput bounds what a tool may give back, in bytes.
const maxToolOutput = 256 << 10

// finishCalls runs the tool calls of the last step that are not in the journal,
// one after the other, so that of a step cut off only one call can have been cut
// in the middle: first those that need no approval, then, once people have decided,
// the others.
func (r *Runner) finishCalls(ctx context.Context, w *work) error {
	cut := w.resumed
	w.resumed = false
	if len(w.steps) == 0 || !wantsTools(w.steps[len(w.steps)-1]) {
		return nil
	}
	st := &w.steps[len(w.steps)-1]
	asked, free := w.openCalls(*st)
	for _, c := range free {
		if err := r.finishCall(ctx, w, st, c, cut); err != nil {
			return err
		}
		cut = false
	}
	if err := r.awaitDecisions(ctx, w, st); err != nil {
		return err
	}
	for _, c := range asked {
		a, _ := st.Approval(c.n)
		if err := r.finishDecided(ctx, w, st, c, a); err != nil {
			return err
		}
	}
	return nil
}

// openCalls are the calls of a step that have not ended: those that people are asked
// about, and the others.
func (w *work) openCalls(st store.Step) (asked, free []toolCall) {
	for _, c := range toolCalls(st) {
		_, asks := st.Approval(c.n)
		_, ended := st.Call(c.n)
		switch {
		case ended:
		case asks:
			asked = append(asked, c)
		default:
			free = append(free, c)
		}
	}
	return asked, free
}

// finishCall runs one tool call and journals it. cut says that a process died
// while it may have been running.
func (r *Runner) finishCall(ctx context.Context, w *work, st *store.Step, c toolCall, cut bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	call := store.Call{Step: st.Seq, Seq: c.n, State: store.CallCompleted, StartedAt: r.cfg.Now()}
	h := &host{r: r, w: w}
	var err error
	call.Output, call.State, err = r.runCall(ctx, h, *st, c, cut)
	if err != nil && ctx.Err() != nil && call.State != store.CallInterrupted {
		// What was being done is cut off; only where the runner stops is it told later.
		if call.State = store.CallInterrupted; errors.Is(context.Cause(ctx), errStopped) {
			return errStopped
		}
		err = tool.Errorf("the call was cut off and may have taken effect: %s", context.Cause(ctx))
	}
	if call.Output, err = callOutput(call.Output, err); err != nil {
		return fmt.Errorf("tool %s: %w", c.ToolName, err)
	}
	if call.State == store.CallInterrupted {
		h.files, h.sources = nil, nil
	}
	if err := r.journalCall(w, st, call, h); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// runCall gives the outcome of a tool call. Its error is for the model where it is
// a *tool.Error or a *sandbox.Error, else the turn's end.
func (r *Runner) runCall(ctx context.Context, h *host, st store.Step, c toolCall, cut bool) (json.RawMessage, store.CallState, error) {
	t := r.tool(h.w, c.ToolName)
	_, asked := st.Approval(c.n)
	switch why := inputError(c.Input); {
	case why != "":
		return nil, store.CallFailed, tool.Errorf("%s", why)
	case t == nil:
		return nil, store.CallFailed, tool.Errorf("there is no tool %q", c.ToolName)
	case h.w.asksFor(c.ToolName) && !asked:
		return nil, store.CallFailed, tool.Errorf("at most %d calls at once may wait for approval: ask for this one later", maxApprovals)
	case cut && !t.Spec().Repeatable:
		return nil, store.CallInterrupted, tool.Errorf("the service stopped during this call, which may have taken effect: check before repeating it")
	}
	if err := r.openWorkspace(h.w); err != nil {
		return nil, store.CallFailed, err
	}
	out, err := r.runTool(ctx, t, h, c.Input)
	if err != nil {
		return nil, store.CallFailed, err
	}
	return out, store.CallCompleted, nil
}

// journalCall writes a tool call that has ended down, with what h has gathered,
// and makes it part of the turn.
func (r *Runner) journalCall(w *work, st *store.Step, call store.Call, h *host) error {
	call.CompletedAt = r.cfg.Now()
	err := r.persist(func(ctx context.Context) error {
		return r.cfg.Store.JournalCall(ctx, w.claim, call, h.files, h.sources)
	})
	if err != nil {
		return fmt.Errorf("journal tool call: %w", err)
	}
	st.Calls = append(st.Calls, call)
	w.used.ToolCost += call.Cost
	w.published = w.published || len(h.files)+len(h.sources) > 0
	w.live.called(call)
	r.feedRing(w.live)
	return nil
}

// runTool runs a tool so that its panic is its own failure only.
func (r *Runner) runTool(ctx context.Context, t tool.Tool, h *host, input json.RawMessage) (out json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.cfg.Log.Error("tool panicked", "tool", t.Spec().Name, "panic", p, "stack", string(debug.Stack()))
			err = tool.Errorf("the tool failed")
		}
	}()
	out, err = t.Run(ctx, h, input)
	switch {
	case err != nil:
		return nil, err
	case len(out) > maxToolOutput:
		return nil, tool.Errorf("the result has %d bytes, more than the %d a tool may give", len(out), maxToolOutput)
	case !json.Valid(out):
		return nil, errors.New("its result is not JSON")
	}
	return showable(out), nil
}

// showable gives a result that every reader of a stream takes: as it is, else its
// text as a JSON string.
func showable(out json.RawMessage) json.RawMessage {
	out = json.RawMessage(mended(string(out)))
	if key, err := hostileKey(out); key == "" && err == nil {
		return out
	}
	quoted, err := json.Marshal(string(out))
	if err != nil { // a string always marshals
		return json.RawMessage(`null`)
	}
	return quoted
}

// callOutput gives what is kept of a call's outcome: its result, or for an error
// that the model hears of, the message. Other errors it gives back.
func callOutput(out json.RawMessage, err error) (json.RawMessage, error) {
	var te *tool.Error
	var se *sandbox.Error
	switch {
	case err == nil:
		return out, nil
	case errors.As(err, &te):
		return json.Marshal(mended(te.Message))
	case errors.As(err, &se):
		return json.Marshal(mended(se.Message))
	}
	return nil, err
}

// A host is the turn as its tools see it, for one call.
type host struct {
	r       *Runner
	w       *work
	files   []store.File
	sources []store.Source
}

// Workspace is the worker's folder, open while the turn runs.
func (h *host) Workspace() *sandbox.Workspace { return h.w.ws }

// Publish keeps a copy of a workspace file; its row is written with the call.
func (h *host) Publish(ctx context.Context, path, title string) (tool.File, error) {
	f, err := h.r.publish(h.w.ws, h.w.claim.WorkerID, path, title)
	if err != nil {
		return tool.File{}, err
	}
	h.files = append(h.files, f)
	return tool.File{Path: f.Path, MediaType: f.MediaType, Size: f.Size, URL: h.r.FileURL(f)}, ctx.Err()
}

// AddSource notes a page; its row is written with the call.
func (h *host) AddSource(url, title string) {
	h.sources = append(h.sources, store.Source{ID: store.NewID("src", h.r.cfg.Now()), URL: url, Title: title})
}
