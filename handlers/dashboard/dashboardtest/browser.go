package dashboardtest

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// A Browser keeps cookies and does not follow redirects by itself.
type Browser struct {
	*Site
	Client *http.Client
	Agent  string // its user agent; "" for the default
}

// A Page is an answer to a browser.
type Page struct {
	T      testing.TB
	Status int
	Header http.Header
	Body   string
}

// Location returns the address of a redirect.
func (p Page) Location() string { return p.Header.Get("Location") }

// Answers requires that the answer has the status.
func (p Page) Answers(status int) Page {
	p.T.Helper()
	if p.Status != status {
		p.T.Errorf("the answer has the status %d, not %d", p.Status, status)
	}
	return p
}

// SmallerThan requires that the page has fewer bytes than limit.
func (p Page) SmallerThan(limit int) {
	p.T.Helper()
	if len(p.Body) >= limit {
		p.T.Errorf("the page has %d bytes, not less than %d", len(p.Body), limit)
	}
}

// Shows requires that the page holds every text.
func (p Page) Shows(texts ...string) {
	p.T.Helper()
	for _, text := range texts {
		if !p.Has(text) {
			p.T.Errorf("the page with status %d does not hold %q", p.Status, text)
		}
	}
}

// Lacks requires that the page holds none of the texts.
func (p Page) Lacks(texts ...string) {
	p.T.Helper()
	for _, text := range texts {
		if p.Has(text) {
			p.T.Errorf("the page with status %d holds %q", p.Status, text)
		}
	}
}

// Has reports whether the page holds every text.
func (p Page) Has(texts ...string) bool {
	for _, text := range texts {
		if !strings.Contains(p.Body, text) {
			return false
		}
	}
	return true
}

// Get requests a page.
func (b *Browser) Get(path string) Page {
	b.T.Helper()
	return b.Send(b.Request(http.MethodGet, path, ""))
}

// Post sends a form as the pages of this site do. form alternates names and values.
func (b *Browser) Post(path string, form ...string) Page {
	b.T.Helper()
	values := url.Values{}
	for i := 0; i+1 < len(form); i += 2 {
		values.Add(form[i], form[i+1])
	}
	return b.Send(b.Request(http.MethodPost, path, values.Encode(), "Content-Type", "application/x-www-form-urlencoded",
		"Sec-Fetch-Site", "same-origin"))
}

// Send sends a request as a browser does, with its cookies.
func (b *Browser) Send(r *http.Request) Page {
	b.T.Helper()
	if b.Agent != "" {
		r.Header.Set("User-Agent", b.Agent)
	}
	if r.Header.Get("Accept") == "" {
		r.Header.Set("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
	}
	res, err := b.Client.Do(r)
	b.OK(err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	b.OK(err)
	return Page{b.T, res.StatusCode, res.Header, string(body)}
}
