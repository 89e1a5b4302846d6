package handlers

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// Front passes each request to the API or to the pages. Both share an address.
func Front(api *API, pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = api.ownMetadata(singleSlashes(r))
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
	return at(r, doubledSlashes.ReplaceAllString(r.URL.Path, "/"), doubledSlashes.ReplaceAllString(r.URL.RawPath, "/"))
}

// at returns the request with another path.
func at(r *http.Request, path, rawPath string) *http.Request {
	u := *r.URL
	u.Path, u.RawPath = path, rawPath
	copied := *r
	copied.URL = &u
	return &copied
}

// BasePath returns the path of a base URL, without a slash at the end: "" for none. The proxy in front
// of the server removes it from each request.
func BasePath(baseURL string) string {
	u, err := url.Parse(baseURL)
	if err != nil {
		return "" // CheckBaseURL of the command line has refused it
	}
	return strings.TrimRight(u.EscapedPath(), "/")
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
