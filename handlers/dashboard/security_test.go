package dashboard_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net"
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
	"golang.org/x/net/html"

	"journeyman/handlers/dashboard"
	"journeyman/mail"
	"journeyman/store"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// noDNS is a resolver without any names.
type noDNS struct{}

func (noDNS) LookupTXT(_ context.Context, name string) ([]string, error) {
	return nil, unknownName(name)
}
func (noDNS) LookupMX(_ context.Context, name string) ([]*net.MX, error) {
	return nil, unknownName(name)
}
func (noDNS) LookupIPAddr(_ context.Context, name string) ([]net.IPAddr, error) {
	return nil, unknownName(name)
}
func (noDNS) LookupAddr(_ context.Context, addr string) ([]string, error) {
	return nil, unknownName(addr)
}

func unknownName(name string) error {
	return &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

// evil is a text that tries to become code on any page: as an element, outside an attribute,
// outside a script, and as an address.
const evil = `"'><x-evil onclick=alert(1) onmouseover=alert(2)></x-evil><script>alert(3)</script><img src=x onerror=alert(4)><svg onload=alert(5)>{{7*7}}`

// evilName is a file name that tries the same.
const evilName = `"><svg onload=alert(7)> 'x.md`

// An evilSite has hostile text in every place that a user, a sender of mail, a model or a
// browser can fill.
type evilSite struct {
	*site
	ann    *browser          // of the owner
	values map[string]string // of the parameters of routes
}

func newEvilSite(t testing.TB) *evilSite {
	t.Helper()
	end := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(evil)) }))
	t.Cleanup(end.Close)
	var box *mail.Server
	s := newSite(t, func(c *dashboard.Config) {
		box = mail.New(mail.Config{Store: c.Store, Runner: c.Runner, Log: c.Log, Domain: c.MailDomain, Accept: "@friend.example", Hold: true, Resolver: noDNS{}})
		c.Inbox, c.ReadMail = box, box.Preview
	})
	w := s.worker(s.owner, workers.NewWorker{Title: evil, Summary: evil, Instructions: evil,
		Settings: workers.Settings{ApprovalTools: []string{"list_files"}}})
	e := &evilSite{s, s.visitor(), map[string]string{"workerId": w.ID, "taskId": "evil", "turn": "0", "step": "0", "call": "0", "what": "0/input",
		"filePath": url.PathEscape(evilName)}}
	e.ann.agent = evil
	e.posts("/sign-in", "email", "ann@example.com", "password", password)
	e.posts("/account/name", "name", evil)
	e.posts("/settings/organization", "name", evil, "monthlyCreditCap", "1000")
	e.posts("/settings/keys", "name", evil)
	e.posts("/settings/members", "email", "new@example.com", "role", "member")
	e.posts("/workers/"+w.ID+"/webhook", "url", end.URL+"/?q="+url.QueryEscape(evil))
	sent := e.posts("/workers/"+w.ID+"/webhook/test", "token", "t").location()
	e.values["executionId"] = strings.TrimSuffix(sent[strings.LastIndex(sent, "/")+1:], "?done=delivery-sent")

	s.carryOut(s.owner, store.NewTurn{WorkerID: w.ID, TaskID: "evil", Title: evil, Input: evil + "\n\n" + scripted("think "+evil,
		"say # "+evil, calling("write_file", "path", evilName, "content", evil), calling("publish_file", "path", evilName, "title", evil),
		calling("read_file", "path", evil), "say [x](javascript:alert(6)) ![p](https://elsewhere.example/p.png) "+evil)})
	s.carryOut(s.owner, store.NewTurn{WorkerID: w.ID, TaskID: "failed", Input: scripted("fail 400 " + evil)})
	s.begin(s.owner, store.NewTurn{WorkerID: w.ID, TaskID: "asks", Input: scripted(calling("list_files", "path", evil), "say over")})
	e.values["token"] = s.decisionLink(s.owner, "asks")[len("/decide/"):]
	s.begin(s.owner, store.NewTurn{WorkerID: w.ID, TaskID: "question", Title: evil, Input: scripted(
		"tool ask_user "+asJSON(t, map[string]any{"question": evil, "choices": []string{evil, strings.Repeat("w", 80)}}), "say over")})
	e.values["question"] = s.decisionLink(s.owner, "question")
	e.secretsAndPrograms(w.ID)
	e.values["scheduleId"] = s.schedule(w, evil, store.When{Type: store.CronType, Cron: "0 9 1 1 *"}).ID
	list, err := box.Receive(t.Context(), s.owner, "eve@elsewhere.example", []string{w.ID + "@mail.example"}, []byte(strings.ReplaceAll(hostileMail, "\n", "\r\n")))
	is.New(t).NoErr(err)
	e.values["emailId"] = list[0].ID
	return e
}

