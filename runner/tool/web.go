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

	"journeyman/runner/dial"
)

// Limits of a request to the web.
const (
	webTime      = 30 * time.Second // timeout of a request, including redirects and the body
	maxRedirects = 10
	maxAddress   = 4096    // bytes in an address
	maxBody      = 5 << 20 // bytes of a body that are read, after decompression

	saveTime = 2 * time.Minute // timeout of a request whose body becomes a file
)

// newClient returns the HTTP client of the web tools. It uses no proxy: a proxy would resolve
// and dial addresses that guarded must reject.
func newClient(guarded dial.Guard) *http.Client {
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
			// With a CheckRedirect, net/http has no limit of its own.
			if len(via) > maxRedirects {
				return Errorf("the server redirects more than %d times; use another address", maxRedirects)
			}
			req.Header.Del("Referer") // a site must not learn which page led there
			err := checkAddress(guarded, req.URL)
			if check, ok := req.Context().Value(hostCheckKey{}).(func(string) error); ok && err == nil {
				err = check(req.URL.Hostname())
			}
			// net/http has copied all headers of the first request, even for another host.
			keepHeaders(req, via[0])
			if err != nil {
				return Errorf("the server redirects to an address that cannot be fetched: %s", err)
			}
			return nil
		},
	}
}

// hostCheckKey is the context key for Host.CheckHost. Redirects must pass that check like the
// first address.
type hostCheckKey struct{}

// checkAddress returns an *Error for an address that the web tools must not fetch. It checks
// only the text of the address and resolves no name.
func checkAddress(guarded dial.Guard, u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return Errorf("only http and https addresses can be fetched")
	case u.Hostname() == "":
		return Errorf("the address has no host")
	// net/http would send them as Basic authentication (RFC 7617).
	case u.User != nil:
		return Errorf("an address with a user name or a password in it cannot be fetched: leave them out")
	case len(u.String()) > maxAddress:
		return Errorf("an address can have %d bytes", maxAddress)
	}
	// The guard checks the resolved address again when it dials. This check is earlier, and
	// its error is clearer.
	if err := dial.CheckPort(u); err != nil {
		return &Error{Message: err.Error()}
	}
	if err := guarded.CheckHost(u.Hostname()); err != nil {
		return &Error{Message: err.Error()}
	}
	return nil
}

// A page is the response of a web server.
type page struct {
	url         *url.URL // after redirects
	contentType string   // header of the response
	body        []byte
	cut         bool // body contains only the beginning of the page
}

// get sends a request. It returns an *Error if the server cannot be reached or its status is
// not a success. It reads at most most bytes of the body.
func get(client *http.Client, req *http.Request, most int64) (*page, error) {
	res, err := client.Do(req)
	if err != nil {
		return nil, webError(req.Context(), req.URL, client.Timeout, err)
	}
	defer res.Body.Close()
	// An error page is not the page that the model requested.
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return nil, Errorf("%s answered %d %s", res.Request.URL.Host, res.StatusCode, http.StatusText(res.StatusCode))
	}
	// Read one byte more than the limit, to detect a longer body.
	body, err := io.ReadAll(io.LimitReader(res.Body, most+1))
	cut := int64(len(body)) > most
	if err != nil && !cut {
		return nil, webError(req.Context(), res.Request.URL, client.Timeout, err)
	}
	if cut {
		body = body[:most]
	}
	return &page{url: res.Request.URL, contentType: res.Header.Get("Content-Type"), body: body, cut: cut}, nil
}

// webError converts an error to an *Error that explains to the model why a request failed. The
// *Error reveals nothing about the operator's private network. If ctx has ended, webError
// returns ctx's cause. limit is the timeout of the request.
func webError(ctx context.Context, u *url.URL, limit time.Duration, err error) error {
	var known *Error
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var timeout interface{ Timeout() bool }
	switch {
	// The order matters: an error may match several cases, and the most specific cases come
	// first.
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &known):
		return known
	case errors.Is(err, dial.ErrAddressRefused):
		return Errorf("%s", dial.ErrAddressRefused)
	case errors.As(err, &dns) && dns.IsNotFound:
		return Errorf("there is no host %q; check its spelling, or use another address", u.Hostname())
	case errors.As(err, &dns):
		return Errorf("the name %q could not be looked up; try it once more later, or use another address", u.Hostname())
	case errors.As(err, &certificate):
		return Errorf("the certificate of %s is not valid, so use another address: %s", u.Host, certificate.Err)
	case errors.As(err, &timeout) && timeout.Timeout():
		return Errorf("%s took longer than %d seconds; try it once more, or use another address", u.Host,
			int(limit.Seconds()))
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return Errorf("%s closed the connection before its answer was complete; try it once more", u.Host)
	}
	// Do not show the text of other errors: it may contain addresses of the operator's network.
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return Errorf("%s could not be reached; check the address, or use another one", u.Host)
	}
	return Errorf("%s did not answer as a web server should; check scheme and port, or use another address", u.Host)
}

// parseAddress parses an address from a model. It removes the fragment.
func parseAddress(text string) (*url.URL, error) {
	text = strings.TrimSpace(text)
	u, err := url.Parse(text)
	if err != nil {
		return nil, Errorf("url: %q is not an address", text)
	}
	// The fragment is not sent to servers (RFC 3986, section 3.5). With it, one page could
	// become two sources.
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// newRequest creates a GET request.
func newRequest(ctx context.Context, address, accept, userAgent string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept", accept)
	return req, nil
}
