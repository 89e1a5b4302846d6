package dashboard_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// TestProgramsGetNoPages requests addresses without a page, as programs and as browsers.
func TestProgramsGetNoPages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, path := range []string{"/none", "/v1/chat/completions", "/tasks/a/b/c/d", "/api", "/assets/none",
		"/robots.txt", "/workers//none/x"} {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
			for _, accept := range []string{"*/*", "application/json", "application/json, text/html;q=0.1"} {
				p := s.visitor().send(s.request(method, path, "", "Accept", accept))
				var body map[string]string
				if err := json.Unmarshal([]byte(p.body), &body); err != nil || p.status != 404 || body["code"] != "not_found" ||
					body["requestId"] != p.header.Get("X-Request-Id") {
					t.Errorf("%s %s as %q: %d %s", method, path, accept, p.status, p.body)
				}
			}
		}
	}
	is := is.New(t)
	is.True(strings.HasPrefix(s.visitor().get("/none").location(), "/sign-in")) // a browser cannot find out which pages exist
	s.signIn("ann@example.com").get("/none").answers(404).shows("</html>")

	p := s.visitor().send(s.request("GET", "/tasks", "", "Accept", "*/*", "Authorization", "Bearer "+s.key))
	is.Equal(p.status, 404) // a page, not the API
	p.shows("begin with /api/")
}
