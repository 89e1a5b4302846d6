package model

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Codes of *Errors that are not a status.
const (
	codeConnection    = "connection"     // no connection, or it broke before the answer began
	codeTimeout       = "timeout"        // the provider took too long
	codeStream        = "stream"         // the answer broke off in the middle
	codeBadResponse   = "bad_response"   // the answer is not what a provider sends
	codeContextLength = "context_length" // the conversation is longer than the model takes
	codeContentFilter = "content_filter" // nothing was left of the answer
	codeReplayMiss    = "replay_miss"    // no recording answers the request
)

// maxMessage bounds the message of a provider, in bytes.
const maxMessage = 1000

// filtered is the error for an answer of which a filter left nothing: an empty
// answer would look as if the model had nothing to say.
func filtered(why string) *Error {
	return &Error{Code: codeContentFilter, Message: firstOf(why, "the provider's filter withheld the answer")}
}

// A refusal is a provider's answer that is an error.
type refusal struct {
	status  int // of HTTP, or what an error within a stream amounts to
	code    string
	kind    string
	param   string
	message string
	wait    time.Duration
}

// words are all that the provider said, in lower case, to look for what is wrong.
func (r *refusal) words() string {
	return strings.ToLower(r.code + " " + r.kind + " " + r.param + " " + r.message)
}

// mentions says whether the provider said any of these, in lower case.
func (r *refusal) mentions(texts ...string) bool {
	words := r.words()
	for _, t := range texts {
		if strings.Contains(words, t) {
			return true
		}
	}
	return false
}

// failure makes the refusal an *Error without the secrets.
func (r *refusal) failure(secrets ...string) *Error {
	message := r.message
	if message == "" {
		message = "the model server answered " + strings.TrimSpace(strconv.Itoa(r.status)+" "+http.StatusText(r.status))
	}
	e := &Error{Code: strconv.Itoa(r.status), Message: tidyMessage(message, secrets), RetryAfter: r.wait}
	switch {
	case r.tooLong():
		e.Code, e.RetryAfter, e.Window = codeContextLength, 0, r.window()
	case r.status == http.StatusTooManyRequests:
		// An empty purse does not fill by waiting.
		e.Retryable = !r.mentions("insufficient_quota", "exceeded your current quota", "billing", "request too large")
	default:
		e.Retryable = passes(r.status)
	}
	return e
}

// passes says whether a status is of a trouble that passes.
func passes(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return status >= 500
}

// tooLong says whether the provider refused the request for its length. Each
// server has words of its own.
func (r *refusal) tooLong() bool {
	if r.status == http.StatusTooManyRequests {
		return false
	}
	if r.status == http.StatusRequestEntityTooLarge {
		return true
	}
	if r.mentions("context_length_exceeded", "exceed_context_size", "prompt is too long", "maximum context length",
		"exceeds the available context size", "exceed context limit", "context window", "context length of only",
		"model_max_prompt_tokens_exceeded", "reduce the length of the messages", "maximum prompt length",
		"exceeds the maximum number of tokens", "context the overflows", "larger than the model's context", "context size has been exceeded") {
		return r.status >= 400
	}
	return false
}

// mostTokens finds how many tokens a model takes, in the words of OpenAI and vLLM,
// xAI, llama.cpp, LM Studio, Google, and Anthropic.
var mostTokens = regexp.MustCompile(`(?i)(?:maximum (?:context|prompt) length is|context size(?: \(| of )|context length of only|tokens allowed \(|\d(?: tokens)? >)\s*(\d{3,9})\b`)

// window is how many tokens the model takes, as the provider says, else 0.
func (r *refusal) window() int64 {
	m := mostTokens.FindStringSubmatch(r.message)
	if m == nil {
		return 0
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// tidyMessage makes one line of a provider's message, of bounded length and
// without the secrets.
func tidyMessage(message string, secrets []string) string {
	message = strings.Join(strings.Fields(strings.ToValidUTF8(redact(message, secrets), "")), " ")
	if len(message) > maxMessage {
		message = cutBytes(message, maxMessage) + "…"
	}
	return message
}

// redact takes the secrets out of a text.
func redact(text string, secrets []string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[key]")
		}
	}
	return text
}

// readRefusal reads a response that is an error, of any shape there is: the
// error as an object or a string, under another name, a web page or nothing.
func readRefusal(resp *http.Response) *refusal {
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what came is enough
	r := &refusal{status: resp.StatusCode}
	r.readBody(resp.Header, raw)
	r.wait = retryAfter(resp.Header, time.Now())
	return r
}

// readBody reads a body of any kind. Neither a web page nor JSON of an unknown
// form says anything to the user of a model.
func (r *refusal) readBody(h http.Header, raw []byte) {
	switch {
	case r.status >= 300 && r.status < 400:
		r.message = "the model server redirects elsewhere; set its base URL to where it really is"
	case !r.read(raw) && !json.Valid(raw) && !looksLikePage(h, raw):
		r.message = string(raw)
	}
}

