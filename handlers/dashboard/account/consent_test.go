package account_test

import (
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/people"
)

func TestClientConnectsByOAuth(t *testing.T) {
	is, s := dashboardtest.OnSite(t)
	s.Join("bob@example.com", people.RoleMember)
	bob := s.SignIn("bob@example.com")
	h := dashboardtest.Program(t, bob, "allow")
	c, err := s.Connect(t, h)
	is.NoErr(err)
	run, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "list_workers", Arguments: map[string]any{}})
	is.NoErr(err)
	is.True(!run.IsError) // the program can run workers

	source, err := h.TokenSource(t.Context())
	is.NoErr(err)
	token, err := source.Token()
	is.NoErr(err)
	for path, status := range map[string]int{"/api/me": 401, "/api/workers": 401, "/workers": 404} {
		p := s.Visitor().Send(s.Request(http.MethodGet, path, "", "Authorization", "Bearer "+token.AccessToken, "Accept",
			"*/*"))
		is.Equal(p.Status, status) // the token is only for the MCP endpoint
	}

	keys := s.SignIn("ann@example.com").Get("/settings/keys")
	keys.Shows("Assistant &lt;b&gt;", "connected program") // Owners see whose access there is
	is.Equal(strings.Count(keys.Body, "/roll"), strings.Count(keys.Body,
		"/revoke")-1) // a program's token cannot be rolled
	account := bob.Get("/account")
	account.Shows("Assistant &lt;b&gt;") // the user sees the program
	grant := regexp.MustCompile(`/account/programs/ogr_[a-z0-9]+/revoke`).FindString(account.Body)
	is.Equal(s.SignIn("ann@example.com").Post(grant).Status,
		http.StatusNotFound) // an Owner cannot end the grant of another user here
	is.Equal(bob.Post(grant).Status, http.StatusSeeOther)
	_, err = s.Store.People.AuthenticateMCP(t.Context(), token.AccessToken)
	is.True(db.IsKind(err, db.Unauthorized)) // the access has not ended
}

func TestConsentIsDenied(t *testing.T) {
	is, s, ann := dashboardtest.AsOwner(t)
	_, err := s.Connect(t, dashboardtest.Program(t, ann, "deny"))
	is.True(err != nil) // connected although the user denied
	_, err = s.Connect(t, dashboardtest.Program(t, ann, ""))
	is.True(err != nil) // a form without a decision allows
	grants, err := s.Store.People.OAuthGrants(t.Context(), s.Owner.Caller)
	is.NoErr(err)
	is.Equal(len(grants), 0)
}

func TestHostileAuthorizationRequests(t *testing.T) {
	is, s, ann := dashboardtest.AsOwner(t)
	status, client := s.Register(t,
		`{"client_name": "x", "redirect_uris": ["`+dashboardtest.Callback+`"], "token_endpoint_auth_method": "client_secret_basic"}`)
	is.Equal(status, http.StatusCreated)
	is.Equal(client["token_endpoint_auth_method"], "none")
	good := url.Values{"response_type": {"code"}, "client_id": {client["client_id"].(string)},
		"redirect_uri": {dashboardtest.Callback}, "state": {"s&t"},
		"code_challenge": {strings.Repeat("a", 43)}, "code_challenge_method": {"S256"}, "resource": {s.URL + "/mcp"}}
	with := func(name string, values ...string) string {
		q := url.Values{}
		for k, v := range good {
			q[k] = v
		}
		q[name] = values
		return "/oauth/authorize?" + q.Encode()
	}
	p := ann.Get("/oauth/authorize?" + good.Encode())
	is.Equal(p.Status, http.StatusOK)
	is.True(strings.Contains(p.Header.Get("Content-Security-Policy"), "form-action 'self' http://127.0.0.1:1;"))
	p.Shows("127.0.0.1:1", "Acme", "ann@example.com")

	// The browser is never redirected to an unregistered address.
	for name, address := range map[string]string{
		"another address": with("redirect_uri", "https://evil.example/"), "no address": with("redirect_uri"),
		"another client": with("client_id", "ocl_none"), "two addresses": with("redirect_uri", dashboardtest.Callback,
			"https://evil.example/"),
	} {
		p := ann.Get(address)
		ordertest.AtLeast(is, p.Status, 400) // name
		is.Equal(p.Location(), "")
		_ = name
	}
	// Other faults are reported to the program, which has registered the address. The user sends
	// the browser there: a link alone redirects to no other site.
	for address, says := range map[string]string{
		with("code_challenge"): "invalid_request", with("code_challenge_method", "plain"): "invalid_request",
		with("response_type", "token"): "unsupported_response_type", with("resource",
			"https://other.example/mcp"): "invalid_target",
	} {
		asked := ann.Get(address)
		is.Equal(asked.Location(), "")
		is.True(asked.Has(says, "127.0.0.1:1") && !asked.Has("Allow")) // the page only offers the way back
		q := ann.Decide(t, address, "allow")
		is.Equal([]string{q.Get("error"), q.Get("state"), q.Get("iss"), q.Get("code")}, []string{says, "s&t", s.URL, ""})
	}
	// A browser that is not signed in returns after signing in.
	is.True(strings.HasPrefix(s.Visitor().Get("/oauth/authorize?"+good.Encode()).Location(),
		"/sign-in?next=%2Foauth%2Fauthorize"))
	// Another site cannot press the button.
	r := s.Request(http.MethodPost, "/oauth/authorize", good.Encode()+"&decision=allow", "Content-Type",
		"application/x-www-form-urlencoded", "Sec-Fetch-Site", "cross-site")
	is.Equal(ann.Send(r).Status, http.StatusForbidden)
	// The consent does not apply to an organization that another tab has chosen.
	form := []string{"decision", "allow", "organization", "org_other"}
	for k, v := range good {
		form = append(form, k, v[0])
	}
	is.Equal(ann.Post("/oauth/authorize", form...).Status, http.StatusConflict)
}

