package model

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"sync"
)

// A responses is a model with OpenAI's Responses API. Unlike chat completions, this API
// supports reasoning between tool calls and returns the reasoning encrypted. Later requests
// send it back to the model. After the first rejection of a feature, later requests omit the
// feature.
type responses struct {
	openAIServer

	mu     sync.Mutex // guards quirks and bad
	quirks responsesQuirks
	bad    badSchemas // rejected by the server
}

// responsesQuirks are features that a model or a server lacks.
type responsesQuirks struct {
	noEncrypted bool // the model does not reason, so it has no encrypted reasoning
	noSummary   bool // the model or the account does not support summaries of reasoning
	noThoughts  bool // earlier reasoning is left out: the server cannot decrypt it, or does not know its items
	noCacheKey  bool
	noSchema    bool
	bareTools   bool // schemas of tools without bounds
	noMaxTokens bool
	underV1     bool // the base URL lacks /v1
	noParallel  bool // parallel_tool_calls is refused
	noChoice    bool // a final call omits the tools
	noStore     bool // the server does not know store; a server behind it may store the answer
	noPhase     bool
	sampling    sampling
	fileQuirks
	outputRoom
}

// mayStore is the warning if a server does not know the field that forbids it to store.
const mayStore = "the server refuses the field store, so it cannot be told to store nothing; a server behind it may " +
	"store the conversation"

// thoughtsLost is the warning if a server rejected the reasoning of earlier calls.
const thoughtsLost = "the server could not read the model's earlier reasoning, so the model was asked without it"

// Generate makes a call. If the server rejects an optional part of the request, Generate
// repeats the call without that part.
func (o *responses) Generate(ctx context.Context, req Request, emit func(Delta)) (Response, error) {
	q := o.knownQuirks(&req)
	before := q
	for try := 0; ; try++ {
		resp, refused, err := o.call(ctx, &req, q, emit)
		if refused == nil {
			resp.Window = q.window
			if err == nil {
				resp.Warnings = append(resp.Warnings, q.warnings(before, &req)...)
			}
			if err == nil && q.underV1 {
				o.foundV1()
			}
			return orMistake(o.model, &req, resp, err)
		}
		// A rejection mentions one feature, so several attempts may be needed.
		next, adapted := o.adapt(q, refused, &req)
		if !adapted || try == maxAdaptations {
			return orMistake(o.model, &req, resp, refused.failureFor(&req, o.name, o.secrets...))
		}
		q = next
	}
}

// warnings returns texts for the operator about what the server has refused since before.
func (q responsesQuirks) warnings(before responsesQuirks, req *Request) []string {
	list := q.sampling.warnings(before.sampling, req, q.sampling.word(openAIEfforts(req.Effort)))
	if q.noStore && !before.noStore {
		list = append(list, mayStore)
	}
	if q.noThoughts && !before.noThoughts {
		list = append(list, thoughtsLost)
	}
	return list
}

// foundV1 remembers that the base URL lacks /v1: an answer came from there. A web page at the other path may be that of
// a login, which another time lets requests through.
func (o *responses) foundV1() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.quirks.underV1 = true
}

// knownQuirks returns the known quirks of the server and of the request's schema.
func (o *responses) knownQuirks(req *Request) responsesQuirks {
	o.mu.Lock()
	defer o.mu.Unlock()
	q := o.quirks
	q.noSchema = q.noSchema || o.bad[string(req.OutputSchema)]
	return q
}

// adapt returns quirks with which a rejected request may be accepted, and whether they differ
// from q. It remembers quirks of the model, but not those of a single request.
func (o *responses) adapt(q responsesQuirks, r *apiError, req *Request) (responsesQuirks, bool) {
	switch r.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return q, false // the form of the request was valid
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !q.noMaxTokens && q.outputRoom.adapt(r, req.MaxTokens, &o.quirks.most) {
		return q, true
	}
	if r.spent() || r.overfull(maxTokensNames()...) || r.says(meansMistake) {
		return q, false // the runner must shorten the conversation, ask another model, or tell this one
	}
	hasSchema := len(req.OutputSchema) > 0
	if named, ok := withoutFields(q, &o.quirks, r.responsesNames(hasSchema), o.fields()); ok {
		return named, true
	}
	next, ok := without(q, &o.quirks, o.features(q, r, req))
	if next.noSchema && !q.noSchema {
		o.bad.add(req.OutputSchema) // the server may accept other schemas
	}
	return next, ok
}

