package runner

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"journeyman/runner/model"
	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
	"journeyman/runner/trace"
	"journeyman/store"
	"journeyman/store/db"
)

// The agent loop calls the functions below to report its work. Each function measures a duration
// for the metrics, and ends a span of the trace.

// tracedTurn returns the fields of a turn that traces contain.
func tracedTurn(t store.Turn) trace.Turn {
	return trace.Turn{ID: t.ID, Task: t.TaskID, Worker: t.WorkerID, Organization: t.OrganizationID,
		TriggeredBy: string(t.TriggeredBy), AcceptedAt: t.CreatedAt}
}

func tracedUsage(u store.Usage) trace.Usage {
	return trace.Usage{Input: u.InputTokens, Output: u.OutputTokens, CacheRead: u.CacheReadTokens,
		CacheWrite: u.CacheWriteTokens}
}

// traceEnd exports the span of a turn that has ended.
func (r *Runner) traceEnd(t store.Turn) {
	if r.cfg.Trace == nil {
		return
	}
	code := ""
	if t.Failure != nil {
		code = plainCode(t.Failure.Code)
	}
	r.cfg.Trace.EndTurn(tracedTurn(t), string(t.Status), code, tracedUsage(t.Usage))
}

// logEnd logs the end of a turn, and exports its span.
func (r *Runner) logEnd(t store.Turn) {
	r.traceEnd(t)
	attrs := []any{"status", string(t.Status)}
	if t.Failure != nil {
		attrs = append(attrs, "code", plainCode(t.Failure.Code))
	}
	if t.IncompleteReason != "" && t.Status == store.Completed {
		attrs = append(attrs, "incomplete", t.IncompleteReason)
	}
	if t.IncompleteLimit != "" {
		attrs = append(attrs, "limit", t.IncompleteLimit)
	}
	attrs = append(attrs, "steps", t.Usage.Steps, "tokens", t.Usage.InputTokens+t.Usage.OutputTokens,
		"credits", db.Credits(t.Usage.Cost()), "took", t.Duration)
	log := r.turnLog(t)
	if t.Status == store.Failed {
		log.Warn("turn ended", attrs...)
		return
	}
	log.Info("turn ended", attrs...)
}

// beginStep ends the step in progress, if any, and begins the next step. A step lasts from its
// first model call to the end of its tool calls.
func (r *Runner) beginStep(ctx context.Context, e *execution) {
	r.endStep(e)
	e.stepBegun = r.cfg.Now()
	_, e.stepSpan = r.cfg.Trace.Step(ctx, int64(len(e.steps)))
}

// endStep ends the step in progress, if any.
func (r *Runner) endStep(e *execution) {
	if e.stepBegun.IsZero() {
		return
	}
	r.observe(e.stepBegun, `journeyman_step_duration_seconds{provider=%q}`, e.model.ProviderKind())
	e.stepSpan.End("")
	e.stepBegun, e.stepSpan = time.Time{}, nil
}

// beginModel begins a model call. The caller calls the returned function when the call has ended.
func (r *Runner) beginModel(ctx context.Context, e *execution) (
	context.Context, func(model.Response, error)) {
	m, begun := e.model, r.cfg.Now()
	_, name, named := strings.Cut(m.Name(), ":")
	if !named {
		name = m.Name()
	}
	ctx, span := r.cfg.Trace.Chat(e.stepSpan.In(ctx), m.ProviderKind(), name, e.claim.TaskID)
	return ctx, func(resp model.Response, err error) {
		r.observe(begun, `journeyman_model_call_duration_seconds{provider=%q,result=%q}`, m.ProviderKind(), result(ctx, err))
		span.Answered(resp.Model, string(resp.Finish), tracedUsage(m.Usage(resp.Usage)))
		span.End(errorType(ctx, err))
	}
}

// beginTool begins a tool call. The caller calls the returned function when the call has ended.
func (r *Runner) beginTool(ctx context.Context, run *callRun) (context.Context, func()) {
	name, kind, begun := run.tool.Spec().Name, "function", r.cfg.Now()
	label := name // the name of one of this program's tools, never text of the model
	if run.host.e.tools.IsRemote(run.ToolName) || name == "" {
		name, kind, label = run.ToolName, "extension", "mcp"
	}
	ctx, span := r.cfg.Trace.Tool(run.host.e.stepSpan.In(ctx), name, kind, run.host.e.claim.TaskID)
	return forAuthor(ctx, run.host.e.claim.Turn), func() {
		r.observe(begun, `journeyman_tool_call_duration_seconds{tool=%q,result=%q}`, label, result(ctx, run.err))
		span.End(errorType(ctx, run.err))
	}
}

// forAuthor returns a context in which document readers work for the author of a turn. Nothing tells one
// stranger from another for certain, so each task of theirs counts as a sender.
func forAuthor(ctx context.Context, t store.Turn) context.Context {
	c := sandbox.Client{Organization: t.OrganizationID, Sender: t.CreatedByUserID}
	if t.Stranger() {
		c.Sender, c.Stranger = t.TaskID, true
	}
	return sandbox.ForClient(ctx, c)
}

// errorType returns the kind of a call's error in one word, without any text of a provider or tool.
func errorType(ctx context.Context, err error) string {
	if err == nil || errors.Is(err, tool.ErrLater) {
		return ""
	}
	if ctx.Err() != nil {
		return "cut"
	}
	if me, ok := errors.AsType[*model.Error](err); ok {
		return cmp.Or(model.KnownCode(me.Code), "other")
	}
	return "failed"
}

func result(ctx context.Context, err error) string {
	switch {
	case err == nil:
		return "ok"
	case ctx.Err() != nil:
		return "cut"
	}
	return "error"
}
