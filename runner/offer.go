package runner

import (
	"context"
	"encoding/json"
	"fmt"

	"journeyman/runner/model"
	"journeyman/runner/tool"
)

// offer finds out which tools of other people's servers a turn has: those that it
// began with, or at its beginning those that are there. Both are before its first
// model call.
func (r *Runner) offer(ctx context.Context, w *work) error {
	w.tools, w.preamble = r.tools, preamble
	if w.claim.Claims > 1 {
		kept, err := r.cfg.Store.Offer(ctx, w.claim.Num)
		if err != nil {
			return fmt.Errorf("read offered tools: %w", err)
		}
		if kept != nil {
			if err := json.Unmarshal(kept, &w.offered); err != nil {
				return fmt.Errorf("decode offered tools: %w", err)
			}
			w.show()
			return nil
		}
	}
	if r.cfg.Remote == nil || len(w.steps) > 0 {
		return nil
	}
	w.offered = r.cfg.Remote.Offer(ctx, w.claim.Settings.MCPTools)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if w.offered.Empty() {
		return nil
	}
	w.show()
	raw, err := json.Marshal(w.offered)
	if err != nil {
		return fmt.Errorf("encode offered tools: %w", err)
	}
	err = r.persist(func(ctx context.Context) error { return r.cfg.Store.KeepOffer(ctx, w.claim, raw) })
	if err != nil {
		return fmt.Errorf("keep offered tools: %w", err)
	}
	return nil
}

// show puts the offered tools before the model, after the runner's own.
func (w *work) show() {
	tools := append([]model.Tool{}, w.tools...)
	for _, t := range w.offered.Tools {
		tools = append(tools, model.Tool{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema})
	}
	w.tools = tools
	if w.offered.Note != "" {
		w.preamble += "\n" + w.offered.Note
	}
}

// tool is the tool that the turn knows by that name, nil if there is none.
func (r *Runner) tool(w *work, name string) tool.Tool {
	if t := tool.Find(r.cfg.Tools, name); t != nil {
		return t
	}
	for _, o := range w.offered.Tools {
		if o.Name == name && r.cfg.Remote != nil {
			return r.cfg.Remote.Tool(o)
		}
	}
	return nil
}
