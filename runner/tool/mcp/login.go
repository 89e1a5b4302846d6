package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"journeyman/runner/dial"
)

// A LoginStore stores the logins of this program at servers. A login contains secrets, so an
// implementation must encrypt it.
type LoginStore interface {
	// MCPLogin returns the login of the server, nil if there is none.
	MCPLogin(ctx context.Context, server string) ([]byte, error)

	// SetMCPLogin replaces the login of the server. A nil login removes it.
	SetMCPLogin(ctx context.Context, server string, login []byte) error
}

// A login is the sign-in of this program to a server: its registration at the authorization
// server, and its tokens. It is stored as JSON.
type login struct {
	Resource     string           `json:"resource"` // address of the server: only this address gets the tokens
	ClientID     string           `json:"clientId"`
	ClientSecret string           `json:"clientSecret,omitempty"`
	TokenURL     string           `json:"tokenUrl"`
	AuthStyle    oauth2.AuthStyle `json:"authStyle"`
	Access       string           `json:"access"`
	Refresh      string           `json:"refresh,omitempty"`
	Expiry       time.Time        `json:"expiry,omitzero"`
}

// loginOf returns the login after a sign-in.
func loginOf(resource string, cfg *oauth2.Config, t *oauth2.Token) *login {
	return &login{Resource: resource, ClientID: cfg.ClientID, ClientSecret: cfg.ClientSecret,
		TokenURL: cfg.Endpoint.TokenURL, AuthStyle: cfg.Endpoint.AuthStyle,
		Access: t.AccessToken, Refresh: t.RefreshToken, Expiry: t.Expiry}
}

// A keychain holds the login of one server.
type keychain struct {
	mu     sync.Mutex // guards the fields below; held while a login is read, renewed or replaced
	loaded bool       // login is valid; otherwise the store must be read
	login  *login     // nil without a login
	needed bool       // the server has rejected the login, or a request without a login
}

// errSignIn is the error of a server that requires a sign-in.
var errSignIn = errors.New("an Owner has to sign in to the server on the page System of the dashboard")

// renewBefore is how long before its expiry a token is renewed.
const renewBefore = time.Minute

// signsIn reports whether the server may require a sign-in. It may not if the operator has
// configured an Authorization header, or headers with the secrets of workers. Such secrets lead
// to several connections, each with a keychain: a renewal by one would invalidate the others.
func (s *server) signsIn() bool {
	if len(s.secretNames) > 0 {
		return false
	}
	for name := range s.Headers {
		if http.CanonicalHeaderKey(name) == "Authorization" {
			return false
		}
	}
	return !s.stdio()
}

// token returns the access token for the server, "" without a login. It renews a token that
// expires soon. It also renews the token in refused, which the server has rejected.
func (s *server) token(ctx context.Context, refused string) (string, error) {
	if !s.signsIn() || s.pool.cfg.Logins == nil {
		return "", nil
	}
	k := &s.keys
	// Held during a renewal, too: a refresh token may be valid only once. So one request renews
	// it, and the others wait for the result.
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := s.load(ctx); err != nil || k.login == nil {
		return "", err
	}
	fresh := k.login.Expiry.IsZero() || time.Until(k.login.Expiry) > renewBefore
	if k.login.Access != refused && fresh {
		return k.login.Access, nil
	}
	if k.login.Refresh == "" {
		return "", nil
	}
	// Not ctx: even if the request is canceled, the new tokens must be received and stored.
	renewing, cancel := context.WithTimeout(s.pool.ctx, oauthTimeout)
	defer cancel()
	if err := s.renew(renewing); err != nil {
		return "", err
	}
	// renew has removed a login that the authorization server rejects.
	if k.login == nil {
		return "", nil
	}
	return k.login.Access, nil
}

// load reads the login from the store, once. s.keys.mu is held.
func (s *server) load(ctx context.Context) error {
	k := &s.keys
	if k.loaded {
		return nil
	}
	raw, err := s.pool.cfg.Logins.MCPLogin(ctx, s.Name)
	if err != nil {
		return fmt.Errorf("read the sign-in: %w", err)
	}
	// Also set if there is no login.
	if k.loaded = true; raw == nil {
		return nil
	}
	var l login
	if err := json.Unmarshal(raw, &l); err != nil {
		return fmt.Errorf("read the sign-in: %w", err)
	}
	// The operator may have given the name to another server, which must not get the tokens.
	if l.Resource == s.URL {
		k.login = &l
	}
	return nil
}

