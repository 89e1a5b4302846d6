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
// in the middle.
func (r *Runner) finishCalls(ctx context.Context, w *work) error {
	cut := w.resumed
	w.resumed = false
	if len(w.steps) == 0 {
		return nil
	}
	st := &w.steps[len(w.steps)-1]
	n := 0
	for _, p := range st.Parts {
		if p.Type != store.PartToolCall {
			continue
		}
		if n++; n <= len(st.Calls) {
			continue
		}
		if err := r.finishCall(ctx, w, st, p, cut); err != nil {
			return err
		}
		cut = false
	}
	return nil
}

// finishCall runs one tool call and journals it. cut says that a process died
// while it may have been running.
func (r *Runner) finishCall(ctx context.Context, w *work, st *store.Step, p store.Part, cut bool) error {
	call := store.Call{Step: st.Seq, Seq: int64(len(st.Calls)), State: store.CallCompleted, StartedAt: r.cfg.Now()}
	h := &host{r: r, w: w}
	t := tool.Find(r.cfg.Tools, p.ToolName)
	var err error
	switch why := inputError(p.Input); {
	case why != "":
		err = tool.Errorf("%s", why)
	case t == nil:
		err = tool.Errorf("there is no tool %q", p.ToolName)
	case cut && !t.Spec().Repeatable:
		call.State = store.CallInterrupted
		err = tool.Errorf("the service stopped during this call, which may have taken effect: check before repeating it")
	default:
		call.Output, err = r.runTool(ctx, t, h, p.Input)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := failCall(&call, err); err != nil {
		return fmt.Errorf("tool %s: %w", p.ToolName, err)
	}
	call.CompletedAt = r.cfg.Now()
	err = r.persist(func(ctx context.Context) error { return r.cfg.Store.JournalCall(ctx, w.claim, call, h.files, nil) })
	if err != nil {
		return fmt.Errorf("journal tool call: %w", err)
	}
	st.Calls = append(st.Calls, call)
	w.used.ToolCost += call.Cost
	w.published = w.published || len(h.files) > 0
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
		return nil, fmt.Errorf("result is not JSON")
	}
	return out, nil
}

// failCall makes of an error what the model hears of it. It gives errors back
// that are not for the model.
func failCall(call *store.Call, err error) error {
	if err == nil {
		return nil
	}
	var te *tool.Error
	var se *sandbox.Error
	message := ""
	switch {
	case errors.As(err, &te):
		message = te.Message
	case errors.As(err, &se):
		message = se.Message
	default:
		return err
	}
	if call.State == store.CallCompleted {
		call.State = store.CallFailed
	}
	call.Output, err = json.Marshal(message)
	return err
}

// A host is the turn as its tools see it, for one call.
type host struct {
	r     *Runner
	w     *work
	files []store.File
}

// Workspace is the worker's folder, opened at the turn's first use.
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
