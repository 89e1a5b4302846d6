package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"journeyman/runner/dial"
	"journeyman/store/storetest"
)

// memory is a LoginStore that a test can read.
type memory struct {
	mu   sync.Mutex
	kept map[string]string
}

func (m *memory) MCPLogin(_ context.Context, server string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept[server] == "" {
		return nil, nil
	}
	return []byte(m.kept[server]), nil
}

func (m *memory) SetMCPLogin(_ context.Context, server string, login []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept[server] = string(login)
	return nil
}

// An authority is an authorization server and the MCP server that it protects.
type authority struct {
	t         *testing.T
	auth, web *httptest.Server
	change    func(w http.ResponseWriter, r *http.Request) bool // handles a request like a hostile server; may be nil

	mu        sync.Mutex
	issuer    string // issuer in the metadata
	iss       string // iss parameter of the browser's return
	challenge string // challenge of the issued code
	valid     string // access token
	refresh   string // refresh token
	issued    int
	secret    string          // secret that the client must send
	seen      []*http.Request // requests to the token endpoint, with their forms
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t}
	a.auth = httptest.NewServer(http.HandlerFunc(a.authorize))
	a.issuer, a.iss = a.auth.URL, a.auth.URL
	server := good()
	next := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	a.web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		allowed := a.valid != "" && r.Header.Get("Authorization") == "Bearer "+a.valid
		a.mu.Unlock()
		switch {
		case r.URL.Path == "/.well-known/oauth-protected-resource/mcp":
			writeJSON(w, map[string]any{"resource": a.web.URL + "/mcp", "authorization_servers": []string{a.auth.URL}, "scopes_supported": []string{"tools"}})
		case !allowed:
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+a.web.URL+`/.well-known/oauth-protected-resource/mcp"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	}))
	for _, s := range []*httptest.Server{a.auth, a.web} {
		t.Cleanup(s.Close)
		t.Cleanup(s.CloseClientConnections)
	}
	return a
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// authorize implements the authorization server.
func (a *authority) authorize(w http.ResponseWriter, r *http.Request) {
	if a.change != nil && a.change(w, r) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch r.URL.Path {
	case "/.well-known/oauth-authorization-server":
		writeJSON(w, map[string]any{"issuer": a.issuer, "authorization_endpoint": a.auth.URL + "/authorize", "token_endpoint": a.auth.URL + "/token",
			"registration_endpoint": a.auth.URL + "/register", "response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
			"authorization_response_iss_parameter_supported": true, "token_endpoint_auth_methods_supported": []string{"client_secret_post", "none"}})
	case "/register":
		var client map[string]any
		_ = json.NewDecoder(r.Body).Decode(&client)
		client["client_id"] = "registered"
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(client)
	case "/token":
		_ = r.ParseForm()
		a.seen = append(a.seen, r)
		sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
		challenge := base64.RawURLEncoding.EncodeToString(sum[:])
		code := r.Form.Get("grant_type") == "authorization_code" && r.Form.Get("code") == "c0de" && challenge == a.challenge
		refresh := r.Form.Get("grant_type") == "refresh_token" && r.Form.Get("refresh_token") == a.refresh && a.refresh != ""
		if !code && !refresh || a.secret != r.Form.Get("client_secret") {
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(map[string]string{"error": "invalid_grant"})
			return
		}
		a.issued++
		a.valid, a.refresh = fmt.Sprintf("access-t0ken-%d", a.issued), fmt.Sprintf("refresh-t0ken-%d", a.issued)
		writeJSON(w, map[string]any{"access_token": a.valid, "refresh_token": a.refresh, "token_type": "Bearer", "expires_in": 3600})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// visit simulates a person who agrees. It returns the parameters of the browser's return.
func (a *authority) visit(address string) url.Values {
	a.t.Helper()
	u, err := url.Parse(address)
	if err != nil || !strings.HasPrefix(address, a.auth.URL+"/authorize?") {
		a.t.Fatal("not the authorization endpoint: ", address)
	}
	q := u.Query()
	if q.Get("code_challenge_method") != "S256" || q.Get("resource") != a.web.URL+"/mcp" ||
		q.Get("redirect_uri") != "https://journeyman.example/settings/system/servers/web/callback" {
		a.t.Fatal("a wrong request: ", q)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.challenge = q.Get("code_challenge")
	return url.Values{"code": {"c0de"}, "state": {q.Get("state")}, "iss": {a.iss}}
}

// pool returns a pool whose server requires a sign-in.
func (a *authority) pool(logins *memory, dialer dial.Guard, oauth OAuth) *fixture {
	a.t.Helper()
	return newPoolWith(a.t, Config{Timing: quick, Logins: logins, BaseURL: "https://journeyman.example", Dialer: dialer},
		Server{Name: "web", URL: a.web.URL + "/mcp", OAuth: oauth, Timeout: time.Minute})
}

// nearby connects to the servers of tests.
var nearby = dial.Guard{AllowPrivate: true}

// signIn signs in like a person.
func (a *authority) signIn(f *fixture) {
	a.t.Helper()
	address, err := f.SignIn(a.t.Context(), "web", "ses_1")
	is.New(a.t).NoErr(err)
	is.New(a.t).NoErr(f.CompleteSignIn(a.t.Context(), "web", "ses_1", a.visit(address)))
}

func TestSignInToAServer(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	a, logins := newAuthority(t), &memory{kept: map[string]string{}}
	f := a.pool(logins, nearby, OAuth{})
	names, note := f.offered("web")
	is.Equal(len(names), 0)
	contains(t, note, "web (an Owner has to sign in to it)")
	states, err := f.Logins(t.Context())
	is.NoErr(err)
	is.Equal(states, []LoginState{{Server: "web", Address: a.web.URL + "/mcp", Needed: true}})
	is.Equal(f.AskSignIn(t.Context()), []string{"web"})

	a.signIn(f)
	storetest.Eventually(t, "the tools are offered", func() bool { names, _ := f.offered("web.echo"); return len(names) == 1 })
	is.Equal(f.must("web", "echo", `{"text":"hi"}`), `"hi"`)
	states, err = f.Logins(t.Context())
	is.NoErr(err)
	is.Equal(states, []LoginState{{Server: "web", Address: a.web.URL + "/mcp", SignedIn: true}})

	// A token that the server no longer accepts is renewed, in the middle of a session.
	a.mu.Lock()
	a.valid = "another"
	a.mu.Unlock()
	is.Equal(f.must("web", "echo", `{"text":"again"}`), `"again"`)
	contains(t, logins.kept["web"], "refresh-t0ken-2")

	// After a restart the login still exists. It is renewed before it expires.
	var l login
	is.NoErr(json.Unmarshal([]byte(logins.kept["web"]), &l))
	l.Expiry = time.Now().Add(time.Second)
	raw, err := json.Marshal(l)
	is.NoErr(err)
	logins.kept["web"] = string(raw)
	f = a.pool(logins, nearby, OAuth{})
	is.Equal(f.must("web", "echo", `{"text":"later"}`), `"later"`)
	contains(t, logins.kept["web"], "refresh-t0ken-3")

	// The authorization server revokes the login.
	a.mu.Lock()
	a.valid, a.refresh = "", ""
	a.mu.Unlock()
	contains(t, f.refused("web", "echo", `{"text":"x"}`), "sign in")
	is.Equal(logins.kept["web"], "")
	_, note = f.offered("web")
	contains(t, note, "sign in")

	a.signIn(f)
	is.NoErr(f.SignOut(t.Context(), "web"))
	is.Equal(logins.kept["web"], "")
	for _, secret := range []string{"t0ken", "c0de", "verifier"} {
		is.True(!strings.Contains(f.log.String(), secret)) // the log shows a secret
	}
}

func TestPreregisteredClient(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	a := newAuthority(t)
	a.secret = "cl1ent-s3cret"
	f := a.pool(&memory{kept: map[string]string{}}, nearby, OAuth{ClientID: "mine", ClientSecret: a.secret, Issuer: a.auth.URL, Scope: "read write"})
	a.signIn(f)
	is.Equal(a.seen[0].Form.Get("client_id"), "mine")
	is.Equal(a.seen[0].Form.Get("resource"), a.web.URL+"/mcp")
	// The server announces another authorization server, which would get the secret.
	f = a.pool(&memory{kept: map[string]string{}}, nearby, OAuth{ClientID: "mine", ClientSecret: a.secret, Issuer: "https://issuer.example"})
	_, err := f.SignIn(t.Context(), "web", "ses_1")
	is.True(err != nil) // the secret is sent to another server
}

func TestSomebodyElseCompletesASignIn(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	a := newAuthority(t)
	f := a.pool(&memory{kept: map[string]string{}}, nearby, OAuth{})
	first, err := f.SignIn(t.Context(), "web", "ses_1")
	is.NoErr(err)
	back := a.visit(first)
	for name, err := range map[string]error{
		"another browser": f.CompleteSignIn(t.Context(), "web", "ses_2", back),
		"another state":   f.CompleteSignIn(t.Context(), "web", "ses_1", url.Values{"code": {"c0de"}, "state": {"x"}}),
		"no state":        f.CompleteSignIn(t.Context(), "web", "ses_1", url.Values{"code": {"c0de"}}),
		"another server":  f.CompleteSignIn(t.Context(), "other", "ses_1", back),
	} {
		t.Run(name, func(t *testing.T) { is := is.New(t); is.Equal(err, errNoSignIn) })
	}
	second, err := f.SignIn(t.Context(), "web", "ses_1")
	is.NoErr(err)
	is.Equal(f.CompleteSignIn(t.Context(), "web", "ses_1", back), errNoSignIn) // the first has been replaced
	back = a.visit(second)
	is.NoErr(f.CompleteSignIn(t.Context(), "web", "ses_1", back))
	is.Equal(f.CompleteSignIn(t.Context(), "web", "ses_1", back), errNoSignIn) // a response is valid only once

	third, err := f.SignIn(t.Context(), "web", "ses_1")
	if err == nil { // the server accepts the login without a person
		a.mu.Lock()
		a.iss = "https://evil.example"
		a.mu.Unlock()
		err = f.CompleteSignIn(t.Context(), "web", "ses_1", a.visit(third))
		contains(t, err.Error(), "issuer")
	}
	denied, err := f.SignIn(t.Context(), "web", "ses_1")
	is.NoErr(err)
	back = a.visit(denied)
	err = f.CompleteSignIn(t.Context(), "web", "ses_1", url.Values{"error": {"access_denied"}, "state": back["state"]})
	contains(t, err.Error(), "access_denied")
}

func TestHostileAuthorizationServers(t *testing.T) {
	t.Parallel()
	at := func(path string, answer func(w http.ResponseWriter, r *http.Request)) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != path {
				return false
			}
			answer(w, r)
			return true
		}
	}
	const metadata = "/.well-known/oauth-authorization-server"
	for name, change := range map[string]func(a *authority){
		"names another issuer": func(a *authority) { a.issuer = "https://other.example" },
		"redirects to a file": func(a *authority) {
			a.change = at(metadata, func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
			})
		},
		"redirects the registration": func(a *authority) {
			a.change = at("/register", func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, a.web.URL+"/steal", http.StatusTemporaryRedirect)
			})
		},
		"never ends": func(a *authority) {
			a.change = at(metadata, func(w http.ResponseWriter, _ *http.Request) {
				_, err := io.WriteString(w, `{"issuer":"`)
				for err == nil {
					_, err = io.WriteString(w, strings.Repeat("x", 64<<10))
				}
			})
		},
		"has no PKCE": func(a *authority) {
			a.change = at(metadata, func(w http.ResponseWriter, _ *http.Request) {
				writeJSON(w, map[string]any{"issuer": a.auth.URL, "authorization_endpoint": a.auth.URL + "/authorize", "token_endpoint": a.auth.URL + "/token"})
			})
		},
		"has a script": func(a *authority) {
			a.change = at(metadata, func(w http.ResponseWriter, _ *http.Request) {
				writeJSON(w, map[string]any{"issuer": a.auth.URL, "authorization_endpoint": "javascript:alert(1)", "token_endpoint": a.auth.URL + "/token",
					"code_challenge_methods_supported": []string{"S256"}})
			})
		},
		"is in a private network": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			a, dialer := newAuthority(t), nearby
			if change == nil {
				dialer = dial.Guard{} // as without --allow-private-network
			} else {
				change(a)
			}
			f := a.pool(&memory{kept: map[string]string{}}, dialer, OAuth{})
			_, err := f.SignIn(t.Context(), "web", "ses_1")
			is.True(err != nil) // the sign-in continues
			is.True(strings.Contains(err.Error(), "cannot begin"))
		})
	}
}

