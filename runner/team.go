package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"

	"journeyman/runner/tool"
	"journeyman/runner/view"
	"journeyman/runner/workspace"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/gate"
	"journeyman/store/visible"
)

// This file implements teams. A turn can run other workers: their turns are its children. The
// parent is suspended while it waits, so it holds no slot. The end of the last child resumes the
// parent. Then the calls that started the children are repeated, and return the results.

// Fields of _meta in requests and responses of this server's own /mcp. CallMeta identifies the
// calling turn, and ChildMeta marks a result that will come later. See package tool.
const (
	CallMeta  = tool.CallMeta
	ChildMeta = tool.ChildMeta
)

// RunWorker starts a turn of another worker, or returns the result of a task started earlier.
func (h *toolHost) RunWorker(ctx context.Context, errand tool.Errand) (json.RawMessage, error) {
	// After a crash or a wait, the repeated call must find its child and not start another.
	child, found, err := h.child(ctx, errand.TaskID)
	if err == nil && !found && errand.TaskID != "" {
		return nil, tool.Errorf("no call of this task has started the task %q", errand.TaskID)
	}
	if err == nil && !found {
		if err = h.start(ctx, errand); err == nil { // read the child, because it may have ended already
			child, _, err = h.child(ctx, "")
		}
	}
	if exhausted(err) {
		return nil, err // the call is repeated when resources are available again
	}
	if err != nil {
		return nil, forModel(err)
	}
	if errand.Wait && !child.Status.Ended() {
		h.awaits = &child
		return nil, tool.ErrLater
	}
	return h.report(ctx, child)
}

// child returns the turn that the call has started. If taskID is set, child returns the newest turn
// of that task instead. The calling turn's task must have started it.
func (h *toolHost) child(ctx context.Context, taskID string) (store.Child, bool, error) {
	if taskID != "" {
		return h.r.cfg.Store.ChildTask(ctx, h.e.claim.Turn, taskID)
	}
	return h.r.cfg.Store.ChildOf(ctx, h.place)
}

// start accepts a turn of another worker, on behalf of the calling turn's author.
func (h *toolHost) start(ctx context.Context, errand tool.Errand) error {
	// The author's present role applies, so that a team cannot do more than its author may.
	caller, err := h.r.cfg.Store.TurnCaller(ctx, h.e.claim.Turn)
	if err != nil {
		return err
	}
	w, err := h.r.cfg.Store.WorkerNamed(ctx, caller, errand.Worker)
	if err != nil {
		return err
	}
	in := Instruction{NewTurn: store.NewTurn{Caller: caller, WorkerID: w.ID, Input: errand.Input,
		Budget: h.e.claim.Budget}}
	for _, name := range errand.Files {
		f, err := h.copyFile(name)
		if err != nil {
			return err
		}
		in.Files = append(in.Files, f)
	}
	_, err = h.r.acceptChild(ctx, h.place, in)
	h.started = err == nil
	return err
}

// copyFile copies a workspace file into the data folder for another worker.
func (h *toolHost) copyFile(name string) (f store.File, err error) {
	src, err := h.e.ws.Open(name)
	if err != nil {
		return f, err
	}
	defer src.Close()
	return h.r.Keep(h.r.ctx, h.e.claim.OrganizationID, path.Base(name), src, h.r.cfg.FileSize)
}

// acceptChild accepts the turn that a tool call starts.
func (r *Runner) acceptChild(ctx context.Context, p store.CallPlace, in Instruction) (a store.Accepted, err error) {
	err = r.accept(ctx, []*store.NewTurn{&in.NewTurn}, in.Files, func() ([]bool, error) {
		// After a cancellation it must be clear whether a child exists, so ctx does not cancel the
		// write. StartChild itself refuses children of cancelled turns.
		a, err = r.cfg.Store.StartChild(context.WithoutCancel(ctx), p, in.NewTurn)
		return []bool{!a.Replayed}, err
	})
	if err == nil {
		r.accepted(a, append(in.Log, "parent", p.Turn.ID)...)
		if err := r.Streams.ChildChanged(ctx, p.Turn); err != nil {
			r.cfg.Log.Error("notify the parent of a turn", "turn", p.Turn.ID, "err", err) // the child is committed
		}
	}
	return a, err
}

// AcceptFor accepts an instruction that a tool call has sent to this server's own /mcp. The calling
// turn waits for the new turn without a slot. ok is false if the token identifies no call of this
// server. Then the instruction must be accepted like any other.
func (r *Runner) AcceptFor(ctx context.Context, token string, in Instruction) (a store.Accepted, ok bool, err error) {
	p, ok, err := r.cfg.Store.CallOfToken(ctx, token)
	if err != nil || !ok {
		return a, false, err
	}
	ctx = gate.DuringMaintenance(ctx) // the calling turn may finish during maintenance
	a, err = r.acceptChild(ctx, p, in)
	if errors.Is(err, store.ErrClaimLost) || errors.Is(err, store.ErrAbortRequested) {
		err = db.Errorf(db.Conflict, "the call that asks for this has ended")
	}
	return a, true, err
}

// CallToken returns a token that identifies requests of this call to this server.
func (h *toolHost) CallToken() (string, error) { return h.r.cfg.Store.CallToken(h.place) }

// forModel converts a refusal of the store to an error for the model, because the model can act on
// it.
func forModel(err error) error {
	refusal, ok := errors.AsType[*db.Error](err)
	if !ok {
		return err
	}
	text := refusal.Message
	for _, d := range refusal.Details {
		text += "; " + d.Path + " " + d.Message
	}
	return tool.Errorf("%s", text)
}

