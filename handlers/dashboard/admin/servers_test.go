package admin_test

import (
	"html"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers/dashboard"
	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/runner/dial"
	"journeyman/runner/tool/mcp"
	"journeyman/store/people"
)

// withServer configures the MCP server at an address under the name office.
func withServer(t *testing.T, address string) func(*dashboard.Config) {
	return func(cfg *dashboard.Config) {
		folder := t.TempDir()
		is.New(t).NoErr(os.WriteFile(filepath.Join(folder, "mcp.json"),
			[]byte(`{"mcpServers": {"office": {"url": "`+address+`"}}}`), 0o600))
		servers, err := mcp.Load("", folder, os.Getenv)
		is.New(t).NoErr(err)
		cfg.Servers = mcp.New(servers, mcp.Config{Log: slog.New(slog.DiscardHandler), Version: "test", BaseURL: cfg.BaseURL,
			Logins: cfg.Store.People,
			Dialer: dial.Guard{AllowPrivate: true}, Timing: mcp.Timing{Backoff: time.Millisecond}})
		t.Cleanup(cfg.Servers.Stop)
	}
}

// TestOneServerSignsInToAnother connects two servers of this program: the Owner of one signs in to
// the other, whose page asks for consent.
func TestOneServerSignsInToAnother(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	far := dashboardtest.New(t)
	var near dashboard.Config
	s := dashboardtest.New(t, withServer(t, far.URL+"/mcp"), func(cfg *dashboard.Config) { near = *cfg })
	there, here := far.SignIn("ann@example.com"), s.SignIn("ann@example.com")
	toolset := near.Servers.Toolset(t.Context(), []string{"office"}, nil)
	is.Equal(len(toolset.Tools), 0)
	is.True(strings.Contains(toolset.Note, "sign in"))
	here.Get("/settings/system").Shows("office", "sign-in needed", far.URL+"/mcp")

	p := here.Post("/settings/system/servers/office/sign-in")
	is.Equal(p.Location(), "/settings/system/servers/office/sign-in")
	p = here.Get(p.Location())
	is.Equal(p.Status, http.StatusOK)
	link := regexp.MustCompile(`href="(http[^"]*)"`).FindStringSubmatch(p.Body)
	is.Equal(len(link), 2)
	address := html.UnescapeString(link[1])
	p.Shows(strings.TrimPrefix(far.URL, "http://")) // the page shows the target of the link
	consent := there.Get(strings.TrimPrefix(address, far.URL))
	consent.Shows("Journeyman", strings.TrimPrefix(s.URL, "http://"))
	back := there.Post("/oauth/authorize", append(consent.Fields(), "decision", "allow")...)
	path, own := strings.CutPrefix(back.Location(), s.URL)
	is.True(own) // the browser returns to the first server

	is.Equal(s.Visitor().Get(path).Location()[:len("/sign-in")], "/sign-in")    // without a session
	is.Equal(s.SignIn("ann@example.com").Get(path).Status, http.StatusConflict) // another browser
	s.Join("bob@example.com", people.RoleAdmin)
	is.Equal(s.SignIn("bob@example.com").Get(path).Status, http.StatusForbidden) // not an Owner
	rival := s.Stranger("eve@example.com")                                       // the Owner of another organization must not sign all workers in
	is.Equal(rival.Post("/settings/system/servers/office/sign-in").Status, http.StatusForbidden)
	is.Equal(rival.Post("/settings/system/servers/office/sign-out").Status, http.StatusForbidden)
	is.Equal(here.Get(path).Location(), "/settings/system?done=server-in")
	is.Equal(here.Get(path).Status, http.StatusConflict) // an answer is accepted once
	here.Get("/settings/system").Shows("office", "signed in")
	here.Get("/settings/audit").Shows("signed in to an MCP server")
	for end := time.Now().Add(time.Minute); len(toolset.Tools) == 0; toolset = near.Servers.Toolset(t.Context(),
		[]string{"office"}, nil) {
		if time.Now().After(end) {
			t.Fatal("the tools are never offered: ", toolset.Note)
		}
	}

	is.Equal(here.Post("/settings/system/servers/office/sign-out").Status, http.StatusSeeOther)
	here.Get("/settings/system").Lacks("signed in</span>") // the tokens are still there
	is.Equal(here.Post("/settings/system/servers/none/sign-in").Status, http.StatusConflict)
	is.Equal(here.Post("/settings/system/servers/none/sign-out").Status, http.StatusNotFound)
}
