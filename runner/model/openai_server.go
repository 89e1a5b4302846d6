package model

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
)

const (
	openAIBaseURL = "https://api.openai.com/v1"
	openAIModel   = "gpt-6-sol" // the default
)

// An openAIServer is a model of a server with one of OpenAI's APIs.
type openAIServer struct{ remote }

// openOpenAI opens a model of OpenAI, or of a server with the same API. The key is only sent to
// the base URL in the same provider's variables.
func openOpenAI(model string, cfg Config, p timeouts) (Model, error) {
	s, err := newOpenAIServer(model, cfg, p)
	if err != nil {
		return nil, err
	}
	// OpenAI offers both APIs, but only the Responses API returns reasoning for later calls.
	switch api := cfg.env(openAIVariable); {
	case api == "responses", api == "" && isHost(s.base, "openai.com"):
		return &responses{openAIServer: s, bad: badSchemas{}}, nil
	case api == "openrouter", api == "" && isHost(s.base, "openrouter.ai"):
		return newChat(s, true), nil
	case api == "chat", api == "":
		return newChat(s, false), nil
	default:
		return nil, fmt.Errorf("%s is responses, chat or openrouter, not %q", openAIVariable, api)
	}
}

// openAIVariable is the variable that selects the API. The default depends on the host of the
// base URL: the Responses API at OpenAI, chat completions elsewhere.
const openAIVariable = "JOURNEYMAN_OPENAI_API"

// newOpenAIServer returns the server that the environment configures.
func newOpenAIServer(model string, cfg Config, p timeouts) (s openAIServer, err error) {
	env := cfg.env
	model = cmp.Or(model, env("OPENAI_MODEL"), openAIModel)
	key, address := env("OPENAI_API_KEY"), env("OPENAI_BASE_URL")
	// A local server needs no key, so an address alone is enough.
	if key == "" && address == "" {
		return s, errors.New("model openai:" + model +
			" needs OPENAI_API_KEY, or OPENAI_BASE_URL of a server without keys")
	}
	base, err := baseURL(cfg.called("OPENAI_BASE_URL"), cmp.Or(address, openAIBaseURL))
	if err != nil {
		return s, err
	}
	if err := checkKey(cfg.called("OPENAI_API_KEY"), key, base); err != nil {
		return s, err
	}
	s.remote = remote{name: cfg.named("openai", model), model: model, base: base, secrets: []string{key},
		client: newHTTPClient(p, cfg.provider), patience: p,
		header: http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}}}
	// OpenAI's clients and other programs use different variables, so read both.
	for name, value := range map[string]string{
		"Authorization":       bearer(key),
		"OpenAI-Organization": cmp.Or(env("OPENAI_ORG_ID"), env("OPENAI_ORGANIZATION")),
		"OpenAI-Project":      cmp.Or(env("OPENAI_PROJECT"), env("OPENAI_PROJECT_ID")),
	} {
		if value != "" {
			s.header.Set(name, value)
		}
	}
	return s, nil
}
