package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"
)

const (
	openAIBaseURL = "https://api.openai.com/v1"
	openAIModel   = "gpt-6-sol" // asked for where the user names none
)

// An openAI is a model behind OpenAI's chat completions API, which many servers
// speak, each in its own dialect. What one does not know is found out by its
// refusal and left out from then on.
type openAI struct {
	name     string // with the provider
	model    string
	base     *url.URL
	header   http.Header
	secrets  []string // never shown
	client   *http.Client
	patience patience

	mu     sync.Mutex
	quirks quirks          // what was learned of the server
	bad    map[string]bool // schemas that it refused

	inspected sync.Once
}

// quirks are what a server does not know.
type quirks struct {
	oldMaxTokens    bool // the limit of tokens is called max_tokens
	noMaxTokens     bool
	noStreamOptions bool
	noSchema        bool
	noTools         bool
	noImages        bool
	noPDFs          bool
	schemaAlone     bool   // with a schema, the model calls no tools
	underV1         bool   // the path lacks /v1
	effort          string // reasoning_effort, "" to leave it out
}

// openOpenAI opens a model of OpenAI or of a server that speaks like it. The
// key goes to the base URL of the same provider's variables and nowhere else.
func openOpenAI(model string, cfg Config, p patience) (Model, error) {
	env := cfg.env
	if model == "" {
		model = firstOf(env("OPENAI_MODEL"), openAIModel)
	}
	key, address := env("OPENAI_API_KEY"), env("OPENAI_BASE_URL")
	if key == "" && address == "" {
		return nil, errors.New("model openai:" + model + " needs OPENAI_API_KEY, or OPENAI_BASE_URL of a server without keys")
	}
	base, err := baseURL("OPENAI_BASE_URL", firstOf(address, openAIBaseURL))
	if err != nil {
		return nil, err
	}
	if err := checkKey("OPENAI_API_KEY", key, base); err != nil {
		return nil, err
	}
	o := &openAI{name: "openai:" + model, model: model, base: base, secrets: []string{key}, client: newHTTPClient(p), patience: p,
		header: http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}}, bad: map[string]bool{}}
	// Others copied the API when the limit of tokens still had its old name.
	o.quirks.oldMaxTokens = !isHost(base, "openai.com")
	for name, value := range map[string]string{
		"Authorization":       bearer(key),
		"OpenAI-Organization": firstOf(env("OPENAI_ORG_ID"), env("OPENAI_ORGANIZATION")),
		"OpenAI-Project":      firstOf(env("OPENAI_PROJECT"), env("OPENAI_PROJECT_ID")),
	} {
		if value != "" {
			o.header.Set(name, value)
		}
	}
	return o, nil
}

// Name is "openai:" and the model's name.
func (o *openAI) Name() string { return o.name }

// maxAdaptations bounds how often a call is put differently.
const maxAdaptations = 6

// Generate makes a call. Where the server refuses a part of the request that it
// can do without, the call is made again without it.
func (o *openAI) Generate(ctx context.Context, req Request, emit func(Delta)) (Response, error) {
	if len(req.OutputSchema) > 0 && len(req.Tools) > 0 {
		o.inspected.Do(o.inspect)
	}
	q := o.learned(req.OutputSchema)
	for try := 0; ; try++ {
		resp, refused, err := o.call(ctx, &req, q, emit)
		if refused == nil {
			return resp, err
		}
		next, adapted := o.adapt(q, refused, &req)
		if !adapted || try == maxAdaptations {
			return Response{}, refused.failure(o.secrets...)
		}
		q = next
	}
}

// learned is what is known of the server by now.
func (o *openAI) learned(schema json.RawMessage) quirks {
	o.mu.Lock()
	defer o.mu.Unlock()
	q := o.quirks
	q.noSchema = q.noSchema || o.bad[string(schema)]
	return q
}

