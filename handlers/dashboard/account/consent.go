package account

import (
	"net/http"
	"net/url"

	"journeyman/handlers"
	"journeyman/handlers/dashboard/frame"
	"journeyman/store/db"
	"journeyman/store/people"
)

// consentRoutes registers the page where a user gives a program access. The button that ends the
// access is on the page of the account.
func (d *Pages) consentRoutes() {
	d.On("GET", "/oauth/authorize", d.showConsent) // handlers.AuthorizePath
	d.On("POST", "/oauth/authorize", d.consent)
	d.On("POST", "/account/programs/:grantId/revoke",
		frame.Changing("grantId", d.Store.People.RevokeOAuthGrant, frame.Done("/account", "program-ended")))
}

// A consentPage is the data of the page. Name and Host are the program's own claims.
type consentPage struct {
	Name    string
	Host    string // where the browser goes after the decision
	Refusal string // error code that the program will get instead of a code; "" if the person may agree
	Params  []param
}

// A param is a parameter of the program's request, which the form sends again.
type param struct{ Name, Value string }

// An authorization is the valid request of a program.
type authorization struct {
	client    people.OAuthClient
	uri       string // where the answer goes, as the program wrote it
	redirect  *url.URL
	challenge string
	state     string
}

// authorization reads a request of a program. An error of a request with a registered address is
// returned as refusal, a code for the program. Without a registered address, err is returned and
// shown to the user: otherwise this page would redirect browsers to any address (RFC 6749, section
// 4.1.2.1).
func (d *Pages) authorization(r *frame.Request, params url.Values) (a authorization, refusal string, err error) {
	if err := handlers.OnlyOnce(params); err != nil {
		return a, "", err
	}
	if a.client, err = d.Store.People.OAuthClient(r.Context(), params.Get("client_id")); err != nil {
		return a, "", err
	}
	// The order matters from here on: only a request with a registered address may be answered.
	a.uri = params.Get("redirect_uri")
	if a.redirect, err = url.Parse(a.uri); err != nil || !a.client.Redirects(a.uri) {
		return a, "", db.Errorf(db.Invalid,
			"the program %q has not registered the address to which it wants the answer", a.client.Name)
	}
	a.state, a.challenge = params.Get("state"), params.Get("code_challenge")
	switch {
	case params.Get("response_type") != "code":
		refusal = "unsupported_response_type"
	case params.Get("code_challenge_method") != "S256" || len(a.challenge) != 43:
		refusal = "invalid_request" // PKCE is required
	case handlers.CheckResource(d.BaseURL, params) != nil:
		refusal = "invalid_target"
	}
	return a, refusal, nil
}

// answer sends the browser back to the program.
func (d *Pages) answer(w http.ResponseWriter, r *frame.Request, a authorization, name, value string) error {
	// The address may have its own query, which stays (RFC 6749, section 3.1.2).
	query := a.redirect.Query()
	query.Set(name, value)
	query.Set("iss", d.BaseURL) // RFC 9207: the program can check which server answers
	if a.state != "" {
		query.Set("state", a.state)
	}
	back := *a.redirect
	back.RawQuery = query.Encode()
	// The address of this page holds the state of the program. The next site must not get it.
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Location", back.String())
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// showConsent shows the page that asks the user. It never redirects.
func (d *Pages) showConsent(w http.ResponseWriter, r *frame.Request) error {
	params := r.URL.Query()
	a, refusal, err := d.authorization(r, params)
	if err != nil {
		return err
	}
	// Anybody can register a program with any address. So the browser goes there only after the
	// user has pressed a button. This also applies to a refusal (RFC 9700, section 4.11.2).
	p := consentPage{Name: a.client.Name, Host: a.redirect.Host, Refusal: refusal}
	target := a.redirect.Scheme + ":"
	if a.redirect.Scheme == "http" || a.redirect.Scheme == "https" {
		target += "//" + a.redirect.Host
	} else {
		p.Host = target
	}
	for _, name := range []string{"response_type", "client_id", "code_challenge", "code_challenge_method", "state",
		"resource"} {
		for _, value := range params[name] {
			p.Params = append(p.Params, param{name, value})
		}
	}
	p.Params = append(p.Params, param{"redirect_uri", a.uri},
		param{"organization", r.Who.OrganizationID})
	// Browsers apply form-action also to the redirect that answers a form. target is safe in the
	// header: the store has accepted only hosts without spaces, quotes and semicolons.
	w.Header().Set("Content-Security-Policy", frame.PolicyFor(target))
	return d.Page(w, r, "consent.html", r.T("Connect a program"), p)
}

// consent carries out the user's decision. Any value except "allow" denies. It reads and checks the
// whole request again, because the form comes from the browser.
func (d *Pages) consent(w http.ResponseWriter, r *frame.Request) error {
	f, err := frame.ReadForm(w, r)
	if err != nil {
		return err
	}
	a, refusal, err := d.authorization(r, f.Values)
	switch {
	case err != nil:
		return err
	case refusal != "":
		return d.answer(w, r, a, "error", refusal)
	case f.Get("decision") != "allow":
		return d.answer(w, r, a, "error", "access_denied")
	case f.Get("organization") != r.Who.OrganizationID:
		// Another tab has switched the organization since the page was shown. The person agreed
		// to access to the organization on the page.
		return db.Errorf(db.Conflict, "you have switched to another organization: go back and decide again")
	}
	code, err := d.Store.People.Consent(r.Context(), r.Who.Caller, people.Consent{ClientID: a.client.ID,
		RedirectURI: a.uri, CodeChallenge: a.challenge})
	if err != nil {
		return err
	}
	return d.answer(w, r, a, "code", code)
}
