package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	ollamaPort = "11434"
	ollamaLoad = 30 * time.Minute // until an answer begins: a large model on a small machine loads and reads slowly
)

// An ollama is a model with Ollama's own API. Ollama also offers OpenAI's API, but that cannot
// set the context window, and it silently cuts longer prompts.
type ollama struct {
	remote
	length    int64  // context window that the operator has set, in tokens, 0 for the default
	windowBy  string // name of the setting for length
	keepAlive any    // how long the server keeps the model loaded, nil for the server's default

	mu       sync.Mutex // guards the fields below
	shown    *ollamaModel
	shownAt  time.Time
	measured time.Time  // time of the last request for the loaded models
	loaded   int64      // window of the loaded model, 0 if unknown
	bad      badSchemas // rejected by the server
	quirks   ollamaQuirks

	mostWindowAt time.Time // time of the refusal that named quirks.mostWindow

	warnedEffort bool // the warning about an effort was already returned
}

// openOllama opens a model of an Ollama server. OLLAMA_HOST has one of the forms that Ollama
// itself accepts.
func openOllama(model string, cfg Config, p timeouts) (Model, error) {
	env := cfg.env
	if model = cmp.Or(model, env("OLLAMA_MODEL")); model == "" {
		return nil, errors.New("name the model, such as ollama:qwen3:8b")
	}
	base, err := ollamaURL(cfg.called("OLLAMA_HOST"), env("OLLAMA_HOST"))
	if err != nil {
		return nil, err
	}
	// Ollama on this machine needs no key. A proxy in front of it, or ollama.com, may need one.
	key := env("OLLAMA_API_KEY")
	if err := checkKey(cfg.called("OLLAMA_API_KEY"), key, base); err != nil {
		return nil, err
	}
	o := &ollama{bad: badSchemas{}, windowBy: cfg.called("OLLAMA_CONTEXT_LENGTH"),
		remote: remote{name: cfg.named("ollama", model), model: model, base: base, secrets: []string{key},
			client: newHTTPClient(p, cfg.provider), patience: p,
			header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/x-ndjson"}}}}
	if key != "" {
		o.header.Set("Authorization", bearer(key))
	}
	// Report a wrong value now: otherwise it would cause a strange window later.
	if text := env("OLLAMA_CONTEXT_LENGTH"); text != "" {
		if o.length, err = strconv.ParseInt(text, 10, 32); err != nil || o.length < 0 {
			return nil, errors.New(cfg.called("OLLAMA_CONTEXT_LENGTH") + " is not a number of tokens")
		}
	}
	if o.keepAlive, err = keepAlive(env("OLLAMA_KEEP_ALIVE")); err != nil {
		return nil, err
	}
	return o, nil
}

// ollamaURL returns the address of the server in OLLAMA_HOST: a host, a host and a port, or a
// URL. The default is the server on this machine. name describes the variable for errors.
func ollamaURL(name, text string) (*url.URL, error) {
	// Ollama's own programs also strip quotation marks from the variable.
	text = cmp.Or(strings.Trim(text, `"' `), "127.0.0.1")
	scheme, rest, named := strings.Cut(text, "://")
	// Like in Ollama's own programs, each scheme has a default port.
	port := map[string]string{"http": "80", "https": "443"}[scheme]
	if !named {
		scheme, rest, port = "http", text, ollamaPort
	}
	if ip, err := netip.ParseAddr(strings.Trim(rest, "[]")); err == nil && ip.Is6() {
		rest = "[" + ip.String() + "]" // without brackets, its last group would be parsed as a port
	}
	u, err := baseURL(name, scheme+"://"+strings.TrimRight(rest, "/"))
	if err != nil {
		return nil, errors.New(name + " is not a host, host:port, or an http or https address")
	}
	host := u.Hostname()
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		host = "127.0.0.1" // a server can listen on this address, but clients cannot connect to it
	}
	u.Host = net.JoinHostPort(cmp.Or(host, "127.0.0.1"), cmp.Or(u.Port(), port))
	return u, nil
}

// keepAlive returns Ollama's JSON for a duration: a number of seconds, or a text such as
// "30m".
func keepAlive(text string) (any, error) {
	if text == "" {
		return nil, nil
	}
	if seconds, err := strconv.Atoi(text); err == nil {
		return seconds, nil
	}
	if _, err := time.ParseDuration(text); err != nil {
		return nil, errors.New("OLLAMA_KEEP_ALIVE is not a duration, such as 30m, or a number of seconds")
	}
	return text, nil
}

// Generate makes a call. If the server rejects an optional part of the request, Generate
// repeats the call without that part.
func (o *ollama) Generate(ctx context.Context, req Request, emit func(Delta)) (Response, error) {
	m := o.known(ctx)
	if err := ctx.Err(); err != nil {
		return Response{}, err
	}
	if !m.tools && len(req.Tools) > 0 {
		return Response{}, toolsRefused(o.name, "Ollama lists no capability \"tools\" for it")
	}
	// Servers before 0.12.6 silently cut such a prompt. In text, few tokens have more than five
	// bytes, so this request certainly does not fit.
	if least := EstimateUsage(&req, nil).InputTokens * 4 / 5; m.window > 0 && least > m.window {
		return Response{}, o.tooLong(least, m.window)
	}
	before := m.quirks.sampling
	for try := 0; ; try++ {
		resp, refused, err := o.call(ctx, &req, o.request(&req, m), emit)
		if refused == nil {
			resp.Window = m.quirks.window
			if err == nil {
				// Only after an answer is the model certainly loaded.
				o.measure(ctx)
				resp.Warnings = append(resp.Warnings, o.warnings(&req, m)...)
				resp.Warnings = append(resp.Warnings, m.quirks.sampling.warnings(before, &req, "")...)
			}
			return orMistake(o.model, &req, resp, err)
		}
		next, adapted := o.adapt(m, refused, &req)
		if try == maxAdaptations || !adapted {
			return orMistake(o.model, &req, resp, o.refusal(&req, refused, m.window))
		}
		m.adjust(next)
	}
}

// warnings returns a warning for the operator about an effort that does not count, only once.
func (o *ollama) warnings(req *Request, m ollamaModel) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if m.think != nil || req.Effort == "" || req.Effort == "none" || o.warnedEffort {
		return nil
	}
	o.warnedEffort = true
	return []string{"the model cannot think, so it was asked without the effort of the worker"}
}

