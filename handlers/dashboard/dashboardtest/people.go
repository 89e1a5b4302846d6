package dashboardtest

import (
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/matryer/is"
	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"journeyman/store/people"
	"journeyman/store/storetest"
)

// Callback is the address to which a program wants its users redirected. Nothing listens there.
const Callback = "http://127.0.0.1:1/callback"

// Fields returns the hidden fields of a page's form: names and values, alternating.
func (p Page) Fields() (list []string) {
	for _, m := range regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`).FindAllStringSubmatch(p.Body, -1) {
		list = append(list, html.UnescapeString(m[1]), html.UnescapeString(m[2]))
	}
	return list
}

// Decide opens the page of an authorization address, decides, and returns the parameters of the
// redirect to the program.
func (b *Browser) Decide(t *testing.T, address, decision string) url.Values {
	t.Helper()
	p := b.Get(strings.TrimPrefix(address, b.URL))
	if p.Status == http.StatusOK {
		p = b.Post("/oauth/authorize", append(p.Fields(), "decision", decision)...)
	}
	back, err := url.Parse(p.Location())
	if err != nil || p.Status != http.StatusSeeOther || !strings.HasPrefix(p.Location(), Callback+"?") {
		t.Fatalf("no way back to the program: %d %s %s", p.Status, p.Location(), p.Body)
	}
	return back.Query()
}

// Connect connects a program to the MCP endpoint.
func (s *Site) Connect(t *testing.T, h auth.OAuthHandler) (*sdk.ClientSession, error) {
	t.Helper()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: s.URL + "/mcp", OAuthHandler: h, MaxRetries: -1}, nil)
	if err == nil {
		t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

// Register registers a program and returns its client_id.
func (s *Site) Register(t *testing.T, body string) (status int, answer map[string]any) {
	t.Helper()
	res, err := Client.Post(s.URL+"/oauth/register", "application/json", strings.NewReader(body))
	is.New(t).NoErr(err)
	defer res.Body.Close()
	is.New(t).NoErr(json.NewDecoder(res.Body).Decode(&answer))
	return res.StatusCode, answer
}

// DecisionLink returns the path of the link with which a user decides on a waiting task.
func (s *Site) DecisionLink(who people.Identity, task string) string {
	s.T.Helper()
	id := s.Approval(task)
	a, err := s.Store.Approval(s.T.Context(), s.Owner.Caller, task, id)
	s.OK(err)
	turn, err := s.Store.Turn(s.T.Context(), a.TurnID)
	s.OK(err)
	token, err := s.Store.DecisionToken(turn, a, who.UserID)
	s.OK(err)
	return "/decide/" + token
}

// Link creates a link of a kind for a user, as the command line does.
func (s *Site) Link(kind people.LinkKind, email string) string {
	s.T.Helper()
	_, token, err := s.Store.People.CreatePasswordLink(s.T.Context(), people.Operator(), kind, email)
	s.OK(err)
	return "/" + string(kind) + "/" + token
}

// invite invites a person and returns the page with the link.
func (b *Browser) invite(email string, role people.Role) Page {
	b.T.Helper()
	return b.Get(b.Post("/settings/members", "email", email, "role", string(role)).Location())
}

// Invitation invites a person on the page as the owner. It returns the path of the link.
func (s *Site) Invitation(email string, role people.Role) string {
	s.T.Helper()
	p := s.SignIn("ann@example.com").invite(email, role)
	found := regexp.MustCompile(`data-copy="` + regexp.QuoteMeta(s.URL) + `(/invitation/[^"]+)"`).FindStringSubmatch(p.Body)
	if p.Status != http.StatusOK || len(found) != 2 {
		s.T.Fatalf("%d: no link on the page:\n%s", p.Status, p.Body)
	}
	return found[1]
}

// Stranger returns a browser of an Owner of another organization.
func (s *Site) Stranger(email string) *Browser {
	s.T.Helper()
	storetest.Caller(s.T, s.Store, "Umbrella", email, people.RoleOwner)
	s.OK(s.Store.People.SetPassword(s.T.Context(), email, Password))
	return s.SignIn(email)
}
