package dashboard_test

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
	"journeyman/runner/dial"
	"journeyman/runner/tool/mcp"
	"journeyman/store/people"
)

// withServer configures the MCP server at an address under the name office.
func withServer(t *testing.T, address string) func(*dashboard.Config) {
	return func(cfg *dashboard.Config) {
		folder := t.TempDir()
		is.New(t).NoErr(os.WriteFile(filepath.Join(folder, "mcp.json"), []byte(`{"mcpServers": {"office": {"url": "`+address+`"}}}`), 0o600))
		servers, err := mcp.Load("", folder, os.Getenv)
		is.New(t).NoErr(err)
		cfg.Servers = mcp.New(servers, mcp.Config{Log: slog.New(slog.DiscardHandler), Version: "test", BaseURL: cfg.BaseURL, Logins: cfg.Store.People,
			Dialer: dial.Guard{AllowPrivate: true}, Timing: mcp.Timing{Backoff: time.Millisecond}})
		t.Cleanup(cfg.Servers.Stop)
	}
}

// TestOneServerSignsInToAnother connects two servers of this program: the Owner of one signs in to
// the other, whose page asks for consent.
func TestOneServerSignsInToAnother(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	far := newSite(t)
	var near dashboard.Config
	s := newSite(t, withServer(t, far.url+"/mcp"), func(cfg *dashboard.Config) { near = *cfg })
	there, here := far.signIn("ann@example.com"), s.signIn("ann@example.com")
	toolset := near.Servers.Toolset(t.Context(), []string{"office"}, nil)
	is.Equal(len(toolset.Tools), 0)
	is.True(strings.Contains(toolset.Note, "sign in"))
	here.get("/settings/system").shows("office", "sign-in needed", far.url+"/mcp")

	p := here.post("/settings/system/servers/office/sign-in")
	is.Equal(p.location(), "/settings/system/servers/office/sign-in")
	p = here.get(p.location())
	is.Equal(p.status, http.StatusOK)
	link := regexp.MustCompile(`href="(http[^"]*)"`).FindStringSubmatch(p.body)
	is.Equal(len(link), 2)
	address := html.UnescapeString(link[1])
	p.shows(strings.TrimPrefix(far.url, "http://")) // the page shows the target of the link
	consent := there.get(strings.TrimPrefix(address, far.url))
	consent.shows("Journeyman", strings.TrimPrefix(s.url, "http://"))
	back := there.post("/oauth/authorize", append(consent.fields(), "decision", "allow")...)
	path, own := strings.CutPrefix(back.location(), s.url)
	is.True(own) // the browser returns to the first server

	is.Equal(s.visitor().get(path).location()[:len("/sign-in")], "/sign-in")    // without a session
	is.Equal(s.signIn("ann@example.com").get(path).status, http.StatusConflict) // another browser
	s.join("bob@example.com", people.RoleAdmin)
	is.Equal(s.signIn("bob@example.com").get(path).status, http.StatusForbidden) // not an Owner
	rival := s.stranger("eve@example.com")                                       // the Owner of another organization must not sign all workers in
	is.Equal(rival.post("/settings/system/servers/office/sign-in").status, http.StatusForbidden)
	is.Equal(rival.post("/settings/system/servers/office/sign-out").status, http.StatusForbidden)
	is.Equal(here.get(path).location(), "/settings/system?done=server-in")
	is.Equal(here.get(path).status, http.StatusConflict) // an answer is accepted once
	here.get("/settings/system").shows("office", "signed in")
	here.get("/settings/audit").shows("signed in to an MCP server")
	for end := time.Now().Add(time.Minute); len(toolset.Tools) == 0; toolset = near.Servers.Toolset(t.Context(), []string{"office"}, nil) {
		if time.Now().After(end) {
			t.Fatal("the tools are never offered: ", toolset.Note)
		}
	}

	is.Equal(here.post("/settings/system/servers/office/sign-out").status, http.StatusSeeOther)
	here.get("/settings/system").lacks("signed in</span>") // the tokens are still there
	is.Equal(here.post("/settings/system/servers/none/sign-in").status, http.StatusConflict)
	is.Equal(here.post("/settings/system/servers/none/sign-out").status, http.StatusNotFound)
}