// secretsAndPrograms sets secrets and connects a program with a hostile name. The value consent is
// the address of another authorization request.
func (e *evilSite) secretsAndPrograms(workerID string) {
	e.t.Helper()
	for _, base := range []string{"/settings/secrets", "/workers/" + workerID + "/secrets"} {
		e.posts(base, "name", "CRM_KEY", "value", evil, "hosts", "api.example.com *."+strings.Repeat("a-long-label.", 8)+"example")
		e.posts(base, "name", "K"+strings.Repeat("EY_OF_A_LONG_NAME", 3), "value", evil)
	}
	c, err := e.store.People.RegisterOAuthClient(e.t.Context(), evil, []string{callback})
	e.ok(err)
	verifier := strings.Repeat("v", 43)
	sum := sha256.Sum256([]byte(verifier))
	challenge := base64.RawURLEncoding.EncodeToString(sum[:])
	code, err := e.store.People.Consent(e.t.Context(), e.owner.Caller, people.Consent{ClientID: c.ID,
		RedirectURI: callback, CodeChallenge: challenge})
	if err == nil {
		_, err = e.store.People.ExchangeCode(e.t.Context(), people.OAuthExchange{ClientID: c.ID, Code: code,
			RedirectURI: callback, Verifier: verifier}, "127.0.0.1")
	}
	e.ok(err)
	e.values["consent"] = "/oauth/authorize?" + url.Values{"response_type": {"code"}, "client_id": {c.ID}, "redirect_uri": {callback},
		"state": {evil}, "code_challenge": {challenge}, "code_challenge_method": {"S256"}}.Encode()
}

// asJSON returns a value as JSON.
func asJSON(t testing.TB, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	is.New(t).NoErr(err)
	return string(text)
}

// posts sends a form as the owner. The site must accept it.
func (e *evilSite) posts(path string, form ...string) page {
	e.t.Helper()
	p := e.ann.post(path, form...)
	if p.status != http.StatusSeeOther && p.status != http.StatusOK {
		e.t.Fatalf("%s: %d\n%s", path, p.status, p.body)
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
	e.t.Helper()
	var list []string
	for _, r := range routes(e.t) {
		if r.method == http.MethodGet && r.kind != "Open" && !slices.Contains(leading, r.pattern) && !slices.Contains(downloads, r.pattern) {
			list = append(list, r.path(e.values))
		}
	}
	q := url.QueryEscape(evil)
	return append(list, "/workers/new", "/tasks/failed", "/tasks/asks", "/tasks/question", "/decide/"+e.values["token"], e.values["question"],
		e.values["consent"], strings.Replace(e.values["consent"], "response_type=code", "response_type="+q, 1), "/workers?q="+q, "/tasks?q="+q+"&status="+q, "/mail?status="+q, "/mail?workerId="+q,
		"/usage?by="+q+"&days="+q, "/settings/audit?email="+q+"&from="+q, "/nowhere/"+url.PathEscape(evil), "/tasks/"+url.PathEscape(evil), "/workers?done="+q)
}

// check fails the test if a page has markup from hostile text, or anything that would need a weaker
// policy.
func (p page) check(t testing.TB, path string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(p.body))
	is.New(t).NoErr(err)
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		bad := n.Data == "x-evil" || n.Data == "style" || n.Data == "base"
		attributes := map[string]string{}
		for _, a := range n.Attr {
			attributes[a.Key] = a.Val
			address := strings.ToLower(strings.TrimSpace(a.Val))
			bad = bad || strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "srcdoc" ||
				(a.Key == "href" || a.Key == "src" || a.Key == "action" || a.Key == "formaction") && strings.HasPrefix(address, "javascript:")
		}
		switch n.Data {
		case "script":
			bad = bad || !strings.HasPrefix(attributes["src"], "/assets/") || n.FirstChild != nil
		case "link", "img", "iframe", "object", "embed":
			address := attributes["src"] + attributes["href"] + attributes["data"]
			bad = bad || !strings.HasPrefix(address, "/") || strings.HasPrefix(address, "//")
		case "form":
			bad = bad || !strings.HasPrefix(attributes["action"], "/") && attributes["action"] != "" || strings.HasPrefix(attributes["action"], "//")
		case "meta":
			bad = bad || attributes["http-equiv"] != ""
		}
		if bad {
			t.Errorf("%s holds <%s %v>", path, n.Data, n.Attr)
		}
	}
}

