package model

import (
	"context"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// A standIn is the model "offline" in these tests. It repeats the input.
type standIn struct{}

func (standIn) Name() string { return "offline" }

func (standIn) Generate(_ context.Context, req Request, _ func(Delta)) (Response, error) {
	return Response{Model: "offline", Parts: req.Messages[0].Parts, Finish: FinishStop}, nil
}

func TestOpen(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		model string
		env   map[string]string
		err   string // "" for the offline model
	}{
		"by name":             {model: "offline", env: map[string]string{"OPENAI_API_KEY": "k"}},
		"nothing set":         {},
		"empty key":           {env: map[string]string{"ANTHROPIC_API_KEY": ""}},
		"unknown":             {model: "gpt-5", err: `unknown model "gpt-5"; known: offline, openai:NAME, anthropic:NAME, ollama:NAME, replay:DIR`},
		"offline with a name": {model: "offline:x", err: `unknown model "offline:x"; known: offline, openai:NAME, anthropic:NAME, ollama:NAME, replay:DIR`},
		"no name": {model: "openai::", env: map[string]string{"OPENAI_API_KEY": "secret"},
			err: `model "openai::": the name of the model is missing after "openai:"; write PROVIDER:NAME, such as openai:` + openAIModel},
		"no end of a name": {model: "ollama:qwen3:",
			err: `model "ollama:qwen3:": the end of the model's name is missing after "ollama:qwen3:"; ` +
				`write PROVIDER:NAME, such as openai:` + openAIModel},
		"no provider": {model: ":gpt-5",
			err: `model ":gpt-5": the provider is missing before the colon; write PROVIDER:NAME, such as openai:` + openAIModel},
		"offline with a colon": {model: "offline:", err: `unknown model "offline:"; known: offline, openai:NAME, anthropic:NAME, ollama:NAME, replay:DIR`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			m, err := Open(Config{Model: tt.model, Offline: standIn{}, Getenv: func(key string) string { return tt.env[key] }})
			if tt.err != "" {
				is.Equal(err.Error(), tt.err)
				is.True(!strings.Contains(err.Error(), "secret"))
				return
			}
			is.NoErr(err)
			is.Equal(m.Name(), "offline")
		})
	}
	is := is.New(t)
	m, err := Open(Config{Offline: standIn{}})
	is.NoErr(err) // without an environment
	is.Equal(m.Name(), "offline")
	_, err = Open(Config{Model: "openai:ft:gpt-5:org::id", Getenv: func(string) string { return "http://127.0.0.1:1" }})
	is.True(err == nil || !strings.Contains(err.Error(), "missing")) // a fine-tuned model without a suffix
}
