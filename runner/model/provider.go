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

// A Provider is a server of models that a user has connected. The environment variables have no
// effect on it.
type Provider struct {
	Name          string // the names of its models begin with this name and a colon
	Kind          string
	BaseURL       string // "" for the default of the kind
	Key           string // "" for none
	ContextWindow int64  // in tokens, for all its models; 0 for the provider's value

	// Dial connects to the server. It decides which addresses are permitted; nil permits all.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Proxy permits requests through the proxy of the environment. Dial then gets only the
	// address of the proxy.
	Proxy bool
}

// Open returns a model of the provider. It makes no request.
func (p Provider) Open(model string) (Model, error) {
	cfg := Config{Getenv: p.variable, provider: &p}
	if strings.TrimSpace(model) == "" {
		return nil, errors.New("the name of the model is missing after " + p.Name + ":")
	}
	if err := missingPart(p.Name, model); err != nil {
		return nil, err
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

// UsualModel returns the most common model of a kind of provider, "" if there is none.
func UsualModel(kind string) string {
	return map[string]string{ProviderAnthropic: anthropicModel, ProviderOpenAI: openAIModel,
		ProviderOpenRouter: "openrouter/auto"}[kind]
}

// variable returns the value of an environment variable that configures this provider. So
// providers of the environment and of users are opened in the same way.
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

// named returns the name of a model, which begins with its provider's name. kind is that name
// for providers of the environment.
func (c Config) named(kind, model string) string {
	if c.provider != nil {
		kind = c.provider.Name
	}
	return kind + ":" + model
}

// called returns the description of a variable for errors. A user who has connected a provider
// entered the value in a form, not in a variable.
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

// Unavailable returns a replacement for a model that cannot be opened any more. Each call fails
// with the reason, which is for users.
func Unavailable(name, reason string) Model { return unavailable{name, reason} }

type unavailable struct{ name, reason string }

// Name returns the name of the model that cannot be opened.
func (u unavailable) Name() string { return u.name }

// Local returns true: no call leaves the process, so nothing is charged.
func (u unavailable) Local() bool { return true }

// Generate returns an error.
func (u unavailable) Generate(context.Context, Request, func(Delta)) (Response, error) {
	return Response{}, &Error{Code: CodeUnavailable, Message: u.reason}
}
