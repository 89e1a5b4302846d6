package runner

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"journeyman/store"
)

// A Draft is a worker as a person has described it.
type Draft struct {
	store.WorkerPatch        // the fields that were given
	Prompt            string // of a new worker: the model writes the fields that were not given
}

// CheckWorker notes in wrong which fields of a draft break their limits, or name models
// and tools that do not exist. Tools that the worker named before are not looked for
// again: their server may be gone.
func (r *Runner) CheckWorker(ctx context.Context, c store.Caller, wrong *store.Fields, d Draft,
	before store.WorkerSettings) {
	d.Check(wrong)
	if d.OutputSchema != nil && *d.OutputSchema != nil {
		if err := CheckOutputSchema(*d.OutputSchema); err != nil {
			wrong.Add("outputSchema", "%s", err.Error())
		}
	}
	if d.Model != nil {
		if err := r.CheckModel(ctx, c.OrganizationID, *d.Model); err != nil {
			wrong.Add("model", "%s", err.Error())
		}
	}
	settings := d.New().Settings
	settings.Check(wrong)
	// The tools of MCP servers are looked up last: a draft that is wrong anyway needs no answer
	// about them.
	if len(*wrong) == 0 {
		r.CheckTools(wrong, newlyNamed(settings, before))
	}
	d.CheckPrompt(wrong)
}

// CheckPrompt notes in wrong a prompt that is too long.
func (d Draft) CheckPrompt(wrong *store.Fields) {
	wrong.Check(utf8.RuneCountInString(d.Prompt) <= store.MaxPrompt, "prompt",
		"must have at most %d characters", store.MaxPrompt)
}

// newlyNamed returns settings with only the tools that the settings before did not name.
func newlyNamed(s, before store.WorkerSettings) store.WorkerSettings {
	fresh := func(l, before store.ToolRules) store.ToolRules {
		return slices.DeleteFunc(slices.Clone(l), func(r store.ToolRule) bool {
			return slices.ContainsFunc(before, func(b store.ToolRule) bool { return b.Tool == r.Tool })
		})
	}
	s.Tools, s.StrangerTools = fresh(s.Tools, before.Tools), fresh(s.StrangerTools, before.StrangerTools)
	known := func(name string) bool { return slices.Contains(before.ApprovalTools, name) }
	s.ApprovalTools = slices.DeleteFunc(slices.Clone(s.ApprovalTools), known)
	return s
}

// CreateWorker creates a worker of a draft that CheckWorker has accepted. A request
// that created a worker before gets that worker, and replayed is true.
func (r *Runner) CreateWorker(ctx context.Context, c store.Caller, d Draft, key store.IdempotencyKey) (
	w store.Worker, replayed bool, err error) {
	n, leave, err := r.describeDraft(ctx, c, d, key)
	if err != nil {
		return w, false, err
	}
	defer leave()
	return r.cfg.Store.CreateWorker(context.WithoutCancel(ctx), c, n, key)
}

// RestoreVersion makes a new version of a worker with the content of its version v. It returns
// an error if the model of that version does not exist any more.
func (r *Runner) RestoreVersion(ctx context.Context, c store.Caller, id string, v store.WorkerVersion,
	revisions []string, key store.IdempotencyKey) (w store.Worker, replayed bool, err error) {
	// The tools are not looked for again: their server may be away for a while.
	if v.Settings.Model != "" {
		if err := r.CheckModel(ctx, c.OrganizationID, v.Settings.Model); err != nil {
			return w, false, store.Fields{{Path: "model", Message: err.Error()}}.Err()
		}
	}
	return r.cfg.Store.RestoreVersion(ctx, c, id, v.Number, revisions, key)
}

// describeDraft has the model write the fields that the draft leaves out, unless the request
// created its worker before. Equal requests wait until leave is called: they find the
// worker then, and the model is not paid twice.
func (r *Runner) describeDraft(ctx context.Context, c store.Caller, d Draft, key store.IdempotencyKey) (
	n store.NewWorker, leave func(), err error) {
	n = d.New()
	if strings.TrimSpace(d.Prompt) == "" || n.Instructions != "" && d.Summary != nil {
		return n, func() {}, nil
	}
	if leave, err = r.oneAtATime(ctx, key.KeyID+string(key.Hash)); err != nil {
		return n, nil, err
	}
	ours := true // this function must call leave; a panic of the model must not keep others waiting
	defer func() {
		if ours {
			leave()
		}
	}()
	// Looked up inside the lock: the equal request before this one has committed its worker.
	if id, err := r.cfg.Store.Replay(ctx, key); err != nil || id != "" {
		ours = err != nil // the caller still commits, and so returns the earlier worker
		return n, leave, err
	}
	// The call continues even if the client leaves. Then the client's next equal request finds
	// the worker that has been paid for.
	written, err := r.DescribeWorker(context.WithoutCancel(ctx), c, d.Prompt)
	if err != nil {
		return n, leave, err
	}
	n.Instructions, n.Title = cmp.Or(n.Instructions, written.Instructions), cmp.Or(n.Title, written.Title)
	if d.Summary == nil {
		n.Summary = written.Summary
	}
	ours = false
	return n, leave, nil
}

// oneAtATime waits until no other request of that name is under way. The caller must
// call leave. A name lasts only as long as its request: after a restart, the store alone knows
// earlier requests.
func (r *Runner) oneAtATime(ctx context.Context, name string) (leave func(), err error) {
	done := make(chan struct{})
	for {
		other, busy := r.underWay.LoadOrStore(name, done)
		if !busy {
			// Deleted before the close: a waiter that wakes must find the name free.
			return func() { r.underWay.Delete(name); close(done) }, nil
		}
		select {
		case <-other.(chan struct{}):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