func TestServersWithoutSignIn(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	servers, err := parse([]byte(`{"mcpServers":{"a":{"url":"https://a.example","headers":{"X-Key":"${secret:KEY}"}},
		"b":{"url":"https://b.example","headers":{"authorization":"Bearer s3cret-value"}},"c":{"command":"x"}}}`), func(string) string { return "" })
	is.NoErr(err)
	f := newPool(t, quick, servers...)
	for _, s := range f.servers {
		is.True(!s.signsIn()) // a sign-in would replace the configured header
	}
	_, err = f.SignIn(t.Context(), "b", "ses_1")
	is.Equal(err, errNoServer)
}

func TestReadingOAuth(t *testing.T) {
	t.Parallel()
	for config, says := range map[string]string{
		`{"url":"https://a.example","oauth":{"clientId":"x"}}`:                                                    "",
		`{"url":"https://a.example","oauth":{"clientId":"x","clientSecret":"${S}","issuer":"https://i.example"}}`: "",
		`{"url":"https://a.example","oauth":{"clientId":"x","clientSecret":"${S}"}}`:                              "needs clientId, and issuer",
		`{"url":"https://a.example","oauth":{"secret":"x"}}`:                                                      "unknown field",
		`{"url":"https://a.example","oauth":{"clientId":1}}`:                                                      "must be a string",
		`{"command":"x","oauth":{"clientId":"x"}}`:                                                                "does not fit",
	} {
		t.Run(config, func(t *testing.T) {
			is := is.New(t)
			servers, err := parse([]byte(`{"mcpServers":{"s":`+config+`}}`), func(string) string { return "s3cret-value" })
			if says != "" {
				is.True(err != nil) // the error was not detected
				contains(t, err.Error(), says)
				return
			}
			is.NoErr(err)
			is.Equal(servers[0].OAuth.ClientID, "x")
			secret := servers[0].OAuth.ClientSecret
			is.True(secret == "" || !strings.Contains(servers[0].redact(secret), "s3cret")) // the secret may be shown
		})
	}
}
