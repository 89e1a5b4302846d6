package runner

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"journeyman/runner/dial"
	"journeyman/runner/model"
	"journeyman/runner/models"
	"journeyman/store"
)

// A directoryConfig holds the dependencies and settings of a directory.
type directoryConfig struct {
	Store         *store.Store
	Own           []model.Model // the server's default chain
	Models        Models        // models that workers may choose; none if nil
	Prices        *model.Prices
	Dialer        dial.Guard // to providers that users connect
	Log           *slog.Logger
	Now           func() time.Time
	ContextWindow int64                                                            // tokens, of models that the price table does not list
	FixedTokens   func(window int64) int64                                         // returns the tokens of the constant part of each prompt, for a window
	OneAtATime    func(ctx context.Context, name string) (leave func(), err error) // waits for an equal request
}

// Models are the models that a worker may choose instead of the runner's default. Implementations
// must be safe for concurrent use. model.Catalogue is an implementation.
type Models interface {
	// Check returns the reason why a worker may not choose the model, as text for users, or nil.
	Check(name string) error
	// Open returns the model. It is called for each turn and must not make a request.
	Open(name string) (model.Model, error)
	// Connected returns a model of a provider that a user has connected. It makes no request.
	Connected(p model.Provider, name string) (model.Model, error)
}

// A directory opens the models of each organization: those of its own providers, and those of the server. It keeps
// what this process learns about them: stated capabilities, billed rates, and signs of truncated prompts. Its methods
// are safe for concurrent use.
type directory struct {
	Outages models.Outages // models that do not answer

	cfg          directoryConfig
	own          []pricedModel // the default chain; capabilities are requested later
	billed       billedRates
	unpriced     unpricedModels
	capabilities capabilityCache
	connected    connectedModels
}

// newDirectory returns a directory that knows nothing about its models yet. It makes no request.
func newDirectory(cfg directoryConfig) *directory {
	d := &directory{cfg: cfg}
	for _, m := range cfg.Own {
		d.own = append(d.own, priced(m, cfg.Prices))
	}
	return d
}

// warnUnpriced logs the server's own models without a price.
func (d *directory) warnUnpriced() {
	for _, m := range d.own {
		d.unpriced.warn(d.cfg.Log, m)
	}
}

// learnWindow keeps the size of a window that a model's server has named in a refusal. Other turns use it, too.
func (d *directory) learnWindow(id string, size int64) {
	entry := d.capabilities.entry(id)
	entry.mu.Lock()
	defer entry.mu.Unlock()
	entry.refused, entry.refusedUntil = size, d.cfg.Now().Add(refusedFor)
}

// noteCount keeps a sign that a model's provider truncates prompts without an error. It returns a warning for the
// operator, or "" if there was one for this model already.
func (d *directory) noteCount(m pricedModel, counted, estimated int64) (warning string) {
	low := lowCount{counted: counted, estimated: estimated}
	entry := d.capabilities.entry(m.id)
	entry.mu.Lock()
	defer entry.mu.Unlock()
	known := entry.low != lowCount{}
	if entry.low = low; known {
		return ""
	}
	return low.warning(m.Name())
}

// thinkingOpen returns whether the latest answer of a model began with thinking without an opening mark.
func (d *directory) thinkingOpen(id string) *atomic.Bool {
	return &d.capabilities.entry(id).thinkingOpen
}

// recordBill derives the rates of a model without a price from the bill of one call.
func (d *directory) recordBill(m *pricedModel, u model.Usage) { d.billed.record(m, u) }
