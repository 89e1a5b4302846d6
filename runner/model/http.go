package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// timeouts limit the waiting times for a provider. A whole call has no limit, because a long
// answer that keeps arriving is valid.
type timeouts struct {
	connect time.Duration // time for connecting, and again for TLS
	header  time.Duration // until the answer begins; a local server may load its model first
	idle    time.Duration // between two reads of the answer
	linger  time.Duration // time for the end of a body after its last event
}

// defaultTimeouts returns the timeouts used outside of tests.
func defaultTimeouts() timeouts {
	return timeouts{connect: 15 * time.Second, header: 10 * time.Minute, idle: 5 * time.Minute,
		linger: 250 * time.Millisecond}
}

// slowTimeouts returns the timeouts for a server that may need minutes to load a large model
// before its first byte.
func slowTimeouts() timeouts {
	slow := defaultTimeouts()
	slow.header = ollamaLoad
	return slow
}

// Limits of a provider's answer.
const (
	maxLine      = 8 << 20  // bytes of a line: the arguments in an event may contain a complete file
	maxAnswer    = 64 << 20 // bytes of an answer
	maxErrorBody = 64 << 10 // bytes that are read of an error response
)

// Reasons why this package interrupted a call.
var (
	errIdle     = errors.New("the model server went silent")
	errTooLong  = errors.New("the answer of the model server is too long")
	errLongLine = errors.New("a line in the answer of the model server is too long")
)

// newHTTPClient returns a client for one provider. It keeps connections open for later calls
// and limits each answer (see watcher). It follows no redirect, because a redirect could send
// the key to another host. by is the provider of a user, nil for a provider of the environment.
func newHTTPClient(p timeouts, by *Provider) *http.Client {
	proxy, dial := http.ProxyFromEnvironment, (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	if by != nil && by.Dial != nil {
		dial = by.Dial
	}
	if by != nil && !by.Proxy {
		proxy = nil // a proxy could reach addresses that Dial rejects
	}
	base := &http.Transport{
		Proxy: proxy,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, p.connect)
			defer cancel()
			return dial(ctx, network, address)
		},
		TLSHandshakeTimeout:   p.connect,
		ResponseHeaderTimeout: p.header,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   256, // all turns call the same host
		IdleConnTimeout:       90 * time.Second,
		DisableCompression:    true, // compression may delay events
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
	return &http.Client{
		Transport:     &watcher{base: base, patience: p},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// A watcher is a transport that interrupts an answer if the answer stalls. It also limits the
// length of an answer and of each line.
type watcher struct {
	base     *http.Transport
	patience timeouts
}

// RoundTrip makes the request. The limits end when the caller closes the response body.
func (w *watcher) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	resp, err := w.base.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel(nil)
		return nil, err
	}
	b := &watchedBody{body: resp.Body, ctx: ctx, cancel: cancel, linger: w.patience.linger}
	b.idle.Store(int64(w.patience.idle))
	b.timer = time.AfterFunc(w.patience.idle, func() { cancel(errIdle) })
	resp.Body = b
	return resp, nil
}

// CloseIdleConnections closes the connections that no call uses.
func (w *watcher) CloseIdleConnections() { w.base.CloseIdleConnections() }

// A watchedBody is a response body with limits of time and size.
type watchedBody struct {
	body   io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	idle   atomic.Int64 // nanoseconds
	linger time.Duration
	total  int // bytes read so far
	line   int // bytes of the line that is being read

	head    []byte // bytes that peek has read, and Read has not returned yet
	headErr error  // that peek got after them
}

// maxHead limits what peek reads, in bytes.
const maxHead = 512

// peek returns the beginning of the body up to the first byte that is no space, or more. Read returns it again.
func (b *watchedBody) peek() []byte {
	var head []byte
	for b.headErr == nil && len(head) < maxHead && len(bytes.TrimSpace(withoutMark(head))) == 0 {
		part := make([]byte, maxHead-len(head))
		var n int
		n, b.headErr = b.read(part)
		head = append(head, part[:n]...)
	}
	b.head = head
	return head
}

// Read returns an error if the body is too long or stalls.
func (b *watchedBody) Read(p []byte) (int, error) {
	if len(b.head) > 0 {
		n := copy(p, b.head)
		b.head = b.head[n:]
		return n, nil
	}
	if err := b.headErr; err != nil {
		return 0, err
	}
	return b.read(p)
}

// read reads from the connection.
func (b *watchedBody) read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	// The timer limits pauses, not the whole answer.
	b.timer.Reset(time.Duration(b.idle.Load()))
	if err != nil && err != io.EOF {
		if cause := context.Cause(b.ctx); cause != nil {
			// The body's own error is only "canceled".
			err = cause
		}
		return n, err
	}
	if b.total += n; b.total > maxAnswer {
		return 0, errTooLong
	}
	// Callers that read lines hold a whole line in memory.
	if at := bytes.LastIndexByte(p[:n], '\n'); at >= 0 {
		b.line = n - at - 1
	} else if b.line += n; b.line > maxLine {
		return 0, errLongLine
	}
	return n, err
}

// Close ends the limits. It also closes the connection if the body was not read to its end.
func (b *watchedBody) Close() error {
	b.timer.Stop()
	err := b.body.Close()
	b.cancel(nil)
	return err
}

// finish reads the rest of the body after the last event, so that the connection can be reused.
// If the body does not end soon, the connection is closed.
func (b *watchedBody) finish() {
	b.idle.Store(int64(b.linger))
	b.timer.Reset(b.linger)
	_, _ = io.CopyN(io.Discard, b, 64<<10) // after an error, the connection is just not reused
}

// finishBody calls finish if the body is a watchedBody.
func finishBody(body io.Reader) {
	if b, ok := body.(*watchedBody); ok {
		b.finish()
	}
}

// baseURL parses the address of a server. Its error contains the name of the variable.
func baseURL(variable, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		// The address may contain a password, so the error does not contain the address.
		return nil, fmt.Errorf("%s is not an http or https address", variable)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	return u, nil
}

// isHost reports whether the host of an address is domain or one of its subdomains.
func isHost(u *url.URL, domain string) bool {
	host := strings.ToLower(u.Hostname())
	return host == domain || strings.HasSuffix(host, "."+domain)
}

// checkKey returns an error if a key is not valid in a header. It also returns an error if
// another provider than that of the address issued the key.
func checkKey(variable, key string, base *url.URL) error {
	for _, c := range []byte(key) {
		if c <= ' ' || c > '~' {
			return fmt.Errorf("%s contains a character that is not valid in a key", variable)
		}
	}
	ofAnthropic := strings.HasPrefix(key, "sk-ant-")
	ofOpenAI := !ofAnthropic && strings.HasPrefix(key, "sk-")
	if ofAnthropic && isHost(base, "openai.com") || ofOpenAI && isHost(base, "anthropic.com") {
		return fmt.Errorf("%s is the key of another provider, so it is not sent to %s", variable, base.Hostname())
	}
	return nil
}

// bearer returns the Authorization header of a key, "" without a key.
func bearer(key string) string {
	if key == "" {
		return ""
	}
	return "Bearer " + key
}