// adapt gives the quirks with which a refused request may pass, and keeps those
// that are the server's and not the request's.
func (o *openAI) adapt(q quirks, r *refusal, req *Request) (quirks, bool) {
	switch {
	case r.status == http.StatusUnauthorized, r.status == http.StatusForbidden, r.status == http.StatusTooManyRequests,
		r.tooLong() && !r.mentions("max_tokens", "max_completion_tokens"):
		return q, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	was := q
	switch {
	case r.status == http.StatusNotFound && o.base.Path == "" && r.code == "" && r.kind == "" && !r.mentions("model"):
		q.underV1, o.quirks.underV1 = true, true
	case r.mentions("reasoning_effort") && len(req.Tools) > 0:
		q.effort, o.quirks.effort = "none", "none"
	case r.mentions("max_tokens", "max_completion_tokens") && req.MaxTokens > 0:
		q.adaptMaxTokens(r)
		o.quirks.oldMaxTokens = q.oldMaxTokens
	case r.mentions("stream_options", "include_usage"):
		q.noStreamOptions, o.quirks.noStreamOptions = true, true
	case !q.noSchema && len(req.OutputSchema) > 0 && r.mentions("response_format", "json mode", "schema", "structured output", "guided", "grammar"):
		q.noSchema = true
		if len(o.bad) < maxBadSchemas {
			o.bad[string(req.OutputSchema)] = true
		}
	case r.mentions("image", "vision", "multimodal", "mmproj"):
		q.noImages, o.quirks.noImages = true, true
	case r.mentions("'file'", "\"file\"", "pdf", "content type"):
		q.noPDFs, o.quirks.noPDFs = true, true
	case r.mentions("does not support tools", "tools is not supported", "tool calling is not supported", "support tool use", "tool choice requires", "--jinja"):
		q.noTools, o.quirks.noTools = true, true
	}
	return q, q != was
}

// adaptMaxTokens leaves out a limit that is too high, and else calls it by its
// other name.
func (q *quirks) adaptMaxTokens(r *refusal) {
	old := !r.mentions("use 'max_completion_tokens'", "use max_completion_tokens", "use `max_completion_tokens`")
	if old == q.oldMaxTokens || r.mentions("too large", "at most", "too high", "cannot be greater", "less than or equal") {
		q.noMaxTokens = true
		return
	}
	q.oldMaxTokens = old
}

// call makes one request. refused is set when the server refused it before it
// answered anything.
func (o *openAI) call(ctx context.Context, req *Request, q quirks, emit func(Delta)) (_ Response, refused *refusal, _ error) {
	resp, err := o.post(ctx, o.request(req, q), q)
	if err != nil {
		return Response{}, nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		r := readRefusal(resp)
		finishBody(resp.Body)
		if ctx.Err() != nil {
			return Response{}, nil, ctx.Err()
		}
		return Response{}, r, nil
	}
	s := &chatStream{assembler: assembler{emit: emit}, name: o.name, used: usedCallIDs(req)}
	if err := s.readAnswer(resp); err != nil {
		return Response{}, nil, o.broken(ctx, err)
	}
	finishBody(resp.Body)
	if ctx.Err() != nil {
		return Response{}, nil, ctx.Err()
	}
	answer, err := s.response(req, o.model)
	return answer, nil, err
}

// constraining are the engines, by the owner that they give to their models,
// that hold a model to a schema from its first token on, so that it can call no
// tool: Ollama and vLLM.
var constraining = regexp.MustCompile(`"owned_by"\s*:\s*"(library|vllm)"`)

// inspect finds out whether the server is such an engine. They do not refuse a
// request with both: they answer as if there were no tools.
func (o *openAI) inspect() {
	if isHost(o.base, "openai.com") {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), inspectTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.base.JoinPath("models").String(), nil)
	if err != nil {
		return
	}
	req.Header = o.header.Clone()
	resp, err := o.client.Do(req)
	if err != nil {
		return // the call itself will say what is wrong
	}
	defer resp.Body.Close()
	list, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what came is enough
	o.mu.Lock()
	defer o.mu.Unlock()
	o.quirks.schemaAlone = constraining.Match(list)
}

// inspectTime bounds how long the first call with a schema and tools waits to
// know the server.
const inspectTime = 3 * time.Second

// post sends a request.
func (o *openAI) post(ctx context.Context, body chatRequest, q quirks) (*http.Response, error) {
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		return nil, &Error{Code: "request", Message: "put the request into JSON: " + err.Error()}
	}
	address := o.base.JoinPath("chat/completions")
	if q.underV1 {
		address = o.base.JoinPath("v1/chat/completions")
	}
	httpReq, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), &raw)
	if err != nil {
		return nil, &Error{Code: "request", Message: "make the request: " + withoutAddress(err)}
	}
	httpReq.Header = o.header.Clone()
	resp, err := o.client.Do(httpReq)
	if err != nil {
		return nil, transportFailure(ctx, err, o.patience, false)
	}
	return resp, nil
}

