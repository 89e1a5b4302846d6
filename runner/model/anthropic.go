package model

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

const (
	anthropicBaseURL = "https://api.anthropic.com"
	anthropicModel   = "claude-sonnet-5-5" // asked for where the user names none
	claudeMaxTokens  = 32_000              // of an answer, for models that the price table does not know
)

// A claude is a model behind Anthropic's messages API.
type claude struct {
	name     string // with the provider
	model    string
	service  anthropic.MessageService
	secrets  []string // never shown
	client   *http.Client
	patience patience

	mu     sync.Mutex
	quirks claudeQuirks // what was learned of the model
	bad    map[string]bool
}

// claudeQuirks are what a model does not do.
type claudeQuirks struct {
	maxTokens  int64 // of an answer
	noThinking bool
	noThoughts bool // earlier thinking is not taken back
	noSchema   bool
	noPDFs     bool
}

// beforeAdaptive are the models that cannot decide themselves how much to think.
var beforeAdaptive = regexp.MustCompile(`^claude-([23]|instant)|^claude-(opus|sonnet|haiku)-4(-[0-5])?(-20\d{6})?(-latest)?$`)

// openAnthropic opens a model of Anthropic or of a server that speaks like it.
// The key goes to the base URL of the same provider's variables and nowhere
// else: the SDK does not read the environment.
func openAnthropic(model string, cfg Config, p patience) (Model, error) {
	env := cfg.env
	if model == "" {
		model = firstOf(env("ANTHROPIC_MODEL"), anthropicModel)
	}
	key, token, address := env("ANTHROPIC_API_KEY"), env("ANTHROPIC_AUTH_TOKEN"), env("ANTHROPIC_BASE_URL")
	if key == "" && token == "" && address == "" {
		return nil, errors.New("model anthropic:" + model + " needs ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN")
	}
	base, err := baseURL("ANTHROPIC_BASE_URL", firstOf(address, anthropicBaseURL))
	if err != nil {
		return nil, err
	}
	base.Path = strings.TrimSuffix(base.Path, "/v1") // the SDK adds it
	for variable, secret := range map[string]string{"ANTHROPIC_API_KEY": key, "ANTHROPIC_AUTH_TOKEN": token} {
		if err := checkKey(variable, secret, base); err != nil {
			return nil, err
		}
	}
	client := newHTTPClient(p)
	// One retry policy is enough, and it is not here.
	opts := []option.RequestOption{option.WithBaseURL(base.String()), option.WithHTTPClient(client),
		option.WithMaxRetries(0), option.WithoutOpenTelemetry()}
	if key != "" {
		opts = append(opts, option.WithAPIKey(key))
	} else if token != "" {
		opts = append(opts, option.WithAuthToken(token))
	}
	c := &claude{name: "anthropic:" + model, model: model, service: anthropic.NewMessageService(opts...),
		secrets: []string{key, token}, client: client, patience: p, bad: map[string]bool{}}
	c.quirks = claudeQuirks{maxTokens: claudeMaxTokens, noThinking: beforeAdaptive.MatchString(model)}
	prices, err := LoadPrices("")
	if err != nil {
		return nil, err
	}
	if most := prices.Lookup(c.name).MaxOutput; most > 0 {
		c.quirks.maxTokens = most
	}
	return c, nil
}

// Name is "anthropic:" and the model's name.
func (c *claude) Name() string { return c.name }

// maxPauses bounds how often a model that pauses its turn is asked to go on.
const maxPauses = 5

// Generate makes a call. Where the provider refuses a part of the request that
// it can do without, the call is made again without it; a model that pauses is
// asked to go on.
func (c *claude) Generate(ctx context.Context, req Request, emit func(Delta)) (Response, error) {
	q := c.learned(&req)
	s := &claudeStream{assembler: assembler{emit: emit}, name: c.name, used: usedCallIDs(&req), metas: map[int]claudeMeta{}}
	var total claudeUsage
	for try, pauses := 0, 0; ; {
		asked := req
		if len(s.parts) > 0 {
			asked.Messages = append(append([]Message(nil), req.Messages...), s.soFar())
		}
		s.blocks, s.stop, s.done, s.usage = map[int64]*claudeBlock{}, "", false, claudeUsage{}
		refused, err := c.call(ctx, &asked, q, s)
		if err != nil {
			return Response{}, err
		}
		if refused != nil {
			next, adapted := c.adapt(q, refused, &req)
			if try++; !adapted || try > maxAdaptations {
				return Response{}, refused.failure(c.secrets...)
			}
			q = next
			continue
		}
		total.add(s.usage)
		if pauses++; s.stop != anthropic.StopReasonPauseTurn || pauses > maxPauses {
			s.usage = total
			return s.response(&req, c.model)
		}
	}
}

// learned is what is known of the model by now, with the request's own limit.
func (c *claude) learned(req *Request) claudeQuirks {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.quirks
	if req.MaxTokens > 0 {
		q.maxTokens = min(q.maxTokens, int64(req.MaxTokens))
	}
	q.noSchema = c.bad[string(req.OutputSchema)]
	return q
}

// How the provider tells its limits.
var (
	mostOutput = regexp.MustCompile(`max_tokens: \d+ > (\d+)`)
	mostBoth   = regexp.MustCompile(`exceed context limit: (\d+) \+ \d+ > (\d+)`)
)

