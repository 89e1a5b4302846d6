package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"journeyman/runner/prompt"
	"journeyman/runner/tool"
	"journeyman/store"
)

// loadToolset determines the tools that a turn may call, and adds them to the prompt.
func (r *Runner) loadToolset(ctx context.Context, e *execution) (err error) {
	s, tools := &e.tools, r.tools()
	*s = toolset{permission: permissionOf(e.claim), own: tools.list, source: r.cfg.Remote,
		approval: e.claim.Settings.ApprovalTools}
	// If no mail reaches the author, a question would only wait until it expires. So such a turn
	// gets no tool for questions.
	answerable, err := r.cfg.Store.Answerable(ctx, e.claim.Turn)
	if err != nil {
		return fmt.Errorf("find who answers: %w", err)
	}
	if !answerable {
		s.own = without(s.own, tool.AskUser)
	}
	// Secrets come before remoteTools, because MCP servers may need them.
	if e.claim.HasSecrets {
		if s.secrets, err = r.cfg.Store.TurnSecrets(ctx, e.claim); err != nil {
			return fmt.Errorf("read secrets: %w", err)
		}
	}
	// The next model of a chain may see: if the model that calls the tool does not, ShowImage says so.
	if s.blindness = e.blindness(); s.blindness != "" {
		s.own = without(s.own, viewImage)
	}
	if s.remote, err = r.remoteTools(ctx, e); err != nil {
		return err
	}
	own := tools.specs
	if s.remote.Lean {
		s.own, own = leanToolset(e.claim, s.own), tools.lean
	}
	e.prompt.Tools = s.describe(own)
	var programs []string
	// A model in this process does not read the preamble, and short ones do not name programs.
	if e.prompt.Hints && !s.remote.Lean {
		programs = r.startedPrograms()
	}
	e.prompt.Preamble = prompt.Preamble(s.setting(e.claim, e.prompt.Tools, programs))
	if s.remote.Note != "" {
		e.prompt.Preamble += "\n" + s.remote.Note
	}
	if s.remote.Workers != "" {
		e.prompt.Preamble += "\n" + s.remote.Workers
	}
	if note := s.secrets.note(); note != "" && s.allows(toolID{name: store.HostsTool}) {
		e.prompt.Preamble += "\n" + note
	}
	return nil
}

// remoteTools returns the tools of MCP servers and the workers that a turn may call. The first claim
// of the turn asks for them. Later claims use the same ones.
func (r *Runner) remoteTools(ctx context.Context, e *execution) (found tool.Toolset, err error) {
	forbidden := func(t tool.RemoteTool) bool { return !e.tools.allows(idOf(t)) }
	if e.claim.Claims > 1 {
		kept, err := r.cfg.Store.Toolset(ctx, e.claim)
		if err != nil {
			return found, fmt.Errorf("read toolset: %w", err)
		}
		if kept != nil {
			if err := json.Unmarshal(kept, &found); err != nil {
				return found, fmt.Errorf("decode toolset: %w", err)
			}
			// Check a stored list again, because the rules must also apply to it.
			found.Tools = slices.DeleteFunc(found.Tools, forbidden)
			return found, nil
		}
	}
	if len(e.steps) > 0 {
		return found, nil // a turn that has begun without remote tools continues without them
	}
	// A turn that may call no remote tool does not wait for the servers. Its prompt also does not
	// mention missing servers.
	if r.cfg.Remote != nil && (len(e.tools.permission) == 0 ||
		slices.ContainsFunc(r.cfg.Remote.Known(), e.tools.allowsServer)) {
		found = r.cfg.Remote.Toolset(ctx, slices.DeleteFunc(slices.Clone(e.claim.Settings.MCPTools),
			func(name string) bool { return !e.tools.allowsServer(name) }), e.tools.secrets.value)
		if ctx.Err() != nil {
			return found, context.Cause(ctx)
		}
	}
	found.Tools = slices.DeleteFunc(slices.Clone(found.Tools), forbidden)
	found.Lean = r.windowOf(e.model) < leanWindow
	if found.Workers, err = r.workersFor(ctx, e, found.Lean); err != nil {
		return found, fmt.Errorf("list workers: %w", err)
	}
	// An empty toolset needs no row: a turn with steps and without a row has no remote tools.
	if found.Empty() {
		return found, nil
	}
	// Stored before the first call: after a restart, the model must get the same tools.
	raw, err := json.Marshal(found)
	if err != nil {
		return found, fmt.Errorf("encode toolset: %w", err)
	}
	return found, r.persist("keep toolset", func(ctx context.Context) error {
		return r.cfg.Store.KeepToolset(ctx, e.claim, raw)
	})
}

// workersFor returns the list of other workers that a turn may run, for the model.
func (r *Runner) workersFor(ctx context.Context, e *execution, lean bool) (string, error) {
	if t, _ := e.tools.find(tool.RunWorkerName); t == nil {
		return "", nil
	}
	caller, err := r.cfg.Store.TurnCaller(ctx, e.claim.Turn)
	if err != nil {
		return "", err
	}
	// Two more: the turn's own worker, and one that shows that there are others.
	list, _, err := r.cfg.Store.Workers(ctx, caller, store.WorkerQuery{Origin: store.CreatedOrigin,
		Limit: prompt.MaxWorkers + 2})
	if err != nil {
		return "", err
	}
	own := func(w store.Worker) bool { return w.ID == e.claim.WorkerID }
	return prompt.Workers(slices.DeleteFunc(list, own), lean), nil
}
