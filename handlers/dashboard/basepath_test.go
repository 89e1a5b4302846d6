package dashboard_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/matryer/is"
	"golang.org/x/net/html"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// under is the path of the base URL in these tests. It is also the beginning of a page's address.
const under = "/tasks/jm"

// proxiedSite starts a site behind a proxy, which passes on everything below a path without
// that path. With wellKnown, it passes on well-known addresses too. The test fails if a client
// requests another address of the proxy.
func proxiedSite(t *testing.T, wellKnown bool) *dashboardtest.Site {
	t.Helper()
	var s *dashboardtest.Site
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to, _ := url.Parse(s.Direct)
		pass := httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(to); p.SetXForwarded() },
			FlushInterval: -1, Transport: dashboardtest.Transport}
		switch {
		case strings.HasPrefix(r.URL.Path, under+"/"):
			http.StripPrefix(under, &pass).ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, "/.well-known/") && wellKnown:
			pass.ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, "/.well-known/"): // clients look there first
			http.NotFound(w, r)
		default:
			t.Errorf("%s %s is outside of the path", r.Method, r.URL)
			http.NotFound(w, r)
		}
	}))
	s = dashboardtest.NewAt(t, storetest.Open(t, store.Options{}), proxy.URL+under)
	t.Cleanup(proxy.Close)
	t.Cleanup(proxy.CloseClientConnections)
	return s
}

// A crawler follows everything to which the pages lead.
type crawler struct {
	*dashboardtest.Browser
	root  *url.URL
	queue []string
	seen  map[string]bool
	forms []crawledForm
}

// A crawledForm is a form that changes something.
type crawledForm struct {
	page, address string
	fields        url.Values
}

// add queues an address that a page names, unless it leads to another site.
func (c *crawler) add(page *url.URL, where, address string) *url.URL {
	c.T.Helper()
	to, err := page.Parse(address)
	c.OK(err)
	if to.Host != c.root.Host {
		return nil
	}
	if !strings.HasPrefix(to.Path, c.root.Path+"/") {
		c.T.Errorf("%s: %s leads to %s", page, where, to)
		return nil
	}
	to.Fragment = ""
	q := to.Query()
	q.Del("since") // changes with each page
	to.RawQuery = q.Encode()
	return to
}

// visit requests an address and reads the page.
func (c *crawler) visit(address string) {
	c.T.Helper()
	at, err := url.Parse(address)
	c.OK(err)
	p := c.fetch(http.MethodGet, address, nil, "")
	switch {
	case p.Status >= 400:
		c.T.Errorf("%s answers %d", address, p.Status)
	case p.Location() != "":
		c.follow(at, "Location", p.Location())
	case strings.HasPrefix(p.Header.Get("Content-Type"), "text/html"):
		c.read(at, p.Body)
	}
}

// fetch sends a request. It does not read the body of an event stream.
func (c *crawler) fetch(method, address string, body []byte, kind string) dashboardtest.Page {
	c.T.Helper()
	r, err := http.NewRequestWithContext(c.T.Context(), method, address, bytes.NewReader(body))
	c.OK(err)
	r.Header.Set("Accept", "text/html,*/*;q=0.8")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	res, err := c.Client.Do(r)
	c.OK(err)
	defer res.Body.Close()
	p := dashboardtest.Page{T: c.T, Status: res.StatusCode, Header: res.Header}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		data, err := io.ReadAll(res.Body)
		c.OK(err)
		p.Body = string(data)
	}
	return p
}

// follow queues an address once.
func (c *crawler) follow(page *url.URL, where, address string) {
	c.T.Helper()
	if to := c.add(page, where, address); to != nil && !c.seen[to.String()] {
		c.seen[to.String()] = true
		c.queue = append(c.queue, to.String())
	}
}

