package dashboard_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers/dashboard"
	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/mail"
	"journeyman/store"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// evil is a text that tries to become code on any page: as an element, outside an attribute,
// outside a script, and as an address.
const evil = `"'><x-evil onclick=alert(1) onmouseover=alert(2)></x-evil><script>alert(3)</script><img src=x onerror=alert(4)><svg onload=alert(5)>{{7*7}}`

// evilName is a file name that tries the same.
const evilName = `"><svg onload=alert(7)> 'x.md`

// An evilSite has hostile text in every place that a user, a sender of mail, a model or a
// browser can fill.
type evilSite struct {
	*dashboardtest.Site
	ann    *dashboardtest.Browser // of the owner
	values map[string]string      // of the parameters of routes
}

func newEvilSite(t testing.TB) *evilSite {
	t.Helper()
	end := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(evil)) }))
	t.Cleanup(end.Close)
	var box *mail.Server
	s := dashboardtest.New(t, func(c *dashboard.Config) {
		box = mail.New(mail.Config{Store: c.Store, Runner: c.Runner, Log: c.Log, Domain: c.MailDomain,
			Accept: "@friend.example", Hold: true, Resolver: dashboardtest.NoDNS{}})
		c.Inbox, c.ReadMail = box, box.Preview
	})
	w := s.Worker(s.Owner, workers.NewWorker{Title: evil, Summary: evil, Instructions: evil,
		Settings: workers.Settings{ApprovalTools: []string{"list_files"}}})
	e := &evilSite{s, s.Visitor(), map[string]string{"workerId": w.ID, "taskId": "evil", "turn": "0", "step": "0",
		"call": "0", "what": "0/input",
		"filePath": url.PathEscape(evilName)}}
	e.ann.Agent = evil
	e.posts("/sign-in", "email", "ann@example.com", "password", dashboardtest.Password)
	e.posts("/account/name", "name", evil)
	e.posts("/settings/organization", "name", evil, "monthlyCreditCap", "1000")
	e.posts("/settings/keys", "name", evil)
	e.posts("/settings/members", "email", "new@example.com", "role", "member")
	e.posts("/workers/"+w.ID+"/webhook", "url", end.URL+"/?q="+url.QueryEscape(evil))
	sent := e.posts("/workers/"+w.ID+"/webhook/test", "token", "t").Location()
	e.values["executionId"] = strings.TrimSuffix(sent[strings.LastIndex(sent, "/")+1:], "?done=delivery-sent")

	s.CarryOut(s.Owner, store.NewTurn{WorkerID: w.ID, TaskID: "evil", Title: evil,
		Input: evil + "\n\n" + dashboardtest.Scripted("think "+evil,
			"say # "+evil, dashboardtest.Calling("write_file", "path", evilName, "content",
				evil), dashboardtest.Calling("publish_file", "path", evilName, "title", evil),
			dashboardtest.Calling("read_file", "path",
				evil), "say [x](javascript:alert(6)) ![p](https://elsewhere.example/p.png) "+evil)})
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: w.ID, TaskID: "failed", Input: dashboardtest.Scripted("fail 400 " + evil)})
	s.Begin(s.Owner, store.NewTurn{WorkerID: w.ID, TaskID: "asks",
		Input: dashboardtest.Scripted(dashboardtest.Calling("list_files", "path", evil), "say over")})
	e.values["token"] = s.DecisionLink(s.Owner, "asks")[len("/decide/"):]
	s.Begin(s.Owner, store.NewTurn{WorkerID: w.ID, TaskID: "question", Title: evil, Input: dashboardtest.Scripted(
		"tool ask_user "+asJSON(t, map[string]any{"question": evil, "choices": []string{evil, strings.Repeat("w", 80)}}), "say over")})
	e.values["question"] = s.DecisionLink(s.Owner, "question")
	e.secretsAndPrograms(w.ID)
	e.values["scheduleId"] = s.Schedule(w, evil, store.When{Type: store.CronType, Cron: "0 9 1 1 *"}).ID
	list, err := box.Receive(t.Context(), s.Owner, "eve@elsewhere.example", []string{w.ID + "@mail.example"},
		[]byte(strings.ReplaceAll(dashboardtest.HostileMail, "\n", "\r\n")))
	is.New(t).NoErr(err)
	e.values["emailId"] = list[0].ID
	return e
}

