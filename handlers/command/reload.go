package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"journeyman/handlers"
	"journeyman/runner/model"
	"journeyman/runner/tool"
	"journeyman/runner/tool/mcp"
)

// A Reload collects all changes before it applies them, so that a fault in one file changes
// nothing.
type Reload struct {
	changes []string // names of the changed parts, never values
	commits []func()
	restart []string // names of flags that only a restart changes
	faults  []error
}

// Add adds a change to the part of that name, or the error of its new configuration. If both are
// nil, it adds nothing.
func (r *Reload) Add(name string, commit func(), err error) {
	if err != nil {
		r.faults = append(r.faults, fmt.Errorf("%s: %w", name, err))
	} else if commit != nil {
		r.changes, r.commits = append(r.changes, name), append(r.commits, commit)
	}
}

// NeedsRestart adds flags whose new values have no effect before a restart.
func (r *Reload) NeedsRestart(flags ...string) { r.restart = append(r.restart, flags...) }

// AddLevel adds the change of the log level.
func (r *Reload) AddLevel(now *slog.LevelVar, next string) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(next)); err != nil {
		r.Add("--log-level", nil, err)
	} else if level != now.Level() {
		r.Add("log-level", func() { now.Set(level) }, nil)
	}
}

// AddCertificate adds the change of a certificate. now is nil if the server started without
// certificate files.
func (r *Reload) AddCertificate(flag string, now *handlers.FileCertificate, cert, key string) {
	if now == nil || cert == "" {
		if now != nil || cert != "" {
			r.NeedsRestart(strings.TrimPrefix(flag, "--"))
		}
		return
	}
	commit, err := now.Reread(cert, key)
	r.Add(flag, commit, err)
}

// result returns a line for people.
func (r *Reload) result() string {
	text := "nothing has changed"
	if len(r.changes) > 0 {
		text = "reloaded: " + strings.Join(r.changes, ", ")
	}
	if len(r.restart) > 0 {
		text += "; these flags need a restart: " + strings.Join(r.restart, ", ")
	}
	return text
}

// Reload reads the configuration again, and replaces the parts that have changed and can be
// replaced while the server runs. It returns a line for people that lists the changes. After an
// error nothing has changed.
func (s *Service) Reload() (result string, err error) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	done := s.Notifier.Reloading()
	defer func() { done(s.Status()) }()
	var r Reload
	s.Prepare(&r)
	if err := errors.Join(r.faults...); err != nil {
		err = fmt.Errorf("nothing was reloaded: %w", err)
		s.Log.Error("reload", "err", err)
		return "", err
	}
	for _, commit := range r.commits {
		commit()
	}
	s.Log.Info("reloaded", "changed", r.changes)
	if len(r.restart) > 0 {
		s.Log.Warn("changed flags need a restart", "flags", r.restart)
	}
	return r.result(), nil
}

// Prepare adds the changes of the engine: the keys of providers, the price table, the MCP servers
// and the key of the search engine.
func (e *Engine) Prepare(r *Reload, p *Program, next Settings) {
	env, changed, err := p.Env.Reread()
	if err != nil {
		r.Add("secrets", nil, err)
		return // the steps below would fail for the same reason
	}
	changed = slices.DeleteFunc(changed, func(name string) bool {
		startOnly := strings.HasPrefix(name, "AWS_") || strings.HasPrefix(name, "OTEL_")
		if startOnly { // the value was needed only at the start
			r.NeedsRestart(name)
		}
		return startOnly
	})
	what := changed
	prices, err := model.LoadPrices(next.Prices)
	if r.Add("prices", nil, err); err == nil && !reflect.DeepEqual(prices, e.prices) {
		what = append([]string{"prices"}, what...)
	}
	own, catalogue := e.Models, e.catalogue
	if len(changed) > 0 {
		own, catalogue, err = p.openCatalogue(env)
		r.Add("models", nil, err)
	}
	if len(what) > 0 {
		r.Add(strings.Join(what, ", "), func() {
			p.Env, e.Models, e.catalogue, e.prices = env, own, catalogue, prices
			e.Runner.Reload(own, catalogue, prices)
		}, nil)
	}
	e.prepareServers(r, p, next, env)
	e.prepareSearch(r, p, next)
}

func (e *Engine) prepareServers(r *Reload, p *Program, next Settings, env *Environment) {
	servers, err := mcp.Load(next.MCP, p.Data, env.Get)
	if err = cmp.Or(env.Check(), err); err != nil { // a secret that cannot be read is the better explanation
		r.Add("--mcp", nil, err)
		return
	}
	if names := e.Servers.Changes(servers); len(names) > 0 {
		r.Add("MCP servers ("+strings.Join(names, ", ")+")", func() { e.Servers.Replace(servers) }, nil)
	}
}

func (e *Engine) prepareSearch(r *Reload, p *Program, next Settings) {
	fresh, err := newSearchTool(next, p.UserAgent())
	switch {
	case err != nil:
		r.Add("search key", nil, err)
	case (fresh == nil) != (e.search == nil): // the workers' tools would change
		r.NeedsRestart("search-key")
	case fresh != nil && fresh.key != e.search.key:
		r.Add("search key", func() { e.search.key = fresh.key; e.search.now.Store(fresh.now.Load()) }, nil)
	}
}

// A searchTool is the tool web_search, whose key a reload may replace.
type searchTool struct {
	now atomic.Pointer[tool.Tool]
	key string // of now; only reloads use it
}

// newSearchTool returns the tool of the configured search engine, nil if there is none.
func newSearchTool(s Settings, userAgent string) (*searchTool, error) {
	if s.SearchURL == "" && s.SearchKey == "" {
		return nil, nil
	}
	t, err := tool.WebSearch(tool.SearchConfig{URL: s.SearchURL, Key: s.SearchKey, UserAgent: userAgent})
	if err != nil {
		return nil, fmt.Errorf("--search-url: %w", err)
	}
	search := &searchTool{key: s.SearchKey}
	search.now.Store(&t)
	return search, nil
}

// Spec returns the description of the tool.
func (s *searchTool) Spec() tool.Spec { return (*s.now.Load()).Spec() }

// Run makes a call.
func (s *searchTool) Run(ctx context.Context, host tool.Host, input json.RawMessage) (json.RawMessage, error) {
	return (*s.now.Load()).Run(ctx, host, input)
}

// liveFlags are the flags whose values a reload can replace. A secret among them may come
// from a file.
func liveFlags() []string {
	return []string{"log-level", "prices", "mcp", "search-key", "metrics-token", "smtp-relay", "tls-cert", "tls-key",
		"smtp-tls-cert", "smtp-tls-key"}
}

// RestartFlags returns the changed flags that a reload cannot replace.
func RestartFlags(changed []string) []string {
	return slices.DeleteFunc(changed, func(name string) bool {
		return slices.Contains(liveFlags(), strings.TrimSuffix(name, fileSuffix))
	})
}
