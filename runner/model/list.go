package model

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of a provider's list of models.
const (
	maxListBody   = 8 << 20 // bytes
	maxListed     = 500     // models
	maxListedName = 200     // bytes
	maxShown      = 24      // models of an Ollama server that are described individually
	listTime      = 20 * time.Second
	mostWindow    = 1 << 30
)

// Abilities of models that a list may contain.
const (
	AbilityTools     = "tools"
	AbilityImages    = "images"
	AbilityReasoning = "reasoning"
)

// A Listed is a model in the list of its provider.
type Listed struct {
	Name          string
	ContextWindow int64    // in tokens; 0 if unknown
	Abilities     []string // nil if unknown
}

// List returns the models that the provider offers, in the provider's order. It omits models
// that produce no text, such as those for embeddings. Its error is an *Error, or that of ctx.
func (p Provider) List(ctx context.Context) ([]Listed, error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	list, err := p.list(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, &Error{Code: codeTimeout, Retryable: true,
			Message: "the provider did not send its list of models in time"}
	}
	return list, err
}

func (p Provider) list(ctx context.Context) ([]Listed, error) {
	path, query := "models", ""
	switch p.Kind {
	case ProviderAnthropic:
		path, query = "v1/models", "limit=1000" // the maximum: a lower limit would need further pages
	case ProviderOllama:
		path = "api/tags"
	}
	raw, err := p.get(ctx, path, query)
	if err != nil {
		return nil, err
	}
	list, err := parseList(raw)
	if err != nil {
		return nil, err
	}
	if p.Kind == ProviderOllama {
		p.show(ctx, list)
	}
	return list, nil
}

// parseList returns the usable models in the list of a provider.
func parseList(raw []byte) (list []Listed, err error) {
	all, err := listedModels(raw)
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		if one := m.listed(); one.isUsable() && len(list) < maxListed {
			list = append(list, one)
		}
	}
	return list, nil
}

// listedModels returns all entries in the list of a provider.
func listedModels(raw []byte) ([]listedModel, error) {
	var body struct {
		Data   []listedModel `json:"data"`
		Models []listedModel `json:"models"`
	}
	// Some servers send the list without an envelope.
	if json.Unmarshal(raw, &body) != nil && json.Unmarshal(raw, &body.Data) != nil {
		return nil, &Error{Code: codeBadResponse,
			Message: "the list of models has an unknown form; is the base URL right?"}
	}
	// llama.cpp lists its model twice: in data for clients of OpenAI, and in models for those of Ollama.
	seen := map[looseText]bool{}
	for _, m := range body.Data {
		seen[cmp.Or(m.ID, m.Name)] = true
	}
	twice := func(m listedModel) bool { return seen[cmp.Or(m.ID, m.Name)] }
	return slices.Concat(body.Data, slices.DeleteFunc(body.Models, twice)), nil
}

// A listedModel is an entry of a list. Servers use different fields for the same properties.
// Each field accepts any JSON.
type listedModel struct {
	ID   looseText `json:"id"`
	Name looseText `json:"name"` // the id at Ollama; elsewhere a display name

	OwnedBy looseText `json:"owned_by"`

	Loaded         looseNumber `json:"loaded_context_length"` // LM Studio
	MaxInputTokens looseNumber `json:"max_input_tokens"`      // Anthropic
	ContextLength  looseNumber `json:"context_length"`        // OpenRouter, Together
	MaxModelLen    looseNumber `json:"max_model_len"`         // vLLM
	ContextWindow  looseNumber `json:"context_window"`        // Groq
	MaxContext     looseNumber `json:"max_context_length"`    // Mistral, LM Studio
	ContextSize    looseNumber `json:"context_size"`          // Novita

	Meta json.RawMessage `json:"meta"` // llama.cpp: n_ctx

	Capabilities json.RawMessage `json:"capabilities"`         // Anthropic, Mistral
	Parameters   json.RawMessage `json:"supported_parameters"` // OpenRouter: a list
	Architecture json.RawMessage `json:"architecture"`         // OpenRouter
}

func (m listedModel) listed() Listed {
	l := Listed{Name: string(cmp.Or(m.ID, m.Name)), Abilities: m.abilities()}
	var meta struct {
		Window looseNumber `json:"n_ctx"`
	}
	_ = json.Unmarshal(m.Meta, &meta) // ignore values of an unknown form
	for _, n := range []looseNumber{m.Loaded, meta.Window, m.MaxModelLen, m.MaxInputTokens, m.ContextLength,
		m.ContextWindow, m.MaxContext, m.ContextSize} {
		l.ContextWindow = cmp.Or(l.ContextWindow, n.tokens())
	}
	return l
}

// tokens returns a number of tokens, 0 for an impossible one.
func (n looseNumber) tokens() int64 {
	if !(n >= 1 && n <= mostWindow) { // also true for NaN
		return 0
	}
	return int64(n)
}

