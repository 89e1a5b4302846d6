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

	"journeyman/runner/sandbox"
	"journeyman/runner/trace"
	"journeyman/store"
)

const (
	maxResponse   = 64 << 10    // bytes that are read of a response, so that its connection can be reused
	drainTime     = time.Second // for reading them
	maxRetryAfter = 24 * time.Hour
	maxMessage    = 300 // bytes of an error's text
)

// retryPauses returns the pauses between the attempts at a delivery.
func retryPauses() []time.Duration {
	return []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
		10 * time.Hour}
}

// newClient creates the HTTP client of all attempts. It reuses connections. It does not
// follow redirects, because they could lead the token to another server.
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

// send makes one attempt at a delivery. The attempt says when to retry after a failure.
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
		start := &beginning{} // read after a failure, too: the body says why
		drain(resp.Body, start, cancel)
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
	for name, value := range map[string]string{
		"Content-Type": "application/json", "User-Agent": d.cfg.UserAgent, "X-Service-Token": del.Webhook.Token,
		"Webhook-Id": del.ID, "Webhook-Timestamp": timestamp, "Webhook-Signature": signature,
	} {
		req.Header.Set(name, value)
	}
	d.cfg.Trace.Inject(ctx, req.Header)
	return req, nil
}

// traced begins the span of an attempt, if anything is traced.
func (d *Dispatcher) traced(ctx context.Context, del store.Delivery) (context.Context, *trace.Span) {
	if d.cfg.Trace == nil || del.Test() {
		return ctx, nil
	}
	_, t, _, err := d.cfg.Store.DeliverySubject(ctx, del)
	if err != nil {
		return ctx, nil // the delivery matters more than its span
	}
	return d.cfg.Trace.Delivery(ctx, trace.Turn{ID: t.ID, Task: t.TaskID, Worker: t.WorkerID,
		Organization: t.OrganizationID, TriggeredBy: string(t.TriggeredBy), AcceptedAt: t.CreatedAt},
		del.Type, del.Attempts+1)
}

// failure returns why an attempt has failed, in a word for traces; "" if it has not.
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

// drain reads the rest of a response, so that its connection can be reused. If the
// response is long or slow, it ends the connection.
func drain(body io.ReadCloser, start io.Writer, cut context.CancelFunc) {
	slow := time.AfterFunc(drainTime, cut)
	defer slow.Stop()
	_, _ = io.CopyN(start, body, maxResponse) // the status alone decides about success
	_ = body.Close()
}

// retry returns when to make the next attempt after a failure, the zero time for never. attempts
// were made before the failed one. 410 Gone means that the endpoint does not want any further
// attempt.
func (d *Dispatcher) retry(attempts int64, resp *http.Response) time.Time {
	pauses := retryPauses()
	if attempts >= int64(len(pauses)) || resp != nil && resp.StatusCode == http.StatusGone {
		return time.Time{}
	}
	pause := pauses[max(attempts, 0)]
	// Up to a tenth more or less, so that many failed deliveries do not return at once.
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

// refusal returns the error text for a response that is no success.
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

// explain returns the error text if there was no response. It shows neither the URL,
// which may hold a password, nor addresses of the operator's own network.
func (d *Dispatcher) explain(err error) string {
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, sandbox.ErrAddressRefused):
		return sandbox.ErrAddressRefused.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Sprintf("the endpoint did not answer within %v", d.cfg.Timeout)
	case errors.As(err, &dns):
		return "the name of the host was not found"
	case errors.As(err, &certificate):
		return briefly("the certificate is not valid: " + certificate.Err.Error())
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
	return briefly("the endpoint could not be reached: " + err.Error())
}

// briefly returns the beginning of an error's text, which may quote a server's bytes.
func briefly(text string) string { return strings.ToValidUTF8(sandbox.Cut(text, maxMessage), "") }
