package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"journeyman/runner"
	"journeyman/runner/dial"
	"journeyman/runner/model"
	"journeyman/runner/model/offline"
	"journeyman/runner/models"
	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
	"journeyman/runner/tool/mcp"
	"journeyman/runner/trace"
	"journeyman/store"
	"journeyman/store/cron"
	"journeyman/store/objects"
)

const (
	// lockPatience is how long a start waits for the lock of a data folder. A server may be
	// killed while it starts a command. Its forked process then holds the lock until it executes the
	// command, usually for milliseconds.
	lockPatience = 3 * time.Second
	lockRetry    = 20 * time.Millisecond
)

// OpenStore opens the data folder. It waits for a lock that a dead process left behind. If a
// server answers on the folder's socket, it returns store.ErrLocked at once.
func (p *Program) OpenStore() (*store.Store, error) { return p.openStore(false) }

// openStore is OpenStore. If keepVersion is set, it refuses a database that it would have to upgrade.
func (p *Program) openStore(keepVersion bool) (*store.Store, error) {
	zone, err := cron.LoadZone(p.Timezone)
	if err != nil {
		return nil, fmt.Errorf("--timezone: %w", err)
	}
	bucket, err := p.Bucket(p.Env.Get)
	if err != nil {
		return nil, err
	}
	node, err := p.node(p.Version)
	if err != nil {
		return nil, err
	}
	opt := store.Options{Now: p.Now, Node: node, QueueLimit: p.QueueLimit, QueueTotal: p.QueueTotal, Timezone: zone,
		Log: p.Log, BeginAnew: p.BeginAnew, Database: p.Database, Blobs: bucket, DiskReserve: p.DiskReserve,
		DiskWarning: p.DiskWarning, OrgDisk: p.OrgDisk, KeepVersion: keepVersion}
	patience, cancel := context.WithTimeout(p.Context, lockPatience)
	defer cancel()
	for {
		st, err := store.Open(p.Context, p.Data, p.Schema, opt)
		if !errors.Is(err, store.ErrLocked) || p.ControlClient().Answers(patience) {
			return st, err
		}
		if p.NodeURL == "" && p.nodesAnswer(patience) {
			return nil, errNodes
		}
		select {
		case <-patience.Done():
			return nil, err
		case <-time.After(lockRetry):
		}
	}
}

// Bucket returns the bucket of the files, or nil if the data folder has them.
func (s *Settings) Bucket(getenv func(string) string) (*objects.Bucket, error) {
	if s.Blobs == "" {
		return nil, nil
	}
	b, err := objects.Open(s.Blobs, s.BlobsS3, "--blobs-s3-", getenv)
	if err != nil {
		return nil, fmt.Errorf("--blobs: %w", err)
	}
	return b, nil
}

// OpenMCP returns the pool of the configured MCP servers. The pool may be empty. st stores the
// sign-ins to the servers. If st is nil, the pool does not sign in. listenURL is the address of this
// process's own listener, or "".
func (p *Program) OpenMCP(st *store.Store, baseURL, listenURL string) (*mcp.Pool, error) {
	servers, err := mcp.Load(p.MCP, p.Data, p.Env.Get)
	if err = cmp.Or(p.Env.Check(), err); err != nil {
		return nil, fmt.Errorf("--mcp: %w", err)
	}
	cfg := mcp.Config{Log: p.Log, Version: p.Version, BaseURL: baseURL, ListenURL: listenURL,
		Dialer: p.Dialer()}
	// An interface that holds a nil *Store is not nil itself.
	if st != nil {
		cfg.Logins = st.People
	}
	return mcp.New(servers, cfg), nil
}

// An Engine is a runner that has not started, with the parts that it uses.
type Engine struct {
	Runner  *runner.Runner
	Models  []model.Model // the chain of the server's own models, the first choice first
	Servers *mcp.Pool     // its user stops it
	Trace   *trace.Tracer // nil if nothing is traced; its user calls CloseTraces
	Filters *sandbox.FilterPool
	Found   func() sandbox.Confinement // how this machine confines commands; the first call detects it
}

