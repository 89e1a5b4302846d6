// Package models opens the models of each organization, and knows what this process has learned about them. A Directory
// has the chains of workers, the providers that organizations connect, stated capabilities, prices from bills, and
// Outages: the models that do not answer, the one turn that asks such a model next, and the turns that wait for it.
//
// It imports the models, guarded connections, prompts for their estimates, and store. It makes no call for a turn: it
// calls a model only to test a provider, to ask what a model can do, and to diagnose the server's own models. It knows no turn but by its id.
package models

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"journeyman/runner/dial"
	"journeyman/runner/model"
	"journeyman/store"
)

// A Config holds the dependencies and settings of a directory.
type Config struct {
	Store         *store.Store
	Own           []model.Model // the server's default chain
	Models        Source        // models that workers may choose; none if nil
	Prices        *model.Prices
	Dialer        dial.Guard // to providers that users connect
	Log           *slog.Logger
	Now           func() time.Time
	ContextWindow int64 // tokens, of models that the price table does not list

	// FixedTokens returns the approximate tokens of the constant part of each prompt, for a context window.
	FixedTokens func(window int64) int64
	// OneAtATime waits while a request of that name is in progress. The caller must call leave.
	OneAtATime func(ctx context.Context, name string) (leave func(), err error)
}

// A Source opens the models that a worker may choose instead of the runner's default. Implementations
// must be safe for concurrent use. model.Catalogue is an implementation.
type Source interface {
	// Check returns the reason why a worker may not choose the model, as text for users, or nil.
	Check(name string) error
	// Open returns the model. It is called for each turn and must not make a request.
	Open(name string) (model.Model, error)
	// Connected returns a model of a provider that a user has connected. It makes no request.
	Connected(p model.Provider, name string) (model.Model, error)
}

// A Directory opens the models of each organization: those of its own providers, and those of the server. It keeps
// what this process learns about them: stated capabilities, billed rates, and signs of truncated prompts. Its methods
// are safe for concurrent use.
type Directory struct {
	Outages Outages // models that do not answer

	cfg          Config
	own          []Priced // the default chain; capabilities are requested later
	billed       billedRates
	unpriced     unpricedModels
	capabilities capabilityCache
	connected    connectedModels
}

// New returns a directory that knows nothing about its models yet. It makes no request.
func New(cfg Config) *Directory {
	d := &Directory{cfg: cfg}
	for _, m := range cfg.Own {
		d.own = append(d.own, priced(m, cfg.Prices))
	}
	return d
}

// WarnUnpriced logs the server's own models without a price.
func (d *Directory) WarnUnpriced() {
	for _, m := range d.own {
		d.unpriced.warn(d.cfg.Log, m)
	}
}

// LearnWindow keeps the size of a window that a model's server has named in a refusal. Other turns use it, too.
func (d *Directory) LearnWindow(id string, size int64) {
	entry := d.capabilities.entry(id)
	entry.mu.Lock()
	defer entry.mu.Unlock()
	entry.refused, entry.refusedUntil = size, d.cfg.Now().Add(refusedFor)
}

// NoteCount keeps a sign that a model's provider truncates prompts without an error. It returns a warning for the
// operator, or "" if there was one for this model already.
func (d *Directory) NoteCount(m Priced, counted, estimated int64) (warning string) {
	low := lowCount{counted: counted, estimated: estimated}
	entry := d.capabilities.entry(m.ID)
	entry.mu.Lock()
	defer entry.mu.Unlock()
	known := entry.low != lowCount{}
	if entry.low = low; known {
		return ""
	}
	return low.warning(m.Name())
}

// ThinkingOpen returns whether the latest answer of a model began with thinking without an opening mark.
func (d *Directory) ThinkingOpen(id string) *atomic.Bool {
	return &d.capabilities.entry(id).thinkingOpen
}

// RecordBill derives the rates of a model without a price from the bill of one call.
func (d *Directory) RecordBill(m *Priced, u model.Usage) { d.billed.record(m, u) }
