package dashboard_test

import (
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// The access matrix sends requests to every route of the API, every page and every tool of
// /mcp. It does so as every kind of caller, in every state of a worker and its task. The
// routes come from the source, and a route without a row fails the test. The expected
// answers come from the few rules in expect, never from the answers of a route.

// A state is the state of the worker and the task that a request names.
type state string

const (
	public   state = "public"
	private  state = "private"
	deleted  state = "deleted"  // a private worker
	archived state = "archived" // the task, of a public worker
)

var states = []state{public, private, deleted, archived}

// skipsState reports whether a test skips things in that state. CI tests all states, with LONG. With
// SLOW, a route is tested with private things, and with those of one other state, which depends on its
// name. Otherwise it is tested with one of the two.
func skipsState(route string, in state) bool {
	sum := crc32.ChecksumIEEE([]byte(route))
	drawn := []state{public, deleted, archived}[sum%3]
	switch {
	case storetest.Rounds(1, 0) == 1:
		return false
	case storetest.Slowly():
		return in != private && in != drawn
	case sum%2 == 0:
		return in != private
	}
	return in != drawn
}

// leastAsked returns how many requests a test must send at least that sends n with SLOW.
func leastAsked(n int) int {
	if storetest.Slowly() {
		return n
	}
	return n / 2
}

// A caller is a kind of person who sends requests.
type caller string

const (
	nobody    caller = "nobody"
	revoked   caller = "revoked"   // the holder of a revoked key or an ended session
	removed   caller = "removed"   // from the organization
	owner     caller = "owner"     // of the organization
	anAdmin   caller = "admin"     // of the organization
	creator   caller = "creator"   // of the worker, a Member
	invited   caller = "invited"   // to the worker, a Member
	uninvited caller = "uninvited" // was invited to the worker before, a Member
	member    caller = "member"    // of the organization
	stranger  caller = "stranger"  // the Owner of another organization
	elsewhere caller = "elsewhere" // an owner of the server, who is an Admin of another organization and acts there
	outsider  caller = "outsider"  // a Member of another organization
)

var callers = []caller{nobody, revoked, removed, owner, anAdmin, creator, invited, uninvited, member, stranger,
	elsewhere, outsider}

// A rule describes the permitted callers of a route.
type rule int

const (
	forAll        rule = iota // without a key
	forMembers                // everybody with a key or session
	seesWorker                // everybody who may see the worker
	ownsWorker                // only its creator
	seesTask                  // everybody who may see the worker, deleted or not
	continues                 // seesTask, while task and worker accept new turns
	ownsTask                  // only the worker's creator, deleted or not
	decides                   // the creator, Admins and Owners, deleted or not
	managesMail               // Admins and Owners, the worker deleted or not
	releasesMail              // managesMail, while the worker accepts new turns
	manages                   // Admins and Owners
	managesPerson             // Admins and Owners of the organization of the person
	rules                     // Owners
	runsServer                // Owners of the server's first organization
)

// Results of expect that are no status. The row has the right status.
const (
	allowed   = 0
	noSession = http.StatusUnauthorized
)

// sees reports whether a member of the organization may see the worker.
func (c caller) sees(in state) bool {
	if c.foreign() {
		return false
	}
	return in == public || in == archived || c == owner || c == anAdmin || c == creator || c == invited
}

func (c caller) manager() bool { return c == owner || c == anAdmin }

// foreign reports whether the caller acts in another organization than that of the worker.
func (c caller) foreign() bool { return c == stranger || c == elsewhere || c == outsider }

// expect returns the status of a refusal, or allowed.
func expect(r rule, c caller, in state) int {
	if r == forAll {
		return allowed
	}
	if c == nobody || c == revoked || c == removed {
		return noSession
	}
	switch r {
	case forMembers:
		return allowed
	case manages:
		return refuseUnless(c.manager() || c == stranger || c == elsewhere, http.StatusForbidden) // these two manage another organization
	case managesPerson:
		if c == stranger || c == elsewhere {
			return http.StatusNotFound
		}
		return refuseUnless(c.manager(), http.StatusForbidden)
	case rules:
		return refuseUnless(c == owner || c == stranger, http.StatusForbidden)
	case runsServer:
		return refuseUnless(c == owner, http.StatusForbidden)
	}
	if !c.sees(in) {
		return http.StatusForbidden
	}
	switch r {
	case seesWorker:
		return refuseUnless(in != deleted, http.StatusNotFound)
	case ownsWorker:
		if in == deleted {
			return http.StatusNotFound
		}
		return refuseUnless(c == creator, http.StatusForbidden)
	case ownsTask:
		return refuseUnless(c == creator, http.StatusForbidden)
	case decides:
		return refuseUnless(c == creator || c.manager(), http.StatusForbidden)
	case managesMail:
		return refuseUnless(c.manager(), http.StatusForbidden)
	case releasesMail:
		if !c.manager() {
			return http.StatusForbidden
		}
		return refuseUnless(in != deleted, http.StatusNotFound)
	case continues:
		if in == archived {
			return http.StatusConflict
		}
		return refuseUnless(in != deleted, http.StatusNotFound)
	}
	return allowed
}

func refuseUnless(ok bool, status int) int {
	if ok {
		return allowed
	}
	return status
}

// An accessRow is a route of the API or a page: the rule for its callers, and a request that succeeds for the
// permitted ones. In its texts, {name} is replaced by a value.
type accessRow struct {
	rule   rule
	body   string        // of a request to the API
	query  string        // of a request to the API
	kind   string        // of the body; JSON if empty
	form   string        // of a page, as a query
	files  bool          // the form is multipart
	status int           // for permitted callers; if 0, 200, for a page also a redirect to one
	in     map[state]int // statuses for permitted callers that differ by state
	either int           // another valid status for other callers
	once   bool          // works once: each permitted caller gets its own thing
	lists  bool          // the answer is a list, which must not hold things of others
	last   bool          // it ends the caller's session
}

// askAll sends a request as every caller. ask sends it, checks the answer and returns its body. Callers
// without permission come first, so that the thing still exists when they are refused.
func (p *visitors) askAll(route string, row accessRow, in state, th thing,
	ask func(c caller, th thing) (body string)) (asked int) {
	p.T.Helper()
	order := slices.Clone(callers)
	slices.SortStableFunc(order, func(a, b caller) int {
		return min(1, expect(row.rule, b, in)) - min(1, expect(row.rule, a, in))
	})
	if row.rule == managesPerson {
		p.addPerson(th)
	}
	for _, c := range order {
		switch {
		case !row.once || expect(row.rule, c, in) != allowed:
		case row.rule == managesPerson:
			p.addPerson(th)
		default:
			th = p.make(in)
		}
		body := ask(c, th)
		if row.lists && !c.sees(in) && strings.Contains(body, th.worker.ID) {
			p.T.Errorf("%s shows %s a worker that is %s: %s", route, c, in, body)
		}
	}
	return len(order)
}

// visitors are the callers of a site, with their keys and browsers.
type visitors struct {
	*dashboardtest.Site
	hook     string // where the webhooks are sent
	who      map[caller]people.Identity
	keys     map[caller]string
	sessions map[caller]string
	public   workers.Worker // everybody may see it, besides the requested worker
}

// newPeople starts a site with all callers.
func newPeople(t testing.TB) *visitors {
	t.Helper()
	s := dashboardtest.New(t)
	end := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(end.Close)
	p := &visitors{Site: s, hook: end.URL,
		who: map[caller]people.Identity{}, keys: map[caller]string{}, sessions: map[caller]string{}}
	for _, c := range callers[1:] {
		organization, role := "Acme", people.RoleMember
		switch c {
		case owner:
			role = people.RoleOwner
		case anAdmin:
			role = people.RoleAdmin
		case stranger:
			organization, role = "Rival", people.RoleOwner
		case elsewhere:
			organization, role = "Rival", people.RoleAdmin
		case outsider:
			organization = "Rival"
		}
		p.who[c], p.keys[c] = storetest.Caller(t, s.Store, organization, string(c)+"@example.com", role)
		token, err := s.Store.People.CreateSession(t.Context(), p.who[c].Caller, "")
		p.OK(err)
		p.sessions[c] = token
		if c == elsewhere { // after the session, which stays in the other organization
			storetest.Caller(t, s.Store, "Acme", string(c)+"@example.com", people.RoleOwner)
		}
	}
	_, err := s.Store.People.RevokeKey(t.Context(), people.Operator(), p.keys[revoked])
	p.OK(err)
	p.OK(s.Store.People.EndOtherSessions(t.Context(), p.who[revoked].Caller, ""))
	_, err = s.Store.People.RemoveMember(t.Context(), s.Owner.Caller, p.who[removed].UserID)
	p.OK(err)
	p.public = p.Worker(p.who[creator], workers.NewWorker{Title: "Another"})
	return p
}

// A thing is a worker of the creator in a state, with a task, a file, a schedule and so on.
type thing struct {
	worker workers.Worker
	values map[string]string // of the parameters of routes
}

// make creates a thing.
func (p *visitors) make(in state) thing {
	p.T.Helper()
	ctx, who := p.T.Context(), p.who[creator]
	visibility := workers.Public
	if in == private || in == deleted {
		visibility = workers.Private
	}
	w := p.Worker(who, workers.NewWorker{Title: "Asked for", Visibility: visibility})
	for _, c := range []caller{invited, uninvited} {
		_, err := p.Store.Workers.AddWorkerMember(ctx, who.Caller, w.ID, p.who[c].UserID)
		p.OK(err)
	}
	_, err := p.Store.Workers.RemoveWorkerMember(ctx, who.Caller, w.ID, p.who[uninvited].UserID)
	p.OK(err)
	script := dashboardtest.Scripted(dashboardtest.Calling("write_file", "path", "a.txt", "content", "A"),
		dashboardtest.Calling("publish_file", "path", "a.txt"), "say Done")
	turn := p.CarryOut(who, store.NewTurn{WorkerID: w.ID, Input: script})
	yearly := store.NewSchedule{WorkerID: w.ID, Input: "Go", Budget: store.BudgetLow, When: store.When{Type: store.CronType, Cron: "0 9 1 1 *"}}
	sch, _, err := p.Store.CreateSchedule(ctx, who.Caller, yearly, db.IdempotencyKey{})
	p.OK(err)
	_, err = p.Store.Effects.SetWebhook(ctx, who.Caller, w.ID, p.hook)
	p.OK(err)
	d, err := p.Store.Effects.CreateTestDelivery(ctx, who.Caller, w.ID)
	p.OK(err)
	e, err := p.Store.Effects.RecordAttempt(ctx, d, store.Attempt{Manual: true, Success: true, ResponseStatus: 200})
	p.OK(err)
	secret := workers.NewSecret{WorkerID: w.ID, Name: "S" + strings.TrimPrefix(sch.ID, "sch_"), Value: "12345678"}
	_, err = p.Store.Workers.SetSecret(ctx, who.Caller, secret)
	p.OK(err)
	held := store.NewEmail{Worker: w, Status: store.EmailHeld, Reason: "not a member", Verdicts: []byte("{}"), Subject: "Held",
		MessageID: w.ID + "@example.net", From: "bob@example.net", To: w.ID + "@mail.example"}
	raw := []byte(dashboardtest.RawMail("bob@example.net", w.ID))
	emails, _, err := p.Store.ReceiveEmails(ctx, []store.NewEmail{held}, raw, store.MailLimits{})
	p.OK(err)
	switch in {
	case deleted:
		p.OK(p.Store.DeleteWorker(ctx, who.Caller, w.ID))
	case archived:
		_, _, err := p.Store.ArchiveTask(ctx, who.Caller, turn.TaskID, "")
		p.OK(err)
	}
	return thing{w, map[string]string{"workerId": w.ID, "taskId": turn.TaskID, "scheduleId": sch.ID, "executionId": e.ID,
		"emailId": emails[0].ID, "name": secret.Name,
		"userId": p.who[invited].UserID, "filePath": "a.txt", "turn": "0", "step": "0", "call": "0", "what": "0/input",
		"approvalId": "apr_none", "version": "1", "publicId": p.public.ID, "hook": p.hook, "invitedEmail": string(invited) + "@example.com"}}
}

// addPerson adds a member, a key and an invitation to the values for routes about persons.
func (p *visitors) addPerson(th thing) {
	p.T.Helper()
	email := db.NewID("usr", time.Now()) + "@example.com"
	who, _ := storetest.Caller(p.T, p.Store, "Acme", email, people.RoleMember)
	link, _, err := p.Store.People.CreateInvitation(p.T.Context(), p.who[owner].Caller, "to-"+email, people.RoleMember)
	p.OK(err)
	th.values["userId"], th.values["keyId"], th.values["linkId"] = who.UserID, who.KeyID, link.ID
}

// fill replaces {name}, :name and *name in a path or a body by values.
func (th thing) fill(text string) string {
	for name, value := range th.values {
		text = strings.NewReplacer("{"+name+"}", value, "*"+name, value).Replace(text)
		text = replaceParameter(text, name, value)
	}
	return text
}

func replaceParameter(text, name, value string) string {
	parts := strings.Split(text, "/")
	for i, part := range parts {
		if part == ":"+name {
			parts[i] = value
		}
	}
	return strings.Join(parts, "/")
}

// answered sends a request. It returns the status, the address of a redirect and the body. For an
// event stream it returns only the status.
func (p *visitors) answered(r *http.Request) (status int, location, body string) {
	p.T.Helper()
	client := &http.Client{Transport: dashboardtest.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	p.OK(err)
	defer resp.Body.Close()
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") && r.URL.Path != "/mcp" {
		return resp.StatusCode, "", ""
	}
	raw, err := io.ReadAll(resp.Body)
	p.OK(err)
	return resp.StatusCode, resp.Header.Get("Location"), string(raw)
}