// ModelName returns the names of the server's own models, for people.
func (e Engine) ModelName() string {
	var names []string
	for _, m := range e.Models {
		names = append(names, m.Name())
	}
	return strings.Join(names, ", ")
}

// tracesTime bounds how long a shutdown waits for a collector of traces.
const tracesTime = 3 * time.Second

// CloseTraces exports the remaining spans, within the grace period of a shutdown. Lost traces are
// no error, because the work that they describe is done.
func (e Engine) CloseTraces(grace time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), min(grace, tracesTime))
	defer cancel()
	e.Trace.Close(ctx)
}

// DetectSandbox returns a function whose first call detects how this machine can confine commands.
// This runs a process, which takes longer than the rest of a start. A shutdown does not interrupt
// it: a turn in its grace period would lack the shell.
func (p *Program) DetectSandbox() func() sandbox.Confinement {
	return sync.OnceValue(func() sandbox.Confinement { return sandbox.Detect(context.WithoutCancel(p.Context)) })
}

// NewEngine returns an engine with the configured model and tools. listenURL is the address of this
// process's own listener, or "".
func (p *Program) NewEngine(st *store.Store, baseURL, listenURL string) (e Engine, err error) {
	var catalogue *model.Catalogue
	if e.Models, catalogue, err = p.openCatalogue(); err != nil {
		return e, err
	}
	prices, err := p.LoadPrices()
	if err != nil {
		return e, err
	}
	e.Filters, e.Found = p.NewFilterPool(), p.DetectSandbox()
	tools, shell, err := p.OpenTools(e.Filters, e.Found, p.Data)
	if err != nil {
		return e, err
	}
	if e.Servers, err = p.OpenMCP(st, baseURL, listenURL); err != nil {
		return e, err
	}
	if e.Trace, err = trace.Open(p.Context, p.Env.Get, p.Version, p.Log); err != nil {
		return e, err
	}
	b := p.Budgets
	e.Runner = runner.New(runner.Config{Store: st, Model: e.Models[0], Fallbacks: e.Models[1:], Models: catalogue,
		Dialer: p.Dialer(), Prices: prices, Tools: tools, Documents: tool.NewDocuments(e.Filters),
		Shell: shell, Remote: e.Servers, BaseURL: baseURL, Log: p.Log, Trace: e.Trace,
		Concurrency: p.Concurrency, ContextWindow: p.Window, ModelPatience: p.Patience, NodeLease: p.NodeLease, Now: p.Now, FileSize: p.FileSize,
		Budgets: map[store.Budget]runner.Limits{
			store.BudgetLow: runner.Limits(b.Low), store.BudgetStandard: runner.Limits(b.Standard),
			store.BudgetHigh: runner.Limits(b.High), store.BudgetUnlimited: runner.Limits(b.Unlimited)}})
	return e, nil
}

// LoadPrices returns the price table of the flags.
func (p *Program) LoadPrices() (*model.Prices, error) {
	prices, err := model.LoadPrices(p.Prices)
	if err != nil {
		return nil, err
	}
	if prices, err = prices.WithDefault(p.DefaultCost); err != nil {
		return nil, fmt.Errorf("--default-price: %w", err)
	}
	return prices, nil
}

// CacheFolder is the folder in the data folder for what can be made again: the compiled reader of PDF documents. No
// backup contains it.
const CacheFolder = "cache"

// NewFilterPool returns the pool of a server.
func (p *Program) NewFilterPool() *sandbox.FilterPool {
	return sandbox.NewFilterPoolWithin(MachineCapacity().Memory, filepath.Join(p.Data, CacheFolder))
}

// openCatalogue opens the configured models, and those that workers may choose.
func (p *Program) openCatalogue() (own []model.Model, c *model.Catalogue, err error) {
	if own, err = p.OpenModels(); err != nil {
		return nil, nil, err
	}
	c = model.NewCatalogue(model.Config{Offline: offline.New(), Getenv: p.Env.Get}, own[0], p.Record)
	// The recorders come after the catalogue, which must see whether the first model itself replays
	// recordings.
	for i, m := range own {
		if p.Record != "" {
			own[i] = model.NewRecorder(m, p.Record)
		}
	}
	return own, c, nil
}

