package runner

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// A Draft contains the fields of a worker that a user has entered.
type Draft struct {
	workers.Patch        // the given fields
	Prompt        string // of a new worker: the model writes the missing fields from it
}

// CheckWorker adds to wrong the fields of a draft that exceed their limits, or that name unknown
// models or tools. It skips tools that the worker has already named, because their server may be down.
func (r *Runner) CheckWorker(ctx context.Context, c people.Caller, wrong *db.Fields, d Draft,
	before workers.Settings) {
	d.Check(wrong)
	if d.OutputSchema != nil && *d.OutputSchema != nil {
		if err := CheckOutputSchema(*d.OutputSchema); err != nil {
			wrong.Add("outputSchema", "%s", err.Error())
		}
	}
	if d.Model != nil {
		if err := r.Models.Check(ctx, c.OrganizationID, *d.Model); err != nil {
			wrong.Add("model", "%s", err.Error())
		}
	}
	settings := d.New().Settings
	settings.Check(wrong)
	// Look up the tools of MCP servers last: a draft with other errors does not need this.
	if len(*wrong) == 0 {
		r.CheckTools(wrong, newlyNamed(settings, before))
	}
	d.CheckPrompt(wrong)
}

// CheckPrompt adds to wrong a prompt that is too long.
func (d Draft) CheckPrompt(wrong *db.Fields) {
	wrong.Check(utf8.RuneCountInString(d.Prompt) <= workers.MaxPrompt, "prompt",
		"must have at most %d characters", workers.MaxPrompt)
}

// newlyNamed returns s without the tools that before already names.
func newlyNamed(s, before workers.Settings) workers.Settings {
	fresh := func(l, before workers.ToolRules) workers.ToolRules {
		return slices.DeleteFunc(slices.Clone(l), func(r workers.ToolRule) bool {
			return slices.ContainsFunc(before, func(b workers.ToolRule) bool { return b.Tool == r.Tool })
		})
	}
	s.Tools, s.StrangerTools = fresh(s.Tools, before.Tools), fresh(s.StrangerTools, before.StrangerTools)
	known := func(name string) bool { return slices.Contains(before.ApprovalTools, name) }
	s.ApprovalTools = slices.DeleteFunc(slices.Clone(s.ApprovalTools), known)
	return s
}

// CreateWorker creates a worker from a draft that CheckWorker has accepted. For a repeated request,
// it returns the worker of the first request, and replayed is true.
func (r *Runner) CreateWorker(ctx context.Context, c people.Caller, d Draft, key db.IdempotencyKey) (
	w workers.Worker, replayed bool, err error) {
	n, leave, err := r.describeDraft(ctx, c, d, key)
	if err != nil {
		return w, false, err
	}
	defer leave()
	return r.cfg.Store.Workers.CreateWorker(context.WithoutCancel(ctx), c, n, key)
}

// RestoreVersion creates a new version of a worker with the content of version v. It returns an
// error if the model of v does not exist any more.
func (r *Runner) RestoreVersion(ctx context.Context, c people.Caller, id string, v workers.Version,
	revisions []string, key db.IdempotencyKey) (w workers.Worker, replayed bool, err error) {
	// Do not look up the tools again, because their server may be down for a while.
	if v.Settings.Model != "" {
		if err := r.Models.Check(ctx, c.OrganizationID, v.Settings.Model); err != nil {
			return w, false, db.Fields{{Path: "model", Message: err.Error()}}.Err()
		}
	}
	return r.cfg.Store.Workers.RestoreVersion(ctx, c, id, v.Number, revisions, key)
}

// describeDraft asks the model to write the missing fields of the draft, unless the request has
// already created its worker. Equal requests wait until leave is called. Then they find the worker,
// and the model is paid only once.
func (r *Runner) describeDraft(ctx context.Context, c people.Caller, d Draft, key db.IdempotencyKey) (
	n workers.NewWorker, leave func(), err error) {
	n = d.New()
	if strings.TrimSpace(d.Prompt) == "" || n.Instructions != "" && d.Summary != nil {
		return n, func() {}, nil
	}
	if leave, err = r.oneAtATime(ctx, key.KeyID+string(key.Hash)); err != nil {
		return n, nil, err
	}
	ours := true // this function must call leave, even after a panic
	defer func() {
		if ours {
			leave()
		}
	}()
	// Look up under the lock, after an equal request may have committed its worker.
	if id, err := r.cfg.Store.Replay(ctx, key); err != nil || id != "" {
		ours = err != nil // the caller still calls the store, which then returns the earlier worker
		return n, leave, err
	}
	// Continue even if the client disconnects. Then the client's next equal request finds the
	// worker that was paid for.
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

// oneAtATime waits until no other request with that name is in progress. The caller must call
// leave. Names are kept only in memory: after a restart, only the store knows earlier requests.
func (r *Runner) oneAtATime(ctx context.Context, name string) (leave func(), err error) {
	done := make(chan struct{})
	for {
		other, busy := r.underWay.LoadOrStore(name, done)
		if !busy {
			// Delete before the close: a waiter that wakes up must find the name free.
			return func() { r.underWay.Delete(name); close(done) }, nil
		}
		select {
		case <-other.(chan struct{}):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
