package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
)

const (
	anthropicBaseURL = "https://api.anthropic.com"
	anthropicVersion = "2023-06-01"        // version of the API
	anthropicModel   = "claude-sonnet-5-5" // the default
	claudeMaxTokens  = 32_000              // output limit of models that are not in the price table
)

// A claude is a model with Anthropic's Messages API.
type claude struct {
	remote

	mu     sync.Mutex   // guards the fields below
	quirks claudeQuirks // learned from earlier refusals
	bad    badSchemas   // refused by the provider
}

// claudeQuirks are the limits of a model, and the features that it lacks.
type claudeQuirks struct {
	maxTokens  int64 // output limit
	noThinking bool  // the model lacks adaptive thinking
	noThoughts bool  // the model rejects thinking of earlier answers
	noSchema   bool
	bareTools  bool // schemas of tools without bounds
	noBudget   bool // the model rejects a budget of thinking
	noMarks    bool // cache_control is refused
	sampling   sampling
	fileQuirks

	window int64 // context window that a refusal of this request named, 0 for none
}

// effortFor returns the word for the effort of a request, or "".
func (q claudeQuirks) effortFor(req *Request) string {
	if q.noThinking {
		return ""
	}
	return q.sampling.word(claudeEfforts(req.Effort))
}

// budgetFor returns the tokens of thinking of a request to a model without adaptive thinking, or 0.
func (q claudeQuirks) budgetFor(req *Request) int64 {
	if !q.noThinking || q.noBudget {
		return 0
	}
	return thinkingBudget(req.Effort, q.maxTokens)
}

// beforeAdaptive matches models without adaptive thinking.
var beforeAdaptive = regexp.MustCompile(`^claude-([23]|instant)|` +
	`^claude-(opus|sonnet|haiku)-4(-[0-5])?(-20\d{6})?(-latest)?$`)

// openAnthropic opens a model of Anthropic, or of a server with the same API. The key is only
// sent to the base URL in the same provider's variables.
func openAnthropic(model string, cfg Config, p timeouts) (Model, error) {
	env := cfg.env
	model = cmp.Or(model, env("ANTHROPIC_MODEL"), anthropicModel)
	key, token, address := env("ANTHROPIC_API_KEY"), env("ANTHROPIC_AUTH_TOKEN"), env("ANTHROPIC_BASE_URL")
	// A base URL alone is enough: a proxy may add the key.
	if key == "" && token == "" && address == "" {
		return nil, errors.New("model anthropic:" + model + " needs ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN")
	}
	base, err := baseURL(cfg.called("ANTHROPIC_BASE_URL"), cmp.Or(address, anthropicBaseURL))
	if err != nil {
		return nil, err
	}
	base.Path = strings.TrimSuffix(base.Path, "/v1") // the request paths contain it
	for variable, secret := range map[string]string{"ANTHROPIC_API_KEY": key, "ANTHROPIC_AUTH_TOKEN": token} {
		if err := checkKey(cfg.called(variable), secret, base); err != nil {
			return nil, err
		}
	}
	c := &claude{bad: badSchemas{}, remote: remote{name: cfg.named("anthropic", model), model: model, base: base,
		secrets: []string{key, token}, client: newHTTPClient(p, cfg.provider), patience: p,
		header: http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"},
			"Anthropic-Version": {anthropicVersion}}}}
	if key != "" {
		c.header.Set("X-Api-Key", key)
	} else if token != "" {
		c.header.Set("Authorization", bearer(token))
	}
	c.quirks = claudeQuirks{maxTokens: claudeMaxTokens, noThinking: beforeAdaptive.MatchString(model)}
	prices, err := LoadPrices("")
	if err != nil {
		return nil, err
	}
	// The API requires max_tokens. The limit in the price table never cuts an answer short.
	if most := prices.Of(c).MaxOutput; most > 0 {
		c.quirks.maxTokens = most
	}
	return c, nil
}

// stopPause is the stop reason of a model that pauses its turn and expects a request to
// continue.
const stopPause = "pause_turn"

// maxPauses limits how often a paused model is asked to continue.
const maxPauses = 5