// features returns what a refusal may be about. Some messages mention several features, so the order matters.
func (o *responses) features(q responsesQuirks, r *apiError, req *Request) []feature[responsesQuirks] {
	type Q = responsesQuirks
	hasTools, hasSchema := len(req.Tools) > 0, len(req.OutputSchema) > 0 && !q.noSchema
	names := []string{"reasoning.effort", "reasoning_effort", "reasoning effort"}
	of := func(q *Q) *sampling { return &q.sampling }
	temperature, effort := samplingFeatures(of, q.sampling, r, req, q.sampling.word(openAIEfforts(req.Effort)), names...)
	files := fileFeatures(func(q *Q) *fileQuirks { return &q.fileQuirks }, r, req)
	return append([]feature[Q]{
		{refused: o.base.Path == "" && r.isUnknownPath(), omit: func(q *Q) { q.underV1 = true }}, // see foundV1
		{refused: hasTools && r.aboutToolSchema(), omit: func(q *Q) { q.bareTools = true }, lasting: true},
		// Reasoning of another account or key cannot be decrypted. Other conversations keep their reasoning.
		{refused: r.mentions("invalid_encrypted_content", "encrypted content could not be", "encrypted content for item",
			"items are not persisted", "required following item", "type 'reasoning' was provided"),
			omit: func(q *Q) { q.noThoughts = true }},
		{refused: r.mentions("encrypted content is not supported", "reasoning.encrypted_content"),
			omit: func(q *Q) { q.noEncrypted = true }, lasting: true},
		{refused: r.refusesThoughtItems(), omit: func(q *Q) { q.noThoughts = true }, lasting: true},
		// An answer without a summary is better than none. Reasoning itself stays enabled, unless the field is refused.
		{refused: r.refusesReasoning(), omit: func(q *Q) { q.noSummary = true }, lasting: true},
		{refused: r.refusesReasoning(), omit: func(q *Q) { q.sampling.noEffort = true }, lasting: true},
		temperature, effort,
		{refused: r.mentions("reasoning.summary", "reasoning summar"),
			omit: func(q *Q) { q.noSummary = true }, lasting: true},
		{refused: r.mentions("prompt_cache_key"), omit: func(q *Q) { q.noCacheKey = true }, lasting: true},
		{refused: q.maxTokens(req.MaxTokens) > 0 && r.mentions(maxTokensNames()...),
			omit: func(q *Q) { q.noMaxTokens = true }, lasting: true},
		{refused: hasSchema && (r.refusesAnswerFormat() || r.mentions("schema")), omit: func(q *Q) { q.noSchema = true }},
	}, files...)
}

// fields returns responsesFields without those that the server certainly knows. Without store, it would store.
func (o *responses) fields() map[string]func(*responsesQuirks) {
	all := responsesFields()
	if isHost(o.base, "openai.com") || isHost(o.base, "azure.com") {
		delete(all, "store")
	}
	return all
}

// responsesFields returns what leaves out a field of a request, by its name.
func responsesFields() map[string]func(*responsesQuirks) {
	limit := func(q *responsesQuirks) { q.noMaxTokens = true }
	format := func(q *responsesQuirks) { q.noSchema = true }
	return map[string]func(*responsesQuirks){
		"max_output_tokens": limit, "max_tokens": limit, "max_completion_tokens": limit,
		"text": format, "format": format, "response_format": format,
		"temperature":         func(q *responsesQuirks) { q.sampling.noTemperature = true },
		"effort":              func(q *responsesQuirks) { q.sampling.noEffort = true },
		"reasoning_effort":    func(q *responsesQuirks) { q.sampling.noEffort = true },
		"reasoning":           func(q *responsesQuirks) { q.noSummary, q.sampling.noEffort = true, true },
		"summary":             func(q *responsesQuirks) { q.noSummary = true },
		"include":             func(q *responsesQuirks) { q.noEncrypted = true },
		"prompt_cache_key":    func(q *responsesQuirks) { q.noCacheKey = true },
		"parallel_tool_calls": func(q *responsesQuirks) { q.noParallel = true },
		"tool_choice":         func(q *responsesQuirks) { q.noChoice = true },
		"store":               func(q *responsesQuirks) { q.noStore = true },
		"phase":               func(q *responsesQuirks) { q.noPhase = true },
		itemOfReasoning:       func(q *responsesQuirks) { q.noThoughts = true },
	}
}