// renew exchanges the refresh token for new tokens. If the authorization server rejects it,
// renew removes the login. s.keys.mu is held.
func (s *server) renew(ctx context.Context) error {
	l := s.keys.login
	cfg := oauth2.Config{ClientID: l.ClientID, ClientSecret: l.ClientSecret,
		Endpoint: oauth2.Endpoint{TokenURL: l.TokenURL, AuthStyle: l.AuthStyle}}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, s.oauthClient())
	t, err := cfg.TokenSource(ctx, &oauth2.Token{RefreshToken: l.Refresh}).Token()
	var refused *oauth2.RetrieveError
	switch {
	// Only a rejection ends the login. An overloaded or faulty server may accept the token
	// later.
	case errors.As(err, &refused) && refused.Response != nil && refused.Response.StatusCode < 500 &&
		refused.Response.StatusCode != http.StatusTooManyRequests:
		// The body is not logged, because a hostile server controls it.
		s.log.Warn("the sign-in to the MCP server has ended", "status", refused.Response.StatusCode)
		return s.keep(ctx, nil)
	case err != nil:
		return errors.New("the sign-in to the MCP server cannot be renewed now")
	}
	next := *l
	next.Access, next.Expiry = t.AccessToken, t.Expiry
	// RFC 6749, section 6: without a new refresh token, the old one stays valid.
	if t.RefreshToken != "" {
		next.Refresh = t.RefreshToken
	}
	return s.keep(ctx, &next)
}

// keep replaces the login in memory and in the store. nil removes it. s.keys.mu is held.
func (s *server) keep(ctx context.Context, l *login) error {
	var raw []byte
	if l != nil {
		var err error
		if raw, err = json.Marshal(l); err != nil {
			return err
		}
	}
	// Set even if the store fails: the old refresh token may already be invalid.
	s.keys.login, s.keys.loaded, s.keys.needed = l, true, l == nil
	if err := s.pool.cfg.Logins.SetMCPLogin(ctx, s.Name, raw); err != nil {
		return fmt.Errorf("keep the sign-in: %w", err)
	}
	return nil
}

// refused records that the server requires a sign-in: it has rejected token, or a request
// without a token.
func (s *server) refused(token string) {
	s.keys.mu.Lock()
	defer s.keys.mu.Unlock()
	// Ignore the rejection of an old token if there is a newer login.
	if l := s.keys.login; l == nil || l.Access == token {
		s.keys.needed = true
	}
}

// accepted records that the server accepts requests without a sign-in, or with the current
// login.
func (s *server) accepted() {
	s.keys.mu.Lock()
	defer s.keys.mu.Unlock()
	s.keys.needed = false
}

// wantsSignIn reports whether the server has rejected requests because of a missing or invalid
// login.
func (s *server) wantsSignIn() bool {
	s.keys.mu.Lock()
	defer s.keys.mu.Unlock()
	return s.keys.needed
}

// authorized sends a request with the access token. If the server rejects the token, it sends
// the request once more with a renewed token. This is safe, because the server has not
// processed the request.
func (s *server) authorized(req *http.Request, next http.RoundTripper) (*http.Response, error) {
	refused := ""
	for {
		token, err := s.token(req.Context(), refused)
		if err != nil {
			return nil, err
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := next.RoundTrip(req)
		if err != nil || res.StatusCode != http.StatusUnauthorized || !s.signsIn() {
			if err == nil && res.StatusCode < http.StatusBadRequest {
				s.accepted()
			}
			return res, err
		}
		// Reading the body to its end lets net/http reuse the connection.
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10))
		_ = res.Body.Close()
		// Without GetBody the body cannot be sent a second time.
		if token == "" || refused != "" || req.GetBody == nil {
			s.refused(token)
			return nil, errSignIn
		}
		refused = token
		if req.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
}

// oauthTimeout limits each request to an authorization server.
const oauthTimeout = 20 * time.Second

// oauthClient returns the HTTP client for authorization servers. The MCP server chooses their
// addresses. So these must not be in the operator's private network, except for the MCP
// server's own address.
func (s *server) oauthClient() *http.Client {
	own, _ := url.Parse(s.URL) // checkURL has parsed it
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		port := cmp.Or(own.Port(), map[string]string{"https": "443", "http": "80"}[own.Scheme])
		if address == net.JoinHostPort(own.Hostname(), port) {
			return (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, network, address)
		}
		return s.pool.cfg.Dialer.DialContext(ctx, network, address)
	}
	return &http.Client{
		Timeout: oauthTimeout,
		Transport: boundedBodies{&http.Transport{DialContext: dial, TLSHandshakeTimeout: 10 * time.Second,
			MaxResponseHeaderBytes: 64 << 10, DisableKeepAlives: true}},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			// Only metadata, which is fetched by GET, may be redirected. A POST may contain a
			// code or a secret, which no other address may get.
			if req.Method != http.MethodGet || via[0].Method != http.MethodGet || req.URL.Scheme != via[0].URL.Scheme ||
				len(via) > 3 {
				return errors.New("the authorization server redirects, which is not followed")
			}
			return nil
		},
	}
}

// boundedBodies limits the size of response bodies. As OAuth 2.1 requires, it rejects requests
// without TLS, except to this machine.
type boundedBodies struct{ next http.RoundTripper }

// RoundTrip sends a request over https or to this machine.
func (t boundedBodies) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" && !(req.URL.Scheme == "http" && dial.IsLoopback(req.URL.Hostname())) {
		return nil, errors.New("the authorization server is not reached over https")
	}
	res, err := t.next.RoundTrip(req)
	if err == nil {
		res.Body = &bounded{ReadCloser: res.Body, left: 1 << 20}
	}
	return res, err
}
