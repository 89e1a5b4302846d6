package serve

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

// A Certificate names the source of the certificate for https: two files or, for Domains, an
// authority with ACME (RFC 8555). The zero value means no https. The tags are flags of the command
// line.
type Certificate struct {
	CertFile  string   `name:"tls-cert" help:"Certificate for https, a PEM file; the server reloads it when it changes." placeholder:"FILE"`
	KeyFile   string   `name:"tls-key" help:"Private key of the certificate, a PEM file." placeholder:"FILE"`
	Domains   []string `name:"acme-domain" help:"Domains to get certificates for from Let's Encrypt; their port 443 must lead to --addr." placeholder:"DOMAIN"`
	Email     string   `name:"acme-email" help:"Email address for the certificate authority." placeholder:"EMAIL"`
	Directory string   `name:"acme-directory" help:"Another certificate authority's ACME directory." placeholder:"URL"`
	Folder    string   `kong:"-"` // where the certificates of Domains are stored
}

// BaseURL returns a URL that reaches a listener at addr from this machine.
func (c Certificate) BaseURL(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if ip := net.ParseIP(host); err == nil && len(c.Domains) == 0 && (ip == nil || ip.IsUnspecified()) {
		return c.scheme() + "://" + net.JoinHostPort("localhost", port)
	}
	return c.ListenURL(addr)
}

// ListenURL is like BaseURL, but its host is the address to which the listener is bound: http://[::]:8080
// for a listener at all addresses.
func (c Certificate) ListenURL(addr net.Addr) string {
	if len(c.Domains) > 0 {
		return "https://" + c.Domains[0] // its port 443 leads to the listener
	}
	return c.scheme() + "://" + addr.String()
}

func (c Certificate) scheme() string {
	if c.CertFile != "" || len(c.Domains) > 0 {
		return "https"
	}
	return "http"
}

// TLS returns the configuration for https, nil for none. The listener must be the one that the
// domain's port 443 leads to: the authority checks there that this server owns the domain (RFC
// 8737), so that no second port is needed.
func (c *Certificate) TLS(log *slog.Logger) (cfg *tls.Config, err error) {
	switch files := c.CertFile != "" || c.KeyFile != ""; {
	case files && len(c.Domains) > 0:
		return nil, errors.New("--tls-cert and --acme-domain exclude each other")
	case files && (c.CertFile == "" || c.KeyFile == ""):
		return nil, errors.New("--tls-cert and --tls-key belong together")
	case files:
		pair, err := OpenCertificate(c.CertFile, c.KeyFile, log)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert: %w", err)
		}
		return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: pair.Get,
			NextProtos: []string{"h2", "http/1.1"}}, nil
	case len(c.Domains) > 0:
		return c.automatic(), nil
	}
	return nil, nil
}

// automatic returns a configuration that obtains and renews certificates.
func (c Certificate) automatic() *tls.Config {
	m := &autocert.Manager{Prompt: autocert.AcceptTOS, Cache: autocert.DirCache(filepath.Clean(c.Folder)),
		HostPolicy: autocert.HostWhitelist(c.Domains...), Email: c.Email,
		Client: &acme.Client{DirectoryURL: cmp.Or(c.Directory, autocert.DefaultACMEDirectory),
			HTTPClient: &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
				TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second}}}}
	cfg := m.TLSConfig()
	cfg.MinVersion = tls.VersionTLS12
	return cfg
}

// A FileCertificate is a certificate in files. It notices by itself when they are replaced. Its
// methods are safe for concurrent use.
type FileCertificate struct {
	log       *slog.Logger
	now       func() time.Time
	cert, key string // the files

	mu       sync.Mutex // guards the fields below
	pair     *tls.Certificate
	modified time.Time // of the file that changed last
	looked   time.Time // when the files were last examined
}

// OpenCertificate reads a certificate and its key, two PEM files.
func OpenCertificate(cert, key string, log *slog.Logger) (*FileCertificate, error) {
	f := &FileCertificate{cert: cert, key: key, log: log, now: time.Now}
	if err := f.load(); err != nil {
		return nil, err
	}
	return f, nil
}

// lookEvery is the shortest time between checks of the files.
const lookEvery = 10 * time.Second

// load reads the files. The caller holds mu, or has just created f.
func (f *FileCertificate) load() error {
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

// youngest returns the time of the last change of either file.
func (f *FileCertificate) youngest() (time.Time, error) {
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

// Get returns the certificate for a new connection. If new files are not usable, it returns the
// earlier certificate: the files may be half written.
func (f *FileCertificate) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now().Sub(f.looked) < lookEvery {
		return f.pair, nil
	}
	f.looked = f.now()
	if at, err := f.youngest(); err != nil || at.Equal(f.modified) {
		return f.pair, nil //nolint:nilerr // the earlier certificate still works
	}
	if err := f.load(); err != nil {
		f.log.WarnContext(context.Background(), "the renewed certificate cannot be used", "file", f.cert, "err", err)
	}
	return f.pair, nil
}