// refusesReasoning reports whether a server refuses something of the field reasoning, which holds effort and summary.
func (r *apiError) refusesReasoning() bool {
	return !r.refusesThoughtItems() && r.mentions("'reasoning'")
}

// call makes one request. refused is not nil if the server rejected the request before the
// answer began.
func (o *responses) call(ctx context.Context, req *Request, q responsesQuirks, emit func(Delta)) (
	_ Response, refused *apiError, _ error,
) {
	resp, refused, err := o.post(ctx, endpoint("responses", q.underV1), o.request(req, q))
	if resp == nil {
		return Response{}, refused, err
	}
	s := &responseStream{assembler: assembler{emit: emit}, name: o.name, used: usedCallIDs(req)}
	return o.receive(ctx, resp, req, s, o.failureFor(req))
}

func (s *responseStream) readAnswer(resp *http.Response) error {
	return readDocument(resp, s.read, s.whole)
}

// response returns the Response after the stream has been read to its end.
func (s *responseStream) response(req *Request, model string) (Response, error) {
	if s.final == nil {
		return Response{}, &Error{Code: codeStream, Message: "the answer of the model broke off", Retryable: true}
	}
	resp := Response{Model: cmp.Or(string(s.final.Model), model), Finish: s.reason(),
		Refusal: tidyMessage(s.refusal.String(), nil)}
	parts, err := s.assembler.finish(resp.Finish == FinishLength)
	if err != nil {
		return Response{}, &Error{Code: codeBadResponse, Message: err.Error()}
	}
	s.attachMeta(parts)
	resp.Parts = parts
	if resp.Finish == FinishContentFilter && len(parts) == 0 {
		return Response{}, filteredError("")
	}
	// Servers with a copy of the API may count nothing.
	if resp.Usage = s.counted().Usage; resp.Usage == (Usage{}) {
		resp.Usage = EstimateUsage(req, parts)
	}
	return resp, nil
}

// reason returns the finish reason. A tool call overrides the server's reason, unless the
// answer was cut off or withheld.
func (s *responseStream) reason() FinishReason {
	reason := FinishStop
	if s.final.Status == "incomplete" {
		reason = finishReason(strings.ToLower(string(s.final.Incomplete.Reason)))
		if reason == FinishStop {
			reason = FinishOther // incomplete without a reason, or with an unknown one
		}
	}
	switch {
	case reason == FinishLength, reason == FinishContentFilter:
		return reason
	case s.refusal.Len() > 0:
		return FinishRefused
	case s.hasCall():
		return FinishToolCalls
	}
	return reason
}

// counted returns a Response with only the tokens that the server has counted.
func (s *responseStream) counted() Response {
	u := s.usage
	if u == nil || u.InputTokens <= 0 && u.OutputTokens <= 0 {
		return Response{}
	}
	return Response{Usage: statedTokens{
		input: u.InputTokens, output: u.OutputTokens, total: u.TotalTokens, read: u.InputDetails.CachedTokens,
		write: u.InputDetails.CacheWriteTokens, reasoning: u.OutputDetails.ReasoningTokens,
	}.usage()}
}

// attachMeta stores in the parts the data that the provider needs in later requests.
func (s *responseStream) attachMeta(parts []Part) {
	for part, meta := range s.metas {
		parts[part].Meta = sealMeta(s.name, meta)
	}
}