// read follows the addresses of a page, and stores its forms.
func (c *crawler) read(at *url.URL, body string) {
	c.T.Helper()
	root, err := html.Parse(strings.NewReader(body))
	c.OK(err)
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if n.Data == "form" {
			c.form(at, n)
		}
		for _, a := range n.Attr {
			switch a.Key {
			case "href", "src", "data", "data-events", "data-stream", "data-results", "data-copy-from", "data-run":
				c.follow(at, n.Data+" "+a.Key, a.Val)
			case "value", "title", "placeholder", "action", "formaction": // not addresses, or see form
			default:
				if strings.HasPrefix(a.Val, "/") {
					c.add(at, n.Data+" "+a.Key, a.Val)
				}
			}
		}
	}
}

// form stores a form, or follows it if it changes nothing.
func (c *crawler) form(at *url.URL, n *html.Node) {
	c.T.Helper()
	f := crawledForm{page: at.String(), fields: url.Values{}}
	method, action := "get", at.String()
	for _, a := range n.Attr {
		switch a.Key {
		case "method":
			method = a.Val
		case "action":
			action = a.Val
		}
	}
	for field := range n.Descendants() {
		var name, value string
		for _, a := range field.Attr {
			switch a.Key {
			case "name":
				name = a.Val
			case "value":
				value = a.Val
			case "formaction":
				c.add(at, "button formaction", a.Val)
			}
		}
		if name != "" && (field.Data == "input" || field.Data == "button") {
			f.fields.Set(name, value)
		}
	}
	if to := c.add(at, "form action", action); method == "get" && to != nil {
		to.RawQuery = f.fields.Encode()
		c.follow(at, "form action", to.String())
	} else if to != nil && !c.seen["POST "+to.String()] {
		c.seen["POST "+to.String()] = true
		f.address = to.String()
		c.forms = append(c.forms, f)
	}
}

// send sends a form. Many are refused for lack of values: only the way matters.
func (c *crawler) send(f crawledForm) {
	c.T.Helper()
	p := c.fetch(http.MethodPost, f.address, []byte(f.fields.Encode()), "application/x-www-form-urlencoded")
	at, err := url.Parse(f.address)
	c.OK(err)
	if p.Has("There is no page at this address") {
		c.T.Errorf("the form %s on %s leads nowhere", f.address, f.page)
	}
	if to := p.Location(); to != "" {
		c.add(at, "Location", to)
	}
}

// TestBasePath follows every link, file, form and redirect of the pages behind a proxy that removes
// the path of the base URL.
func TestBasePath(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := proxiedSite(t, false)
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Printer"})
	careful := s.Worker(s.Owner, workers.NewWorker{Title: "Careful",
		Settings: workers.Settings{ApprovalTools: []string{"write_file"}}})
	s.Publish(w, "notes/a.txt", "first")
	s.Publish(w, "page.md", "see [the task](/workers) and https://elsewhere.example/x")
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: w.ID, TaskID: "links",
		Input: dashboardtest.Scripted("say see [it](/workers)")})
	s.Begin(s.Owner, store.NewTurn{WorkerID: careful.ID, TaskID: "asks",
		Input: dashboardtest.Scripted(dashboardtest.Calling("write_file", "path", "a", "content", "x"), "say over")})
	link := s.DecisionLink(s.Owner, "asks")
	s.Schedule(w, "daily", store.When{Type: store.Interval, IntervalSeconds: 3600})
	storetest.Caller(t, s.Store, "Umbrella", "ann@example.com", people.RoleOwner)
	b := s.SignIn("ann@example.com")
	invited := b.Get(strings.TrimPrefix(b.Post("/settings/members", "email", "new@example.com", "role",
		"member").Location(), under))
	invited.Shows(s.URL + "/invitation/")

	root, err := url.Parse(s.URL)
	is.NoErr(err)
	c := &crawler{Browser: b, root: root, seen: map[string]bool{}}
	c.queue = []string{s.URL + "/", s.URL + "/workers/", s.URL + link, s.URL + s.Link(people.LinkReset, "ann@example.com"),
		s.URL + "/sign-in?next=/workers", s.URL + "/tasks/asks?organization=" + s.Owner.OrganizationID}
	for len(c.queue) > 0 && len(c.seen) < 1000 {
		next := c.queue[0]
		c.queue = c.queue[1:]
		c.visit(next)
	}
	if len(c.seen) < 150 || len(c.forms) < 25 {
		t.Errorf("only %d addresses and %d forms were found", len(c.seen), len(c.forms))
	}
	for _, last := range []bool{false, true} {
		for _, f := range c.forms {
			if strings.Contains(f.address, "/sign-out") == last {
				c.send(f)
			}
		}
	}
	guest := &crawler{Browser: s.Visitor(), root: root, seen: map[string]bool{}}
	guest.visit(s.URL + "/workers?q=x")
	guest.visit(guest.queue[0]) // the sign-in page
}

