package model

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// patience says how long a provider may take. There is no limit on a whole call:
// a long answer that keeps coming is a good one.
type patience struct {
	connect time.Duration // to connect, and again for TLS
	header  time.Duration // until the answer begins; a local server may load its model first
	idle    time.Duration // between two bytes of the answer
	linger  time.Duration // for the end of a body whose last event has come
}

// usualPatience is what providers get outside of tests.
func usualPatience() patience {
	return patience{connect: 15 * time.Second, header: 10 * time.Minute, idle: 5 * time.Minute, linger: 250 * time.Millisecond}
}

// Limits of what a provider may send.
const (
	maxLine      = 8 << 20  // bytes of a line: an event may carry a whole file as arguments
	maxAnswer    = 64 << 20 // bytes of an answer
	maxErrorBody = 64 << 10 // bytes of an error that are read
)

// Why a call was cut off by us.
var (
	errIdle     = errors.New("the model server went silent")
	errTooLong  = errors.New("the answer of the model server is too long")
	errLongLine = errors.New("a line in the answer of the model server is too long")
)

// newHTTPClient gives a client for one provider. It keeps connections for the
// next call, follows no redirect, which could carry the key elsewhere, and
// watches each answer as watcher says.
func newHTTPClient(p patience) *http.Client {
	dialer := &net.Dialer{Timeout: p.connect, KeepAlive: 30 * time.Second}
	base := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		TLSHandshakeTimeout:   p.connect,
		ResponseHeaderTimeout: p.header,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       90 * time.Second,
		DisableCompression:    true, // a compressor may hold events back
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
	return &http.Client{
		Transport:     &watcher{base: base, patience: p},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// A watcher cuts off answers that stop coming, that do not end or whose lines
// do not.
type watcher struct {
	base     *http.Transport
	patience patience
}

// RoundTrip makes the request. The body of its response ends the watch when closed.
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

// A watchedBody is a response body under watch.
type watchedBody struct {
	body   io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	idle   atomic.Int64 // nanoseconds
	linger time.Duration
	total  int
	line   int
}

// Read reads on, unless the body has become too long or too slow.
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	b.timer.Reset(time.Duration(b.idle.Load()))
	if err != nil && err != io.EOF {
		if cause := context.Cause(b.ctx); cause != nil {
			err = cause
		}
		return n, err
	}
	if b.total += n; b.total > maxAnswer {
		return 0, errTooLong
	}
	if at := bytes.LastIndexByte(p[:n], '\n'); at >= 0 {
		b.line = n - at - 1
	} else if b.line += n; b.line > maxLine {
		return 0, errLongLine
	}
	return n, err
}

// Close ends the watch. A body that was not read to its end takes its connection along.
func (b *watchedBody) Close() error {
	b.timer.Stop()
	err := b.body.Close()
	b.cancel(nil)
	return err
}

// finish reads what is left after the last event, so that the connection can be
// used again. A server that does not end the body soon loses it.
func (b *watchedBody) finish() {
	b.idle.Store(int64(b.linger))
	b.timer.Reset(b.linger)
	_, _ = io.CopyN(io.Discard, b, 64<<10) // the connection is lost at worst
}

// finishBody is finish for a body that may not be ours.
func finishBody(body io.Reader) {
	if b, ok := body.(*watchedBody); ok {
		b.finish()
	}
}