// Generate makes a call. If the provider rejects an optional part of the request, Generate
// repeats the call without that part. If the model pauses, Generate asks it to continue. The
// usage of all these requests is added.
func (c *claude) Generate(ctx context.Context, req Request, emit func(Delta)) (Response, error) {
	q := c.knownQuirks(&req)
	before := q
	s := &claudeStream{assembler: assembler{emit: emit}, name: c.name, used: usedCallIDs(&req),
		metas: map[int]claudeMeta{}}
	var total claudeUsage
	for try, pauses := 0, 0; ; {
		asked := req
		if len(s.parts) > 0 { // the model paused: it continues its own message
			asked.Messages = slices.Concat(req.Messages, []Message{s.soFar()})
		}
		// The parts remain across pauses. These fields belong to a single response.
		s.blocks, s.stop, s.done, s.usage = map[looseCount]*claudeBlock{}, "", false, claudeUsage{}
		refused, err := c.call(ctx, &asked, q, s)
		total.add(s.usage) // the provider charges for an interrupted answer
		if err != nil {
			return orMistake(c.model, &req, Response{Usage: total.usage()}, err)
		}
		if refused != nil {
			next, adapted := c.adapt(q, refused, &req)
			if try++; !adapted || try > maxAdaptations {
				return orMistake(c.model, &req, Response{Usage: total.usage()}, refused.failureFor(&req, c.name, c.secrets...))
			}
			q = next
			continue
		}
		if pauses++; s.stop != stopPause || pauses > maxPauses {
			s.usage = total
			resp, err := s.response(&req, c.model)
			if err != nil {
				return Response{Usage: total.usage()}, err
			}
			resp.Window = q.window
			resp.Warnings = append(resp.Warnings, q.warnings(before, &req)...)
			return resp, nil
		}
	}
}

// warnings returns texts for the operator about what the provider has refused since before.
func (q claudeQuirks) warnings(before claudeQuirks, req *Request) []string {
	list := q.sampling.warnings(before.sampling, req, q.effortFor(req))
	if q.noBudget && !before.noBudget {
		list = append(list, "the model cannot think, so it was asked without the effort of the worker")
	}
	return list
}

// knownQuirks returns the known quirks of the model, with the request's own limit.
func (c *claude) knownQuirks(req *Request) claudeQuirks {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.quirks
	if req.MaxTokens > 0 {
		q.maxTokens = min(q.maxTokens, int64(req.MaxTokens))
	}
	q.noSchema = q.noSchema || c.bad[string(req.OutputSchema)]
	return q
}

