package handlers

import (
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"journeyman/handlers/serve"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
)

// Hosted MCP clients have no API key. They get access by OAuth 2.1. A refusal of /mcp names the
// metadata that describes these endpoints (RFC 9728 and RFC 8414). The client registers itself (RFC
// 7591) and sends its user's browser to AuthorizePath, a page of the dashboard. That page sends the
// browser back with a code. The client exchanges the code for tokens.
const (
	AuthorizePath = "/oauth/authorize"
	tokenPath     = "/oauth/token"
	revokePath    = "/oauth/revoke"
	registerPath  = "/oauth/register"
	resourcePath  = "/.well-known/oauth-protected-resource"
	issuerPath    = "/.well-known/oauth-authorization-server"
	openIDPath    = "/.well-known/openid-configuration"
	keysPath      = "/.well-known/jwks.json"

	// OAuthScope is the only scope: to use the MCP endpoint.
	OAuthScope = "mcp"
)

// The limits of requests without a key.
const (
	networkLimit      = 300      // requests a minute from one network; a hosted client serves many people
	registrationLimit = 2        // registrations a minute from one network, after a burst
	maxOAuth          = 64 << 10 // bytes of a body
)

// isOAuth reports whether the API serves a path of OAuth. The dashboard serves AuthorizePath.
func isOAuth(path string) bool {
	switch path {
	case tokenPath, revokePath, registerPath, resourcePath, resourcePath + "/mcp", issuerPath, openIDPath, keysPath:
		return true
	}
	return false
}

// ownMetadata returns a request for metadata with the path of the router. For a resource or an
// issuer with a path, clients append that path to the well-known one (RFC 8414 and RFC 9728,
// section 3.1). Such an address is outside the path of the base URL, so a proxy does not change it.
func (a *API) ownMetadata(r *http.Request) *http.Request {
	if a.base == "" {
		return r
	}
	for _, known := range []string{resourcePath, issuerPath, openIDPath} {
		if rest, ok := strings.CutPrefix(r.URL.Path, known+a.base); ok && (rest == "" || rest == "/mcp") {
			return at(r, known+rest, "")
		}
	}
	return r
}

// oauthRoutes registers the endpoints of OAuth. Their errors have the form of RFC 6749, section
// 5.2. The callers have no key yet, so requests are limited by client network.
func (a *API) oauthRoutes() {
	on := func(method, pattern string, limit *limiter, h handle) {
		a.open(method, pattern, func(w http.ResponseWriter, r *request) error {
			err := limit.take(w, store.NetworkOf(serve.ClientAddr(r.Request)))
			if err == nil {
				err = h(w, r)
			}
			return oauthProblem(err)
		})
	}
	on("GET", resourcePath, a.oauthRequests, a.getResource(""))
	on("GET", resourcePath+"/mcp", a.oauthRequests, a.getResource("/mcp"))
	on("GET", issuerPath, a.oauthRequests, a.getIssuer)
	on("GET", openIDPath, a.oauthRequests, a.getOpenID)
	on("GET", keysPath, a.oauthRequests, getNoKeys)
	on("POST", registerPath, a.registrations, a.registerClient)
	on("POST", tokenPath, a.oauthRequests, a.issueTokens)
	on("POST", revokePath, a.oauthRequests, a.revokeToken)
}

// oauthProblem returns err in the form that clients of OAuth expect.
func oauthProblem(err error) error {
	if err == nil {
		return nil
	}
	p := *ProblemOf(err)
	// Only an unknown client_id is NotFound here. RFC 6749, section 5.2, has a code for
	// it.
	if p.OAuth = true; p.Status == http.StatusNotFound {
		p.Status, p.Code = http.StatusBadRequest, "invalid_client"
	}
	return &p
}

// mcpKey identifies the caller of the MCP endpoint. A refusal names the address of the
// metadata. The metadata describes how to get access.
func (a *API) mcpKey(w http.ResponseWriter, r *http.Request) (people.Identity, error) {
	who, err := a.auth.mcpKey(w, r)
	if db.IsKind(err, db.Unauthorized) {
		challenge := `Bearer realm="journeyman", resource_metadata="` + a.cfg.BaseURL + resourcePath + `/mcp"` +
			`, scope="` + OAuthScope + `"`
		// RFC 6750, section 3.1: a request without a token gets no error code.
		if r.Header.Get("Authorization") != "" {
			challenge += `, error="invalid_token"`
		}
		w.Header().Set("WWW-Authenticate", challenge)
	}
	return who, err
}

// A resourceView is the metadata of a protected resource (RFC 9728).
type resourceView struct {
	Resource string   `json:"resource"`
	Issuers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
	Methods  []string `json:"bearer_methods_supported"`
	Name     string   `json:"resource_name"`
}

