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
	"journeyman/store"
)

const (
	maxResponse   = 64 << 10 // bytes read of a response, so that its connection can serve again
	drainTime     = time.Second
	maxRetryAfter = 24 * time.Hour
	maxMessage    = 300 // bytes of an error's text
)

// retries are the pauses between attempts at a delivery.
var retries = []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour}

// newClient makes the client of all attempts: connections are used again, and
// redirects are not followed.
func newClient(cfg Config) *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:            cfg.Dialer.DialContext,
			TLSClientConfig:        &tls.Config{RootCAs: cfg.RootCAs, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    cfg.Timeout,
			ForceAttemptHTTP2:      true,
			MaxIdleConns:           places + failingPlaces,
			MaxIdleConnsPerHost:    32,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: maxResponse,
			DisableCompression:     true,
		},
	}
}

// attempt sends a delivery once.
func (d *Dispatcher) attempt(ctx context.Context, del store.Delivery, body []byte) store.Attempt {
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
		said := &beginning{}
		drain(resp.Body, said, cancel)
		a.Response = keptResponse(resp, del.Webhook, said)
	}
	a.Duration = time.Since(begun)
	if !a.Success {
		a.Retry = d.retry(del, resp)
	}
	return a
}

func (d *Dispatcher) request(ctx context.Context, del store.Delivery, body []byte, at time.Time) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, del.Webhook.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
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
	return req, nil
}

// sign gives the signature that the Standard Webhooks specification wants: of the
// id, the time and the body.
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

// drain reads what little a response says, so that its connection can be used
// again. One that says more, or slowly, is cut off.
func drain(body io.ReadCloser, said io.Writer, cut context.CancelFunc) {
	slow := time.AfterFunc(drainTime, cut)
	defer slow.Stop()
	_, _ = io.CopyN(said, body, maxResponse) // the status has told all
	_ = body.Close()
}

// retry is when to try a delivery again after a failure, the zero time for never.
func (d *Dispatcher) retry(del store.Delivery, resp *http.Response) time.Time {
	if del.Attempts >= int64(len(retries)) || resp != nil && resp.StatusCode == http.StatusGone {
		return time.Time{}
	}
	pause := retries[del.Attempts]
	pause += time.Duration((rand.Float64() - 0.5) / 5 * float64(pause)) // up to a tenth more or less
	if resp != nil {
		pause = max(pause, min(retryAfter(resp.Header.Get("Retry-After"), d.now()), maxRetryAfter))
	}
	return d.now().Add(pause)
}

// retryAfter reads the header: seconds or a date.
func retryAfter(value string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if t, err := http.ParseTime(value); err == nil {
		return t.Sub(now)
	}
	return 0
}

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

// explain says for people why there was no response. It names neither the URL,
// which may hold a password, nor addresses of one's own network.
func (d *Dispatcher) explain(err error) string {
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, sandbox.ErrAddressRefused):
		return sandbox.ErrAddressRefused.Error()
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return fmt.Sprintf("the endpoint did not answer within %v", d.cfg.Timeout)
	case errors.As(err, &dns):
		return "the name of the host was not found"
	case errors.As(err, &certificate):
		return cut("the certificate is not valid: " + certificate.Err.Error())
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the endpoint refused the connection"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.EPIPE):
		return "the endpoint closed the connection without an answer"
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		err = op.Err
	}
	var whole *url.Error
	if errors.As(err, &whole) {
		err = whole.Err
	}
	return cut("the endpoint could not be reached: " + err.Error())
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

func cut(text string) string {
	if len(text) > maxMessage {
		text = text[:maxMessage]
	}
	return strings.ToValidUTF8(text, "")
}
