package model

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
)

// An openAI is a model with OpenAI's chat completions API. Many servers offer this API with
// differences. After the first rejection of a feature, later requests omit the feature.
type openAI struct {
	openAIServer
	router bool // the server is OpenRouter: see openrouter.go

	mu     sync.Mutex // guards quirks and bad
	quirks quirks     // learned from earlier rejections
	bad    badSchemas // rejected by the server

	inspected sync.Once // see inspect
}

// quirks are features that a server lacks or names differently.
type quirks struct {
	oldMaxTokens    bool // the output limit is called max_tokens
	noMaxTokens     bool
	noStreamOptions bool
	noSchema        bool
	bareTools       bool // schemas of tools without bounds
	noToolChoice    bool // a final call omits the tools
	noCacheMarks    bool
	schemaAlone     bool   // a request with a schema prevents tool calls
	schemaApart     bool   // a request with a schema may have no tools
	noEmpty         bool   // objects in schemas of tools need properties
	noThoughts      bool   // thinking of earlier answers is refused
	noExtra         bool   // extra_content of earlier calls is refused
	fillSignatures  bool   // calls without extra_content get a signature that is not checked
	newSignatures   bool   // all calls get it; for one request only
	noUsage         bool   // OpenRouter's usage is refused
	noSession       bool   // OpenRouter's session_id is refused
	underV1         bool   // the base URL lacks /v1
	effort          string // reasoning_effort in place of the worker's, "" for none
	sampling        sampling
	noSystem        bool   // the model knows no system messages
	noToolRole      bool   // the model knows only users and assistants
	ids             idRule // of the calls in the conversation
	shape           shape
	fileQuirks
	outputRoom
}

// effortFor returns the reasoning_effort of a request, or "".
func (q quirks) effortFor(req *Request) string {
	return cmp.Or(q.effort, q.sampling.word(openAIEfforts(req.Effort)))
}

// newChat returns a model with the chat completions API. router means that the server is
// OpenRouter.
func newChat(s openAIServer, router bool) *openAI {
	o := &openAI{openAIServer: s, router: router, bad: badSchemas{}}
	// Other servers copied the API when the output limit still had its old name.
	o.quirks.oldMaxTokens = !isHost(s.base, "openai.com")
	if isHost(s.base, "mistral.ai") {
		o.quirks.ids = mistralIDs
	}
	return o
}

// maxAdaptations limits how often a rejected request is changed and sent again. Strict servers name one unknown field
// at a time, and the Responses API has ten that are optional.
const maxAdaptations = 12

// Generate makes a call. If the server rejects an optional part of the request, Generate
// repeats the call without that part.
func (o *openAI) Generate(ctx context.Context, req Request, emit func(Delta)) (Response, error) {
	// Only a request with a schema and tools can fail silently, so only such calls wait for
	// inspect.
	if len(req.OutputSchema) > 0 && len(req.Tools) > 0 {
		o.inspected.Do(o.inspect)
	}
	q := o.knownQuirks(req.OutputSchema)
	before := q.sampling
	for try := 0; ; try++ {
		resp, refused, err := o.call(ctx, &req, q, emit)
		if refused == nil {
			resp.Window = q.window
			if err == nil {
				resp.Warnings = append(resp.Warnings, q.sampling.warnings(before, &req, q.effortFor(&req))...)
			}
			if err == nil && q.underV1 {
				o.foundV1()
			}
			if err == nil && q.effort != "" {
				resp.Model += withoutReasoning
				resp.Warnings = append(resp.Warnings, reasoningRefused)
			}
			return orMistake(o.model, &req, resp, err)
		}
		next, adapted := o.adapt(q, refused, &req)
		if !adapted || try == maxAdaptations {
			return orMistake(o.model, &req, resp, refused.failureFor(&req, o.name, o.secrets...))
		}
		q = next // the next attempt omits the rejected feature
	}
}

// Texts for a server that rejects tools together with reasoning. The model is then called
// without reasoning. Users must see that, because the answers are weaker.
const (
	withoutReasoning = " (without reasoning)" // added to the model's name, which users see
	reasoningRefused = "the server refuses reasoning together with tools, so the model was asked without reasoning; " +
		openAIVariable + "=responses may help"
)

// foundV1 remembers that the base URL lacks /v1: an answer came from there. A web page at the other path may be that of
// a login, which another time lets requests through.
func (o *openAI) foundV1() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.quirks.underV1 = true
}

