package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// checkPorts reports whether the server can listen on its addresses.
func (x *examination) checkPorts(ctx context.Context) []check {
	list := []check{x.checkPort(ctx, "http", "--addr", x.Addr)}
	if x.SMTPAddr == "" {
		return append(list, check{"smtp", statusSkipped, "mail is off", ""})
	}
	return append(list, x.checkPort(ctx, "smtp", "--smtp-addr", x.SMTPAddr))
}

func (x *examination) checkPort(ctx context.Context, name, flag, addr string) check {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return check{name, statusFailed, fmt.Sprintf("%q is not an address", addr),
			"set " + flag + " to an address such as 127.0.0.1:8080"}
	}
	if port == "0" {
		return check{name, statusSkipped, "the system chooses a port at each start", ""}
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	switch {
	case err == nil:
		_ = ln.Close()
		return check{name, statusOK, addr + " is free", ""}
	case errors.Is(err, syscall.EADDRINUSE) && x.running:
		return check{name, statusOK, addr + " is held by " + holder(port) + ", beside a running server", ""}
	case errors.Is(err, syscall.EADDRINUSE):
		return check{name, statusFailed, addr + " is held by " + holder(port),
			"stop that process, or choose another address with " + flag}
	case errors.Is(err, syscall.EACCES):
		return check{name, statusFailed, addr + ": this user may not listen there",
			"choose a port from 1024 on, or give the service CAP_NET_BIND_SERVICE"}
	}
	return check{name, statusFailed, fmt.Sprintf("%s: %s", addr, reason(err)),
		"choose an address of this machine with " + flag}
}

// holder returns the name of the process that listens on a port, if the system shows it.
func holder(port string) string {
	n, err := strconv.Atoi(port)
	if err != nil {
		return "another process"
	}
	for _, inode := range listening(n) {
		fds, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is right, and a process may end meanwhile
		for _, fd := range fds {
			if to, err := os.Readlink(fd); err != nil || to != "socket:["+inode+"]" {
				continue
			}
			pid := strings.Split(fd, "/")[2]
			name, err := os.ReadFile("/proc/" + pid + "/comm")
			if err == nil {
				return fmt.Sprintf("process %s (%s)", pid, strings.TrimSpace(string(name)))
			}
		}
	}
	return "another process"
}

// listening returns the inodes of the sockets that listen on a port.
func listening(port int) (inodes []string) {
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue // no Linux
		}
		for line := range strings.Lines(string(text)) {
			// sl, local address, remote address, state (0A is LISTEN), ..., inode
			f := strings.Fields(line)
			if len(f) > 9 && f[3] == "0A" && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) {
				inodes = append(inodes, f[9])
			}
		}
	}
	return inodes
}

// expiryWarning is the time before the end of a certificate in which doctor warns.
const expiryWarning = 14 * 24 * time.Hour

// checkBaseURL reports whether the base URL leads to this server, and its certificate.
func (x *examination) checkBaseURL(ctx context.Context) (list []check) {
	if c, ok := x.checkCertificateFiles(); ok {
		list = append(list, c)
	}
	base, err := x.baseURL()
	if err != nil {
		return append(list, check{"address", statusFailed, "--base-url is no http:// or https:// address",
			"set --base-url to the address that people use"})
	}
	if base == "" || !x.running {
		return append(list, check{"address", statusSkipped, "no server runs on this data folder", ""})
	}
	title, err := ask(ctx, 15*time.Second, func(ctx context.Context) (serverInfo, error) { return lookAt(ctx, base) })
	if err != nil {
		return append(list, unreachable(base, err))
	}
	if !strings.Contains(title.name, "Journeyman") {
		return append(list, check{"address", statusFailed, base + " is answered by another program",
			"make --base-url, the name in DNS and the proxy lead to this server; " + stripAdvice})
	}
	list = append(list, check{"address", statusOK, base + " leads to a Journeyman server", ""},
		checkStyle(ctx, base))
	if !title.certificate.IsZero() {
		list = append(list, expiry("certificate", title.certificate))
	}
	return list
}

// stripAdvice says what a proxy must do with the path of a base URL.
const stripAdvice = "if --base-url has a path, the proxy must pass all that is below it, and remove it"

// styleSheet matches the address of a style sheet in a page.
var styleSheet = regexp.MustCompile(`<link rel="stylesheet" href="([^"]+)"`)

