package model

import (
	"cmp"
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
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Codes of *Errors that are not an HTTP status.
const (
	codeConnection    = "connection"     // no connection, or it was lost before the answer began
	codeTimeout       = "timeout"        // the provider took too long
	codeStream        = "stream"         // the answer was interrupted
	codeBadResponse   = "bad_response"   // the answer has an unknown form
	codeContextLength = "context_length" // the conversation does not fit the context window
	codeContentFilter = "content_filter" // the provider withheld the whole answer
	codeReplayMiss    = "replay_miss"    // no recording answers the request
)

// CodeUnavailable is the code of a model that cannot be opened: its provider is not connected,
// or has no key.
const CodeUnavailable = "model_unavailable"

// CodeRefused is the code of a model's refusal to answer.
const CodeRefused = "refused"

// Gone reports whether waiting for the provider is useless: the model is unknown, the key is
// rejected, or the account has not enough credit. The same call to another model may succeed.
func (e *Error) Gone() bool {
	switch e.Code {
	case "401", "402", "403", "404", CodeUnavailable, CodeWebPage:
		return true
	case "301", "302", "303", "307", "308": // the address is wrong
		return true
	}
	return e.Spent
}

// Rejected reports whether the server has rejected this request: it answered with an error status, and a repeated
// request would have the same answer. Another server may accept the request.
func (e *Error) Rejected() bool {
	status, err := strconv.Atoi(e.Code)
	return err == nil && status >= 400 && status < 600 && !e.Retryable
}

// KnownCode returns a code that is an HTTP error status or a code of this package, else
// "other". Scripts and providers may use any text as a code.
func KnownCode(code string) string {
	switch code {
	case codeConnection, codeTimeout, codeStream, codeBadResponse, codeContextLength, codeContentFilter,
		codeReplayMiss, CodeRefused, CodeUnavailable, CodeToolsRefused, CodeWebPage:
		return code
	}
	if status, err := strconv.Atoi(code); err == nil && status >= 400 && status < 600 {
		return strconv.Itoa(status)
	}
	return "other"
}

// Malformed reports whether the answer of the provider had an unknown form.
func (e *Error) Malformed() bool { return e.Code == codeBadResponse }

// maxMessage is the maximum number of bytes that are kept of a provider's message.
const maxMessage = 1000

// filteredError returns the error for an answer that a filter withheld completely. Without an
// error, it would look like an empty answer of the model.
func filteredError(why string) *Error {
	message := cmp.Or(why, "the provider's filter withheld the answer")
	return &Error{Code: codeContentFilter, Message: message, Quoted: why != ""}
}

// refusedError returns the error for a model that refused before its answer began.
func refusedError(why string) *Error {
	return &Error{Code: CodeRefused, Message: RefusalText(why), Quoted: why != ""}
}

// RefusalText returns the text for a refusal, with the model's own reason if why is not
// empty.
func RefusalText(why string) string {
	if why == "" {
		return "the model refused to answer"
	}
	return "the model refused to answer: " + why
}

// An apiError is an error response of a provider.
type apiError struct {
	status  int // HTTP status; for an error within a stream, the nearest one
	code    string
	kind    string
	param   string
	message string
	details string   // further facts as JSON, such as the names of exhausted quotas
	failed  string   // the tool call of the model that the server could not read
	page    *webPage // in place of an answer, nil for another body
	window  int64    // context window that a field of the error names, 0 for none
	wait    time.Duration
}

// text returns all texts of the error in lower case.
func (r *apiError) text() string {
	return strings.ToLower(strings.Join([]string{r.code, r.kind, r.param, r.message, r.details}, " "))
}

// mentions reports whether the error contains any of the texts, which must be in lower case.
func (r *apiError) mentions(texts ...string) bool {
	words := r.text()
	return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(words, t) })
}