// waits reports whether the result of a call comes from another turn. If a remote server claims
// this but no such turn exists, the call fails.
func (r *Runner) waits(ctx context.Context, run *callRun) (bool, error) {
	if run.host.awaits != nil {
		return true, nil
	}
	child, found, err := r.cfg.Store.ChildOf(ctx, run.host.place)
	if err != nil {
		return false, fmt.Errorf("read child: %w", err)
	}
	if run.host.awaits = &child; !found {
		run.err = tool.Errorf("the server reports a running worker, but none runs")
	}
	return found, nil
}

// awaitChildren suspends a turn until the child turns of calls have ended. The turn continues if they
// have already ended.
func (r *Runner) awaitChildren(ctx context.Context, e *execution, calls []*callRun) (outcome, error) {
	if ctx.Err() != nil {
		return next, context.Cause(ctx)
	}
	var children []store.Child
	for _, c := range calls {
		children = append(children, *c.host.awaits)
	}
	// The store reads the children and suspends the turn in one transaction. So either
	// SuspendForChildren sees the end of a child, or that end resumes the suspended parent.
	suspended, err := r.suspend(e, func(ctx context.Context) (bool, error) {
		return r.cfg.Store.SuspendForChildren(ctx, e.claim, children)
	})
	if err != nil || !suspended {
		return next, err
	}
	e.live.Suspended()
	return waits, nil
}

// A laterResult is the tool of a repeated call that has started a turn through this server's own
// /mcp. It is not used for run_worker.
type laterResult struct{ child store.Child }

// Spec declares that the call is repeatable, because it only reads.
func (laterResult) Spec() tool.Spec { return tool.Spec{Repeatable: true, Parallel: true} }

// Run returns the result of the turn, or ErrLater if the turn has not ended.
func (l laterResult) Run(ctx context.Context, h tool.Host, _ json.RawMessage) (json.RawMessage, error) {
	own, ok := h.(*toolHost)
	if !ok {
		return nil, errors.New("the host is not this runner's")
	}
	if !l.child.Status.Ended() {
		own.awaits = &l.child
		return nil, tool.ErrLater
	}
	return own.report(ctx, l.child)
}

// Limits of the report on a child.
const (
	maxReported = 64 << 10 // bytes of text, and of structured output
	maxReceived = 20       // files that are copied
)

// A report is the result of running another worker.
type report struct {
	Worker     string          `json:"worker"`
	Task       string          `json:"task"`
	Status     store.Status    `json:"status"`
	Output     string          `json:"output,omitempty"`
	Structured json.RawMessage `json:"structuredOutput,omitempty"`
	Files      []receivedFile  `json:"files,omitempty"`
	Incomplete string          `json:"incomplete,omitempty"` // why the answer is incomplete
	Credits    float64         `json:"credits"`              // spent from the shared budget
}

// A receivedFile is a file that a child has published.
type receivedFile struct {
	Path  string `json:"path,omitempty"` // of the copy in the workspace
	URL   string `json:"url"`
	Error string `json:"error,omitempty"` // why there is no copy
}

// report returns the result of a child that has ended, or the child's current state.
func (h *toolHost) report(ctx context.Context, c store.Child) (json.RawMessage, error) {
	if f := c.Failure; f != nil {
		return nil, tool.Errorf("the worker %q has failed: %s (%s). Its task is %s", c.WorkerTitle, f.Message, f.Code,
			c.TaskID)
	}
	rep := report{Worker: c.WorkerTitle, Task: c.TaskID, Status: c.Status, Incomplete: c.IncompleteReason,
		Output: c.OutputText, Structured: c.StructuredOutput, Credits: db.Credits(c.Usage.Cost())}
	if len(rep.Output) > maxReported {
		rep.Output = workspace.Cut(rep.Output, maxReported) + "\n[... the rest is on the page of the task ...]"
	}
	if len(rep.Structured) > maxReported {
		return nil, tool.Errorf("the structured output of the worker %q has %d bytes, more than the %d that are "+
			"handed over: have it publish a file", c.WorkerTitle, len(rep.Structured), maxReported)
	}
	if c.Status.Ended() { // before the child ends, its files may still change
		h.took = c.Duration
		var err error
		if rep.Files, err = h.receive(ctx, c); err != nil {
			return nil, err
		}
	}
	b, err := view.Marshal(rep)
	return json.RawMessage(b), err
}

// receive copies the files that a child has published into the workspace. A repeated call writes
// the same files again.
func (h *toolHost) receive(ctx context.Context, c store.Child) (list []receivedFile, err error) {
	files, err := h.r.cfg.Store.FilesByTurn(ctx, c.Turn)
	if err != nil {
		return nil, err
	}
	for i, f := range store.NewestFiles(store.TurnFiles(files, c.Num, store.Published)) {
		got := receivedFile{URL: h.r.FileURL(f)}
		if i >= maxReceived {
			got.Error = fmt.Sprintf("only %d files are copied", maxReceived)
			return append(list, got), nil
		}
		data, err := h.r.readFile(ctx, f)
		if err != nil {
			return nil, err
		}
		// The path contains the task id, so that files of different children cannot collide.
		to := path.Join("from", c.TaskID, c.Folder().Local(f.Path))
		err = h.e.ws.WriteFile(to, data)
		refused, ok := errors.AsType[*workspace.Error](err)
		switch {
		case err == nil:
			got.Path = visible.Name(to)
		case ok: // for example, the folder is full
			got.Error = refused.Message
		default:
			return nil, fmt.Errorf("copy a file of a child: %w", err)
		}
		list = append(list, got)
	}
	return list, nil
}