// secretsAndPrograms sets secrets and connects a program with a hostile name. The value consent is
// the address of another authorization request.
func (e *evilSite) secretsAndPrograms(workerID string) {
	e.T.Helper()
	for _, base := range []string{"/settings/secrets", "/workers/" + workerID + "/secrets"} {
		e.posts(base, "name", "CRM_KEY", "value", evil, "hosts", "api.example.com *."+strings.Repeat("a-long-label.", 8)+"example")
		e.posts(base, "name", "K"+strings.Repeat("EY_OF_A_LONG_NAME", 3), "value", evil)
	}
	c, err := e.Store.People.RegisterOAuthClient(e.T.Context(), evil, []string{dashboardtest.Callback})
	e.OK(err)
	verifier := strings.Repeat("v", 43)
	sum := sha256.Sum256([]byte(verifier))
	challenge := base64.RawURLEncoding.EncodeToString(sum[:])
	code, err := e.Store.People.Consent(e.T.Context(), e.Owner.Caller, people.Consent{ClientID: c.ID,
		RedirectURI: dashboardtest.Callback, CodeChallenge: challenge})
	if err == nil {
		_, err = e.Store.People.ExchangeCode(e.T.Context(), people.OAuthExchange{ClientID: c.ID, Code: code,
			RedirectURI: dashboardtest.Callback, Verifier: verifier}, "127.0.0.1")
	}
	e.OK(err)
	e.values["consent"] = "/oauth/authorize?" + url.Values{"response_type": {"code"}, "client_id": {c.ID},
		"redirect_uri": {dashboardtest.Callback},
		"state":        {evil}, "code_challenge": {challenge}, "code_challenge_method": {"S256"}}.Encode()
}

// asJSON returns a value as JSON.
func asJSON(t testing.TB, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	is.New(t).NoErr(err)
	return string(text)
}

// posts sends a form as the owner. The site must accept it.
func (e *evilSite) posts(path string, form ...string) dashboardtest.Page {
	e.T.Helper()
	p := e.ann.Post(path, form...)
	if p.Status != http.StatusSeeOther && p.Status != http.StatusOK {
		e.T.Fatalf("%s: %d\n%s", path, p.Status, p.Body)
	}
	return p
}

// A route is a page as the source registers it.
type route struct{ kind, method, pattern string }

var parameter = regexp.MustCompile(`[:*](\w+)`)

// path returns the address of a route, with values for its parameters.
func (r route) path(values map[string]string) string {
	return parameter.ReplaceAllStringFunc(r.pattern, func(name string) string {
		if v := values[name[1:]]; v != "" {
			return v
		}
		return "none"
	})
}

// registered matches the registration of a page in the source.
var registered = regexp.MustCompile(`\b[a-z]+\.(On|Open|May)\((?:people\.(\w+), )?"([A-Z]+)", "(/[^"]*)"`)

// routes returns all pages that the source registers.
func routes(t testing.TB) []route {
	t.Helper()
	list := []route{{"Open", "GET", "/welcome/:token"}, {"Open", "POST", "/welcome/:token"}, {"Open", "GET", "/reset/:token"}, {"Open", "POST", "/reset/:token"}}
	files, err := filepath.Glob("*.go")
	is.New(t).NoErr(err)
	below, err := filepath.Glob("*/*.go")
	is.New(t).NoErr(err)
	for _, file := range slices.Concat(files, below) {
		source, err := os.ReadFile(file)
		is.New(t).NoErr(err)
		for _, m := range registered.FindAllStringSubmatch(string(source), -1) {
			list = append(list, route{m[1], m[3], m[4]})
		}
	}
	if len(list) < 70 {
		t.Fatalf("found %d routes only", len(list))
	}
	return list
}

// leading are routes of endless streams; downloads are routes that send files.
var (
	leading   = []string{"/events", "/tasks/:taskId/live"}
	downloads = []string{"/usage.csv", "/settings/audit.csv", "/mail/messages/:emailId/source", "/tasks/:taskId/raw/*what", "/workers/:workerId/preview/*filePath",
		"/workers/:workerId/export", "/workers/:workerId/files.zip", "/tasks/:taskId/files.zip"}
)

// pages returns the addresses of all pages that show hostile text. Among them are pages
// that answer a form or a search, and a page that does not exist.
func (e *evilSite) pages() []string {
	e.T.Helper()
	var list []string
	for _, r := range routes(e.T) {
		if r.method == http.MethodGet && r.kind != "Open" && !slices.Contains(leading, r.pattern) && !slices.Contains(downloads, r.pattern) {
			list = append(list, r.path(e.values))
		}
	}
	q := url.QueryEscape(evil)
	return append(list, "/workers/new", "/tasks/failed", "/tasks/asks", "/tasks/question", "/decide/"+e.values["token"], e.values["question"],
		e.values["consent"], strings.Replace(e.values["consent"], "response_type=code", "response_type="+q, 1), "/workers?q="+q, "/tasks?q="+q+"&status="+q, "/mail?status="+q, "/mail?workerId="+q,
		"/usage?by="+q+"&days="+q, "/settings/audit?email="+q+"&from="+q, "/nowhere/"+url.PathEscape(evil), "/tasks/"+url.PathEscape(evil), "/workers?done="+q)
}

