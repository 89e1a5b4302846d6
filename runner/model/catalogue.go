package model

import (
	"fmt"
	"strings"
	"sync"
)

// maxOpenModels bounds how many models a Catalogue keeps open, each with
// connections of its own: names come from outside.
const maxOpenModels = 64

// A Catalogue has the models that a worker may choose: offline, and those of the
// providers whose keys are in the environment. Where the server replays
// recordings, these answer in the name of every model. Its methods are safe for
// concurrent use.
type Catalogue struct {
	cfg    Config
	record string
	replay *replay // nil unless the server replays

	mu     sync.Mutex
	open   map[string]Model
	recent []string // names in open, the one that was used last at the end
}

// NewCatalogue gives the catalogue of a server whose own model is m. cfg.Model is
// not looked at. With record, what models answer is kept in that folder.
func NewCatalogue(cfg Config, m Model, record string) *Catalogue {
	c := &Catalogue{cfg: cfg, record: record, open: map[string]Model{}}
	c.replay, _ = m.(*replay)
	return c
}

// Check says why a worker may not choose the model of that name: it is of no
// provider, or of one that this server has no key for. It makes no request, so
// that whether the provider has such a model is not known.
func (c *Catalogue) Check(name string) error {
	provider, rest, named := strings.Cut(name, ":")
	switch {
	case name == "offline":
		return nil
	case provider != "openai" && provider != "anthropic", !named, strings.TrimSpace(rest) != rest, rest == "", strings.ContainsFunc(rest, isControl):
		return fmt.Errorf("must be one of: %s", c.possible())
	case c.replay == nil && !c.has(provider):
		return fmt.Errorf("this server has no key for %s; it must be one of: %s", provider, c.possible())
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// possible lists the forms of names that Check allows.
func (c *Catalogue) possible() string {
	forms := []string{"offline"}
	for _, provider := range []string{"openai", "anthropic"} {
		if c.replay != nil || c.has(provider) {
			forms = append(forms, provider+":NAME")
		}
	}
	return strings.Join(forms, ", ") + ", or null for the server's own model"
}

// has reports whether a provider is configured.
func (c *Catalogue) has(provider string) bool {
	for _, variable := range map[string][]string{
		"openai":    {"OPENAI_API_KEY", "OPENAI_BASE_URL"},
		"anthropic": {"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"},
	}[provider] {
		if c.cfg.env(variable) != "" {
			return true
		}
	}
	return false
}

// Open gives the model of that name, the same one each time while it is in use.
// Its error is that of Check, or says what is wrong with the configuration.
func (c *Catalogue) Open(name string) (Model, error) {
	if err := c.Check(name); err != nil {
		return nil, err
	}
	if c.replay != nil {
		return &replay{c.replay.dir, name}, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m, ok := c.open[name]
	if !ok {
		var err error
		if m, err = Open(Config{Model: name, Getenv: c.cfg.Getenv}); err != nil {
			return nil, err
		}
		if c.record != "" {
			m = NewRecorder(m, c.record)
		}
	}
	c.keep(name, m)
	return m, nil
}

// keep notes that a model was used, and lets go of the one that was not for
// longest: its connections close once they are idle.
func (c *Catalogue) keep(name string, m Model) {
	c.open[name] = m
	for i, other := range c.recent {
		if other == name {
			c.recent = append(c.recent[:i], c.recent[i+1:]...)
			break
		}
	}
	if c.recent = append(c.recent, name); len(c.recent) > maxOpenModels {
		delete(c.open, c.recent[0])
		c.recent = c.recent[1:]
	}
}
