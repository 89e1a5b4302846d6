package trace

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// An exporter sends batches of spans to a collector by OTLP over HTTP. The exporter of the
// OpenTelemetry SDK is not used: it depends on gRPC and adds 11 MB to the binary.
type exporter struct {
	url     string
	header  http.Header
	timeout time.Duration // for a batch, with its retries
	gzip    bool
	client  *http.Client
	log     *slog.Logger
	now     func() time.Time

	mu     sync.Mutex // guards the fields below
	logged time.Time  // when an error was logged last
	lost   int        // spans lost since then
}

const (
	exportTries = 4
	logEvery    = time.Minute // an unreachable endpoint must not fill the log
)

// ExportSpans sends a batch. After an error it logs the error and drops the batch, because losing
// traces is acceptable.
func (x *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	ctx, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	body, err := x.body(spans)
	for try := 1; err == nil; try++ {
		var pause time.Duration
		if pause, err = x.post(ctx, body); err == nil || pause < 0 || try == exportTries {
			break
		}
		select {
		case <-time.After(max(pause, 250*time.Millisecond<<try)):
			err = nil
		case <-ctx.Done(): // err holds the reason of the last failure
		}
	}
	if err != nil {
		x.logError(err, len(spans))
	}
	return nil
}

// Shutdown closes the connections.
func (x *exporter) Shutdown(context.Context) error {
	x.client.CloseIdleConnections()
	return nil
}

func (x *exporter) body(spans []sdk.ReadOnlySpan) ([]byte, error) {
	raw := encode(spans)
	if !x.gzip {
		return raw, nil
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(raw); err != nil {
		return nil, err
	}
	err := z.Close()
	return b.Bytes(), err
}

// post sends a request. After an error, pause is the time to wait before the retry, or negative if
// a retry cannot succeed.
func (x *exporter) post(ctx context.Context, body []byte) (pause time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.url, bytes.NewReader(body))
	if err != nil {
		return -1, err
	}
	req.Header = x.header.Clone()
	req.Header.Set("Content-Type", "application/x-protobuf")
	if x.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := x.client.Do(req)
	if err != nil {
		if e, ok := err.(*url.Error); ok {
			err = e.Err // without the address, which may hold a key
		}
		return 0, err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // 0 without one
		return time.Duration(max(0, min(seconds, 60))) * time.Second, fmt.Errorf("status %d", resp.StatusCode)
	}
	if resp.StatusCode/100 != 2 {
		return -1, fmt.Errorf("status %d", resp.StatusCode)
	}
	return 0, nil
}

// logError logs an error and the number of lost spans. It logs at most once per minute.
func (x *exporter) logError(err error, lost int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.lost += lost
	if now := x.now(); now.Sub(x.logged) >= logEvery {
		x.log.Warn("traces are not exported", "err", err, "lost", x.lost)
		x.logged, x.lost = now, 0
	}
}
