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
	ollamaWindow = 32_768           // default window in tokens; a larger one needs much memory
	shownFor     = 10 * time.Minute // how long a description of a model is cached
	askTime      = 3 * time.Second  // timeout of a description request, which delays the call
	maxShow      = 8 << 20          // bytes of a description, which includes license and template
)

// An ollamaModel holds the properties of a model that determine requests.
type ollamaModel struct {
	window int64 // tokens of num_ctx, 0 for the server's own default
	tools  bool
	vision bool
	think  any    // value of the field think, nil to omit it
	levels string // words that think may have instead of true, with spaces around each; "" for none
	quirks ollamaQuirks
}

// An ollamaShow is a response of /api/show.
type ollamaShow struct {
	Parameters   looseText                  `json:"parameters"` // lines of names and values
	ModelInfo    map[string]json.RawMessage `json:"model_info"`
	Capabilities []string                   `json:"capabilities"`
	RemoteModel  string                     `json:"remote_model"` // not empty if ollama.com runs the model
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

// known returns the properties of the model. It asks the server for a description, unless it
// has a recent one. If that fails, the call is still made, because its error is more useful.
func (o *ollama) known(ctx context.Context) ollamaModel {
	o.mu.Lock()
	shown, at := o.shown, o.shownAt
	o.mu.Unlock()
	// The lock is not held during the request, so that other calls need not wait.
	if shown == nil || time.Since(at) > shownFor {
		ctx, cancel := context.WithTimeout(ctx, askTime)
		defer cancel()
		// If this fails, use the older description.
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

// limit applies the limits that earlier calls have detected.
func (o *ollama) limit(m *ollamaModel) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Since(o.mostWindowAt) > mostWindowFor {
		o.quirks.mostWindow = 0
	}
	m.adjust(o.quirks)
	// A server with a smaller loaded window would cut or reject a longer prompt.
	if o.loaded > 0 && (m.window == 0 || o.loaded < m.window) {
		m.window = o.loaded
	}
}

// show asks the server for the model's description and caches it.
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

// ask makes a small request and decodes the response.
func (o *ollama) ask(ctx context.Context, method, path string, body, answer any) error {
	resp, err := o.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return o.refusal(&Request{}, readAPIError(resp), 0)
	}
	if page := pageInstead(resp); page != nil && ctx.Err() == nil {
		return page.failure(o.secrets...)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxShow)).Decode(answer); err != nil {
		// A timeout also makes the JSON invalid, but is the actual reason.
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &Error{Code: codeBadResponse, Retryable: true,
			Message: "the answer of " + path + " is not the JSON that Ollama sends"}
	}
	finishBody(resp.Body)
	return nil
}

// model returns the properties of the model that s describes. length is the operator's choice
// of the window, 0 for none.
func (s *ollamaShow) model(length int64) ollamaModel {
	// Servers before 0.6.4 send no capabilities. They reject features that a model lacks.
	has := func(ability string) bool {
		return len(s.Capabilities) == 0 || slices.Contains(s.Capabilities, ability)
	}
	m := ollamaModel{tools: has("tools"), vision: has("vision")}
	if slices.Contains(s.Capabilities, "thinking") {
		m.think, m.levels = s.thought(), s.thoughtLevels()
	}
	longest, set := s.contextLength(), s.parameter("num_ctx")
	switch {
	case s.RemoteModel != "":
		m.window = longest // the model uses no memory of this server
	case length > 0:
		m.window = length
	case set > 0: // set by the creator of the model
		m.window = set
	default:
		m.window = ollamaWindow
	}
	if longest > 0 {
		m.window = min(m.window, longest) // a model cannot use a longer context than in its training
	}
	return m
}

// thought returns the value of think that enables reasoning: the default, or the first value
// that is not false.
func (s *ollamaShow) thought() any {
	// Some models need a level such as "low" instead of true.
	for _, v := range append([]any{s.Thinking.Default}, s.Thinking.Values...) {
		if text, ok := v.(string); v == true || ok && text != "" {
			return v
		}
	}
	return true
}

// thoughtLevels returns the words that think may have, with spaces around each.
func (s *ollamaShow) thoughtLevels() string {
	var family string
	_ = json.Unmarshal(s.ModelInfo["general.architecture"], &family) // "" if it is missing
	words := " "
	for _, v := range s.Thinking.Values {
		if text, ok := v.(string); ok && text != "" {
			words += text + " "
		}
	}
	_, named := s.Thinking.Default.(string)
	switch {
	case words != " ":
		return words
	case named || family == "gptoss": // older servers do not list its levels
		return " low medium high "
	}
	return ""
}

// thought returns the value of think for an effort, nil to omit it.
func (m ollamaModel) thought(effort string) any {
	switch {
	case m.think == nil || effort == "":
		return m.think
	case m.levels == "":
		return effort != "none"
	}
	for _, word := range append([]string{effort}, openAIEfforts(effort)...) {
		if strings.Contains(m.levels, " "+word+" ") {
			return word
		}
	}
	return m.think
}

// contextLength returns the maximum context of the model, 0 if unknown.
func (s *ollamaShow) contextLength() (n int64) {
	var family string
	// The keys begin with the name of the architecture: llama.context_length.
	_ = json.Unmarshal(s.ModelInfo["general.architecture"], &family) // "" if it is missing
	if json.Unmarshal(s.ModelInfo[family+".context_length"], &n) == nil && n > 0 {
		return n
	}
	for key, raw := range s.ModelInfo {
		// Components of a model, such as the one for images, have longer keys.
		if strings.HasSuffix(key, ".context_length") && strings.Count(key, ".") == 1 && json.Unmarshal(raw, &n) == nil {
			return max(n, 0)
		}
	}
	return 0
}

// parameter returns a number that the creator of the model has set, 0 if there is none.
func (s *ollamaShow) parameter(name string) int64 {
	for line := range strings.Lines(string(s.Parameters)) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == name {
			n, _ := strconv.ParseInt(strings.Trim(fields[1], `"`), 10, 32)
			return max(n, 0)
		}
	}
	return 0
}

// measure asks the server for the window that it has actually loaded. A proxy may drop num_ctx,
// and a server may have a limit of its own. It asks after an answer, but not often.
func (o *ollama) measure(ctx context.Context) {
	o.mu.Lock()
	recent := time.Since(o.measured) < shownFor
	if !recent {
		o.measured = time.Now() // set now, so that concurrent calls do not ask, too
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
		return // keep the requested window
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
