package runner

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"journeyman/runner/dial"
	"journeyman/runner/model"
	"journeyman/runner/models"
	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
	"journeyman/runner/toolset"
	"journeyman/runner/trace"
	"journeyman/store"
)

// A Config holds the dependencies and settings of a Runner. Fields without a stated default must
// be set.
type Config struct {
	Store         *store.Store
	Model         model.Model   // for workers that choose no model
	Fallbacks     []model.Model // asked in this order if Model does not answer
	Models        models.Source // models that workers may choose; none if nil
	Dialer        dial.Guard    // to providers that users connect; the zero value reaches public addresses only
	Prices        *model.Prices
	Tools         []tool.Tool
	Documents     tool.Documents   // reads pictures and PDF files for models; with a pool of its own if zero
	Shell         func() tool.Tool // returns the tool after Tools, or nil; may be slow, and is called when tools are needed
	Remote        tool.Source      // tools of MCP servers; none if nil
	BaseURL       string           // in addresses of published files, without a slash at the end
	Log           *slog.Logger
	Concurrency   int                         // turns at once; 64 if 0
	ContextWindow int64                       // tokens, of unlisted models; defaultContextWindow if 0
	Budgets       map[store.Budget]Limits     // DefaultBudgets if nil
	Retry         func(try int) time.Duration // pause after try 1, 2, ... of a model call; retryDelay if nil
	Suspend       func(n int) time.Duration   // time of the n-th suspension of a turn in a row; suspendTime if nil
	ModelPatience time.Duration               // a turn's longest wait for its models; its time budget if 0
	Trace         *trace.Tracer               // traces nothing if nil
	Now           func() time.Time            // time.Now if nil
	NodeLease     time.Duration               // of runners that share the database; 20 seconds if 0
	FileSize      int64                       // bytes of the largest file in a workspace; at least MaxFileSize
}

// ownTools returns the tools of this program. The first call may take long: see Shell.
func (cfg *Config) ownTools() []tool.Tool {
	if cfg.Shell == nil {
		return cfg.Tools
	}
	if shell := cfg.Shell(); shell != nil {
		return append(slices.Clone(cfg.Tools), shell)
	}
	return cfg.Tools
}

func (cfg *Config) setDefaults() {
	cfg.Concurrency = cmp.Or(cfg.Concurrency, 64)
	cfg.NodeLease = cmp.Or(cfg.NodeLease, nodeLease)
	cfg.FileSize = max(cfg.FileSize, MaxFileSize)
	cfg.ContextWindow = cmp.Or(cfg.ContextWindow, defaultContextWindow)
	if cfg.Budgets == nil {
		cfg.Budgets = DefaultBudgets()
	}
	if cfg.Documents == (tool.Documents{}) {
		cfg.Documents = tool.NewDocuments(sandbox.NewFilterPool())
	}
	if cfg.Retry == nil {
		cfg.Retry = retryDelay
	}
	if cfg.Suspend == nil {
		cfg.Suspend = suspendTime
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
}

// directory returns the configuration of a directory.
func (cfg *Config) directory(oneAtATime func(context.Context, string) (func(), error)) models.Config {
	return models.Config{Store: cfg.Store, Own: append([]model.Model{cfg.Model}, cfg.Fallbacks...), Models: cfg.Models,
		Prices: cfg.Prices, Dialer: cfg.Dialer, Log: cfg.Log, Now: cfg.Now, ContextWindow: cfg.ContextWindow,
		FixedTokens: func(window int64) int64 { return toolset.FixedTokens(cfg.ownTools(), window) }, OneAtATime: oneAtATime}
}

// defaultContextWindow is the context window of models that the price table does not list. It
// counts the tokens of input and output together.
const defaultContextWindow = 32_768

// Limits are the limits of a turn under one budget.
type Limits struct {
	Credits float64       // 0: no limit
	Steps   int64         // model calls, without the last one, which writes the answer; 0: no limit
	Time    time.Duration // of work, without queue and suspension; 0: no limit
}

// DefaultBudgets returns the limits of each budget.
func DefaultBudgets() map[store.Budget]Limits {
	return map[store.Budget]Limits{
		store.BudgetLow:       {Credits: 10, Steps: 10, Time: 5 * time.Minute},
		store.BudgetStandard:  {Credits: 100, Steps: 50, Time: 30 * time.Minute},
		store.BudgetHigh:      {Credits: 1000, Steps: 250, Time: 2 * time.Hour},
		store.BudgetUnlimited: {Time: 24 * time.Hour},
	}
}

// retryDelay returns the pause after try 1, 2, ... of a model call. It is half a second at first,
// doubled each time, up to 32 seconds. A random variation of a quarter spreads the retries of many
// turns. The limit also prevents an overflow: a turn that waits for resources makes many tries.
func retryDelay(try int) time.Duration {
	d := 500 * time.Millisecond << min(try-1, 6)
	return d*3/4 + rand.N(d/2)
}

// suspendTime returns the duration of a turn's n-th suspension in a row. It is ten seconds at
// first, doubled each time, up to five minutes. A random variation of a quarter spreads the retries
// of many turns.
func suspendTime(n int) time.Duration {
	d := min(10*time.Second<<min(n-1, 10), 5*time.Minute)
	return d*3/4 + rand.N(d/2)
}

// MaxFileSize is the default size limit of an attachment or a published file, in bytes. A server that takes larger
// attachments has a larger limit of files: see Config.FileSize.
const MaxFileSize = 25 << 20

// Diagnose asks the models of cfg a short question, and returns findings about them. It uses
// the models, the prices, the tools and the context window of cfg.
func Diagnose(ctx context.Context, cfg Config) []models.Finding {
	cfg.setDefaults()
	return models.New(cfg.directory(nil)).Diagnose(ctx)
}
