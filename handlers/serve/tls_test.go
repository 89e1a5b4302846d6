package serve_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers/serve"
	"journeyman/store/ordertest"
)

func TestCertificateSettings(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	writeCertificate(t, dir, 1, "127.0.0.1")
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, tt := range map[string]struct {
		certificate serve.Certificate
		says        string
	}{
		"no key":         {serve.Certificate{CertFile: cert}, "belong together"},
		"no certificate": {serve.Certificate{KeyFile: key}, "belong together"},
		"both ways":      {serve.Certificate{CertFile: cert, KeyFile: key, Domains: []string{"a.example"}}, "exclude"},
		"no file":        {serve.Certificate{CertFile: filepath.Join(dir, "none"), KeyFile: key}, "no such file"},
		"not a key":      {serve.Certificate{CertFile: cert, KeyFile: cert}, "rather than a key"},
		"only a key":     {serve.Certificate{CertFile: key, KeyFile: key}, "certificate"},
	} {
		_, err := tt.certificate.TLS(slog.Default())
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v does not say %q", name, err, tt.says)
		}
	}
	cfg, err := (&serve.Certificate{}).TLS(slog.Default())
	is.NoErr(err)
	is.Equal(cfg, nil)
}

// TestRenewedCertificate replaces the files of a running server.
func TestRenewedCertificate(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	writeCertificate(t, dir, 1, "127.0.0.1")
	now := time.Now()
	get, err := serve.CertificateFiles(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), func() time.Time { return now })
	is.NoErr(err)
	serial := func() int64 {
		t.Helper()
		pair, err := get(nil)
		is.NoErr(err)
		leaf, err := x509.ParseCertificate(pair.Certificate[0])
		is.NoErr(err)
		return leaf.SerialNumber.Int64()
	}
	is.Equal(serial(), int64(1))
	writeCertificate(t, dir, 2, "127.0.0.1")
	is.Equal(serial(), int64(1)) // the files are not checked yet
	now = now.Add(time.Minute)
	is.Equal(serial(), int64(2))
	is.NoErr(os.WriteFile(filepath.Join(dir, "cert.pem"), []byte("half"), 0o600))
	now = now.Add(time.Minute)
	is.Equal(serial(), int64(2)) // the earlier certificate
	writeCertificate(t, dir, 3, "127.0.0.1")
	now = now.Add(time.Minute)
	is.Equal(serial(), int64(3))
}

// writeCertificate writes cert.pem and key.pem, with new modification times.
func writeCertificate(t *testing.T, dir string, serial int64, host string) {
	t.Helper()
	is := is.New(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	is.NoErr(err)
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.ParseIP(host)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	is.NoErr(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	is.NoErr(err)
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "PRIVATE KEY", Bytes: private}} {
		file := filepath.Join(dir, name)
		is.NoErr(os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
		at := time.Now().Add(time.Duration(serial) * time.Hour)
		is.NoErr(os.Chtimes(file, at, at))
	}
}

// TestAutomaticCertificate gets a certificate from an authority, over the network.
func TestAutomaticCertificate(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	is.NoErr(err)
	authority := newAuthority(t, ln.Addr().String())
	folder := t.TempDir()
	cfg, err := (&serve.Certificate{Domains: []string{"workers.example"}, Folder: folder, Email: "ann@example.com",
		Directory: authority.url + "/directory"}).TLS(slog.Default())
	is.NoErr(err)
	web := &http.Server{ReadHeaderTimeout: time.Minute, TLSConfig: cfg, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "safe") })}
	served := make(chan error, 1)
	go func() { served <- web.ServeTLS(ln, "", "") }()
	t.Cleanup(func() { web.Close(); <-served })

	roots := x509.NewCertPool()
	roots.AddCert(authority.root)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "workers.example"}}}
	t.Cleanup(client.CloseIdleConnections)
	res, err := client.Get("https://" + ln.Addr().String())
	is.NoErr(err)
	body, err := io.ReadAll(res.Body)
	is.NoErr(err)
	is.NoErr(res.Body.Close())
	is.Equal(string(body), "safe")
	is.Equal(authority.contact, "mailto:ann@example.com")
	kept, err := os.ReadDir(folder)
	is.NoErr(err)
	ordertest.AtLeast(is, len(kept), 2) // the account's key, and the certificate for the next start

	other := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "elsewhere.example"}}}
	_, err = other.Get("https://" + ln.Addr().String())
	is.True(err != nil) // the authority is not asked for other names
}

