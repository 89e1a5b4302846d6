package dashboard_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers/dashboard/dashboardtest"
)

// TestProgramsGetNoPages requests addresses without a page, as programs and as browsers.
func TestProgramsGetNoPages(t *testing.T) {
	t.Parallel()
	s := dashboardtest.New(t)
	for _, path := range []string{"/none", "/v1/chat/completions", "/tasks/a/b/c/d", "/api", "/assets/none",
		"/robots.txt", "/workers//none/x"} {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
			for _, accept := range []string{"*/*", "application/json", "application/json, text/html;q=0.1"} {
				p := s.Visitor().Send(s.Request(method, path, "", "Accept", accept))
				var body map[string]string
				if err := json.Unmarshal([]byte(p.Body), &body); err != nil || p.Status != 404 || body["code"] != "not_found" ||
					body["requestId"] != p.Header.Get("X-Request-Id") {
					t.Errorf("%s %s as %q: %d %s", method, path, accept, p.Status, p.Body)
				}
			}
		}
	}
	is := is.New(t)
	is.True(strings.HasPrefix(s.Visitor().Get("/none").Location(),
		"/sign-in")) // a browser cannot find out which pages exist
	s.SignIn("ann@example.com").Get("/none").Answers(404).Shows("</html>")

	p := s.Visitor().Send(s.Request("GET", "/tasks", "", "Accept", "*/*", "Authorization", "Bearer "+s.Key))
	is.Equal(p.Status, 404) // a page, not the API
	p.Shows("begin with /api/")
}
