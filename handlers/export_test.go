package handlers

import (
	"crypto/tls"
	"log/slog"
	"time"
)

// CertificateFiles gives the certificate out of two files by the clock of a test.
func CertificateFiles(cert, key string, now func() time.Time) (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	f := &certificateFiles{cert: cert, key: key, log: slog.New(slog.DiscardHandler), now: now}
	return f.get, f.load()
}