// abilities returns the abilities in the entry, nil if it has none.
func (m listedModel) abilities() []string {
	// Ignore values of an unknown form.
	var parameters []string
	_ = json.Unmarshal(m.Parameters, &parameters)
	if len(parameters) > 0 {
		return abilities(slices.Contains(parameters, "tools"), slices.Contains(m.inputs(), "image"),
			slices.Contains(parameters, "reasoning"))
	}
	var can struct {
		Image    struct{ Supported bool } `json:"image_input"`
		Thinking struct{ Supported bool } `json:"thinking"`
	}
	_ = json.Unmarshal(m.Capabilities, &can)
	if can.Image.Supported || can.Thinking.Supported {
		return abilities(true, can.Image.Supported, can.Thinking.Supported) // all models of Anthropic can call tools
	}
	return nil
}

// inputs returns the kinds of input in the entry, nil if it names none.
func (m listedModel) inputs() []string {
	var architecture struct {
		Input []string `json:"input_modalities"`
	}
	_ = json.Unmarshal(m.Architecture, &architecture) // ignore values of an unknown form
	return architecture.Input
}

// abilities returns the names of the abilities that a model has.
func abilities(tools, images, reasoning bool) []string {
	list := []string{}
	for _, a := range []struct {
		has  bool
		name string
	}{{tools, AbilityTools}, {images, AbilityImages}, {reasoning, AbilityReasoning}} {
		if a.has {
			list = append(list, a.name)
		}
	}
	return list
}

// otherUses are words in the names of models that produce no text, or have no conversations.
const otherUses = "embed whisper tts dall-e moderation transcribe -image realtime -audio sora rerank davinci-002 " +
	"babbage-002"

// isUsable reports whether users can choose the model. Names with a comma would split a chain,
// and names with spaces or control characters are invalid.
func (l Listed) isUsable() bool {
	strange := func(r rune) bool { return r == ',' || unicode.IsSpace(r) || !unicode.IsPrint(r) }
	for word := range strings.FieldsSeq(otherUses) {
		if strings.Contains(strings.ToLower(l.Name), word) {
			return false
		}
	}
	return l.Name != "" && len(l.Name) <= maxListedName && utf8.ValidString(l.Name) &&
		!strings.ContainsFunc(l.Name, strange)
}

// show asks an Ollama server for the abilities of its models, a few at a time. A model without
// an answer stays unchanged.
func (p Provider) show(ctx context.Context, list []Listed) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, 4)
	for i := range list[:min(len(list), maxShown)] {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			m, err := p.Open(list[i].Name)
			if err != nil {
				return
			}
			o := m.(*ollama)
			defer o.client.CloseIdleConnections()
			if can, err := o.Describe(ctx); err == nil {
				list[i].ContextWindow = can.ContextWindow
				list[i].Abilities = abilities(can.Tools, can.Vision, can.Thinking)
			}
		})
	}
	wg.Wait()
}

// get reads a small JSON document of the provider.
func (p Provider) get(ctx context.Context, path, query string) ([]byte, error) {
	p.Name = cmp.Or(p.Name, p.Kind)
	m, err := p.Open("any") // only its server matters
	if err != nil {
		return nil, &Error{Code: "request", Message: err.Error()}
	}
	r := m.(interface{ at() *remote }).at()
	defer r.client.CloseIdleConnections()
	r.header.Del("Content-Type")
	r.header.Set("Accept", "application/json")
	r.base.RawQuery = query
	raw, refused, err := r.fetch(ctx, path)
	// The API often is at /v1, which users omit from the address.
	if refused.isNotFound() && r.base.Path == "" && path == "models" {
		raw, refused, err = r.fetch(ctx, "v1/models")
	}
	if refused != nil {
		return nil, refused.failure(p.Key)
	}
	return raw, err
}

// fetch makes one request and reads the complete answer. refused is not nil for any other answer than 200. A web page
// has the status 404 then: the address is wrong.
func (m *remote) fetch(ctx context.Context, path string) (raw []byte, refused *apiError, err error) {
	resp, err := m.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return nil, nil, readAPIError(resp).failure(m.secrets...)
	}
	raw, err = io.ReadAll(io.LimitReader(resp.Body, maxListBody+1))
	at := resp.Request.URL.Path
	switch {
	case err != nil:
		return nil, nil, transportFailure(ctx, err, m.patience, true)
	case len(raw) > maxListBody:
		return nil, nil, &Error{Code: codeBadResponse, Message: "the list of models is too long"}
	case resp.StatusCode != http.StatusOK:
		refused = &apiError{status: resp.StatusCode}
		refused.readBody(at, resp.Header, raw)
		return nil, refused, nil
	case looksLikePage(resp.Header, raw):
		return nil, &apiError{status: http.StatusNotFound, page: newWebPage(at, raw)}, nil
	}
	return bytes.TrimSpace(raw), nil, nil
}

// isNotFound reports whether there is nothing at the address of a request.
func (r *apiError) isNotFound() bool { return r != nil && r.status == http.StatusNotFound }

// A looseNumber is any JSON value as a number, also within a text: 0 if it is not a number.
type looseNumber float64

// UnmarshalJSON accepts any value.
func (n *looseNumber) UnmarshalJSON(raw []byte) error {
	var f float64
	if json.Unmarshal([]byte(strings.Trim(string(raw), `"`)), &f) != nil {
		f = 0
	}
	*n = looseNumber(f)
	return nil
}
