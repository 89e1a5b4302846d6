package frame

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// The base URL may have a path: the proxy in front of the server removes it from each request.
// Handlers and templates know only addresses without that path. This file adds the path to the
// addresses that a browser gets.

// localAddress matches an attribute with an address on this server, up to the first byte after its
// slash. A text cannot look like such an attribute, because templates and the sanitiser escape its
// quotes. Other attributes with data- hold texts of users, and are not listed.
var localAddress = regexp.MustCompile(
	`(\s(?:href|src|action|formaction|data|data-(?:check|copy-from|events|results|root|run|runs|stream))=")/([^/])`)

// WithBase returns HTML in which the local addresses begin with the path of the base URL. The HTML
// must not have passed through WithBase before.
func WithBase(base, html string) string {
	if base == "" {
		return html
	}
	return localAddress.ReplaceAllString(html, "${1}"+strings.ReplaceAll(base, "$", "$$")+"/${2}")
}

// CookiePath returns the path for cookies that belong to every page. Other programs may serve other
// paths of the same host, and must not get the session.
func (fr *Frame) CookiePath() string {
	if fr.BasePath == "" {
		return "/"
	}
	return fr.BasePath
}

// otherSlash redirects a request to the page whose address differs by a slash at the end. It reports
// whether there is such a page. The router's own redirect would leave out the path of the base URL.
func (fr *Frame) otherSlash(w http.ResponseWriter, r *http.Request) bool {
	_, _, found := fr.router.Lookup(r.Method, r.URL.Path)
	if !found || r.URL.Path == "/" {
		return false
	}
	to := *r.URL
	if short, ok := strings.CutSuffix(to.Path, "/"); ok {
		to.Path = short
	} else {
		to.Path += "/"
	}
	status := http.StatusMovedPermanently
	if r.Method != http.MethodGet {
		status = http.StatusPermanentRedirect // a browser sends the form again
	}
	http.Redirect(w, r, fr.BasePath+to.String(), status)
	return true
}

// toSignIn redirects a browser to the sign-in page, and from there to the requested page. The
// values of a form are lost, because the browser was not signed in.
func (fr *Frame) toSignIn(w http.ResponseWriter, r *Request) error {
	to := "/sign-in"
	if r.Method == http.MethodGet && r.URL.Path != "/" {
		to += "?next=" + url.QueryEscape(r.URL.RequestURI())
	}
	return Redirect(w, r, to)
}

// LocalPage returns next if it is the address of a page of this server, otherwise the first page.
// So a link to the sign-in page cannot lead to another site.
func LocalPage(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}
