package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"journeyman/runner/model"
)

// How long the runner uses a model server's stated capabilities. A server that did not answer is
// asked again soon, because it may still be starting.
const (
	describedFor   = 10 * time.Minute
	undescribedFor = 15 * time.Second
	refusedFor     = time.Hour // a window from a refusal; the server may be started with a larger one
)

// describeTime limits the request, because the first turn waits for the answer.
const describeTime = 3 * time.Second

// maxDescribed is the number of models in the cache. It is limited because users choose the names.
const maxDescribed = 256

// A capabilityCache holds the stated capabilities of models by name. The zero value is ready to
// use.
type capabilityCache struct {
	mu     sync.Mutex // guards models
	models map[string]*cachedCapabilities
}

// cachedCapabilities are the capabilities of one model.
type cachedCapabilities struct {
	mu    sync.Mutex // held during the request, so that many turns make only one
	can   model.Capabilities
	known bool // the server has answered
	until time.Time
	low   lowCount // the latest sign that the provider truncates prompts; zero for none

	thinkingOpen atomic.Bool // the latest answer began with thinking without an opening mark
	refused      int64       // window that the server named in a refusal
	refusedUntil time.Time
}

// A lowCount is a token count from a provider that is far too low for the prompt.
type lowCount struct{ counted, estimated int64 } // tokens

// entry returns the cached capabilities of a model, which may have expired.
func (c *capabilityCache) entry(name string) *cachedCapabilities {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, ok := c.models[name]
	if !ok {
		if c.models == nil || len(c.models) >= maxDescribed {
			c.models = map[string]*cachedCapabilities{} // the models in use are soon added again
		}
		entry = &cachedCapabilities{}
		c.models[name] = entry
	}
	return entry
}

// describe returns m with the capabilities that its server states, and with the window that the server named in a
// refusal. The smaller window of the price table and of the server counts, because servers may run a model with less.
// The operator's own setting has precedence over both. A model that cannot be asked keeps the defaults; the model call
// will report the error.
func (c *capabilityCache) describe(ctx context.Context, m Priced, now time.Time) Priced {
	d, ok := m.Model.(model.Describer)
	// Two locks: a slow server must delay only the turns that need its model.
	entry := c.entry(m.ID)
	entry.mu.Lock()
	defer entry.mu.Unlock()
	if ok && now.After(entry.until) {
		entry.ask(ctx, d, now)
	}
	if entry.known {
		m.can, m.isDescribed = entry.can, !entry.can.LimitsOnly
		m.Price.MaxOutput = cmp.Or(m.Price.MaxOutput, entry.can.MaxOutput)
		if !m.windowSet {
			m.Price.ContextWindow = narrower(m.Price.ContextWindow, entry.can.ContextWindow)
		}
	}
	if now.Before(entry.refusedUntil) {
		m.Price.ContextWindow = narrower(m.Price.ContextWindow, entry.refused)
	}
	return m
}

// narrower returns the smaller of two windows, of which 0 is unknown.
func narrower(a, b int64) int64 {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// ask asks the model's server. Without an answer, the earlier capabilities remain.
func (c *cachedCapabilities) ask(ctx context.Context, d model.Describer, now time.Time) {
	limited, cancel := context.WithTimeout(ctx, describeTime)
	defer cancel()
	can, err := d.Describe(limited)
	switch {
	case err == nil:
		c.can, c.known, c.until = can, true, now.Add(describedFor)
	case errors.Is(err, errors.ErrUnsupported):
		c.until = now.Add(describedFor) // a repeated request would not help
	case ctx.Err() == nil: // a cancelled turn's failure does not prove that the server is down
		c.until = now.Add(undescribedFor)
	}
}

// Sees reports whether requests to the model may contain images. Most providers do not state this:
// they refuse images if their model does not support them.
func (m Priced) Sees() bool {
	return (!m.isDescribed || m.can.Vision) && model.TakesOf(m.Model).Pictures
}

// Blindness returns the reason why the model cannot be shown a picture, and the way out.
func (m Priced) Blindness() string {
	return fmt.Sprintf("the model %s takes no pictures. A worker whose model takes pictures can see it; "+
		"read_file reads documents and texts", m.Name())
}

// warning returns a text for the operator with the problem and, if possible, a remedy.
func (l lowCount) warning(name string) string {
	text := fmt.Sprintf("the provider counts %s tokens for a prompt of about %s: it may cut prompts silently",
		model.FormatTokens(l.counted), model.FormatTokens(l.estimated))
	if local, ok := strings.CutPrefix(name, "openai:"); ok {
		text += "; if it is an Ollama server, use ollama:" + local + " in place of " + name
	}
	return text
}
