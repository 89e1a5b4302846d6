package tool

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"journeyman/runner/sandbox"
)

// The limits of a request to the web.
const (
	webTime      = 30 * time.Second // for all of it, redirects included
	maxRedirects = 10
	maxAddress   = 4096    // bytes in an address
	maxBody      = 5 << 20 // bytes of a body that are read, unpacked
)

// newClient makes the client of the web tools. It goes through no proxy: that
// would look up and dial what guarded is there to refuse.
func newClient(guarded sandbox.Dialer) *http.Client {
	return &http.Client{
		Timeout: webTime,
		Transport: &http.Transport{
			DialContext:            guarded.DialContext,
			TLSHandshakeTimeout:    10 * time.Second,
			ResponseHeaderTimeout:  20 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
			MaxIdleConns:           20,
			IdleConnTimeout:        30 * time.Second,
			ForceAttemptHTTP2:      true,
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return Errorf("the server redirects more than %d times", maxRedirects)
			}
			req.Header.Del("Referer") // where a worker came from is nobody's business
			if err := checkAddress(guarded, req.URL); err != nil {
				return Errorf("the server redirects to an address that cannot be fetched: %s", err)
			}
			return nil
		},
	}
}

// checkAddress refuses, with an *Error, an address that is not for the web tools,
// as far as its text tells.
func checkAddress(guarded sandbox.Dialer, u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return Errorf("only http and https addresses can be fetched")
	case u.Hostname() == "":
		return Errorf("the address has no host")
	case u.User != nil:
		return Errorf("an address with a user name or a password in it cannot be fetched")
	case len(u.String()) > maxAddress:
		return Errorf("an address can have %d bytes", maxAddress)
	}
	if err := guarded.CheckHost(u.Hostname()); err != nil {
		return &Error{Message: err.Error()}
	}
	return nil
}

// A page is what a server answered.
type page struct {
	url         *url.URL // where it was found, after redirects
	contentType string   // as the server says
	body        []byte
	cut         bool // there is more of body
}

// get fetches what is at the address of req. What goes wrong out there is an
// *Error.
func get(client *http.Client, req *http.Request) (*page, error) {
	res, err := client.Do(req)
	if err != nil {
		return nil, webError(req.Context(), req.URL, err)
	}
	defer res.Body.Close()
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return nil, Errorf("%s answered %d %s", res.Request.URL.Host, res.StatusCode, http.StatusText(res.StatusCode))
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	if err != nil && len(body) <= maxBody {
		return nil, webError(req.Context(), res.Request.URL, err)
	}
	p := &page{url: res.Request.URL, contentType: res.Header.Get("Content-Type"), body: body[:min(len(body), maxBody)], cut: len(body) > maxBody}
	return p, nil
}

// webError tells why a request failed without telling anything of the network
// from where it was made. It is ctx's error once that has ended.
func webError(ctx context.Context, u *url.URL, err error) error {
	var known *Error
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var timeout interface{ Timeout() bool }
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &known):
		return known
	case errors.Is(err, sandbox.ErrAddressRefused):
		return Errorf("%s", sandbox.ErrAddressRefused)
	case errors.As(err, &dns) && dns.IsNotFound:
		return Errorf("there is no host %q", u.Hostname())
	case errors.As(err, &dns):
		return Errorf("the name %q could not be looked up", u.Hostname())
	case errors.As(err, &certificate):
		return Errorf("the certificate of %s is not valid: %s", u.Host, certificate.Err)
	case errors.As(err, &timeout) && timeout.Timeout():
		return Errorf("%s took longer than %d seconds", u.Host, int(webTime.Seconds()))
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return Errorf("%s closed the connection before its answer was complete", u.Host)
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return Errorf("%s could not be reached", u.Host)
	}
	return Errorf("%s did not answer as a web server should", u.Host)
}

// parseAddress reads an address as people write it.
func parseAddress(text string) (*url.URL, error) {
	text = strings.TrimSpace(text)
	u, err := url.Parse(text)
	if err != nil {
		return nil, Errorf("url: %q is not an address", text)
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// newRequest makes a GET request.
func newRequest(ctx context.Context, address, accept, userAgent string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept", accept)
	return req, nil
}