// OpenModels opens the configured models in the order in which they take over. It returns at
// least one.
func (p *Program) OpenModels() (chain []model.Model, err error) {
	names := []string{p.Model}
	if !strings.HasPrefix(p.Model, "replay:") { // a folder's name may have commas
		names = model.Chain(p.Model)
	}
	if i := slices.Index(names, ""); i >= 0 && len(names) > 1 {
		return nil, fmt.Errorf("--model: model %d of the chain has no name", i+1)
	}
	if err := models.CheckChain(names); err != nil {
		return nil, fmt.Errorf("--model: %w", err)
	}
	for _, name := range names {
		m, failed := model.Open(model.Config{Model: name, Offline: offline.New(), Getenv: p.Env.Get})
		chain, err = append(chain, m), cmp.Or(err, failed)
	}
	// If a key file cannot be read, that error explains the missing key of a model.
	unread := p.Env.Check("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OLLAMA_API_KEY")
	return chain, cmp.Or(unread, err)
}

// OpenTools returns the tools that the configuration permits, and a function whose first call creates the shell.
// The function returns nil if there is no shell. Commands do not see the folders of hide. OpenTools returns an error
// if the search engine is configured wrongly.
func (p *Program) OpenTools(filters *sandbox.FilterPool, found func() sandbox.Confinement, hide ...string) (
	[]tool.Tool, func() tool.Tool, error) {
	search, err := newSearchTool(p.Settings, p.UserAgent())
	if err != nil {
		return nil, nil, err
	}
	shell := p.newShell(found, hide...)
	return p.newTools(filters, search, shell), shellTool(shell), nil
}

// newSearchTool returns the tool of the configured search engine, nil if there is none.
func newSearchTool(s Settings, userAgent string) (tool.Tool, error) {
	if s.SearchURL == "" && s.SearchKey == "" {
		return nil, nil
	}
	t, err := tool.WebSearch(tool.SearchConfig{URL: s.SearchURL, Key: s.SearchKey, UserAgent: userAgent})
	if err != nil {
		return nil, fmt.Errorf("--search-url: %w", err)
	}
	return t, nil
}

// newTools returns the tools that the configuration permits, besides the shell.
func (p *Program) newTools(filters *sandbox.FilterPool, search tool.Tool, shell func() *sandbox.Shell) []tool.Tool {
	documents := tool.NewDocuments(filters).WithOffice(shell)
	tools := append(tool.All(documents), tool.WebFetch(documents, p.Dialer(), p.UserAgent()))
	if search != nil {
		tools = append(tools, search)
	}
	return tools
}

// newShell returns a function whose first call creates the shell. It returns nil if this machine and
// the configuration permit none. Commands do not see the folders of hide: the data folder may be in a
// folder of programs, and it holds the database.
func (p *Program) newShell(found func() sandbox.Confinement, hide ...string) func() *sandbox.Shell {
	cfg := sandbox.ShellConfig{Hide: hide, Unsafe: p.UnsafeShell,
		Limits: sandbox.ShellLimits{FileSize: sandbox.CommandFile(p.FileSize)}}
	return sync.OnceValue(func() *sandbox.Shell {
		shell, err := sandbox.NewShell(found(), cfg)
		if errors.Is(err, sandbox.ErrUnconfined) {
			p.Log.Info("workers get no shell", "err", found().Err)
			return nil
		}
		if err != nil {
			p.Log.Error("workers get no shell", "err", err)
			return nil
		}
		if !shell.Confined() {
			p.Log.Warn("commands of workers run unconfined", "err", found().Err)
		}
		return shell
	})
}

// shellTool returns a function whose first call creates the tool of a shell, nil if there is none.
func shellTool(shell func() *sandbox.Shell) func() tool.Tool {
	return sync.OnceValue(func() tool.Tool {
		if s := shell(); s != nil {
			return tool.Shell(s)
		}
		return nil
	})
}

// Dialer returns the dialer for addresses that workers and users name.
func (p *Program) Dialer() dial.Guard { return dial.Guard{AllowPrivate: p.Private} }
