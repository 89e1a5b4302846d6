package command_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// writeCertificate writes the certificate of httptest, for 127.0.0.1, and its key.
func writeCertificate(t *testing.T, dir string) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	is := is.New(t)
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	roots = x509.NewCertPool()
	roots.AddCert(web.Certificate())
	private, err := x509.MarshalPKCS8PrivateKey(web.TLS.Certificates[0].PrivateKey)
	is.NoErr(err)
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	is.NoErr(os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}), 0o600))
	is.NoErr(os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	return cert, key, roots
}

// TestHTTPS runs a task and reads its stream over https, by HTTP/2.
func TestHTTPS(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	cert, key, roots := writeCertificate(t, dir)
	p := invocation{}.start(t, "--data", filepath.Join(dir, "data"), "--addr", "127.0.0.1:0", "--api-key", testKey,
		"--tls-cert", cert, "--tls-key", key, "--pprof-addr", "127.0.0.1:0")
	url := p.await(t, p.stdout, regexp.MustCompile(`serves on (https://\S+)\n`))[1]
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport, Timeout: patience}

	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/workers", strings.NewReader(`{"input":"say hello","stream":true}`))
	is.NoErr(err)
	req.Header.Set("Authorization", "Bearer "+testKey)
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	is.NoErr(err)
	defer res.Body.Close()
	is.Equal(res.ProtoMajor, 2)
	last := ""
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if lines.Text() != "" {
			last = lines.Text()
		}
	}
	is.Equal(last, "data: [DONE]")

	profiler := p.await(t, p.stderr, regexp.MustCompile(`(http://127[^" ]+/debug/pprof/)`))[1]
	res, err = ownClient.Get(profiler + "goroutine?debug=1")
	is.NoErr(err)
	is.Equal(res.StatusCode, http.StatusOK)
	is.NoErr(res.Body.Close())
	p.stop(t)
}

// TestTLSFlags checks that invalid flags stop the start.
func TestTLSFlags(t *testing.T) {
	t.Parallel()
	for flags, says := range map[string]string{
		"--tls-cert=/none":                                 "belong together",
		"--tls-cert=/none --tls-key=/none":                 "--tls-cert",
		"--tls-cert=a --tls-key=b --acme-domain=a.example": "exclude",
		"--pprof-addr=nowhere":                             "--pprof-addr",
	} {
		p := invocation{}.run(t, append([]string{"--data", t.TempDir(), "--addr", "127.0.0.1:0"}, strings.Fields(flags)...)...)
		if p.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(p.stderr.String(), says) {
			t.Errorf("%s: %s", flags, fmt.Sprint(p.cmd.ProcessState, p.stderr))
		}
	}
}
