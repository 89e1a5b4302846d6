package handlers

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"
)

// CertificateFiles returns the Get function of a FileCertificate with a test's clock.
func CertificateFiles(cert, key string, now func() time.Time) (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	f := &FileCertificate{cert: cert, key: key, log: slog.New(slog.DiscardHandler), now: now}
	return f.Get, f.load()
}

// LimitedKeys returns how many keys a rate limiter holds after requests of n keys.
func LimitedKeys(n int, now func() time.Time) (int, error) {
	l := newLimiter(600, now, nil)
	for i := range n {
		if err := l.take(httptest.NewRecorder(), strconv.Itoa(i)); err != nil {
			return 0, err
		}
	}
	return len(l.keys), nil
}

// MaxLimited is the largest number of keys in a rate limiter.
const MaxLimited = maxLimited

// UploadsUnderWay returns the number of upload shares in use.
func (a *API) UploadsUnderWay() int64 { return a.shares.uploads.Total() }

// SDKRoutes lists the endpoints that take the version of the AI SDK.
var SDKRoutes = sdkRoutes

// YAMLToJSON and YAMLText read and write exported workers.
var (
	YAMLToJSON = yamlToJSON
	YAMLText   = yamlText
)

// ScrapeTime is the time limit of all queries of GET /metrics.
const ScrapeTime = scrapeTime

// Limits of connections.
const (
	RefusedFor = refusedFor
	MaxRefused = maxRefused
)

// ReadOnPiece is the time for which the server waits for a client that has its answer and should send more.
var ReadOnPiece = afterAnswer().piece

// ReadOn answers requests with h, and then reads the rest of their bodies within limits.
func ReadOn(h http.Handler, size int64, within, piece time.Duration) http.Handler {
	return readOn(context.Background(), h, readOnLimits{size, within, piece})
}
