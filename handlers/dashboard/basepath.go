package dashboard

import (
	"net/http"
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

// withBase returns HTML in which the local addresses begin with the path of the base URL. The HTML
// must not have passed through withBase before.
func withBase(base, html string) string {
	if base == "" {
		return html
	}
	return localAddress.ReplaceAllString(html, "${1}"+strings.ReplaceAll(base, "$", "$$")+"/${2}")
}

// cookiePath returns the path for cookies that belong to every page. Other programs may serve other
// paths of the same host, and must not get the session.
func (d *Dashboard) cookiePath() string {
	if d.basePath == "" {
		return "/"
	}
	return d.basePath
}

// otherSlash redirects a request to the page whose address differs by a slash at the end. It reports
// whether there is such a page. The router's own redirect would leave out the path of the base URL.
func (d *Dashboard) otherSlash(w http.ResponseWriter, r *http.Request) bool {
	_, _, found := d.router.Lookup(r.Method, r.URL.Path)
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
	http.Redirect(w, r, d.basePath+to.String(), status)
	return true
}
