package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"journeyman/runner/model"
	"journeyman/runner/prompt"
)

// A Finding is one fact about the server's models that an operator should know.
type Finding struct {
	About  string // the subject, in one or two words
	Detail string
	Bad    bool // the operator should correct it; Detail then contains the solution
}

// Findings returns findings about the default models of an organization. It makes no model call.
func (d *Directory) Findings(ctx context.Context, organizationID string) (found []Finding) {
	chain, err := d.Chain(ctx, organizationID, "")
	if err != nil {
		return []Finding{{"model", err.Error(), true}}
	}
	for _, c := range chain {
		m := c.Priced
		found = append(found, d.windowFindings(m)...)
		if low := d.capabilities.entry(m.ID).lowest(); low != (lowCount{}) {
			found = append(found, Finding{"counts", low.warning(m.Name()), true})
		}
		if b, down := d.Outages.Blocked(m.ID, "", d.cfg.Now()); down && b.Err != nil {
			found = append(found, Finding{"answers", "not now: " + b.Err.Message, true})
		}
	}
	return found
}

// lowest returns the latest token count that indicates truncated prompts, or zero.
func (c *cachedCapabilities) lowest() lowCount {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.low
}

// Diagnose asks the server's own models a short question, and returns findings about them.
func (d *Directory) Diagnose(ctx context.Context) (found []Finding) {
	for _, own := range d.own {
		m := d.described(ctx, own)
		found = append(append(found, d.windowFindings(m)...), answerFindings(ctx, m)...)
	}
	return found
}

// windowFindings returns the findings about the model's context window.
func (d *Directory) windowFindings(m Priced) []Finding {
	window, by := m.Price.ContextWindow, "by the price table"
	switch {
	case window == 0:
		window, by = d.cfg.ContextWindow, "assumed; --context-window sets it"
	case window == m.can.ContextWindow:
		by = "by its server"
	}
	found := []Finding{{"model", m.Name(), false},
		{"context window", fmt.Sprintf("%s tokens (%s)", model.FormatTokens(window), by), false}}
	if m.isDescribed {
		found = append(found, abilityFinding(m.can))
	}
	found = append(found, Finding{"price", m.Price.Basis.String(), m.Price.Basis == model.BasisNone})
	return append(found, fitFinding(m.Name(), d.cfg.FixedTokens(window), window))
}

// abilityFinding returns the finding about a model's abilities.
func abilityFinding(can model.Capabilities) Finding {
	var has []string
	for _, a := range []struct {
		name string
		has  bool
	}{{"tools", can.Tools}, {"images", can.Vision}, {"reasoning", can.Thinking}} {
		if a.has {
			has = append(has, a.name)
		}
	}
	if !can.Tools {
		return Finding{"abilities", "no tools: workers that have tools fail; choose a model that can call tools", true}
	}
	return Finding{"abilities", strings.Join(has, ", "), false}
}

// fitFinding compares the constant part of each prompt with the window. If it takes more than a
// third, little room is left for the task.
func fitFinding(name string, fixed, window int64) Finding {
	f := Finding{"prompt", fmt.Sprintf("%s of %s tokens, before instructions and files",
		model.FormatTokens(fixed), model.FormatTokens(window)), fixed*3 > window}
	if !f.Bad {
		return f
	}
	f.Detail = fmt.Sprintf("%s of %s tokens: too small; ", model.FormatTokens(fixed), model.FormatTokens(window))
	if strings.HasPrefix(name, "ollama:") {
		f.Detail += "set OLLAMA_CONTEXT_LENGTH to 16384 or more (num_ctx), or choose a model with a larger window"
	} else {
		f.Detail += "choose a model with a larger window, or correct --context-window or the price table"
	}
	return f
}

const (
	probeTime   = 2 * time.Minute // a local server may load its model first
	probeTokens = 200             // of the answer
	probeWindow = 4096            // tokens; a common window of servers that truncate prompts
)

// answerFindings asks the model to answer. If the window is unknown, the question is long, so that
// the token count shows whether the server truncates prompts.
func answerFindings(ctx context.Context, m Priced) []Finding {
	if model.Local(m.Model) {
		return []Finding{{"answers", "not asked: it is the stand-in for tests", false}}
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	text := "Answer with the word ready."
	if m.Price.ContextWindow == 0 {
		const filler = "The quick brown fox jumps over the lazy dog. " // ten tokens
		text = strings.Repeat(filler, probeWindow*3/2/10) + text
	}
	req := model.Request{MaxTokens: probeTokens,
		Messages: []model.Message{{Role: model.RoleUser, Parts: []model.Part{{Type: model.PartText, Text: text}}}}}
	// Use the real clock, not cfg.Now, to measure the model's response time.
	started := time.Now()
	resp, err := model.Ask(ctx, m.Model, req, nil)
	if me, ok := errors.AsType[*model.Error](err); ok {
		return []Finding{{"answers", "no: " + me.Message, true}}
	}
	if err != nil {
		return []Finding{{"answers", "no: " + cmp.Or(context.Cause(ctx), err).Error(), true}}
	}
	found := []Finding{{"answers", fmt.Sprintf("yes, after %s", time.Since(started).Round(time.Millisecond)), false}}
	// The estimate of this text is at most a sixth too high. So a count below 70 % of the estimate
	// means that the server has truncated the text.
	low := lowCount{counted: resp.Usage.InputTokens, estimated: prompt.EstimateRequest(req)}
	if low.estimated > probeWindow && low.counted*10 < low.estimated*7 {
		found = append(found, Finding{"counts", low.warning(m.Name()), true})
	}
	return found
}