// call makes one request. refused is not nil if the server rejected the request before the
// answer began.
func (o *ollama) call(ctx context.Context, req *Request, body ollamaRequest, emit func(Delta)) (
	_ Response, refused *apiError, _ error,
) {
	defer func() {
		if refused != nil {
			refused.unwrap()
		}
	}()
	resp, refused, err := o.post(ctx, "api/chat", body)
	if resp == nil {
		return Response{}, refused, err
	}
	s := &ollamaStream{assembler: assembler{emit: emit}, used: usedCallIDs(req), name: o.name}
	return o.receive(ctx, resp, req, s, func(r *apiError) *Error {
		r.unwrap()
		return o.refusal(req, r, body.Options.NumCtx)
	})
}

// refusal converts a server's error. If the operator can fix the problem, it adds the solution.
func (o *ollama) refusal(req *Request, r *apiError, window int64) *Error {
	e := r.failureFor(req, o.name, o.secrets...)
	switch {
	case e.ToolsRefused(), r.page != nil:
	case e.TooLong():
		long := o.tooLong(r.promptTokens(), cmp.Or(e.Window, window))
		e.Message, e.Window = long.Message+" ("+e.Message+")", long.Window
	// A 404 means that the model is missing, or that the address is not an Ollama server.
	case r.status == http.StatusNotFound && r.mentions("model"):
		e.Message += ": run `ollama pull " + o.model + "` where the Ollama server runs"
	case r.status == http.StatusNotFound:
		e.Message += ": the server at this address does not answer as Ollama does; is the address right?"
	case r.mentions("more system memory", "out of memory", "cudamalloc", "insufficient memory"):
		e.Retryable = false // a retry does not help: the machine's memory stays the same
		e.Message += fmt.Sprintf(" (with a context window of %s tokens; %s sets a smaller one)",
			FormatTokens(window), o.windowBy)
	}
	return e
}

// tooLong returns the error for a prompt that does not fit into the window. tokens is 0 if
// unknown.
func (o *ollama) tooLong(tokens, window int64) *Error {
	size := "the prompt"
	if tokens > 0 {
		size = "the prompt of about " + FormatTokens(tokens) + " tokens"
	}
	return &Error{Code: codeContextLength, Window: window, Message: fmt.Sprintf(
		"%s does not fit into the context window of %s, which has %s tokens; "+
			"set %s to more, or choose a model with a larger window",
		size, o.name, FormatTokens(window), o.windowBy)}
}
