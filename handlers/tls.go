package handlers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

// A Certificate says where the certificate for https comes from: from two files or,
// with a domain, from an authority that speaks ACME (RFC 8555). The zero value is
// no https.
type Certificate struct {
	CertFile, KeyFile string   // PEM
	Domains           []string // whose certificates are asked for at the first connection
	Folder            string   // where those are kept
	Email             string   // that the authority may write to; may be empty
	Directory         string   // address of the authority's directory; Let's Encrypt where empty
}

// TLS gives the configuration for https, nil for none. The listener must be the one
// that the domain's port 443 leads to: the authority proves us there (RFC 8737), so
// that no second port is needed.
func (c Certificate) TLS(log *slog.Logger) (*tls.Config, error) {
	switch files := c.CertFile != "" || c.KeyFile != ""; {
	case files && len(c.Domains) > 0:
		return nil, errors.New("--tls-cert and --acme-domain exclude each other")
	case files && (c.CertFile == "" || c.KeyFile == ""):
		return nil, errors.New("--tls-cert and --tls-key belong together")
	case files:
		pair := &certificateFiles{cert: c.CertFile, key: c.KeyFile, log: log, now: time.Now}
		if err := pair.load(); err != nil {
			return nil, fmt.Errorf("--tls-cert: %w", err)
		}
		return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: pair.get, NextProtos: []string{"h2", "http/1.1"}}, nil
	case len(c.Domains) > 0:
		return c.automatic(), nil
	}
	return nil, nil
}

func (c Certificate) automatic() *tls.Config {
	m := &autocert.Manager{Prompt: autocert.AcceptTOS, Cache: autocert.DirCache(filepath.Clean(c.Folder)),
		HostPolicy: autocert.HostWhitelist(c.Domains...), Email: c.Email}
	if c.Directory != "" {
		m.Client = &acme.Client{DirectoryURL: c.Directory}
	}
	cfg := m.TLSConfig()
	cfg.MinVersion = tls.VersionTLS12
	return cfg
}

// certificateFiles is a certificate that is renewed by replacing its files.
type certificateFiles struct {
	cert, key string
	log       *slog.Logger
	now       func() time.Time

	mu       sync.Mutex
	pair     *tls.Certificate
	modified time.Time // the younger of the two
	looked   time.Time
}

// lookEvery is how often the files are looked at, at most.
const lookEvery = 10 * time.Second

func (f *certificateFiles) load() error {
	modified, err := f.youngest()
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return err
	}
	f.pair, f.modified, f.looked = &pair, modified, f.now()
	return nil
}

func (f *certificateFiles) youngest() (time.Time, error) {
	var at time.Time
	for _, name := range []string{f.cert, f.key} {
		info, err := os.Stat(name)
		if err != nil {
			return at, err
		}
		if info.ModTime().After(at) {
			at = info.ModTime()
		}
	}
	return at, nil
}

// get gives the certificate. New files that cannot be used leave the one there was:
// they may be half written.
func (f *certificateFiles) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now().Sub(f.looked) < lookEvery {
		return f.pair, nil
	}
	f.looked = f.now()
	if at, err := f.youngest(); err != nil || at.Equal(f.modified) {
		return f.pair, nil //nolint:nilerr // what we have is still good
	}
	if err := f.load(); err != nil {
		f.log.WarnContext(context.Background(), "the renewed certificate cannot be used", "file", f.cert, "err", err)
	}
	return f.pair, nil
}
