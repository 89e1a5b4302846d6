package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"journeyman/runner/prompt"
	"journeyman/runner/tool"
	"journeyman/runner/toolset"
	"journeyman/store/workers"
)

// loadToolset determines the tools that a turn may call, and adds them to the prompt.
func (r *Runner) loadToolset(ctx context.Context, e *execution) (err error) {
	s, tools := &e.tools, r.tools()
	*s = toolset.Set{Permission: toolset.PermissionOf(e.claim), Own: tools.List, Source: r.cfg.Remote,
		Approval: e.claim.Settings.ApprovalTools}
	// If no mail reaches the author, a question would only wait until it expires. So such a turn
	// gets no tool for questions.
	answerable, err := r.cfg.Store.Answerable(ctx, e.claim.Turn)
	if err != nil {
		return fmt.Errorf("find who answers: %w", err)
	}
	if !answerable {
		s.Own = toolset.Without(s.Own, tool.AskUser)
	}
	// Secrets come before remoteTools, because MCP servers may need them.
	if e.claim.HasSecrets {
		if s.Secrets, err = r.cfg.Store.Workers.TurnSecrets(ctx, e.claim.OrganizationID, e.claim.WorkerID); err != nil {
			return fmt.Errorf("read secrets: %w", err)
		}
	}
	// The next model of a chain may see: if the model that calls the tool does not, ShowImage says so.
	if s.Blindness = e.blindness(); s.Blindness != "" {
		s.Own = toolset.Without(s.Own, toolset.ViewImage)
	}
	if err = r.loadOffers(ctx, e); err != nil {
		return err
	}
	own := tools.Specs
	if s.Remote.Lean {
		s.Own, own = toolset.Lean(e.claim, s.Own), tools.Lean
	}
	e.prompt.Tools = s.Describe(own)
	e.prompt.Preamble = prompt.Preamble(s.Setting(e.claim, e.prompt.Tools, s.Names.Programs))
	if s.Remote.Note != "" {
		e.prompt.Preamble += "\n" + s.Remote.Note
	}
	if s.Names.Workers != "" {
		e.prompt.Preamble += "\n" + s.Names.Workers
	}
	if note := s.Secrets.Note(); note != "" && s.Allows(toolset.ID{Name: workers.HostsTool}) {
		e.prompt.Preamble += "\n" + note
	}
	return nil
}

// loadOffers sets the tools of MCP servers that a turn may call, and the names for its preamble. The first claim
// of the turn finds and stores them. Later claims use the same ones.
func (r *Runner) loadOffers(ctx context.Context, e *execution) (err error) {
	s := &e.tools
	if e.claim.Claims > 1 {
		if found, err := r.storedOffers(ctx, e); found || err != nil {
			return err
		}
	}
	if len(e.steps) > 0 {
		return nil // a turn that has begun without remote tools continues without them
	}
	if s.Remote, err = r.remoteTools(ctx, e); err != nil {
		return err
	}
	// A model in this process does not read the preamble.
	if e.prompt.Hints {
		if s.Names, err = r.namesFor(ctx, e); err != nil {
			return fmt.Errorf("list workers: %w", err)
		}
	}
	// An empty toolset needs no row: a turn with steps and without a row has no remote tools.
	if s.Remote.Empty() && s.Names.Workers == "" && len(s.Names.Programs) == 0 {
		return nil
	}
	// Stored before the first call: after a restart, the model must get the same tools.
	remote, err := json.Marshal(s.Remote)
	if err != nil {
		return fmt.Errorf("encode toolset: %w", err)
	}
	names, err := json.Marshal(s.Names)
	if err != nil {
		return fmt.Errorf("encode names of the preamble: %w", err)
	}
	return r.persist("keep toolset", func(ctx context.Context) error {
		return r.cfg.Store.KeepToolset(ctx, e.claim, remote, names)
	})
}

// storedOffers sets what an earlier claim of the turn has stored. It reports whether there is something.
func (r *Runner) storedOffers(ctx context.Context, e *execution) (found bool, err error) {
	remote, names, err := r.cfg.Store.Toolset(ctx, e.claim)
	switch {
	case err != nil:
		return false, fmt.Errorf("read toolset: %w", err)
	case remote == nil:
		return false, nil
	}
	if err := json.Unmarshal(remote, &e.tools.Remote); err != nil {
		return false, fmt.Errorf("decode toolset: %w", err)
	}
	if err := json.Unmarshal(names, &e.tools.Names); err != nil {
		return false, fmt.Errorf("decode names of the preamble: %w", err)
	}
	// Check a stored list again, because the rules must also apply to it.
	forbidden := func(t tool.RemoteTool) bool { return !e.tools.Allows(toolset.IDOf(t)) }
	e.tools.Remote.Tools = slices.DeleteFunc(e.tools.Remote.Tools, forbidden)
	return true, nil
}

// remoteTools asks for the tools of MCP servers that a turn may call.
func (r *Runner) remoteTools(ctx context.Context, e *execution) (found tool.Toolset, err error) {
	// A turn that may call no remote tool does not wait for the servers. Its prompt also does not
	// mention missing servers.
	if r.cfg.Remote != nil && (len(e.tools.Permission) == 0 ||
		slices.ContainsFunc(r.cfg.Remote.Known(), e.tools.AllowsServer)) {
		found = r.cfg.Remote.Toolset(ctx, slices.DeleteFunc(slices.Clone(e.claim.Settings.MCPTools),
			func(name string) bool { return !e.tools.AllowsServer(name) }), e.tools.Secrets.Value)
		if ctx.Err() != nil {
			return found, context.Cause(ctx)
		}
	}
	forbidden := func(t tool.RemoteTool) bool { return !e.tools.Allows(toolset.IDOf(t)) }
	found.Tools = slices.DeleteFunc(slices.Clone(found.Tools), forbidden)
	found.Lean = r.Models.ContextWindow(e.model) < toolset.LeanWindow
	return found, nil
}

// namesFor returns the names for the preamble of a turn. A short preamble names no programs.
func (r *Runner) namesFor(ctx context.Context, e *execution) (names toolset.Names, err error) {
	if !e.tools.Remote.Lean {
		names.Programs = r.startedPrograms()
	}
	names.Workers, err = r.workersFor(ctx, e, e.tools.Remote.Lean)
	return names, err
}

// workersFor returns the list of other workers that a turn may run, for the model.
func (r *Runner) workersFor(ctx context.Context, e *execution, lean bool) (string, error) {
	if t, _ := e.tools.Find(tool.RunWorkerName); t == nil {
		return "", nil
	}
	caller, err := r.cfg.Store.TurnCaller(ctx, e.claim.Turn)
	if err != nil {
		return "", err
	}
	// Two more: the turn's own worker, and one that shows that there are others.
	list, _, err := r.cfg.Store.Workers.List(ctx, caller, workers.Query{Origin: workers.CreatedOrigin,
		Limit: prompt.MaxWorkers + 2})
	if err != nil {
		return "", err
	}
	return prompt.Workers(list, e.claim.WorkerID, lean), nil
}

// blindness returns the reason why none of a turn's models sees pictures, "" if one does.
func (e *execution) blindness() string {
	for _, m := range e.chain {
		if m.Sees() {
			return ""
		}
	}
	return e.model.Blindness()
}