// adapt returns quirks with which a rejected request may be accepted, and whether they differ
// from q. It remembers quirks of the model, but not those of a single request.
func (c *claude) adapt(q claudeQuirks, r *apiError, req *Request) (claudeQuirks, bool) {
	// Errors with other statuses do not depend on the optional parts of a request.
	if r.status != http.StatusBadRequest && r.status != http.StatusUnprocessableEntity || r.says(meansMistake) {
		return q, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if named, ok := withoutFields(q, &c.quirks, r.refusedFields(), claudeFields()); ok {
		return named, true
	}
	of := func(q *claudeQuirks) *sampling { return &q.sampling }
	temperature, effort := samplingFeatures(of, q.sampling, r, req, q.effortFor(req), "effort")
	if sampled, ok := without(q, &c.quirks, []feature[claudeQuirks]{temperature, effort}); ok {
		return sampled, true
	}
	if most := r.mostOutput(); most > 0 && most < q.maxTokens {
		q.maxTokens, c.quirks.maxTokens = most, most
		return q, true
	}
	if room := r.roomBelow(int(q.maxTokens)); room > 0 {
		q.maxTokens, q.window = int64(room), r.mostTokens()
		return q, true
	}
	if r.overfull("max_tokens") {
		return q, false // the runner must shorten the conversation
	}
	next, ok := without(q, &c.quirks, claudeFeatures(q, r, req))
	if next.noSchema && !q.noSchema {
		c.bad.add(req.OutputSchema) // the server may accept other schemas
	}
	return next, ok
}

// claudeFeatures returns what a refusal may be about. Some messages mention several features, so the order matters.
func claudeFeatures(q claudeQuirks, r *apiError, req *Request) []feature[claudeQuirks] {
	type Q = claudeQuirks
	hasTools, hasSchema := len(req.Tools) > 0, len(req.OutputSchema) > 0 && !q.noSchema
	// These words are about the model. Other refusals may concern only this conversation.
	lasting := r.mentions("not support", "unsupported", "not available", "not permitted", "unknown")
	files := fileFeatures(func(q *Q) *fileQuirks { return &q.fileQuirks }, r, req)
	return append([]feature[Q]{
		{refused: hasTools && r.aboutToolSchema(), omit: func(q *Q) { q.bareTools = true }, lasting: true},
		{refused: hasSchema && (r.refusesAnswerFormat() || r.mentions("schema")), omit: func(q *Q) { q.noSchema = true }},
		{refused: r.refusesSealedThoughts() || r.mentions("signature"), omit: func(q *Q) { q.noThoughts = true }},
		{refused: q.budgetFor(req) > 0 && r.mentions("thinking", "budget_tokens"),
			omit: func(q *Q) { q.noBudget = true }, lasting: lasting},
		{refused: r.mentions("thinking"), omit: func(q *Q) { q.noThinking = true }, lasting: lasting},
	}, files...)
}

// claudeFields returns what leaves out a field of a request, by its name.
func claudeFields() map[string]func(*claudeQuirks) {
	return map[string]func(*claudeQuirks){
		"temperature":   func(q *claudeQuirks) { q.sampling.noTemperature = true },
		"effort":        func(q *claudeQuirks) { q.sampling.noEffort = true },
		"format":        func(q *claudeQuirks) { q.noSchema = true },
		"output_config": func(q *claudeQuirks) { q.noSchema, q.sampling.noEffort = true, true },
		"cache_control": func(q *claudeQuirks) { q.noMarks = true },
	}
}

// call makes one request and reads the answer into s. refused is not nil if the provider
// rejected the request before the answer began.
func (c *claude) call(ctx context.Context, req *Request, q claudeQuirks, s *claudeStream) (refused *apiError, _ error) {
	resp, refused, err := c.post(ctx, "v1/messages", c.request(req, q))
	if resp == nil {
		return refused, err
	}
	defer resp.Body.Close()
	if err := readDocument(resp, s.readEvents, s.whole); err != nil {
		return c.readFailure(ctx, err, s.begun(), c.failureFor(req))
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if !s.done {
		return nil, &Error{Code: codeStream, Message: "the answer of the model broke off", Retryable: true}
	}
	// net/http reuses a connection only if the body was read to its end.
	finishBody(resp.Body)
	return nil, ctx.Err()
}

// streamStatus returns the HTTP status for an error type within a stream. The pairs come from
// the provider's documentation of errors.
func streamStatus(kind string) int {
	switch kind {
	case "overloaded_error":
		return 529
	case "rate_limit_error":
		return 429
	case "timeout_error":
		return 504
	case "invalid_request_error", "BadRequestError": // the second is of vLLM
		return 400
	case "authentication_error":
		return 401
	case "billing_error":
		return 402
	case "permission_error":
		return 403
	case "not_found_error":
		return 404
	case "request_too_large":
		return 413
	}
	return 500 // includes "api_error"
}

func (u *claudeUsage) add(v claudeUsage) {
	u.input, u.read, u.write = u.input+v.input, u.read+v.read, u.write+v.write
	u.output, u.thinking = u.output+v.output, u.thinking+v.thinking
}

// soFar returns the answer up to the pause, as a message that the model can continue.
func (s *claudeStream) soFar() Message {
	m := Message{Role: RoleAssistant}
	for i, p := range s.parts {
		// The provider accepts its own content only unchanged, including signatures.
		part := p.part
		part.Text, part.Input = p.text.String(), json.RawMessage(p.text.String())
		part.Meta = s.meta(i)
		m.Parts = append(m.Parts, part)
	}
	return m
}

func (s *claudeStream) meta(part int) json.RawMessage {
	if m, ok := s.metas[part]; ok && m != (claudeMeta{}) {
		return sealMeta(s.name, m)
	}
	return nil
}

// response returns the Response after the stream has been read to its end.
func (s *claudeStream) response(req *Request, model string) (Response, error) {
	reason := s.reason()
	parts, err := s.finish(reason == FinishLength)
	if err != nil {
		return Response{}, &Error{Code: codeBadResponse, Message: err.Error()}
	}
	for i := range parts {
		parts[i].Meta = s.meta(i)
	}
	// Users have already seen the parts, so a refusal after parts is not an error.
	if reason == FinishRefused && len(parts) == 0 {
		return Response{}, refusedError(s.why)
	}
	resp := Response{Model: cmp.Or(s.model, model), Parts: parts, Finish: reason, Usage: s.usage.usage()}
	if reason == FinishRefused {
		resp.Refusal = s.why
	}
	// Servers with a copy of the API may count nothing. Without an estimate, budgets would have
	// no effect.
	if resp.Usage.InputTokens == 0 && resp.Usage.OutputTokens == 0 {
		resp.Usage = EstimateUsage(req, parts)
	}
	return resp, nil
}

// reason returns the finish reason. A tool call overrides the provider's reason, unless the
// answer was cut off or refused.
func (s *claudeStream) reason() FinishReason {
	switch s.stop {
	case "max_tokens", "model_context_window_exceeded":
		return FinishLength
	case "refusal":
		return FinishRefused
	}
	// Servers with a copy of the API may send end_turn after a tool call.
	if s.hasCall() {
		return FinishToolCalls
	}
	switch s.stop {
	case "", "end_turn", "stop_sequence", "tool_use", stopPause:
		return FinishStop
	}
	return FinishOther
}

// usage converts the provider's counts.
func (u claudeUsage) usage() Usage {
	return Usage{InputTokens: u.input + u.read + u.write, OutputTokens: u.output, CacheReadTokens: u.read,
		CacheWriteTokens: u.write, ReasoningTokens: min(u.thinking, u.output)}
}
