package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// The kinds of providers that a user can connect. ProviderCompatible is any other server with
// OpenAI's API.
const (
	ProviderAnthropic  = "anthropic"
	ProviderOpenAI     = "openai"
	ProviderOpenRouter = "openrouter"
	ProviderOllama     = "ollama"
	ProviderCompatible = "openai-compatible"
)

// openRouterBaseURL is the address of OpenRouter's API.
const openRouterBaseURL = "https://openrouter.ai/api/v1"

// A Provider is a server of models that a user has connected. The variables of the
// environment have no effect on it.
type Provider struct {
	Name          string // the names of its models begin with it and a colon
	Kind          string
	BaseURL       string // "" for that of the kind
	Key           string // "" for none
	ContextWindow int64  // in tokens, for all its models; 0 for what the provider says

	// Dial connects to the server. It decides which addresses are permitted; nil permits all.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Proxy permits requests to go through the proxy that the environment names. Dial then sees
	// the address of the proxy only.
	Proxy bool
}

// Open returns a model of the provider. It makes no request.
func (p Provider) Open(model string) (Model, error) {
	cfg := Config{Getenv: p.variable, provider: &p}
	if strings.TrimSpace(model) == "" {
		return nil, errors.New("the name of the model is missing after " + p.Name + ":")
	}
	switch p.Kind {
	case ProviderAnthropic:
		return openAnthropic(model, cfg, defaultTimeouts())
	case ProviderOpenAI, ProviderOpenRouter, ProviderCompatible:
		return openOpenAI(model, cfg, defaultTimeouts())
	case ProviderOllama:
		return openOllama(model, cfg, slowTimeouts())
	}
	return nil, fmt.Errorf("unknown kind of provider %q", p.Kind)
}

// Address returns the address of the provider's API.
func (p Provider) Address() string {
	return cmp.Or(p.BaseURL, map[string]string{ProviderAnthropic: anthropicBaseURL, ProviderOpenAI: openAIBaseURL,
		ProviderOpenRouter: openRouterBaseURL, ProviderOllama: "http://127.0.0.1:" + ollamaPort}[p.Kind])
}

// UsualModel returns the model that people of a kind of provider mostly use, "" if there is none.
func UsualModel(kind string) string {
	return map[string]string{ProviderAnthropic: anthropicModel, ProviderOpenAI: openAIModel,
		ProviderOpenRouter: "openrouter/auto"}[kind]
}

// variable returns the value of an environment variable as if it named this provider. So a
// provider of the environment and one of a user are opened in the same way.
func (p Provider) variable(name string) string {
	switch name {
	case "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OLLAMA_API_KEY":
		return p.Key
	case "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "OLLAMA_HOST":
		return p.Address()
	case "OLLAMA_CONTEXT_LENGTH":
		if p.ContextWindow > 0 {
			return strconv.FormatInt(p.ContextWindow, 10)
		}
	case openAIVariable:
		if p.Kind == ProviderOpenRouter {
			return "openrouter"
		}
	}
	return ""
}

// named returns the name of a model, which begins with the name of its provider. kind is that
// of the providers of the environment.
func (c Config) named(kind, model string) string {
	if c.provider != nil {
		kind = c.provider.Name
	}
	return kind + ":" + model
}

// called returns the words for a variable in errors. A user who has connected a provider
// has entered its key and address elsewhere.
func (c Config) called(variable string) string {
	switch {
	case c.provider == nil:
		return variable
	case strings.HasSuffix(variable, "_KEY"):
		return "the key"
	case variable == "OLLAMA_CONTEXT_LENGTH":
		return "the context window of the provider"
	}
	return "the base URL"
}

// PriceName returns the name of m in the price table, where that differs from its own name: a
// user may have given the provider any name. It returns "" otherwise.
func PriceName(m Model) string {
	if p, ok := m.(interface{ priceName() string }); ok {
		return p.priceName()
	}
	return ""
}

// priceName returns the name of the model that answers: see PriceName.
func (r *recorder) priceName() string { return PriceName(r.model) }

// priceName returns the name of a model of OpenAI itself. The prices of other servers with
// the API depend on the name that they were given.
func (s *openAIServer) priceName() string {
	if isHost(s.base, "openai.com") {
		return "openai:" + s.model
	}
	return ""
}

// priceName returns the name of a model of Anthropic.
func (c *claude) priceName() string { return "anthropic:" + c.model }

// Unavailable returns a model in place of one that cannot be opened any more. Each call of it
// fails with a reason for people.
func Unavailable(name, reason string) Model { return unavailable{name, reason} }

type unavailable struct{ name, reason string }

// Name returns the name of the model that cannot be opened.
func (u unavailable) Name() string { return u.name }

// Local reports that no call leaves the process, so that nothing is charged.
func (u unavailable) Local() bool { return true }

// Generate returns an error.
func (u unavailable) Generate(context.Context, Request, func(Delta)) (Response, error) {
	return Response{}, &Error{Code: CodeUnavailable, Message: u.reason}
}
