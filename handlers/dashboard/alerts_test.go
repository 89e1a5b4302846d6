package dashboard_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// TestAlertsPage adds channels, tests one with a real endpoint, and pauses and removes it. The
// address of a webhook is never shown again.
func TestAlertsPage(t *testing.T) {
	is, _, b := asOwner(t)
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "invalid_token", http.StatusForbidden)
	}))
	t.Cleanup(endpoint.Close)
	b.get("/settings/alerts").shows("No alert channels yet", `value="ann@example.com"`)
	all := []string{"topics", "failed", "topics", "waiting", "frequency", "now"}
	for to, says := range map[string]string{
		"":                        "Must be a member&#39;s email address, or a URL",
		"eve@other.test":          "Must be the address of a member of the organization",
		"ftp://a.example/":        "Must begin with https://",
		"https://u:p@a.example/":  "Must have no user name or password",
		"http://169.254.169.254/": "Must begin with https://",
	} {
		p := b.post("/settings/alerts", append(all, "to", to)...)
		p.answers(http.StatusUnprocessableEntity).shows(says) // the field shows the fault
	}
	b.post("/settings/alerts", "to", "ann@example.com", "frequency", "now").shows("ust name at least one event")

	secret := endpoint.URL + "/services/supersecret"
	is.Equal(b.post("/settings/alerts", append(all, "to", secret)...).location(), "/settings/alerts?done=alert-added")
	p := b.get("/settings/alerts")
	p.shows(strings.TrimPrefix(endpoint.URL, "http://"), "A task failed · A task waits for an approval or an answer")
	p.lacks("supersecret") // the address is a secret
	channel := regexp.MustCompile(`/settings/alerts/alc_\w+`).FindString(p.body)
	is.Equal(b.post(channel+"/test").location(), "/settings/alerts?done=alert-tested")
	b.get("/settings/alerts").shows("Failed permanently: 403 Forbidden: invalid_token")
	is.Equal(b.post(channel+"/pause").location(), "/settings/alerts?done=alert-paused")
	b.get("/settings/alerts").shows("Paused", channel+"/resume")
	is.Equal(b.post(channel+"/resume").location(), "/settings/alerts?done=alert-resumed")
	is.Equal(b.post(channel+"/remove").location(), "/settings/alerts?done=alert-removed")
	b.get("/settings/alerts").shows("No alert channels yet")
	b.get("/settings/audit").shows("alerts.add", "alerts.test", "alerts.remove")
	b.get("/settings/audit").lacks("supersecret")
}

// TestTaskElsewhere opens the link to a task of another organization of the user. A button leads
// there, and other users cannot find out that the task exists.
func TestTaskElsewhere(t *testing.T) {
	is, s, b := asOwner(t)
	other, _ := storetest.Caller(t, s.store, "Other", "bob@example.com", people.RoleOwner)
	w, _, err := s.store.Workers.CreateWorker(t.Context(), other.Caller, workers.NewWorker{Title: "Theirs",
		Visibility: workers.Private}, db.IdempotencyKey{})
	is.NoErr(err)
	path := ""
	for _, id := range []string{"same", ""} { // an id of a client, and one of the server
		n := store.NewTurn{Caller: other.Caller, WorkerID: w.ID, TaskID: id, Input: "```offline\nsay Theirs\n```",
			Budget: store.BudgetLow, Title: "Secret plan"}
		accepted, err := s.store.CreateTurn(t.Context(), n)
		is.NoErr(err)
		path = "/tasks/" + accepted.Turn.TaskID
	}
	is.Equal(b.get(path).status, http.StatusForbidden)
	is.Equal(b.get(path+"?organization="+other.OrganizationID).status, http.StatusForbidden)
	is.Equal(b.get("/tasks/same").status, http.StatusNotFound)

	storetest.Caller(t, s.store, "Other", "ann@example.com", people.RoleMember)
	is.Equal(b.get(path).status, http.StatusForbidden) // a member who may not see the private worker
	storetest.Caller(t, s.store, "Other", "ann@example.com", people.RoleAdmin)
	for _, link := range []string{path, path + "?organization=" + other.OrganizationID, "/tasks/same"} {
		p := b.get(link)
		p.answers(http.StatusOK).shows("Switch to Other", "You are now viewing Acme.")
		p.lacks("Secret plan") // nothing of the task is shown before
	}
	p := b.post("/organization", "organization", other.OrganizationID, "next", path)
	is.Equal(p.location(), path)
	b.get(path).shows("Secret plan")
	p = b.post("/organization", "organization", other.OrganizationID, "next", "https://evil.example/")
	is.Equal(p.location(), "/") // a form redirects only to a page of this server
}

