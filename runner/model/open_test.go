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
		"by name":              {model: "offline", env: map[string]string{"OPENAI_API_KEY": "k"}},
		"nothing set":          {},
		"empty key":            {env: map[string]string{"ANTHROPIC_API_KEY": ""}},
		"unknown":              {model: "gpt-5", err: `unknown model "gpt-5"; known: offline, openai:NAME, anthropic:NAME, ollama:NAME, replay:DIR`},
		"offline with a name":  {model: "offline:x", err: `unknown model "offline:x"; known: offline, openai:NAME, anthropic:NAME, ollama:NAME, replay:DIR`},
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
}