// An authority is an ACME server (RFC 8555) with one order, which it validates by TLS at the target
// address (RFC 8737). It accepts every signature.
type authority struct {
	t       *testing.T
	url     string
	target  string
	key     *ecdsa.PrivateKey
	root    *x509.Certificate
	mu      sync.Mutex
	contact string
	proved  bool
	issued  []byte
}

func newAuthority(t *testing.T, target string) *authority {
	t.Helper()
	is := is.New(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	is.NoErr(err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	is.NoErr(err)
	root, err := x509.ParseCertificate(der)
	is.NoErr(err)
	a := &authority{t: t, target: target, key: key, root: root}
	web := httptest.NewServer(a)
	t.Cleanup(web.Close)
	a.url = web.URL
	return a
}

func (a *authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Replay-Nonce", rand.Text())
	answer := func(status int, v map[string]any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	order := map[string]any{"status": "pending", "identifiers": []any{map[string]string{"type": "dns", "value": "workers.example"}},
		"authorizations": []string{a.url + "/authorization"}, "finalize": a.url + "/finalize"}
	switch {
	case a.issued != nil:
		order["status"], order["certificate"] = "valid", a.url+"/certificate"
	case a.proved:
		order["status"] = "ready"
	}
	switch r.URL.Path {
	case "/directory":
		answer(200, map[string]any{"newNonce": a.url + "/nonce", "newAccount": a.url + "/account", "newOrder": a.url + "/orders"})
	case "/nonce":
	case "/account":
		var account struct{ Contact []string }
		a.payload(r, &account)
		a.contact = strings.Join(account.Contact, ",")
		w.Header().Set("Location", a.url+"/account/1")
		answer(201, map[string]any{"status": "valid"})
	case "/orders":
		w.Header().Set("Location", a.url+"/order")
		answer(201, order)
	case "/order":
		answer(200, order)
	case "/authorization":
		answer(200, a.authorization())
	case "/challenge":
		a.proved = a.prove()
		answer(200, a.challenge())
	case "/finalize":
		var request struct{ CSR string }
		a.payload(r, &request)
		a.issue(request.CSR)
		order["status"], order["certificate"] = "valid", a.url+"/certificate"
		w.Header().Set("Location", a.url+"/order")
		answer(200, order)
	case "/certificate":
		w.Header().Set("Content-Type", "application/pem-certificate-chain")
		_, _ = w.Write(a.issued)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (a *authority) status() string {
	if a.proved {
		return "valid"
	}
	return "pending"
}

func (a *authority) challenge() map[string]any {
	return map[string]any{"type": "tls-alpn-01", "url": a.url + "/challenge", "token": "token-1", "status": a.status()}
}

func (a *authority) authorization() map[string]any {
	return map[string]any{"status": a.status(), "identifier": map[string]string{"type": "dns", "value": "workers.example"}, "challenges": []any{a.challenge()}}
}

// payload reads the payload of a signed request.
func (a *authority) payload(r *http.Request, v any) {
	var signed struct{ Payload string }
	if err := json.NewDecoder(r.Body).Decode(&signed); err != nil {
		a.t.Error(err)
	}
	raw, err := base64.RawURLEncoding.DecodeString(signed.Payload)
	if err == nil {
		err = json.Unmarshal(raw, v)
	}
	if err != nil {
		a.t.Error(err)
	}
}

// prove reads the server's challenge certificate, which only the account's holder can create.
func (a *authority) prove() bool {
	conn, err := tls.Dial("tcp", a.target, &tls.Config{ServerName: "workers.example", NextProtos: []string{"acme-tls/1"}, InsecureSkipVerify: true}) //nolint:gosec // RFC 8737, section 3
	if err != nil {
		a.t.Error(err)
		return false
	}
	defer conn.Close()
	id := asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 31}
	for _, e := range conn.ConnectionState().PeerCertificates[0].Extensions {
		if e.Id.Equal(id) && e.Critical && len(e.Value) == sha256.Size+2 {
			return true
		}
	}
	a.t.Error("the certificate shows no proof")
	return false
}

func (a *authority) issue(request string) {
	raw, err := base64.RawURLEncoding.DecodeString(request)
	if err != nil {
		a.t.Error(err)
		return
	}
	csr, err := x509.ParseCertificateRequest(raw)
	if err != nil {
		a.t.Error(err)
		return
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(2), DNSNames: csr.DNSNames, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(90 * 24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.root, csr.PublicKey, a.key)
	if err != nil {
		a.t.Error(err)
		return
	}
	a.issued = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