// checkStyle reports whether a page and its style sheet can be fetched below the base URL. A page
// without its files is the first sign of a wrong path.
func checkStyle(ctx context.Context, base string) check {
	address := base + "/sign-in"
	_, page, err := fetch(ctx, address)
	found := styleSheet.FindStringSubmatch(page)
	if err != nil || found == nil {
		return check{"pages", statusFailed, address + " shows no page of this server", stripAdvice}
	}
	to, err := url.Parse(address)
	if err == nil {
		to, err = to.Parse(html.UnescapeString(found[1]))
	}
	if err != nil || !strings.HasPrefix(to.String(), base+"/") {
		return check{"pages", statusFailed, "the style sheet of " + address + " is outside of " + base,
			"start the server with --base-url " + base}
	}
	kind, _, err := fetch(ctx, to.String())
	if err != nil || !strings.HasPrefix(kind, "text/css") {
		return check{"pages", statusFailed, to.String() + " is no style sheet", stripAdvice}
	}
	return check{"pages", statusOK, "a page and its style sheet can be fetched", ""}
}

// fetch returns the media type and the beginning of an answer with status 200.
func fetch(ctx context.Context, address string) (mediaType, body string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", "", err
	}
	req.Header.Set("Accept", "text/html, text/css")
	resp, err := onceClient().Do(req)
	if err != nil {
		return "", "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", "", errors.New(resp.Status)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.Header.Get("Content-Type"), string(data), err
}

// baseURL returns the base URL without credentials, "" if only the running server knows it.
func (x *examination) baseURL() (string, error) {
	if x.BaseURL == "" {
		_, port, err := net.SplitHostPort(x.Addr)
		addr, failed := net.ResolveTCPAddr("tcp", x.Addr)
		if err := cmp.Or(err, failed); err != nil || port == "0" {
			return "", err
		}
		return x.Certificate.BaseURL(addr), nil
	}
	u, err := url.Parse(x.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", errors.New("no address")
	}
	u.User = nil // a password in it must not be printed
	return strings.TrimRight(u.String(), "/"), nil
}

// A serverInfo describes the server at an address.
type serverInfo struct {
	name        string    // of the API
	certificate time.Time // when it ends; zero without TLS
}

// onceClient returns a client that keeps no connections, for a single request.
func onceClient() *http.Client {
	return &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true,
		TLSHandshakeTimeout: 10 * time.Second}}
}

func lookAt(ctx context.Context, base string) (f serverInfo, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/openapi.json", nil)
	if err != nil {
		return f, err
	}
	// A connection of an earlier check may have an older certificate.
	resp, err := onceClient().Do(req)
	if err != nil {
		return f, err
	}
	defer resp.Body.Close()
	var doc struct {
		Info struct {
			Title string `json:"title"`
		} `json:"info"`
	}
	// Anything else than the description of an API leaves the title empty.
	_ = json.NewDecoder(io.LimitReader(resp.Body, 4<<20)).Decode(&doc)
	f.name = doc.Info.Title
	if resp.TLS != nil {
		f.certificate = slices.MinFunc(resp.TLS.PeerCertificates, func(a, b *x509.Certificate) int {
			return a.NotAfter.Compare(b.NotAfter)
		}).NotAfter
	}
	return f, nil
}

func unreachable(base string, err error) check {
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		return check{"address", statusFailed, fmt.Sprintf("%s: the certificate is not valid: %s", base, untrusted.Err),
			"get a certificate for this name, such as with --acme-domain, and renew it in time"}
	}
	return check{"address", statusFailed, fmt.Sprintf("%s cannot be reached: %s", base, reason(err)),
		"make --base-url, the name in DNS, the firewall and the proxy lead to this server"}
}

// checkCertificateFiles reports when the certificate in --tls-cert ends.
func (x *examination) checkCertificateFiles() (c check, ok bool) {
	if x.CertFile == "" {
		return c, false
	}
	pair, err := tls.LoadX509KeyPair(x.CertFile, x.KeyFile)
	if err != nil {
		return check{"--tls-cert", statusFailed, err.Error(),
			"set --tls-cert and --tls-key to a certificate and its key"}, true
	}
	return expiry("--tls-cert", pair.Leaf.NotAfter), true
}

func expiry(name string, end time.Time) check {
	left := time.Until(end)
	c := check{name, statusOK, "it ends on " + end.UTC().Format("2006-01-02"), ""}
	switch {
	case left <= 0:
		c.Status, c.Advice = statusFailed, "renew it now: clients refuse it"
	case left < expiryWarning:
		c.Status, c.Advice = statusWarning, "renew it, and check why the automatic renewal failed"
	}
	return c
}

// reason returns the innermost error, without the address of the request: it may hold a key.
func reason(err error) string {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	return err.Error()
}