// TestStoredScripts checks that every page shows hostile text as text.
func TestStoredScripts(t *testing.T) {
	t.Parallel()
	e := newEvilSite(t)
	shown := 0
	for _, path := range e.pages() {
		p := e.ann.Get(path)
		if p.Status != http.StatusOK && p.Status != http.StatusUnprocessableEntity && p.Status != http.StatusNotFound && p.Status != http.StatusConflict {
			t.Errorf("%s answers %d\n%s", path, p.Status, p.Body)
		}
		p.Check(t, path)
		p.Guarded(t, path)
		if len(p.Body) > dashboardtest.MaxPage {
			t.Errorf("%s has %d bytes", path, len(p.Body))
		}
		if p.Has("&lt;x-evil") {
			shown++
		}
	}
	if shown < 25 {
		t.Errorf("evil is seen on %d pages only", shown) // otherwise nothing was tested
	}
	for _, path := range []string{"/sign-in?next=" + url.QueryEscape(evil), e.Link(people.LinkReset, "ann@example.com"),
		e.Invitation("x@example.com", people.RoleMember),
		"/reset/none", "/invitation/none", "/sign-in?done=" + url.QueryEscape(evil)} {
		p := e.Visitor().Get(path)
		p.Check(t, path)
		p.Guarded(t, path)
	}
}

// TestDownloadsAreNotRendered checks that no browser shows a download as a page of this site.
func TestDownloadsAreNotRendered(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	e := newEvilSite(t)
	for _, pattern := range downloads {
		path := route{pattern: pattern}.path(e.values)
		p := e.ann.Get(path)
		is.Equal(p.Status, http.StatusOK)
		p.Guarded(t, path)
		kind := p.Header.Get("Content-Type")
		apart := strings.Contains(p.Header.Get("Content-Security-Policy"),
			"sandbox") || strings.HasPrefix(p.Header.Get("Content-Disposition"), "attachment")
		if !apart && strings.HasPrefix(kind, "text/html") {
			p.Check(t, path) // a page, and not a download
		} else if !apart {
			t.Errorf("%s is shown as %s", path, kind)
		}
	}
}

// TestOtherSitesCannotPost sends each form from another site, from a frame, and as old browsers do,
// which send only the origin.
func TestOtherSitesCannotPost(t *testing.T) {
	t.Parallel()
	e := newEvilSite(t)
	tried := 0
	for _, r := range routes(t) {
		if r.method != http.MethodPost {
			continue
		}
		for _, header := range [][2]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://elsewhere.example"}, {"Origin", "null"}} {
			p := e.ann.Send(e.Request(http.MethodPost, r.path(e.values), "name=x", "Content-Type",
				"application/x-www-form-urlencoded", header[0], header[1]))
			if p.Status != http.StatusForbidden || !p.Has("The request was sent by another site") {
				t.Errorf("%s with %s answers %d", r.pattern, header, p.Status)
			}
			p.Guarded(t, r.pattern)
			tried++
		}
	}
	if tried < 4*35 {
		t.Errorf("%d tried only", tried)
	}
}

// TestSignInLeadsBack opens each page signed out. The sign-in must lead to that page.
func TestSignInLeadsBack(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	e := newEvilSite(t)
	for _, r := range routes(t) {
		if r.kind == "Open" || r.pattern == "/" {
			continue
		}
		path := r.path(e.values)
		if r.method == http.MethodPost {
			is.Equal(e.Visitor().Post(path).Location(), "/sign-in") // the form is dropped
			continue
		}
		path += "?q=a%26b"
		p := e.Visitor().Get(path)
		is.Equal(p.Status, http.StatusSeeOther)
		is.Equal(p.Body, "<a href=\"/sign-in?next="+url.QueryEscape(path)+"\">See Other</a>.\n\n") // nothing of the page
		to, err := url.Parse(p.Location())
		is.NoErr(err)
		is.Equal(to.Path, "/sign-in")
		is.Equal(to.Query().Get("next"), path)
	}
	path := "/tasks/evil?q=a%26b"
	p := e.Visitor().Post("/sign-in", "email", "ann@example.com", "password", dashboardtest.Password, "next", path)
	is.Equal(p.Location(), path)
}
