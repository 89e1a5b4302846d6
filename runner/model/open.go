package model

import (
	"fmt"
	"strings"
)

// A Config says which model to open and with what.
type Config struct {
	// Model is what the user chose: "offline", "openai:NAME", "anthropic:NAME"
	// or "replay:DIR". Empty leaves the choice to the environment, see Open.
	Model string

	// Getenv reads the environment of the provider's own variables, such as
	// ANTHROPIC_API_KEY. Nil is an empty environment.
	Getenv func(string) string
}

// Open gives the model that cfg names. Without a name, a provider whose key is
// in the environment is chosen, Anthropic before OpenAI-compatible, and offline
// if there is none. A name of an unknown form is an error that lists the known
// ones. Open makes no request.
func Open(cfg Config) (Model, error) {
	name, why := cfg.Model, ""
	if name == "" {
		name, why = defaultModel(cfg.Getenv)
	}
	provider, rest, named := strings.Cut(name, ":")
	var m Model
	var err error
	switch {
	case provider == "offline" && !named:
		return NewOffline(), nil
	case provider == "openai":
		m, err = openOpenAI(rest, cfg, usualPatience())
	case provider == "anthropic":
		m, err = openAnthropic(rest, cfg, usualPatience())
	case provider == "replay" && rest != "":
		m, err = openReplay(rest)
	default:
		return nil, fmt.Errorf("unknown model %q; known: offline, openai:NAME, anthropic:NAME, replay:DIR", name)
	}
	if err != nil {
		return nil, fmt.Errorf("open model %s%s: %w", name, why, err)
	}
	return m, nil
}

// defaultModel chooses by the keys that are there. why explains the choice to a
// user who did not make it knowingly.
func defaultModel(getenv func(string) string) (name, why string) {
	if getenv == nil {
		return "offline", ""
	}
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

// env reads a variable without the white space around it, which a key read from
// a file often has.
func (c Config) env(name string) string {
	if c.Getenv == nil {
		return ""
	}
	return strings.TrimSpace(c.Getenv(name))
}
