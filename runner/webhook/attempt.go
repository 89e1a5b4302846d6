package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"journeyman/runner/dial"
	"journeyman/runner/trace"
	"journeyman/runner/workspace"
	"journeyman/store"
)

const (
	maxResponse   = 64 << 10    // maximum bytes read from a response so that its connection can be reused
	drainTime     = time.Second // time limit for reading them
	maxRetryAfter = 24 * time.Hour
	maxMessage    = 300 // maximum bytes of an error text
)

// retryPauses returns the pauses between the attempts of a delivery.
func retryPauses() []time.Duration {
	return []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
		10 * time.Hour}
}

// newClient creates the HTTP client for all attempts. It reuses connections. It does not follow
// redirects, because they could lead the token to another server.
func newClient(cfg Config) *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:            cfg.Dialer.DialContext,
			TLSClientConfig:        &tls.Config{RootCAs: cfg.RootCAs, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    cfg.Timeout,
			ForceAttemptHTTP2:      true,
			MaxIdleConns:           workingSlots + failingSlots,
			MaxIdleConnsPerHost:    32,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: maxResponse,
			DisableCompression:     true,
		},
	}
}

// send makes one attempt at a delivery. After a failure, the result holds the time of the retry.
func (d *Dispatcher) send(ctx context.Context, del store.Delivery, body []byte) store.Attempt {
	ctx, span := d.traced(ctx, del)
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	begun := time.Now()
	a := store.Attempt{StartedAt: d.now()}
	req, err := d.request(ctx, del, body, a.StartedAt)
	var resp *http.Response
	if err == nil {
		a.Request = keptRequest(req, del.Webhook, body)
		resp, err = d.client.Do(req)
	}
	if err != nil {
		a.ErrorMessage = d.explain(err)
	} else {
		a.ResponseStatus = resp.StatusCode
		if a.Success = resp.StatusCode/100 == 2; !a.Success {
			a.ErrorMessage = refusal(resp.StatusCode)
		}
		start := &beginning{} // of a refusal, too, because the body may contain the reason
		d.drain(resp.Body, start, cancel)
		a.Response = keptResponse(resp, del.Webhook, start)
	}
	a.Duration = time.Since(begun)
	span.Status(a.ResponseStatus)
	span.End(failure(a))
	if !a.Success {
		a.Retry = d.retry(del.Attempts, resp)
	}
	return a
}

// request creates the signed request of an attempt that is made at the given time.
func (d *Dispatcher) request(ctx context.Context, del store.Delivery, body []byte,
	at time.Time) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, del.Webhook.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	// The signature covers the time, so that nobody can replay an old delivery.
	timestamp := strconv.FormatInt(at.Unix(), 10)
	signature, err := sign(del.Webhook.SigningSecret, del.ID, timestamp, body)
	if err != nil {
		return nil, err
	}
	req.Header = http.Header{
		"Content-Type": {"application/json"}, "User-Agent": {d.cfg.UserAgent}, "X-Service-Token": {del.Webhook.Token},
		"Webhook-Id": {del.ID}, "Webhook-Timestamp": {timestamp}, "Webhook-Signature": {signature},
	}
	d.cfg.Trace.Inject(ctx, req.Header)
	return req, nil
}

// traced begins the span of an attempt if tracing is on.
func (d *Dispatcher) traced(ctx context.Context, del store.Delivery) (context.Context, *trace.Span) {
	if d.cfg.Trace == nil || del.Test() {
		return ctx, nil
	}
	_, t, _, err := d.cfg.Store.Effects.DeliverySubject(ctx, del)
	if err != nil {
		return ctx, nil // deliver without a span rather than fail
	}
	return d.cfg.Trace.Delivery(ctx, trace.Turn{ID: t.ID, Task: t.TaskID, Worker: t.WorkerID,
		Organization: t.OrganizationID, TriggeredBy: string(t.TriggeredBy), AcceptedAt: t.CreatedAt},
		del.Type, del.Attempts+1)
}

// failure returns the error code of an attempt for its span, or "" after a success.
func failure(a store.Attempt) string {
	switch {
	case a.Success:
		return ""
	case a.ResponseStatus > 0:
		return strconv.Itoa(a.ResponseStatus)
	}
	return "unreachable"
}

// sign returns the signature of a delivery's id, time and body, as the Standard Webhooks
// specification defines it.
func sign(secret, id, timestamp string, body []byte) (string, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return "", errors.New("the signing secret is not base64")
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)), nil
}

// drain reads the body of a response into start, so that the connection can be reused. If the body
// is too long, drain closes the connection. If the body is too slow, drain calls cut, which must
// cancel the request.
func (d *Dispatcher) drain(body io.ReadCloser, start *beginning, cut context.CancelFunc) {
	slow := time.AfterFunc(drainTime, cut)
	defer slow.Stop()
	buf := d.buffers.Get().(*[]byte)
	defer d.buffers.Put(buf)
	for left := maxResponse; left > 0; {
		n, err := body.Read((*buf)[:min(left, len(*buf))])
		_, _ = start.Write((*buf)[:n])
		if left -= n; err != nil {
			break // an error is ignored, because only the status decides about success
		}
	}
	_ = body.Close()
}

// retry returns the time of the next attempt after a failure, or the zero time if there is none.
// attempts is the number of attempts before the failed one. A 410 Gone response forbids retries.
func (d *Dispatcher) retry(attempts int64, resp *http.Response) time.Time {
	pauses := retryPauses()
	if attempts >= int64(len(pauses)) || resp != nil && resp.StatusCode == http.StatusGone {
		return time.Time{}
	}
	pause := pauses[max(attempts, 0)]
	// Jitter of up to a tenth spreads the retries of deliveries that failed at the same time.
	pause += time.Duration((rand.Float64() - 0.5) / 5 * float64(pause))
	if resp != nil {
		pause = max(pause, min(retryAfter(resp.Header.Get("Retry-After"), d.now()), maxRetryAfter))
	}
	return d.now().Add(pause)
}

// retryAfter reads a Retry-After header, which is a number of seconds or a date.
func retryAfter(value string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if t, err := http.ParseTime(value); err == nil {
		return t.Sub(now)
	}
	return 0
}

// refusal returns the error text for a response whose status is not 2xx.
func refusal(status int) string {
	text := strings.TrimSpace(fmt.Sprintf("the endpoint answered %d %s", status, http.StatusText(status)))
	switch {
	case status/100 == 3:
		return text + ": redirects are not followed"
	case status == http.StatusGone:
		return text + ": it is not tried again"
	}
	return text
}

// explain returns the error text for an attempt without a response. The text contains neither the
// URL, which may hold a password, nor addresses of the operator's private network.
func (d *Dispatcher) explain(err error) string {
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, dial.ErrAddressRefused):
		return dial.ErrAddressRefused.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Sprintf("the endpoint did not answer within %v", d.cfg.Timeout)
	case errors.As(err, &dns):
		return "the name of the host was not found"
	case errors.As(err, &certificate):
		return truncate("the certificate is not valid: " + certificate.Err.Error())
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the endpoint refused the connection"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.EPIPE):
		return "the endpoint closed the connection without an answer"
	}
	// An OpError names an address, and a url.Error the whole URL.
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		err = op.Err
	}
	if whole, ok := errors.AsType[*url.Error](err); ok {
		err = whole.Err
	}
	return truncate("the endpoint could not be reached: " + err.Error())
}

// truncate returns the beginning of an error text as valid UTF-8, because the text may quote a
// server's bytes.
func truncate(text string) string { return strings.ToValidUTF8(workspace.Cut(text, maxMessage), "") }
