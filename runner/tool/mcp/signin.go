package mcp

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// signInTime is the time limit for a person's sign-in.
const signInTime = 10 * time.Minute

// A signIn is a sign-in in progress, from its beginning until the tokens are stored.
type signIn struct {
	server  *server
	session string // session of the person's browser: only this browser may complete the sign-in
	state   string // random value that the browser must return (RFC 6749, section 10.12)
	cancel  context.CancelCauseFunc
	address chan string                    // receives the address for the person's sign-in
	back    chan *auth.AuthorizationResult // receives the parameters of the browser's return
	done    chan error                     // receives the result of run; buffered, like all three
}

// Errors of sign-ins that are shown to users.
var (
	errNoServer  = errors.New("there is no such server with a sign-in")
	errNoSignIn  = errors.New("the sign-in has expired, was completed, or belongs to another browser: begin again")
	errReplaced  = errors.New("another sign-in has begun")
	errNoStorage = errors.New("this program keeps no sign-ins")
)

// A LoginState is the state of the sign-in to a server with an address.
type LoginState struct {
	Server   string
	Address  string // without possible secrets
	SignedIn bool
	Needed   bool // the server requires a sign-in, so its tools are omitted
}

// Logins returns the states of the servers that can require a sign-in, sorted by name. It
// connects to no server.
func (p *Pool) Logins(ctx context.Context) ([]LoginState, error) {
	var all []LoginState
	for _, s := range p.servers {
		if !s.signsIn() || p.cfg.Logins == nil {
			continue
		}
		// load needs the lock, and SignedIn and Needed must be read under the same lock.
		s.keys.mu.Lock()
		err := s.load(ctx)
		l := LoginState{Server: s.Name, Address: s.address(), SignedIn: s.keys.login != nil, Needed: s.keys.needed}
		s.keys.mu.Unlock()
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// CallbackPath returns the path of the page to which an authorization server redirects
// browsers. Each server has its own path, to prevent mix-up attacks (RFC 9700, section 4.4). So
// a response of one authorization server cannot be used for another.
func CallbackPath(server string) string { return "/settings/system/servers/" + server + "/callback" }

// SignIn begins a sign-in for the browser with that session. It returns the address for the
// person's sign-in. The sign-in continues until CompleteSignIn, or for signInTime.
func (p *Pool) SignIn(ctx context.Context, name, session string) (address string, err error) {
	s := p.find(name)
	if s == nil || !s.signsIn() {
		return "", errNoServer
	}
	if p.cfg.Logins == nil {
		return "", errNoStorage
	}
	challenge, err := s.challenged(ctx)
	if err != nil {
		return "", err
	}
	flow := &signIn{server: s, session: session, address: make(chan string, 1),
		back: make(chan *auth.AuthorizationResult, 1), done: make(chan error, 1)}
	// The context is that of the pool, because the sign-in continues after the request that
	// began it.
	running, stop := context.WithTimeout(p.ctx, signInTime)
	running, flow.cancel = context.WithCancelCause(running)
	if !p.begin(func() { defer stop(); flow.done <- flow.run(running, challenge) }) {
		stop()
		return "", errStopped
	}
	select {
	case address := <-flow.address:
		return address, nil
	case err := <-flow.done:
		return "", errors.New("the sign-in cannot begin: " + s.safe(err.Error()))
	case <-ctx.Done():
		flow.cancel(context.Cause(ctx))
		return "", context.Cause(ctx)
	}
}

// challenged sends a request without a login, and returns the rejection. The header
// WWW-Authenticate of the rejection can contain the authorization server (RFC 9728).
func (s *server) challenged(ctx context.Context) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, oauthTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL,
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		return nil, errNoServer
	}
	for name, value := range s.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	client := s.httpClient(nil)
	client.Transport = client.Transport.(*withHeaders).next // the inner transport, which adds no login
	res, err := client.Do(req)
	if err != nil {
		return nil, errors.New("the server does not answer: " + s.safe(err.Error()))
	}
	defer client.CloseIdleConnections()
	// Only the header is used. Drop the body: Authorize gets an empty one.
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10))
	_ = res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		return nil, errors.New("the server does not ask for a sign-in")
	}
	res.Body, res.Request = http.NoBody, req
	return res, nil
}

// AskSignIn returns the sorted names of the servers that reject a request without a login. It
// starts no program.
func (p *Pool) AskSignIn(ctx context.Context) (names []string) {
	for _, s := range p.servers {
		if !s.signsIn() {
			continue
		}
		if _, err := s.challenged(ctx); err == nil {
			names = append(names, s.Name)
		}
	}
	return names
}

