package tool

import (
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Limits of the headers of a request.
const (
	maxHeaders     = 20
	maxHeaderValue = 16 << 10 // bytes of one value, after secrets are inserted
)

// secretReference matches ${secret:NAME}.
var secretReference = regexp.MustCompile(`\$\{secret:([A-Za-z_][A-Za-z0-9_]*)\}`)

// A SecretSource returns the value of a secret that may be sent to a host, or an *Error.
type SecretSource func(name, host string) (string, error)

// ExpandSecrets replaces the references to secrets in a text by the secrets' values. Each
// secret must be permitted for host. ExpandSecrets returns the first error of secret.
func ExpandSecrets(text, host string, secret SecretSource) (expanded string, err error) {
	expanded = secretReference.ReplaceAllStringFunc(text, func(ref string) string {
		value, failed := secret(secretReference.FindStringSubmatch(ref)[1], host)
		if failed != nil && err == nil {
			err = failed
		}
		return value
	})
	return expanded, err
}

// setHeaders sets the headers of a call, and inserts their secrets.
func setHeaders(req *http.Request, headers map[string]string, secret SecretSource) error {
	for name, value := range headers {
		if !httpguts.ValidHeaderFieldName(name) || reservedHeader(name) {
			return Errorf("headers: %q cannot be set: leave it out", name)
		}
		expanded, err := ExpandSecrets(value, req.URL.Hostname(), secret)
		if err != nil {
			return err
		}
		// The text differs only if it contains a secret.
		if expanded != value && !confidential(req.URL) {
			return Errorf("headers: a secret is sent to https addresses only")
		}
		// Check after inserting the secrets: a line break in a secret could add another header.
		if len(expanded) > maxHeaderValue || !httpguts.ValidHeaderFieldValue(expanded) {
			return Errorf("headers: %q has a value that no header can hold: at most %d bytes, in one line", name, maxHeaderValue)
		}
		req.Header.Set(name, expanded)
	}
	return nil
}

// reservedHeader reports whether the model must not set a header, because net/http, a proxy or
// the operator sets it.
func reservedHeader(name string) bool {
	name = http.CanonicalHeaderKey(name)
	return slices.Contains([]string{"Host", "Content-Length", "Connection", "Transfer-Encoding", "Upgrade", "Te",
		"Trailer", "Keep-Alive", "Expect", "User-Agent", "Accept-Encoding", "Range"}, name) ||
		strings.HasPrefix(name, "Proxy-") || strings.HasPrefix(name, "Sec-")
}

// confidential reports whether a request cannot be read on the network: it is encrypted, or
// does not leave this machine.
func confidential(u *url.URL) bool {
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "https" || u.Hostname() == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// keepHeaders removes the headers of a call from a request that follows a redirect. It keeps
// them only for the first host, with the same confidentiality. The headers may contain secrets
// for the first host only.
func keepHeaders(req *http.Request, first *http.Request) {
	if req.URL.Host == first.URL.Host && (confidential(req.URL) || !confidential(first.URL)) {
		return
	}
	req.Header = http.Header{"User-Agent": first.Header["User-Agent"], "Accept": {"*/*"}}
}
