package serve

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"time"
)

// CertificateFiles returns the Get function of a FileCertificate with a test's clock.
func CertificateFiles(cert, key string, now func() time.Time) (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	f := &FileCertificate{cert: cert, key: key, log: slog.New(slog.DiscardHandler), now: now}
	return f.Get, f.load()
}

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