// failure converts the error to an *Error. It removes the secrets.
func (r *apiError) failure(secrets ...string) *Error {
	e := &Error{Code: strconv.Itoa(r.status), Message: tidyMessage(r.words(secrets), secrets), RetryAfter: r.wait,
		Quoted: r.message != "" || r.page != nil, mistake: r.mistake(secrets)}
	if e.mistake != "" && len(r.failed) < maxErrorBody { // a longer one may be cut
		e.failed = r.failed
	}
	switch {
	// These cases are first, because servers use several statuses for these errors.
	case r.spent():
		e.Spent, e.RetryAfter = true, 0
	case r.tooLong():
		e.Code, e.RetryAfter, e.Window = codeContextLength, 0, r.mostTokens()
	case r.code == codeContentFilter && r.status == http.StatusBadRequest:
		e.Code = codeContentFilter
	default:
		// A template fails in the same way each time, although servers answer with 500.
		e.Retryable = isTransient(r.status) && !r.says(meansTemplate) && !r.says(meansNoSystem)
		if r.page != nil && !e.Retryable {
			e.Code = CodeWebPage
		}
	}
	return e
}

// words returns the message of the error.
func (r *apiError) words(secrets []string) string {
	status := "the model server answered " + strings.TrimSpace(strconv.Itoa(r.status)+" "+http.StatusText(r.status))
	switch {
	case r.message != "":
		return r.message
	case r.page != nil && r.status == http.StatusNotFound:
		return r.page.message(secrets)
	case r.page != nil:
		return status + ": " + r.page.message(secrets)
	}
	return status
}

// isTransient reports whether a retry may succeed after this status.
func isTransient(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return status >= 500
}

// tidyMessage returns a provider's message as one line of limited length, without the secrets.
func tidyMessage(message string, secrets []string) string {
	message = strings.Join(strings.Fields(strings.ToValidUTF8(redact(message, secrets), "")), " ")
	return cutText(message, maxMessage)
}

// cutText returns at most the first bytes of a text.
func cutText(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…" // removes a character that was cut
	}
	return text
}

// redact replaces the secrets in a text.
func redact(text string, secrets []string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[key]")
		}
	}
	return text
}

// readAPIError reads an error response of any form: an object, a string, another JSON
// field, a web page or nothing.
func readAPIError(resp *http.Response) *apiError {
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a partial body is sufficient
	r := &apiError{status: resp.StatusCode}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		r.message = redirected(resp)
		return r
	}
	r.readBody(resp.Request.URL.Path, resp.Header, raw)
	r.readWait(resp.Header, time.Now())
	return r
}

// redirected returns the message for a redirect. Redirects are not followed, because the key would go to another host.
func redirected(resp *http.Response) string {
	to, err := resp.Location()
	if err != nil || to.Host == "" || !utf8.ValidString(to.Host) {
		return "the model server redirects to another address; set its base URL to that address"
	}
	// A base URL has no endpoint. The rest of the address may contain anything.
	path := to.EscapedPath()
	for _, end := range []string{"/chat/completions", "/responses", "/v1/messages", "/api/chat", "/models"} {
		path = strings.TrimSuffix(path, end)
	}
	address := (&url.URL{Scheme: to.Scheme, Host: to.Host}).String() + strings.TrimRight(path, "/")
	return "the model server redirects to " + to.Host + "; redirects are not followed, so set its base URL to " + address
}

// readBody sets the error's message from any body. It ignores JSON of an unknown form, which does not help the user.
// Of a web page it keeps the title. path is that of the request.
func (r *apiError) readBody(path string, h http.Header, raw []byte) {
	switch {
	case r.read(raw) || json.Valid(raw) || len(raw) == 0:
	case looksLikePage(h, raw):
		r.page = newWebPage(path, raw)
	default:
		r.failed = cutText(generation("", string(raw)), maxErrorBody)
		r.message = cutText(withoutInput(string(raw)), maxErrorText)
	}
}

// Limits of what is read of an error, in bytes. An event of a stream may be much longer.
const (
	maxErrorText = 16 << 10
	maxDetails   = 8 << 10
)

// retryDelay matches the wait in Google's details of an error.
var retryDelay = regexp.MustCompile(`"retryDelay"\s*:\s*"(\d{1,9}(?:\.\d{1,9})?s)"`)