// TestBasePathOfSession checks that the session belongs to the path, because other programs may
// serve the rest of the host.
func TestBasePathOfSession(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := proxiedSite(t, false)
	p := s.Visitor().Post("/sign-in", "email", "ann@example.com", "password", dashboardtest.Password, "next",
		"/workers?q=x")
	is.Equal(p.Location(), under+"/workers?q=x")
	is.True(strings.Contains(p.Header.Get("Set-Cookie"), "Path="+under+";"))
	is.Equal(s.Visitor().Get("/workers?q=x").Location(), under+"/sign-in?next=%2Fworkers%3Fq%3Dx")
	is.Equal(s.Visitor().Get("/workers/").Location(), under+"/workers")
	is.Equal(s.SignIn("ann@example.com").Post("/sign-out").Location(), under+"/sign-in?done=signed-out")
}

// TestBasePathOfStream checks the addresses in the pieces that a task's page gets while it is open.
func TestBasePathOfStream(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := proxiedSite(t, false)
	b := s.SignIn("ann@example.com")
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Printer",
		Settings: workers.Settings{ApprovalTools: []string{"write_file"}}})
	s.Begin(s.Owner, store.NewTurn{WorkerID: w.ID, TaskID: "one",
		Input: dashboardtest.Scripted(dashboardtest.Calling("write_file", "path", "a", "content", "x"), "say over")})
	s.Approval("one")
	address := dashboardtest.StreamOf(b.Get("/tasks/one"))
	is.True(strings.HasPrefix(address, under+"/tasks/one/"))
	text := ""
	b.Live(strings.TrimPrefix(address, under)+"&has=0", "", func(u dashboardtest.Update) bool {
		text += u.Text()
		return strings.Contains(text, "action=")
	})
	for _, attribute := range []string{"href", "src", "action"} {
		is.Equal(strings.Count(text, attribute+`="/`), strings.Count(text, attribute+`="`+under+`/`)) // none leaves the path
	}
	is.True(strings.Contains(text, `action="`+under+`/`))
}

// TestBasePathOfPrograms connects a program to /mcp behind the proxy, with the official SDK. Without
// the well-known addresses outside of the path, the program finds the metadata below it.
func TestBasePathOfPrograms(t *testing.T) {
	t.Parallel()
	for name, wellKnown := range map[string]bool{"only the path": false, "well-known addresses": true} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			s := proxiedSite(t, wellKnown)
			session, err := s.Connect(t, dashboardtest.Program(t, s.SignIn("ann@example.com"), "allow"))
			is.NoErr(err)
			is.NoErr(session.Close())
			s.Visitor().Get("/api/openapi.json").Shows(`"servers":[{"url":"` + under + `/"`)
			if !wellKnown {
				return
			}
			for _, path := range []string{"/.well-known/oauth-authorization-server" + under,
				"/.well-known/openid-configuration" + under, "/.well-known/oauth-protected-resource" + under + "/mcp"} {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(s.URL, under)+path, nil)
				is.NoErr(err)
				s.Visitor().Send(r).Answers(http.StatusOK).Shows(`"` + s.URL) // the metadata names the path
			}
		})
	}
}