// adapt gives the quirks with which a refused request may pass, and keeps those
// that are the model's and not the request's.
func (c *claude) adapt(q claudeQuirks, r *refusal, req *Request) (claudeQuirks, bool) {
	if r.status != http.StatusBadRequest && r.status != http.StatusUnprocessableEntity {
		return q, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	was := q
	lasting := r.mentions("not support", "unsupported", "not available", "not permitted", "unknown")
	if m := mostOutput.FindStringSubmatch(r.message); m != nil {
		q.maxTokens, _ = strconv.ParseInt(m[1], 10, 64)
		c.quirks.maxTokens = q.maxTokens
	} else if m := mostBoth.FindStringSubmatch(r.message); m != nil {
		input, _ := strconv.ParseInt(m[1], 10, 64)
		window, _ := strconv.ParseInt(m[2], 10, 64)
		if window-input >= 1024 {
			q.maxTokens = window - input
		}
	} else if len(req.OutputSchema) > 0 && !q.noSchema && r.mentions("output_config", "output_format", "schema", "structured output") {
		q.noSchema = true
		if len(c.bad) < maxBadSchemas {
			c.bad[string(req.OutputSchema)] = true
		}
	} else if r.mentions("signature", "`thinking` blocks", "thinking blocks", "redacted_thinking") && !q.noThoughts {
		q.noThoughts = true
	} else if r.mentions("thinking") {
		q.noThinking = true
		c.quirks.noThinking = c.quirks.noThinking || lasting
	} else if r.mentions("document", "pdf") {
		q.noPDFs = true
	}
	return q, q != was && q.maxTokens > 0
}

// call makes one request and reads its answer into s. refused is set when the
// provider refused it before it answered anything.
func (c *claude) call(ctx context.Context, req *Request, q claudeQuirks, s *claudeStream) (refused *refusal, _ error) {
	var resp *http.Response
	stream := c.service.NewStreaming(ctx, c.params(req, q), option.WithResponseInto(&resp))
	defer func() { _ = stream.Close() }() // only read
	for stream.Next() {
		event := stream.Current()
		if err := s.event(&event); err != nil {
			return nil, &Error{Code: codeBadResponse, Message: err.Error()}
		}
		if s.done {
			break
		}
	}
	if err := stream.Err(); err != nil {
		return c.failed(ctx, err, resp != nil && resp.StatusCode == http.StatusOK)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if resp != nil && resp.StatusCode != http.StatusOK {
		r := &refusal{status: resp.StatusCode}
		r.readBody(resp.Header, nil)
		return r, nil
	}
	if resp != nil && looksLikePage(resp.Header, nil) {
		return &refusal{status: http.StatusNotFound, message: "the model server answered with a web page; is its base URL right?"}, nil
	}
	if !s.done {
		return nil, &Error{Code: codeStream, Message: "the answer of the model broke off", Retryable: true}
	}
	finishBody(resp.Body)
	return nil, ctx.Err()
}

// streamStatus is the status that an error within a stream amounts to.
var streamStatus = map[string]int{
	"overloaded_error": 529, "rate_limit_error": 429, "api_error": 500, "timeout_error": 504, "invalid_request_error": 400,
	"authentication_error": 401, "permission_error": 403, "not_found_error": 404, "request_too_large": 413, "billing_error": 402,
}

// failed sorts an error of the SDK: a refusal of the request, or anything else.
func (c *claude) failed(ctx context.Context, err error, streaming bool) (*refusal, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var api *anthropic.Error
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &api):
	case errors.As(err, &syntax):
		return nil, &Error{Code: codeBadResponse, Message: "the model server sent an event that is not JSON"}
	default:
		return nil, transportFailure(ctx, err, c.patience, streaming)
	}
	r := &refusal{status: api.StatusCode}
	r.readBody(http.Header{}, []byte(api.RawJSON()))
	if api.Response != nil {
		r.wait = retryAfter(api.Response.Header, time.Now())
	}
	if !streaming {
		return r, nil
	}
	if r.status = streamStatus[r.kind]; r.status == 0 {
		r.status = 500
	}
	return nil, r.failure(c.secrets...)
}

func (u *claudeUsage) add(v claudeUsage) {
	u.input, u.read, u.write = u.input+v.input, u.read+v.read, u.write+v.write
	u.output, u.thinking = u.output+v.output, u.thinking+v.thinking
}

// soFar is what a model that paused has said, for it to go on from.
func (s *claudeStream) soFar() Message {
	m := Message{Role: RoleAssistant}
	for i, p := range s.parts {
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

// response makes the Response of a stream that has been read.
func (s *claudeStream) response(req *Request, model string) (Response, error) {
	parts, err := s.finish()
	if err != nil {
		return Response{}, &Error{Code: codeBadResponse, Message: err.Error()}
	}
	calls := s.has(PartToolCall)
	for i := range parts {
		parts[i].Meta = s.meta(i)
	}
	resp := Response{Model: firstOf(s.model, model), Parts: parts, Finish: FinishStop}
	switch s.stop {
	case anthropic.StopReasonMaxTokens, anthropic.StopReasonModelContextWindowExceeded:
		resp.Finish = FinishLength
	case anthropic.StopReasonRefusal:
		if resp.Finish = FinishContentFilter; len(parts) == 0 {
			return Response{}, filtered(s.why)
		}
	default:
		if calls {
			resp.Finish = FinishToolCalls
		}
	}
	u := s.usage
	resp.Usage = Usage{InputTokens: u.input + u.read + u.write, OutputTokens: u.output, CacheReadTokens: u.read,
		CacheWriteTokens: u.write, ReasoningTokens: min(u.thinking, u.output)}
	if resp.Usage.InputTokens == 0 && u.output == 0 {
		resp.Usage = countTokens(req, parts)
	}
	return resp, nil
}

// hidden are the secrets that a recording must not hold.
func (c *claude) hidden() []string { return c.secrets }