// broken says why an answer was not read to its end.
func (o *openAI) broken(ctx context.Context, err error) error {
	var fault *streamFault
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.As(err, &fault) {
		return fault.refusal.failure(o.secrets...)
	}
	if errors.Is(err, errNoChunk) || errors.Is(err, errTooMuch) {
		return &Error{Code: codeBadResponse, Message: err.Error()}
	}
	return transportFailure(ctx, err, o.patience, true)
}

// readAnswer reads an answer, be it a stream or, from servers that do not
// stream, the whole at once.
func (s *chatStream) readAnswer(resp *http.Response) error {
	kind := resp.Header.Get("Content-Type")
	if strings.HasPrefix(kind, "text/html") {
		return &streamFault{&refusal{status: http.StatusNotFound, message: "the model server answered with a web page; is its base URL right?"}}
	}
	if !strings.HasPrefix(kind, "application/json") {
		return s.read(resp.Body)
	}
	raw, err := io.ReadAll(resp.Body) // the body is bounded
	if err != nil {
		return err
	}
	s.done = true
	return s.event(bytes.TrimSpace(raw))
}

// response makes the Response of a stream that has been read.
func (s *chatStream) response(req *Request, model string) (Response, error) {
	if !s.done && s.finish == "" {
		return Response{}, &Error{Code: codeStream, Message: "the answer of the model broke off", Retryable: true}
	}
	if s.finish == "error" { // some gateways say no more than that
		return Response{}, &Error{Code: codeStream, Message: "the model failed in the middle of its answer", Retryable: true}
	}
	calls := len(s.calls) > 0
	parts, err := s.assembler.finish()
	if err != nil {
		return Response{}, &Error{Code: codeBadResponse, Message: err.Error()}
	}
	s.seal(parts)
	resp := Response{Model: firstOf(s.model, model), Parts: parts, Finish: FinishStop}
	switch {
	case s.finish == "length" || s.finish == "max_tokens":
		resp.Finish = FinishLength
	case s.finish == "content_filter" || s.refused:
		resp.Finish = FinishContentFilter
	case calls:
		resp.Finish = FinishToolCalls // whatever the server says
	}
	if resp.Finish == FinishContentFilter && len(parts) == 0 {
		return Response{}, filtered("")
	}
	resp.Usage = countTokens(req, parts)
	if s.usage != nil && (s.usage.PromptTokens > 0 || s.usage.CompletionTokens > 0) {
		resp.Usage = s.usage.usage()
	}
	return resp, nil
}

// seal keeps with the parts what the provider wants back.
func (s *chatStream) seal(parts []Part) {
	metas := make([]chatMeta, len(parts))
	for i := range parts {
		if parts[i].Type == PartReasoning {
			metas[i].Field = s.field
		}
	}
	for _, c := range s.calls {
		metas[c.part].Extra = c.extra
	}
	if n := len(parts); n > 0 && len(s.details) > 0 {
		metas[n-1].Details, _ = json.Marshal(s.details) // values that came from JSON
	}
	for i, m := range metas {
		if m.Field != "" || len(m.Extra) > 0 || len(m.Details) > 0 {
			parts[i].Meta = sealMeta(s.name, m)
		}
	}
}

// baseURL reads the address of a server.
func baseURL(variable, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s is not an http or https address", variable) // its text may hold a password
	}
	u.Path = strings.TrimRight(u.Path, "/")
	return u, nil
}

// isHost says whether an address is of a domain.
func isHost(u *url.URL, domain string) bool {
	host := strings.ToLower(u.Hostname())
	return host == domain || strings.HasSuffix(host, "."+domain)
}

// checkKey refuses a key that cannot be sent, or that would go to a provider
// who has not given it out.
func checkKey(variable, key string, base *url.URL) error {
	for _, c := range []byte(key) {
		if c <= ' ' || c > '~' {
			return fmt.Errorf("%s holds a character that no key has", variable)
		}
	}
	ofAnthropic := strings.HasPrefix(key, "sk-ant-")
	if ofAnthropic && isHost(base, "openai.com") || !ofAnthropic && strings.HasPrefix(key, "sk-") && isHost(base, "anthropic.com") {
		return fmt.Errorf("%s holds a key of another provider than %s, which would learn it", variable, base.Hostname())
	}
	return nil
}

// bearer is the header of a key.
func bearer(key string) string {
	if key == "" {
		return ""
	}
	return "Bearer " + key
}

// firstOf is the first text that is not empty.
func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// hidden are the secrets that a recording must not hold.
func (o *openAI) hidden() []string { return o.secrets }
