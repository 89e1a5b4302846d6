package handlers

import (
	"net/http"
	"regexp"
	"strings"
)

// Front passes each request to the API or to the pages. Both share an address.
func Front(api *API, pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = singleSlashes(r)
		switch p := r.URL.Path; {
		case strings.HasPrefix(p, "/api/"), p == "/api", p == "/healthz", p == "/readyz", p == "/metrics", p == "/mcp",
			isOAuth(p), api.cfg.Peers != nil && strings.HasPrefix(p, turnsPath):
			api.ServeHTTP(w, r)
		default:
			pages.ServeHTTP(w, r)
		}
	})
}

// singleSlashes returns the request with single slashes in place of doubled ones in its path: some
// clients join URLs carelessly.
func singleSlashes(r *http.Request) *http.Request {
	if !strings.Contains(r.URL.Path, "//") {
		return r
	}
	u := *r.URL
	u.Path, u.RawPath = doubledSlashes.ReplaceAllString(u.Path, "/"), doubledSlashes.ReplaceAllString(u.RawPath, "/")
	copied := *r
	copied.URL = &u
	return &copied
}

var doubledSlashes = regexp.MustCompile(`//+`)

// RefuseProgram answers err as JSON if a program, and not a browser, asked for a page: a program
// cannot sign in. It reports whether it has answered.
func RefuseProgram(w http.ResponseWriter, r *http.Request, err error) bool {
	if WantsHTML(r) {
		return false
	}
	ProblemOf(err).respond(w, w.Header().Get("X-Request-Id"))
	return true
}
