package model

import (
	"strings"
	"testing"

	"github.com/matryer/is"
)

func TestOpenProviders(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		model string
		env   []string
		name  string
		err   string
	}{
		"a key of OpenAI":        {"", []string{"OPENAI_API_KEY", "sk-x"}, "openai:gpt-6-sol", ""},
		"a server":               {"", []string{"OPENAI_BASE_URL", "http://localhost:11434/v1", "OPENAI_MODEL", "llama3.2:3b"}, "openai:llama3.2:3b", ""},
		"a key of Anthropic":     {"", []string{"ANTHROPIC_API_KEY", "sk-ant-x", "OPENAI_API_KEY", "sk-x"}, "anthropic:claude-sonnet-5-5", ""},
		"its model":              {"", []string{"ANTHROPIC_API_KEY", "sk-ant-x", "ANTHROPIC_MODEL", "claude-opus-5-5"}, "anthropic:claude-opus-5-5", ""},
		"by name":                {"openai:org/some:model", []string{"OPENAI_API_KEY", "sk-x"}, "openai:org/some:model", ""},
		"provider alone":         {"anthropic", []string{"ANTHROPIC_AUTH_TOKEN", "t"}, "anthropic:claude-sonnet-5-5", ""},
		"a key with a line end":  {"openai:m", []string{"OPENAI_API_KEY", " sk-x\n"}, "openai:m", ""},
		"no key":                 {"openai:m", nil, "", "needs OPENAI_API_KEY"},
		"no key of Anthropic":    {"anthropic:m", []string{"OPENAI_API_KEY", "sk-x"}, "", "needs ANTHROPIC_API_KEY"},
		"not an address":         {"openai:m", []string{"OPENAI_BASE_URL", "user:hunter2@localhost"}, "", "OPENAI_BASE_URL is not an http or https address"},
		"a key of another":       {"openai:m", []string{"OPENAI_API_KEY", "sk-ant-secret"}, "", "another provider, so it is not sent to api.openai.com"},
		"and the other way":      {"anthropic:m", []string{"ANTHROPIC_API_KEY", "sk-proj-secret"}, "", "another provider, so it is not sent to api.anthropic.com"},
		"to the other's address": {"anthropic:m", []string{"ANTHROPIC_API_KEY", "sk-ant-secret", "ANTHROPIC_BASE_URL", "https://api.openai.com"}, "", "another provider, so it is not sent to api.openai.com"},
		"Ollama":                 {"ollama:qwen3:8b", nil, "ollama:qwen3:8b", ""},
		"Ollama alone":           {"", []string{"OLLAMA_HOST", "10.0.0.1"}, "", "unknown model \"offline\""},
		"Ollama without a name":  {"ollama", nil, "", "name the model"},
		"not Ollama's address":   {"ollama:m", []string{"OLLAMA_HOST", "ftp://user:hunter2@x"}, "", "OLLAMA_HOST is not a host"},
		"not a length":           {"ollama:m", []string{"OLLAMA_CONTEXT_LENGTH", "32k"}, "", "OLLAMA_CONTEXT_LENGTH is not a number"},
		"not a duration":         {"ollama:m", []string{"OLLAMA_KEEP_ALIVE", "long"}, "", "OLLAMA_KEEP_ALIVE is not a duration"},
		"a key with a gap":       {"openai:m", []string{"OPENAI_API_KEY", "sk secret"}, "", "a character that is not valid in a key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			m, err := Open(Config{Model: tt.model, Getenv: environment(tt.env...)})
			if tt.err != "" {
				is.True(err != nil && strings.Contains(err.Error(), tt.err))
				is.True(!strings.Contains(err.Error(), "secret") && !strings.Contains(err.Error(), "hunter2"))
				return
			}
			is.NoErr(err)
			is.Equal(m.Name(), tt.name)
		})
	}
}

// TestEnvironmentDoesNotLeak checks that the environment of the process is not used: otherwise
// a key in it would be sent to any configured address.
func TestEnvironmentDoesNotLeak(t *testing.T) {
	is := is.New(t)
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"} {
		t.Setenv(name, "leaked")
	}
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Leak: leaked")
	t.Setenv("OPENAI_ORG_ID", "leaked")
	p := newProvider(t, fine)
	env := environment("OPENAI_BASE_URL", p.URL, "OPENAI_PROJECT", "proj", "OPENAI_ORGANIZATION", "org")
	m, err := openOpenAI("m", Config{Getenv: env}, quick())
	is.NoErr(err)
	answered(t, m, callAnd("x"))
	is.Equal(p.got(t, 0).header.Get("OpenAI-Organization"), "org")
	is.Equal(p.got(t, 0).header.Get("OpenAI-Project"), "proj")
	is.Equal(p.got(t, 0).header.Get("Authorization"), "") // there is no key

	q := newProvider(t, streams(claudeSays("x")))
	m, err = openAnthropic("m", Config{Getenv: environment("ANTHROPIC_BASE_URL", q.URL, "ANTHROPIC_AUTH_TOKEN", "token")}, quick())
	is.NoErr(err)
	answered(t, m, callAnd("x"))
	is.Equal(q.got(t, 0).header.Get("Authorization"), "Bearer token")
	is.Equal(q.got(t, 0).header.Get("X-Api-Key"), "")
	for _, h := range []asked{p.got(t, 0), q.got(t, 0)} {
		for name, values := range h.header {
			is.True(!strings.Contains(strings.Join(values, " "), "leaked")) // name
			_ = name
		}
	}
}