func TestHostileTokenRequests(t *testing.T) {
	is, s := dashboardtest.OnSite(t)
	_, client := s.Register(t, `{"redirect_uris": ["`+dashboardtest.Callback+`"]}`)
	id := client["client_id"].(string)
	is.Equal(client["client_name"], "Unnamed program")
	for name, tt := range map[string]struct{ body, kind, says string }{
		"json":         {`{}`, "application/json", "invalid_request"},
		"no client":    {"grant_type=authorization_code", "", "invalid_client"},
		"grant type":   {"grant_type=password&client_id=" + id, "", "unsupported_grant_type"},
		"no code":      {"grant_type=authorization_code&client_id=" + id, "", "invalid_grant"},
		"a wrong code": {"grant_type=authorization_code&code=jm_code_x.y.z&client_id=" + id, "", "invalid_grant"},
		"refresh":      {"grant_type=refresh_token&refresh_token=jm_refresh_x.y.z&client_id=" + id, "", "invalid_grant"},
		"twice":        {"grant_type=refresh_token&client_id=" + id + "&client_id=" + id, "", "invalid_request"},
		"resource":     {"grant_type=refresh_token&resource=https://other.example&client_id=" + id, "", "invalid_target"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			if tt.kind == "" {
				tt.kind = "application/x-www-form-urlencoded"
			}
			res, err := dashboardtest.Client.Post(s.URL+"/oauth/token", tt.kind, strings.NewReader(tt.body))
			is.NoErr(err)
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			is.NoErr(err)
			is.Equal(res.StatusCode, http.StatusBadRequest)
			is.True(strings.Contains(string(body), `"error":"`+tt.says+`"`))
			is.Equal(res.Header.Get("Cache-Control"), "no-store")
		})
	}
	for body, says := range map[string]string{
		`{"redirect_uris": ["http://evil.example/"]}`: "invalid_redirect_uri", `{"redirect_uris": []}`: "invalid_redirect_uri",
		`{"redirect_uris": "x"}`: "invalid_redirect_uri", `[]`: "invalid_client_metadata", `{"client_name": 1}`: "invalid",
	} {
		status, answer := s.Register(t, body)
		is.Equal(status, http.StatusBadRequest)
		is.True(strings.HasPrefix(answer["error"].(string), says))
	}
	limited := 0
	for range 30 {
		if status, _ := s.Register(t,
			`{"redirect_uris": ["`+dashboardtest.Callback+`"]}`); status == http.StatusTooManyRequests {
			limited++
		}
	}
	ordertest.Above(is, limited, 5) // one network fills the table
}