// TestElsewhere opens the addresses in url fields and links of another organization of the user. Each
// leads to the record, also where both organizations have a task of the same id.
func TestElsewhere(t *testing.T) {
	is, s, b := asOwner(t)
	ann, key := storetest.Caller(t, s.store, "Other", "ann@example.com", people.RoleOwner)
	own := s.worker(s.owner, workers.NewWorker{Title: "Ours"})
	s.carryOut(s.owner, store.NewTurn{WorkerID: own.ID, TaskID: "same", Title: "Our plan", Input: scripted("say x")})
	there := s.worker(ann, workers.NewWorker{Title: "Theirs"})
	s.carryOut(ann, store.NewTurn{WorkerID: there.ID, TaskID: "same", Title: "Their plan",
		Input: scripted(calling("write_file", "path", "a b.txt", "content", "Their text"), calling("publish_file", "path", "a b.txt"))})

	api := s.visitor()
	answer := api.send(s.request(http.MethodGet, "/api/workers/"+there.ID+"?taskId=same", "", "Authorization", "Bearer "+key, "Accept", "application/json"))
	file := regexp.MustCompile(`"url":"` + regexp.QuoteMeta(s.url) + `(/api/workers/[^"]+)"`).FindStringSubmatch(answer.body)[1]
	answer = api.send(s.request(http.MethodGet, "/api/tasks/same", "", "Authorization", "Bearer "+key, "Accept", "application/json"))
	task := regexp.MustCompile(`"url":"` + regexp.QuoteMeta(s.url) + `([^"]+)"`).FindStringSubmatch(answer.body)[1]
	is.Equal(task, "/tasks/same?organization="+ann.OrganizationID)

	b.get("/tasks/same").shows("Our plan") // without a name, the current organization's
	worker := "/workers/" + there.ID
	for _, path := range []string{task, worker, worker + "/files", worker + "/schedules", worker + "/settings", worker + "/versions",
		worker + "/preview/a%20b.txt", "/usage?organization=" + ann.OrganizationID} {
		p := b.get(path)
		p.answers(http.StatusOK).shows("Switch to Other")
		p.lacks("Their plan", "Theirs", "Their text")
	}
	page := b.get(file).location() // signed in, but elsewhere
	is.Equal(page, worker+"/preview/a%20b.txt?v="+file[strings.Index(file, "v=")+2:])
	b.get(page).shows("Switch to Other", `value="/workers/`+there.ID+`/preview/a%20b.txt?v=`)
	is.Equal(s.visitor().get(file).location(), "/sign-in?next="+url.QueryEscape(file)) // signed out
	is.Equal(s.visitor().post("/sign-in", "email", "ann@example.com", "password", password, "next", file).location(), file)
	is.Equal(api.send(s.request(http.MethodGet, file, "", "Accept", "*/*")).status, http.StatusUnauthorized) // a program

	b.post("/organization", "organization", ann.OrganizationID)
	is.Equal(b.get(file).body, "Their text")
	b.get(task).shows("Their plan")
	b.get("/usage?organization=" + ann.OrganizationID).lacks("Switch to Other")
}

// TestForbiddenPage checks that the page speaks of the person, who has no key.
func TestForbiddenPage(t *testing.T) {
	_, s := onSite(t)
	w := s.worker(s.owner, workers.NewWorker{Title: "Private", Visibility: workers.Private})
	s.carryOut(s.owner, store.NewTurn{WorkerID: w.ID, TaskID: "mine", Input: scripted("say x")})
	s.join("bob@example.com", people.RoleMember)
	for _, b := range []*browser{s.signIn("bob@example.com"), s.stranger("eve@example.com")} {
		p := b.get("/workers/" + w.ID)
		p.answers(http.StatusForbidden).shows("you")
		p.lacks("this key", "key’s", "key&#39;s")
	}
	s.signIn("bob@example.com").get("/tasks/mine").answers(http.StatusForbidden).shows("you are not invited")
}