// getResource returns the handle of the metadata of the resource at path.
func (a *API) getResource(path string) handle {
	return func(w http.ResponseWriter, _ *request) error {
		return respond(w, http.StatusOK, resourceView{Resource: a.cfg.BaseURL + path, Issuers: []string{a.cfg.BaseURL},
			Scopes: []string{OAuthScope}, Methods: []string{"header"}, Name: "Journeyman"})
	}
}

// An issuerView is the metadata of an authorization server (RFC 8414).
type issuerView struct {
	Issuer        string   `json:"issuer"`
	Authorize     string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Register      string   `json:"registration_endpoint"`
	Revoke        string   `json:"revocation_endpoint"`
	Scopes        []string `json:"scopes_supported"`
	ResponseTypes []string `json:"response_types_supported"`
	GrantTypes    []string `json:"grant_types_supported"`
	TokenAuth     []string `json:"token_endpoint_auth_methods_supported"`
	RevokeAuth    []string `json:"revocation_endpoint_auth_methods_supported"`
	Challenges    []string `json:"code_challenge_methods_supported"`
	SendsIssuer   bool     `json:"authorization_response_iss_parameter_supported"`
}

func (a *API) getIssuer(w http.ResponseWriter, _ *request) error {
	return respond(w, http.StatusOK, a.issuer())
}

func (a *API) issuer() issuerView {
	base := a.cfg.BaseURL
	return issuerView{Issuer: base, Authorize: base + AuthorizePath, Token: base + tokenPath,
		Register: base + registerPath, Revoke: base + revokePath, Scopes: []string{OAuthScope},
		ResponseTypes: []string{"code"}, GrantTypes: grantTypes(), TokenAuth: []string{"none"},
		RevokeAuth: []string{"none"}, Challenges: []string{"S256"}, SendsIssuer: true}
}

// An openIDView is the metadata with the further fields that OpenID Connect Discovery requires.
type openIDView struct {
	issuerView
	Keys       string   `json:"jwks_uri"`
	Subjects   []string `json:"subject_types_supported"`
	Algorithms []string `json:"id_token_signing_alg_values_supported"`
}

// getOpenID writes the metadata at the only address that clients look for below the path of an
// issuer. This server issues no ID tokens, so it has no keys and no algorithms for them.
func (a *API) getOpenID(w http.ResponseWriter, _ *request) error {
	return respond(w, http.StatusOK, openIDView{issuerView: a.issuer(), Keys: a.cfg.BaseURL + keysPath,
		Subjects: []string{"public"}, Algorithms: []string{}})
}

// getNoKeys writes the empty set of keys for ID tokens.
func getNoKeys(w http.ResponseWriter, _ *request) error {
	return respond(w, http.StatusOK, map[string][]string{"keys": {}})
}

func grantTypes() []string { return []string{"authorization_code", "refresh_token"} }

// A clientView is the answer to the registration of a program (RFC 7591).
type clientView struct {
	ID            string   `json:"client_id"`
	IssuedAt      int64    `json:"client_id_issued_at"`
	Name          string   `json:"client_name"`
	RedirectURIs  []string `json:"redirect_uris"`
	GrantTypes    []string `json:"grant_types"`
	ResponseTypes []string `json:"response_types"`
	TokenAuth     string   `json:"token_endpoint_auth_method"`
	Scope         string   `json:"scope"`
}

// registerClient stores a program. The program gets no secret, because it could not keep one. PKCE
// binds each code to the program that requested it.
func (a *API) registerClient(w http.ResponseWriter, r *request) error {
	raw, done, err := readJSON(w, r, "a registration", maxOAuth)
	if err != nil {
		return err
	}
	defer done()
	body, err := ParseBody(raw)
	if err != nil {
		return &Problem{Status: http.StatusBadRequest, Code: "invalid_client_metadata", Message: err.Error()}
	}
	// Unknown fields are ignored, as RFC 7591, section 2, demands.
	name, uris := body.Text("client_name"), []string{}
	if list := body.names("redirect_uris"); list != nil {
		uris = *list
	}
	// RFC 7591 makes the name optional, but the page of consent has to show one.
	if strings.TrimSpace(name) == "" {
		name = "Unnamed program"
	}
	err = body.Invalid.Err()
	var c people.OAuthClient
	if err == nil {
		c, err = a.store.People.RegisterOAuthClient(r.Context(), db.FirstRunes(name, maxClientName), uris)
	}
	if err != nil {
		return invalidClient(err)
	}
	return respond(w, http.StatusCreated, clientView{ID: c.ID, IssuedAt: c.CreatedAt.Unix(), Name: c.Name,
		RedirectURIs: c.RedirectURIs, GrantTypes: grantTypes(), ResponseTypes: []string{"code"}, TokenAuth: "none",
		Scope: OAuthScope})
}

