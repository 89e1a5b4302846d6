package model

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	ollamaWindow = 32_768           // tokens, unless operator or model sets a window: a larger one needs much memory
	shownFor     = 10 * time.Minute // how long the server's description of a model is believed
	askTime      = 3 * time.Second  // for a description, which delays the call
	maxShow      = 8 << 20          // bytes of a description, which holds licence and template
)

// An ollamaModel holds the server's description of a model, as requests to it need it.
type ollamaModel struct {
	window   int64 // tokens of num_ctx, 0 for the server's own default
	tools    bool
	vision   bool
	think    any // value of the field think, nil to leave it out
	noSchema bool
}

// An ollamaShow is an answer of /api/show.
type ollamaShow struct {
	Parameters   looseText                  `json:"parameters"` // lines of names and values
	ModelInfo    map[string]json.RawMessage `json:"model_info"`
	Capabilities []string                   `json:"capabilities"`
	RemoteModel  string                     `json:"remote_model"` // not empty for models that ollama.com runs
	Thinking     struct {
		Values  []any `json:"values"`
		Default any   `json:"default"`
	} `json:"thinking"`
}

// Describe asks the server for the model's limits and abilities.
func (o *ollama) Describe(ctx context.Context) (Capabilities, error) {
	m, err := o.show(ctx)
	if err != nil {
		return Capabilities{}, err
	}
	o.limit(&m)
	return Capabilities{ContextWindow: m.window, Tools: m.tools, Vision: m.vision, Thinking: m.think != nil}, nil
}

// known returns how the model is asked. It asks the server for the model's description, unless a
// recent one is known. Without a description the call is still made, because its error says more.
func (o *ollama) known(ctx context.Context) ollamaModel {
	o.mu.Lock()
	shown, at := o.shown, o.shownAt
	o.mu.Unlock()
	// The lock is free during the request, so that other calls need not wait for it.
	if shown == nil || time.Since(at) > shownFor {
		ctx, cancel := context.WithTimeout(ctx, askTime)
		defer cancel()
		// If this fails, an older description still serves.
		if m, err := o.show(ctx); err == nil {
			shown = &m
		}
	}
	m := ollamaModel{window: o.length, tools: true, vision: true}
	if shown != nil {
		m = *shown
	}
	o.limit(&m)
	return m
}

// limit applies the limits that earlier calls have found.
func (o *ollama) limit(m *ollamaModel) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m.tools = m.tools && !o.noTools
	m.vision = m.vision && !o.noVision
	if o.noThought {
		m.think = nil
	}
	// A server that has loaded less would cut or refuse a prompt of the wanted length.
	if o.loaded > 0 && (m.window == 0 || o.loaded < m.window) {
		m.window = o.loaded
	}
}

// show asks the server about the model and remembers the answer.
func (o *ollama) show(ctx context.Context) (ollamaModel, error) {
	var s ollamaShow
	if err := o.ask(ctx, http.MethodPost, "api/show", map[string]string{"model": o.model}, &s); err != nil {
		return ollamaModel{}, err
	}
	m := s.model(o.length)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.shown, o.shownAt = &m, time.Now()
	return m, nil
}

// ask makes a small request and decodes the answer.
func (o *ollama) ask(ctx context.Context, method, path string, body, answer any) error {
	resp, err := o.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return o.refusal(readAPIError(resp), 0)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxShow)).Decode(answer); err != nil {
		// A timeout also breaks the JSON, and is then the real reason.
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &Error{Code: codeBadResponse, Retryable: true,
			Message: "the answer of " + path + " is not the JSON that Ollama sends"}
	}
	finishBody(resp.Body)
	return nil
}

// model returns how to ask the model that s describes. length is the operator's
// choice of the window, 0 for none.
func (s *ollamaShow) model(length int64) ollamaModel {
	// Servers before 0.6.4 send no capabilities. They refuse features that a model lacks.
	has := func(ability string) bool {
		return len(s.Capabilities) == 0 || slices.Contains(s.Capabilities, ability)
	}
	m := ollamaModel{tools: has("tools"), vision: has("vision")}
	if slices.Contains(s.Capabilities, "thinking") {
		m.think = s.thought()
	}
	longest, set := s.contextLength(), s.parameter("num_ctx")
	switch {
	case s.RemoteModel != "":
		m.window = longest // it takes none of this server's memory
	case length > 0:
		m.window = length
	case set > 0: // the maker of the model has chosen
		m.window = set
	default:
		m.window = ollamaWindow
	}
	if longest > 0 {
		m.window = min(m.window, longest) // a model knows no position beyond its training
	}
	return m
}

// thought returns the value of think that makes the model reason: its default, or the
// first value that is not false.
func (s *ollamaShow) thought() any {
	// Some models take a level such as "low" in place of true.
	for _, v := range append([]any{s.Thinking.Default}, s.Thinking.Values...) {
		if text, ok := v.(string); v == true || ok && text != "" {
			return v
		}
	}
	return true
}

// contextLength returns the longest context of the model, 0 if the server does not say.
func (s *ollamaShow) contextLength() (n int64) {
	var family string
	// The keys of an architecture begin with its name: llama.context_length.
	_ = json.Unmarshal(s.ModelInfo["general.architecture"], &family) // "" where it is missing
	if json.Unmarshal(s.ModelInfo[family+".context_length"], &n) == nil && n > 0 {
		return n
	}
	for key, raw := range s.ModelInfo {
		// Parts of a model, such as the one for images, have longer names.
		if strings.HasSuffix(key, ".context_length") && strings.Count(key, ".") == 1 && json.Unmarshal(raw, &n) == nil {
			return max(n, 0)
		}
	}
	return 0
}

// parameter returns a number that the model's maker has set, 0 if there is none.
func (s *ollamaShow) parameter(name string) int64 {
	for line := range strings.Lines(string(s.Parameters)) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == name {
			n, _ := strconv.ParseInt(strings.Trim(fields[1], `"`), 10, 32)
			return max(n, 0)
		}
	}
	return 0
}

// measure asks after an answer, but not often, for the window that the server has really
// loaded: a proxy may drop num_ctx, and a server may have a limit of its own.
func (o *ollama) measure(ctx context.Context) {
	o.mu.Lock()
	recent := time.Since(o.measured) < shownFor
	if !recent {
		o.measured = time.Now() // here, so that other calls do not ask at the same time
	}
	o.mu.Unlock()
	if recent {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var ps struct {
		Models []struct {
			Name          string `json:"name"`
			Model         string `json:"model"`
			ContextLength int64  `json:"context_length"`
		} `json:"models"`
	}
	if o.ask(ctx, http.MethodGet, "api/ps", nil, &ps) != nil {
		return // the window stays as it was asked for
	}
	for _, m := range ps.Models {
		if tagged(m.Name) == tagged(o.model) || tagged(m.Model) == tagged(o.model) {
			o.mu.Lock()
			o.loaded = max(m.ContextLength, 0)
			o.mu.Unlock()
		}
	}
}

// tagged returns the name of a model with its tag.
func tagged(name string) string {
	if strings.Contains(name[strings.LastIndexByte(name, '/')+1:], ":") {
		return name
	}
	return name + ":latest"
}
