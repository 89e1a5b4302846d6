package model

import (
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

func TestCatalogueCheck(t *testing.T) {
	t.Parallel()
	none := []string(nil)
	openAI := []string{"OPENAI_API_KEY", "sk-test-key-0123456789"}
	local := []string{"OPENAI_BASE_URL", "http://127.0.0.1:11434/v1"}
	claude := []string{"ANTHROPIC_AUTH_TOKEN", "token-0123456789"}
	for _, tt := range []struct {
		env  []string
		name string
		says string // '' if the model may be chosen
	}{
		{none, "offline", ""},
		{openAI, "openai:gpt-5-mini", ""},
		{local, "openai:qwen3:8b", ""},
		{claude, "anthropic:claude-sonnet-5", ""},
		{[]string{"OLLAMA_HOST", "127.0.0.1"}, "ollama:qwen3:8b", ""},
		{none, "ollama:qwen3:8b", "no OLLAMA_HOST; it must be one of: offline, or null"},
		{none, "", "must be one of: offline, or null"},
		{none, "openai:gpt-5-mini", "no key for openai; it must be one of: offline, or null"},
		{openAI, "anthropic:claude-sonnet-5", "no key for anthropic; it must be one of: offline, openai:NAME, or null"},
		{openAI, "openai:", "must be one of"},
		{openAI, "openai", "must be one of"},
		{openAI, "openai::", `the name of the model is missing after "openai:"; it must be one of: offline, openai:NAME`},
		{openAI, "openai: gpt", "must be one of"},
		{openAI, "openai:a\nb", "must be one of"},
		{openAI, "OpenAI:gpt-5", "must be one of"},
		{openAI, "gpt-5", "must be one of"},
		{openAI, "offline:x", "must be one of"},
		{openAI, "replay:/etc", "must be one of"},
		{openAI, "mistral:large", "must be one of"},
	} {
		t.Run(fmt.Sprintf("%q with %v", tt.name, tt.env), func(t *testing.T) {
			is := is.New(t)
			c := NewCatalogue(Config{Offline: standIn{}, Getenv: environment(tt.env...)}, standIn{}, "")
			err := c.Check(tt.name)
			_, failed := c.Open(tt.name)
			if tt.says == "" {
				is.NoErr(err)
				is.NoErr(failed)
				return
			}
			is.True(err != nil)
			is.True(strings.Contains(err.Error(), tt.says)) // the error lists the valid names
			is.Equal(failed.Error(), err.Error())           // Open does not open an invalid name
			is.True(!strings.Contains(err.Error(), "sk-"))  // the error contains no key
		})
	}
}

// TestCatalogueOfOllama checks a server whose own model is an Ollama model without OLLAMA_HOST.
func TestCatalogueOfOllama(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	own, err := Open(Config{Model: "ollama:a"})
	is.NoErr(err)
	_, err = NewCatalogue(Config{}, own, "").Open("ollama:b")
	is.NoErr(err)
}

func TestCatalogueOpen(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	c := NewCatalogue(Config{Getenv: environment("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")}, standIn{}, "")
	first, err := c.Open("openai:a")
	is.NoErr(err)
	is.Equal(first.Name(), "openai:a")
	again, err := c.Open("openai:a")
	is.NoErr(err)
	is.Equal(first, again) // and reuses its connections
	for i := range maxOpenModels {
		_, err := c.Open(fmt.Sprintf("openai:%d", i))
		is.NoErr(err)
	}
	ordertest.AtMost(is, len(c.open), maxOpenModels) // independent of the number of names
}

func TestCatalogueOfRecordings(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	recording := NewCatalogue(Config{Offline: standIn{}}, standIn{}, dir)
	m, err := recording.Open("offline")
	is.NoErr(err)
	asked := Request{Messages: []Message{{Role: RoleUser, Parts: []Part{{Type: PartText, Text: "kept"}}}}}
	_, err = m.Generate(t.Context(), asked, nil)
	is.NoErr(err)

	server, err := Open(Config{Model: "replay:" + dir})
	is.NoErr(err)
	replaying := NewCatalogue(Config{}, server, "")
	m, err = replaying.Open("anthropic:claude-sonnet-5") // without a key: the model is not called
	is.NoErr(err)
	resp, err := m.Generate(t.Context(), asked, nil)
	is.NoErr(err)
	is.Equal(resp.Parts[0].Text, "kept")
}
