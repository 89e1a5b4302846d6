package model

import (
	"errors"
	"fmt"
	"strings"
)

// A Config selects the model to open.
type Config struct {
	// Model is the user's choice: "offline", "openai:NAME", "anthropic:NAME", "ollama:NAME" or
	// "replay:DIR". If it is empty, the environment decides: see Open.
	Model string

	// Offline is the model with the name "offline".
	Offline Model

	// Getenv reads the variables of the providers, such as ANTHROPIC_API_KEY. Nil is an empty
	// environment.
	Getenv func(string) string

	provider *Provider // a user's provider; nil for a provider of the environment
}

// Open returns the model that cfg selects. Without a name it chooses a provider with a key in
// the environment: Anthropic before OpenAI-compatible, else the offline model. For an invalid
// name it returns an error that lists the valid forms. Open makes no request.
func Open(cfg Config) (Model, error) {
	name, why := cfg.Model, ""
	if name == "" {
		name, why = defaultModel(cfg.Getenv)
	}
	provider, rest, named := strings.Cut(name, ":")
	if err := missingPart(provider, rest); err != nil && named && provider != "replay" {
		return nil, fmt.Errorf("model %q: %w; write PROVIDER:NAME, such as openai:%s", name, err, openAIModel)
	}
	var m Model
	var err error
	switch {
	case provider == "offline" && !named && cfg.Offline != nil:
		return cfg.Offline, nil
	case provider == "openai":
		m, err = openOpenAI(rest, cfg, defaultTimeouts())
	case provider == "anthropic":
		m, err = openAnthropic(rest, cfg, defaultTimeouts())
	case provider == "ollama":
		m, err = openOllama(rest, cfg, slowTimeouts())
	case provider == "replay" && rest != "":
		m, err = openReplay(rest)
	default:
		return nil, fmt.Errorf("unknown model %q; known: offline, openai:NAME, anthropic:NAME, ollama:NAME, replay:DIR",
			name)
	}
	if err != nil {
		return nil, fmt.Errorf("open model %s%s: %w", name, why, err)
	}
	return m, nil
}

// missingPart returns an error that says which part of the model PROVIDER:NAME is missing, or nil.
// An empty name selects the provider's default model. A name may have an empty part in its middle, as
// those of fine-tuned models have.
func missingPart(provider, name string) error {
	switch {
	case provider == "":
		return errors.New("the provider is missing before the colon")
	case strings.HasPrefix(name, ":"):
		return fmt.Errorf("the name of the model is missing after %q", provider+":")
	case strings.HasSuffix(name, ":"):
		return fmt.Errorf("the end of the model's name is missing after %q", provider+":"+name)
	}
	return nil
}

// Chain returns the names in a chain of models, which are separated by commas. A chain has at
// least one name, which may be empty.
func Chain(names string) []string {
	list := strings.Split(names, ",")
	for i, name := range list {
		list[i] = strings.TrimSpace(name)
	}
	return list
}

// Local reports whether m answers within this process. Such a model has a method Local. An
// unfinished call of it costs nothing.
func Local(m Model) bool {
	local, ok := m.(interface{ Local() bool })
	return ok && local.Local()
}

// defaultModel chooses a model by the keys in the environment. why explains the choice: error
// messages contain it, because users may not know that the environment decides.
func defaultModel(getenv func(string) string) (name, why string) {
	if getenv == nil {
		return "offline", ""
	}
	// OLLAMA_HOST is not in this list, because Ollama has no default model.
	for _, choice := range []struct{ variable, name string }{
		{"ANTHROPIC_API_KEY", "anthropic"},
		{"OPENAI_API_KEY", "openai"},
		{"OPENAI_BASE_URL", "openai"},
	} {
		if getenv(choice.variable) != "" {
			return choice.name, " (chosen because " + choice.variable + " is set)"
		}
	}
	return "offline", ""
}

// env returns a variable without surrounding white space, which keys from files often have.
func (c Config) env(name string) string {
	if c.Getenv == nil {
		return ""
	}
	return strings.TrimSpace(c.Getenv(name))
}