// read reads the JSON of an error. It reports whether it found a message or a code.
func (r *apiError) read(raw []byte) bool {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 { // Google sends a list
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
			Raw     looseText `json:"raw"`
			Headers struct {
				Reset looseText `json:"X-RateLimit-Reset"`
			} `json:"headers"`
		} `json:"metadata"`
		Details looseText   `json:"details"`           // Google
		Failed  looseText   `json:"failed_generation"` // Groq
		Window  looseNumber `json:"n_ctx"`             // llama.cpp
	}
	// Some servers send a string instead of an object.
	if json.Unmarshal(body.Error, &inner) != nil {
		_ = json.Unmarshal(body.Error, &inner.Message) // a looseText accepts every JSON value
	}
	r.message = withoutInput(string(cmp.Or(inner.Message, body.Message, body.Detail)))
	if quoted := withoutInput(string(inner.Metadata.Raw)); quoted != "" && len(quoted) < maxMessage {
		r.message += " (" + quoted + ")" // OpenRouter adds the message of the actual provider
	}
	r.failed = cutText(generation(string(inner.Failed), string(inner.Metadata.Raw), r.message), maxErrorBody)
	r.message = cutText(r.message, maxErrorText)
	r.code = cutText(string(cmp.Or(inner.Code, body.Code)), maxMessage)
	r.kind = cutText(string(cmp.Or(inner.Type, inner.Status, body.Type)), maxMessage)
	r.param = cutText(string(cmp.Or(inner.Param, body.Param)), maxMessage)
	r.details = cutText(string(inner.Details), maxDetails)
	r.window = inner.Window.tokens()
	r.wait = resetIn(string(inner.Metadata.Headers.Reset), time.Now())
	if m := retryDelay.FindStringSubmatch(r.details); m != nil {
		r.wait = durationOf(m[1])
	}
	return r.message != "" || r.code != "" || r.kind != ""
}

// A looseText is any JSON value as text: a string unchanged, null as "", other values as their
// JSON.
type looseText string

// UnmarshalJSON accepts any value.
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

// retryAfter returns the wait that a provider requests: Retry-After-Ms, or Retry-After as
// seconds or a date (RFC 9110, 10.2.3).
func retryAfter(h http.Header, now time.Time) time.Duration {
	// This header is not standardized, but OpenAI's own clients also read it first.
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

// boundedWait converts seconds to a duration between 0 and a day.
func boundedWait(seconds float64) time.Duration {
	if !(seconds > 0) { // also true for NaN
		return 0
	}
	return time.Duration(min(seconds, 24*60*60) * float64(time.Second))
}

// transportFailure converts an error of the connection. It returns ctx's error if ctx has
// ended, else an *Error without address and headers. streaming means that the answer had begun.
func transportFailure(ctx context.Context, err error, p timeouts, streaming bool) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var bad *tls.CertificateVerificationError
	var timeout interface{ Timeout() bool }
	switch {
	// The watcher's own errors come first: otherwise they would look like a lost connection.
	case errors.Is(err, errIdle):
		return &Error{Code: codeTimeout, Message: fmt.Sprintf("%v for %s", errIdle, p.idle), Retryable: true}
	case errors.Is(err, errTooLong), errors.Is(err, errLongLine):
		return &Error{Code: codeBadResponse, Message: err.Error()}
	// A retry cannot make a certificate valid.
	case errors.As(err, &bad):
		return &Error{Code: codeConnection,
			Message: "the certificate of the model server is not valid: " + bad.Err.Error()}
	case streaming:
		return &Error{Code: codeStream, Retryable: true,
			Message: "the answer of the model broke off: " + withoutAddress(err)}
	case errors.As(err, &timeout) && timeout.Timeout():
		return &Error{Code: codeTimeout, Message: "the model server did not answer in time", Retryable: true}
	}
	return &Error{Code: codeConnection, Retryable: true,
		Message: "no connection to the model server: " + withoutAddress(err)}
}

// withoutAddress returns the message of a network error without host and address, which only
// the operator may see.
func withoutAddress(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	var at *url.Error
	// A *url.Error may wrap a *net.OpError, which may wrap a *net.DNSError. Use the innermost
	// error.
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