// read reads the JSON of an error and says whether it said anything.
func (r *refusal) read(raw []byte) bool {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 { // as Google does
		raw = list[0]
	}
	var body struct {
		Error   json.RawMessage `json:"error"`
		Message looseText       `json:"message"`
		Detail  looseText       `json:"detail"`
		Code    looseText       `json:"code"`
		Type    looseText       `json:"type"`
		Param   looseText       `json:"param"`
	}
	if json.Unmarshal(raw, &body) != nil {
		return false
	}
	var inner struct {
		Message  looseText `json:"message"`
		Code     looseText `json:"code"`
		Type     looseText `json:"type"`
		Status   looseText `json:"status"`
		Param    looseText `json:"param"`
		Metadata struct {
			Raw looseText `json:"raw"`
		} `json:"metadata"`
	}
	if json.Unmarshal(body.Error, &inner) != nil {
		_ = json.Unmarshal(body.Error, &inner.Message) // a looseText takes anything
	}
	r.message = firstText(inner.Message, body.Message, body.Detail)
	if raw := string(inner.Metadata.Raw); raw != "" && len(raw) < maxMessage {
		r.message += " (" + raw + ")" // OpenRouter: what the provider behind it said
	}
	r.code = firstText(inner.Code, body.Code)
	r.kind = firstText(inner.Type, inner.Status, body.Type)
	r.param = firstText(inner.Param, body.Param)
	return r.message != "" || r.code != "" || r.kind != ""
}

func firstText(texts ...looseText) string {
	for _, t := range texts {
		if t != "" {
			return string(t)
		}
	}
	return ""
}

// A looseText is a JSON value read as text: a string as it is, null as nothing,
// anything else as its JSON.
type looseText string

// UnmarshalJSON reads any value.
func (t *looseText) UnmarshalJSON(raw []byte) error {
	var s string
	switch {
	case string(raw) == "null":
		*t = ""
	case json.Unmarshal(raw, &s) == nil:
		*t = looseText(s)
	default:
		*t = looseText(raw)
	}
	return nil
}

// looksLikePage says whether a body is a web page.
func looksLikePage(h http.Header, body []byte) bool {
	start := strings.ToLower(strings.TrimSpace(string(body[:min(len(body), 200)])))
	return strings.HasPrefix(h.Get("Content-Type"), "text/html") || strings.HasPrefix(start, "<!doctype") || strings.HasPrefix(start, "<html")
}

// retryAfter reads how long a provider asks to wait: retry-after-ms, or
// Retry-After as seconds or a date (RFC 9110, 10.2.3).
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return boundedWait(ms / 1000)
	}
	text := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(text, 64); err == nil {
		return boundedWait(s)
	}
	if at, err := http.ParseTime(text); err == nil {
		return boundedWait(at.Sub(now).Seconds())
	}
	return 0
}

// boundedWait is a wait of so many seconds, within 0 and a day.
func boundedWait(seconds float64) time.Duration {
	if !(seconds > 0) { // a NaN too
		return 0
	}
	return time.Duration(min(seconds, 24*60*60) * float64(time.Second))
}

// transportFailure says what went wrong with a connection: the error of ctx if
// that has ended, else an *Error, which names no address and no header.
// streaming says that the answer had begun.
func transportFailure(ctx context.Context, err error, p patience, streaming bool) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var bad *tls.CertificateVerificationError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, errIdle):
		return &Error{Code: codeTimeout, Message: fmt.Sprintf("%v for %s", errIdle, p.idle), Retryable: true}
	case errors.Is(err, errTooLong), errors.Is(err, errLongLine):
		return &Error{Code: codeBadResponse, Message: err.Error()}
	case errors.As(err, &bad):
		return &Error{Code: codeConnection, Message: "the certificate of the model server is not valid: " + bad.Err.Error()}
	case streaming:
		return &Error{Code: codeStream, Message: "the answer of the model broke off: " + withoutAddress(err), Retryable: true}
	case errors.As(err, &timeout) && timeout.Timeout():
		return &Error{Code: codeTimeout, Message: "the model server did not answer in time", Retryable: true}
	}
	return &Error{Code: codeConnection, Message: "no connection to the model server: " + withoutAddress(err), Retryable: true}
}

// withoutAddress is the message of a network error without host and address,
// which are nobody's business but the operator's.
func withoutAddress(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	var at *url.Error
	switch {
	case errors.As(err, &dns):
		return dns.Err
	case errors.As(err, &op):
		return op.Err.Error()
	case errors.As(err, &at):
		return at.Err.Error()
	}
	return err.Error()
}
