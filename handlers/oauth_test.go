package handlers_test

import (
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers/handlerstest"
	"journeyman/store/people"
)

// form sends a form and checks the answer against openapi.yaml.
func (s *site) form(t *testing.T, path, kind, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
	is.New(t).NoErr(err)
	req.Header.Set("Content-Type", kind)
	res, err := handlerstest.Client.Do(req)
	is.New(t).NoErr(err)
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	is.New(t).NoErr(err)
	s.validator.check(t, req, res, got)
	return res.StatusCode, string(got)
}

func TestOAuthEndpoints(t *testing.T) {
	is, s := onServer(t)
	const asForm = "application/x-www-form-urlencoded"
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server",
		"/.well-known/openid-configuration", "/.well-known/jwks.json"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
		is.NoErr(err)
		res, err := handlerstest.Client.Do(req)
		is.NoErr(err)
		body, err := io.ReadAll(res.Body)
		is.NoErr(err)
		is.NoErr(res.Body.Close())
		is.Equal(res.StatusCode, http.StatusOK)
		s.validator.check(t, req, res, body)
		is.True(strings.Contains(string(body), `"`+s.url) || path == "/.well-known/jwks.json") // the URLs are those of this server
	}
	status, body := s.form(t, "/oauth/register", "application/json", `{"client_name": "x", "redirect_uris": ["https://client.example/"]}`)
	is.Equal(status, http.StatusCreated)
	id := strings.Split(strings.Split(body, `"client_id":"`)[1], `"`)[0]
	status, _ = s.form(t, "/oauth/register", "text/plain", `{}`)
	is.Equal(status, http.StatusUnsupportedMediaType)
	status, _ = s.form(t, "/oauth/register", "application/json", strings.Repeat(" ", 1<<17))
	is.Equal(status, http.StatusRequestEntityTooLarge)

	verifier := strings.Repeat("v", 43)
	sum := sha256.Sum256([]byte(verifier))
	code, err := s.store.People.Consent(t.Context(), s.owner.Caller, people.Consent{ClientID: id,
		RedirectURI:   "https://client.example/",
		CodeChallenge: base64.RawURLEncoding.EncodeToString(sum[:])})
	is.NoErr(err)
	status, body = s.form(t, "/oauth/token", asForm, url.Values{"grant_type": {"authorization_code"}, "client_id": {id}, "code": {code},
		"redirect_uri": {"https://client.example/"}, "code_verifier": {verifier}}.Encode())
	is.Equal(status, http.StatusOK)
	access := strings.Split(strings.Split(body, `"access_token":"`)[1], `"`)[0]
	is.Equal(s.challenge(t, access), "") // the token gives access to /mcp
	status, _ = s.form(t, "/oauth/revoke", asForm, url.Values{"token": {access}, "client_id": {id}}.Encode())
	is.Equal(status, http.StatusOK)
	status, _ = s.form(t, "/oauth/revoke", asForm, "client_id="+id)
	is.Equal(status, http.StatusBadRequest)

	metadata := `resource_metadata="` + s.url + `/.well-known/oauth-protected-resource/mcp"`
	is.True(strings.Contains(s.challenge(t, ""), metadata))
	is.True(!strings.Contains(s.challenge(t, ""), "invalid_token"))
	is.True(strings.Contains(s.challenge(t, access), `error="invalid_token"`))
}

// challenge returns the challenge with which /mcp refuses a token, or "".
func (s *site) challenge(t *testing.T, token string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	is.New(t).NoErr(err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := handlerstest.Client.Do(req)
	is.New(t).NoErr(err)
	defer res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		return ""
	}
	return res.Header.Get("WWW-Authenticate")
}