// guarded fails the test unless a response has the headers of every page.
func (p page) guarded(t testing.TB, path string) {
	t.Helper()
	policy := p.header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
		t.Errorf("%s has the policy %q", path, policy)
	}
	if !strings.Contains(policy, "frame-ancestors 'none'") && !strings.Contains(policy, "frame-ancestors 'self'") && !strings.Contains(policy, "sandbox") {
		t.Errorf("%s may be framed: %q", path, policy)
	}
	for name, value := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin"} {
		if got := p.header.Get(name); got != value && got != "no-referrer" { // which is stricter
			t.Errorf("%s has %s: %q", path, name, p.header.Get(name))
		}
	}
	if !strings.Contains(p.header.Get("Cache-Control"), "no-store") {
		t.Errorf("%s may be kept: %q", path, p.header.Get("Cache-Control"))
	}
}

// TestStoredScripts checks that every page shows hostile text as text.
func TestStoredScripts(t *testing.T) {
	t.Parallel()
	e := newEvilSite(t)
	shown := 0
	for _, path := range e.pages() {
		p := e.ann.get(path)
		if p.status != http.StatusOK && p.status != http.StatusUnprocessableEntity && p.status != http.StatusNotFound && p.status != http.StatusConflict {
			t.Errorf("%s answers %d\n%s", path, p.status, p.body)
		}
		p.check(t, path)
		p.guarded(t, path)
		if len(p.body) > maxPage {
			t.Errorf("%s has %d bytes", path, len(p.body))
		}
		if p.has("&lt;x-evil") {
			shown++
		}
	}
	if shown < 25 {
		t.Errorf("evil is seen on %d pages only", shown) // otherwise nothing was tested
	}
	for _, path := range []string{"/sign-in?next=" + url.QueryEscape(evil), e.link(people.LinkReset, "ann@example.com"),
		e.invitation("x@example.com", people.RoleMember),
		"/reset/none", "/invitation/none", "/sign-in?done=" + url.QueryEscape(evil)} {
		p := e.visitor().get(path)
		p.check(t, path)
		p.guarded(t, path)
	}
}

// TestDownloadsAreNotRendered checks that no browser shows a download as a page of this site.
func TestDownloadsAreNotRendered(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	e := newEvilSite(t)
	for _, pattern := range downloads {
		path := route{pattern: pattern}.path(e.values)
		p := e.ann.get(path)
		is.Equal(p.status, http.StatusOK)
		p.guarded(t, path)
		kind := p.header.Get("Content-Type")
		apart := strings.Contains(p.header.Get("Content-Security-Policy"), "sandbox") || strings.HasPrefix(p.header.Get("Content-Disposition"), "attachment")
		if !apart && strings.HasPrefix(kind, "text/html") {
			p.check(t, path) // a page, and not a download
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
			p := e.ann.send(e.request(http.MethodPost, r.path(e.values), "name=x", "Content-Type", "application/x-www-form-urlencoded", header[0], header[1]))
			if p.status != http.StatusForbidden || !p.has("The request was sent by another site") {
				t.Errorf("%s with %s answers %d", r.pattern, header, p.status)
			}
			p.guarded(t, r.pattern)
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
			is.Equal(e.visitor().post(path).location(), "/sign-in") // the form is dropped
			continue
		}
		path += "?q=a%26b"
		p := e.visitor().get(path)
		is.Equal(p.status, http.StatusSeeOther)
		is.Equal(p.body, "<a href=\"/sign-in?next="+url.QueryEscape(path)+"\">See Other</a>.\n\n") // nothing of the page
		to, err := url.Parse(p.location())
		is.NoErr(err)
		is.Equal(to.Path, "/sign-in")
		is.Equal(to.Query().Get("next"), path)
	}
	path := "/tasks/evil?q=a%26b"
	p := e.visitor().post("/sign-in", "email", "ann@example.com", "password", password, "next", path)
	is.Equal(p.location(), path)
}