// run signs in. It finds the authorization server, registers this program there, waits for the
// person, and stores the tokens. The SDK checks the metadata, the state, the issuer (RFC 9207)
// and PKCE (RFC 7636).
func (f *signIn) run(ctx context.Context, challenge *http.Response) error {
	s := f.server
	defer s.pool.forget(f)
	redirect := s.pool.cfg.BaseURL + CallbackPath(s.Name)
	cfg := &auth.AuthorizationCodeHandlerConfig{RedirectURL: redirect, Client: s.oauthClient(),
		AuthorizationCodeFetcher: f.fetch, RequestRefreshToken: true, AcceptUnadvertisedIss: true,
		// The keychain stores and renews the tokens. With the SDK's own source, they would be
		// lost at the end of this process.
		NewTokenSource: func(ctx context.Context, cfg *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
			s.keys.mu.Lock()
			defer s.keys.mu.Unlock()
			return oauth2.StaticTokenSource(t), s.keep(ctx, loginOf(s.URL, cfg, t))
		}}
	if s.OAuth.Scope != "" {
		cfg.ScopeFilter = func([]string) []string { return strings.Fields(s.OAuth.Scope) }
	}
	// Without a client of the operator, this program registers itself as a public client, which
	// has no secret (RFC 7591).
	if s.OAuth.ClientID != "" {
		cfg.PreregisteredClient = &oauthex.ClientCredentials{ClientID: s.OAuth.ClientID, Issuer: s.OAuth.Issuer}
		if s.OAuth.ClientSecret != "" {
			cfg.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: s.OAuth.ClientSecret}
		}
	} else {
		cfg.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{
			Metadata: &oauthex.ClientRegistrationMetadata{ClientName: "Journeyman", RedirectURIs: []string{redirect},
				GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
				TokenEndpointAuthMethod: "none"}}
	}
	handler, err := auth.NewAuthorizationCodeHandler(cfg)
	if err != nil {
		return err
	}
	if err := handler.Authorize(ctx, challenge.Request, challenge); err != nil {
		return err
	}
	s.retry()
	return nil
}

// fetch passes the address to SignIn, and waits for the browser's return.
func (f *signIn) fetch(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	u, err := url.Parse(args.URL)
	if err != nil {
		return nil, errors.New("the authorization server's address is not valid")
	}
	f.state = u.Query().Get("state")
	// Call expect after setting state: its lock makes state visible to CompleteSignIn. Call it
	// before the send, because the browser may return immediately.
	f.server.pool.expect(f)
	f.address <- args.URL
	select {
	case result := <-f.back:
		return result, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// expect registers f for CompleteSignIn. It ends an older sign-in to the same server.
func (p *Pool) expect(f *signIn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old := p.signIns[f.server.Name]; old != nil {
		old.cancel(errReplaced)
	}
	p.signIns[f.server.Name] = f
}

// forget removes a sign-in that has ended.
func (p *Pool) forget(f *signIn) {
	f.cancel(nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	// A newer sign-in to the same server may have replaced it.
	if p.signIns[f.server.Name] == f {
		delete(p.signIns, f.server.Name)
	}
}

// CompleteSignIn ends a sign-in. back contains the parameters with which the browser of that
// session returned. CompleteSignIn returns when the tokens are stored.
func (p *Pool) CompleteSignIn(ctx context.Context, name, session string, back url.Values) error {
	p.mu.Lock()
	f := p.signIns[name]
	if f == nil || f.session != session || subtle.ConstantTimeCompare([]byte(f.state), []byte(back.Get("state"))) != 1 {
		p.mu.Unlock()
		return errNoSignIn
	}
	delete(p.signIns, name) // a state is valid only once
	p.mu.Unlock()
	// RFC 6749, section 4.1.2.1: an error response has an error and no code.
	if back.Get("code") == "" {
		why := fmt.Errorf("the authorization server refused: %s",
			oneLine(back.Get("error")+" "+back.Get("error_description"), 300))
		f.cancel(why)
		return why
	}
	f.back <- &auth.AuthorizationResult{Code: back.Get("code"), State: back.Get("state"), Iss: back.Get("iss")}
	select {
	case err := <-f.done:
		if err != nil {
			// The error may contain the request with its code, which may still be valid.
			return errors.New("the sign-in failed: " +
				f.server.safe(strings.ReplaceAll(err.Error(), back.Get("code"), "[code]")))
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// SignOut removes the login of a server in memory and in the store. It does not notify the
// authorization server.
func (p *Pool) SignOut(ctx context.Context, name string) error {
	s := p.find(name)
	if s == nil || !s.signsIn() || p.cfg.Logins == nil {
		return errNoServer
	}
	s.keys.mu.Lock()
	err := s.keep(ctx, nil)
	s.keys.mu.Unlock()
	s.retry()
	return err
}

// retry ends the connection and the pause after failures, so that the next call connects with
// the changed login.
func (s *server) retry() {
	s.mu.Lock()
	live := s.live
	s.failures, s.notBefore = 0, time.Time{}
	s.mu.Unlock()
	// In a goroutine of the pool, because end waits, which must not delay a request.
	if live != nil {
		s.pool.begin(live.end)
	}
}