// knownQuirks returns the known quirks of the server.
func (o *openAI) knownQuirks(schema json.RawMessage) quirks {
	o.mu.Lock()
	defer o.mu.Unlock()
	q := o.quirks
	q.noSchema = q.noSchema || o.bad[string(schema)]
	return q
}

// aboutForm returns false if no change of the request's form can help.
func (r *apiError) aboutForm() bool {
	switch r.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return false // the form of the request was valid
	}
	return !r.spent() && !r.says(meansMistake)
}

// maxTokensNames returns the names of the output limit. Gateways refuse it by the name that the next server knows.
func maxTokensNames() []string {
	return []string{"max_tokens", "max_completion_tokens", "max_output_tokens", "maxoutputtokens", "num_predict"}
}

// adapt returns quirks with which a rejected request may be accepted, and whether they differ
// from q. It remembers quirks of the server, but not those of a single request.
func (o *openAI) adapt(q quirks, r *apiError, req *Request) (quirks, bool) {
	if !r.aboutForm() {
		return q, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !q.noMaxTokens && q.outputRoom.adapt(r, req.MaxTokens, &o.quirks.most) {
		return q, true
	}
	if r.overfull(maxTokensNames()...) {
		return q, false // the runner must shorten the conversation
	}
	if arranged, ok := o.adaptMessages(q, r); ok {
		return arranged, true
	}
	if shaped, ok := q.shape.adapt(r, req); ok {
		q.shape, o.quirks.shape = shaped, shaped
		return q, true
	}
	if named, ok := o.adaptFields(q, r, req); ok {
		return named, true
	}
	next, ok := without(q, &o.quirks, o.features(q, r, req))
	if next.noSchema && !q.noSchema {
		o.bad.add(req.OutputSchema) // the server may accept other schemas
	}
	if next.oldMaxTokens != q.oldMaxTokens {
		o.quirks.oldMaxTokens = next.oldMaxTokens
	}
	return next, ok
}

// isUnknownPath reports whether the path does not exist on the server. An unknown model is
// another error.
func (r *apiError) isUnknownPath() bool {
	return r.status == http.StatusNotFound && r.code == "" && r.kind == "" && !r.mentions("model")
}

// adaptMaxTokens removes an output limit that is too high. Otherwise it switches between the
// two names of the limit.
func (q *quirks) adaptMaxTokens(r *apiError) {
	old := !r.mentions("use 'max_completion_tokens'", "use max_completion_tokens", "use `max_completion_tokens`")
	tooHigh := r.mentions("too large", "at most", "too high", "cannot be greater", "less than or equal")
	// The request already used the right name, so the limit itself was rejected.
	if old == q.oldMaxTokens || tooHigh {
		q.noMaxTokens = true
		return
	}
	q.oldMaxTokens = old
}

// endpoint returns the path of an endpoint. underV1 means that the base URL lacks /v1.
func endpoint(name string, underV1 bool) string {
	if underV1 {
		return "v1/" + name
	}
	return name
}

// call makes one request. refused is not nil if the server rejected the request before the
// answer began.
func (o *openAI) call(ctx context.Context, req *Request, q quirks, emit func(Delta)) (
	_ Response, refused *apiError, _ error,
) {
	resp, refused, err := o.post(ctx, endpoint("chat/completions", q.underV1), o.request(req, q))
	if resp == nil {
		return Response{}, refused, err
	}
	s := &chatStream{assembler: assembler{emit: emit}, name: o.name, router: o.router, used: usedCallIDs(req)}
	return o.receive(ctx, resp, req, s, o.failureFor(req))
}

// constraining matches the model lists of Ollama, vLLM and LM Studio, by the owner of the models. These
// servers force a model to follow a schema from its first token on, which prevents tool calls.
var constraining = regexp.MustCompile(`"owned_by"\s*:\s*"(library|vllm|` + ofLMStudio + `)"`)

// inspect detects a server that constrains its models. Such a server accepts a request with
// both a schema and tools, but answers as if there were no tools.
func (o *openAI) inspect() {
	if isHost(o.base, "openai.com") {
		return
	}
	// This runs once for all calls, so the end of one call must not cancel it.
	ctx, cancel := context.WithTimeout(context.Background(), inspectTime)
	defer cancel()
	resp, err := o.send(ctx, http.MethodGet, "models", nil)
	if err != nil {
		return // the call itself will report the error
	}
	defer resp.Body.Close()
	list, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a partial list is sufficient
	o.mu.Lock()
	defer o.mu.Unlock()
	o.quirks.schemaAlone = constraining.Match(list)
}

// inspectTime is the timeout of inspect, which delays the first call with a schema and tools.
const inspectTime = 3 * time.Second

func (s *chatStream) readAnswer(resp *http.Response) error {
	return readDocument(resp, s.read, func(raw []byte) error {
		// A single document is complete and has no end mark.
		s.done = true
		return s.event(raw)
	})
}

// response returns the Response after the stream has been read to its end.
func (s *chatStream) response(req *Request, model string) (Response, error) {
	// Only an end mark or a finish reason shows that the answer is complete.
	if !s.done && s.finish == "" {
		return Response{}, &Error{Code: codeStream, Message: "the answer of the model broke off", Retryable: true}
	}
	resp := Response{Model: cmp.Or(s.model, model), Finish: s.reason(),
		Refusal: tidyMessage(s.refusal.String(), nil)}
	if resp.Finish == finishFailed {
		return Response{}, &Error{Code: codeStream, Retryable: true,
			Message: strings.TrimSuffix("the model failed in the middle of its answer: "+tidyMessage(s.native, nil), ": ")}
	}
	parts, err := s.assembler.finish(resp.Finish == FinishLength)
	if err != nil {
		return Response{}, &Error{Code: codeBadResponse, Message: err.Error()}
	}
	s.attachMeta(parts)
	resp.Parts = parts
	if resp.Finish == FinishContentFilter && len(parts) == 0 {
		return Response{}, filteredError("")
	}
	// A cost that the server reports is used even if the tokens are estimated.
	if resp.Usage = s.counted().Usage; resp.Usage.InputTokens+resp.Usage.OutputTokens == 0 {
		estimated := EstimateUsage(req, parts)
		estimated.Cost, estimated.Billed = resp.Usage.Cost, resp.Usage.Billed
		resp.Usage = estimated
	}
	return resp, nil
}

// finishFailed is the finish reason of gateways that only report that the model failed during
// its answer.
const finishFailed FinishReason = "failed"

// finishReason converts a server's finish reason in lower case. Servers use many different
// words.
func finishReason(word string) FinishReason {
	switch word {
	case "", "stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete", "completed", "done",
		"tool_calls", "function_call", "tool_use": // these three without a call
		return FinishStop
	case "length", "max_tokens", "max_output_tokens", "model_length":
		return FinishLength
	case "content_filter", "content-filter", "safety", "recitation", "prohibited_content", "blocklist", "spii":
		return FinishContentFilter
	case "refusal":
		return FinishRefused
	case "error", "abort", "insufficient_system_resource":
		return finishFailed
	}
	return FinishOther
}

// reason returns the finish reason. A tool call overrides the server's reason, unless the
// answer was cut off or withheld.
func (s *chatStream) reason() FinishReason {
	word, _, _ := strings.Cut(strings.ToLower(s.finish), ":") // Google sends content_filter: SAFETY
	reason := finishReason(word)
	switch {
	case reason == FinishLength, reason == FinishContentFilter, reason == finishFailed:
		return reason
	case s.refusal.Len() > 0 || reason == FinishRefused:
		return FinishRefused
	case len(s.calls) > 0:
		return FinishToolCalls
	}
	return reason
}

// counted returns a Response with only the tokens that the server has counted.
func (s *chatStream) counted() Response {
	if s.usage == nil {
		return Response{}
	}
	var u Usage
	// Zeros mean that the server does not count tokens. It may still report a cost.
	if s.usage.PromptTokens > 0 || s.usage.CompletionTokens > 0 {
		u = s.usage.usage()
	}
	if s.router {
		s.usage.bill(&u)
	}
	return Response{Usage: u}
}

// attachMeta stores in the parts the data that the provider needs in later requests.
func (s *chatStream) attachMeta(parts []Part) {
	metas := make([]chatMeta, len(parts))
	for i := range parts {
		if parts[i].Type == PartReasoning {
			metas[i].Field = s.field
		}
	}
	for _, c := range s.calls {
		metas[c.part].Extra = c.extra
	}
	// The details belong to the whole message, but only a part has a Meta: use the last part.
	if n := len(parts); n > 0 && len(s.details) > 0 {
		metas[n-1].Details, _ = json.Marshal(s.details) // the values were parsed from JSON
	}
	for i, m := range metas {
		if m.Field != "" || len(m.Extra) > 0 || len(m.Details) > 0 {
			parts[i].Meta = sealMeta(s.name, m)
		}
	}
}
