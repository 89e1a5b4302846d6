package model

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// maxOpenModels is the maximum number of open models in a Catalogue. Each model has its own
// connections, and users choose the names, so there must be a limit.
const maxOpenModels = 64

// A Catalogue holds the models that a worker may choose: offline, and models of providers with
// a key in the environment. On a server that replays recordings, they answer for every model.
// Its methods are safe for concurrent use.
type Catalogue struct {
	cfg    Config
	own    string  // provider of the server's own model
	record string  // folder for new recordings, "" for none
	replay *replay // nil unless the server replays

	mu   sync.Mutex // guards open
	open map[string]Model
}

// NewCatalogue returns the catalogue of a server whose own model is m. It ignores
// cfg.Model. If record is not empty, the models' answers are recorded in that folder.
func NewCatalogue(cfg Config, m Model, record string) *Catalogue {
	c := &Catalogue{cfg: cfg, record: record, open: map[string]Model{}}
	c.own, _, _ = strings.Cut(m.Name(), ":")
	c.replay, _ = m.(*replay)
	return c
}

// Check returns an error if a worker may not choose the model with that name: the provider is
// unknown or has no key on this server. Check makes no request, so it accepts models that the
// provider does not have.
func (c *Catalogue) Check(name string) error {
	provider, rest, named := strings.Cut(name, ":")
	switch {
	case name == "offline":
		return nil
	case !slices.Contains(providers(), provider), !named,
		strings.TrimSpace(rest) != rest, rest == "", strings.ContainsFunc(rest, isControl):
		return fmt.Errorf("must be one of: %s", c.possible())
	case missingPart(provider, rest) != nil:
		return fmt.Errorf("%w; it must be one of: %s", missingPart(provider, rest), c.possible())
	// Recordings need no key, so a server that replays accepts every known provider.
	case c.replay == nil && !c.has(provider) && provider == "ollama":
		return fmt.Errorf("this server has no OLLAMA_HOST; it must be one of: %s", c.possible())
	case c.replay == nil && !c.has(provider):
		return fmt.Errorf("this server has no key for %s; it must be one of: %s", provider, c.possible())
	}
	return nil
}

// providers returns the providers whose models a worker may choose by name.
func providers() []string { return []string{"openai", "anthropic", "ollama"} }

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// possible returns a text that lists the forms of names that Check accepts.
func (c *Catalogue) possible() string {
	forms := []string{"offline"}
	for _, provider := range providers() {
		if c.replay != nil || c.has(provider) {
			forms = append(forms, provider+":NAME")
		}
	}
	return strings.Join(forms, ", ") + ", or null for the server's own model"
}

// has reports whether the environment has a key or an address of the provider. The default
// address of an Ollama server only counts if the server's own model is an Ollama model.
func (c *Catalogue) has(provider string) bool {
	if provider == "ollama" && c.own == provider {
		return true
	}
	for _, variable := range map[string][]string{
		"openai":    {"OPENAI_API_KEY", "OPENAI_BASE_URL"},
		"anthropic": {"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"},
		"ollama":    {"OLLAMA_HOST"},
	}[provider] {
		if c.cfg.env(variable) != "" {
			return true
		}
	}
	return false
}

// Open returns the model with that name. It returns the same Model again until too many are open.
// Its errors are those of Check and of the function Open.
func (c *Catalogue) Open(name string) (Model, error) {
	if err := c.Check(name); err != nil {
		return nil, err
	}
	if c.replay != nil {
		return &replay{c.replay.recordings, name}, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// Opening makes no request, so it is fast enough to hold the lock. Two models with one name
	// would have separate connections, and would learn the provider's limits twice.
	if m, ok := c.open[name]; ok {
		return m, nil
	}
	m, err := Open(Config{Model: name, Offline: c.cfg.Offline, Getenv: c.cfg.Getenv})
	if err != nil {
		return nil, err
	}
	if c.record != "" {
		m = NewRecorder(m, c.record)
	}
	if len(c.open) >= maxOpenModels {
		c.open = map[string]Model{} // models in use are soon opened again
	}
	c.open[name] = m
	return m, nil
}

// Connected returns a model of a provider that a user has connected. The caller keeps the
// model.
func (c *Catalogue) Connected(p Provider, name string) (Model, error) {
	if c.replay != nil {
		return &replay{c.replay.recordings, p.Name + ":" + name}, nil
	}
	m, err := p.Open(name)
	if err == nil && c.record != "" {
		m = NewRecorder(m, c.record)
	}
	return m, err
}