// maxClientName is the number of characters of a program's name that are stored.
const maxClientName = 100

// invalidClient returns the error of a registration with a code of RFC 7591, section 3.2.2.
func invalidClient(err error) error {
	var e *db.Error
	if !errors.As(err, &e) || e.Kind != db.Invalid {
		return err
	}
	p := &Problem{Status: http.StatusBadRequest, Code: "invalid_client_metadata", Message: e.Message}
	for _, detail := range e.Details {
		if p.Message = detail.Path + " " + detail.Message; detail.Path == "redirect_uris" {
			p.Code = "invalid_redirect_uri"
			break
		}
	}
	return p
}

// readParams reads the form of a request. It refuses a parameter that occurs twice.
func readParams(w http.ResponseWriter, r *request) (url.Values, error) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind != "application/x-www-form-urlencoded" {
		return nil, db.Errorf(db.Invalid, "send a form: application/x-www-form-urlencoded")
	}
	raw, done, err := readAll(w, r, "a form", maxOAuth)
	if err != nil {
		return nil, err
	}
	defer done()
	form, err := url.ParseQuery(string(raw))
	if err != nil {
		return nil, db.Errorf(db.Invalid, "the form cannot be read")
	}
	return form, OnlyOnce(form)
}

// OnlyOnce returns an Invalid error if a parameter of OAuth occurs twice (RFC 6749, section 3.1),
// because two programs could read different values. Only resource may be repeated (RFC 8707,
// section 2).
func OnlyOnce(params url.Values) error {
	for name, values := range params {
		if len(values) > 1 && name != "resource" {
			return db.Errorf(db.Invalid, "a parameter is given twice")
		}
	}
	return nil
}

// CheckResource returns an error if a client asks for tokens for any other resource than the
// MCP endpoint (RFC 8707). The base URL is accepted too: its metadata names it as a resource.
func CheckResource(baseURL string, params url.Values) error {
	for _, resource := range params["resource"] {
		resource = strings.TrimSuffix(resource, "/")
		if resource != baseURL && resource != baseURL+"/mcp" {
			return &Problem{Status: http.StatusBadRequest, Code: "invalid_target",
				Message: "tokens are for the resource " + baseURL + "/mcp alone"}
		}
	}
	return nil
}

// A tokenView holds tokens (RFC 6749, section 5.1).
type tokenView struct {
	Access  string `json:"access_token"`
	Type    string `json:"token_type"`
	Expires int    `json:"expires_in"` // seconds
	Refresh string `json:"refresh_token"`
	Scope   string `json:"scope"`
}

// issueTokens exchanges a code or a refresh token for new tokens.
func (a *API) issueTokens(w http.ResponseWriter, r *request) error {
	form, err := readParams(w, r)
	if err == nil {
		err = CheckResource(a.cfg.BaseURL, form)
	}
	if err != nil {
		return err
	}
	clientID, addr := form.Get("client_id"), serve.ClientAddr(r.Request)
	// An unknown client has its own error, which tells the client to register again.
	if _, err := a.store.People.OAuthClient(r.Context(), clientID); err != nil {
		return err
	}
	var t people.OAuthTokens
	switch form.Get("grant_type") {
	case "authorization_code":
		t, err = a.store.People.ExchangeCode(r.Context(), people.OAuthExchange{ClientID: clientID, Code: form.Get("code"),
			RedirectURI: form.Get("redirect_uri"), Verifier: form.Get("code_verifier")}, addr)
	case "refresh_token":
		t, err = a.store.People.RefreshTokens(r.Context(), clientID, form.Get("refresh_token"), addr)
	default:
		err = &Problem{Status: http.StatusBadRequest, Code: "unsupported_grant_type",
			Message: "grant_type must be authorization_code or refresh_token"}
	}
	if err != nil {
		return err
	}
	return respond(w, http.StatusOK, tokenView{Access: t.Access, Type: "Bearer", Expires: int(t.Expires.Seconds()),
		Refresh: t.Refresh, Scope: OAuthScope})
}

// revokeToken ends the grant of a token. An unknown token is no error (RFC 7009).
func (a *API) revokeToken(w http.ResponseWriter, r *request) error {
	form, err := readParams(w, r)
	if err != nil {
		return err
	}
	if form.Get("token") == "" {
		return db.Errorf(db.Invalid, "token is required")
	}
	// Only the client of the token can revoke it: the store compares the client_id.
	err = a.store.People.RevokeToken(r.Context(), form.Get("client_id"), form.Get("token"), serve.ClientAddr(r.Request))
	if err != nil {
		return err
	}
	return respond(w, http.StatusOK, struct{}{})
}
