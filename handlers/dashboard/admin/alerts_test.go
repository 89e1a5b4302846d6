package admin_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// TestAlertsPage adds channels, tests one with a real endpoint, and pauses and removes it. The
// address of a webhook is never shown again.
func TestAlertsPage(t *testing.T) {
	is, _, b := dashboardtest.AsOwner(t)
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "invalid_token", http.StatusForbidden)
	}))
	t.Cleanup(endpoint.Close)
	b.Get("/settings/alerts").Shows("No alert channels yet", `value="ann@example.com"`)
	all := []string{"topics", "failed", "topics", "waiting", "frequency", "now"}
	for to, says := range map[string]string{
		"":                        "Must be a member&#39;s email address, or a URL",
		"eve@other.test":          "Must be the address of a member of the organization",
		"ftp://a.example/":        "Must begin with https://",
		"https://u:p@a.example/":  "Must have no user name or password",
		"http://169.254.169.254/": "Must begin with https://",
	} {
		p := b.Post("/settings/alerts", append(all, "to", to)...)
		p.Answers(http.StatusUnprocessableEntity).Shows(says) // the field shows the fault
	}
	b.Post("/settings/alerts", "to", "ann@example.com", "frequency", "now").Shows("ust name at least one event")

	secret := endpoint.URL + "/services/supersecret"
	is.Equal(b.Post("/settings/alerts", append(all, "to", secret)...).Location(), "/settings/alerts?done=alert-added")
	p := b.Get("/settings/alerts")
	p.Shows(strings.TrimPrefix(endpoint.URL, "http://"), "A task failed · A task waits for an approval or an answer")
	p.Lacks("supersecret") // the address is a secret
	channel := regexp.MustCompile(`/settings/alerts/alc_\w+`).FindString(p.Body)
	is.Equal(b.Post(channel+"/test").Location(), "/settings/alerts?done=alert-tested")
	b.Get("/settings/alerts").Shows("Failed permanently: 403 Forbidden: invalid_token")
	is.Equal(b.Post(channel+"/pause").Location(), "/settings/alerts?done=alert-paused")
	b.Get("/settings/alerts").Shows("Paused", channel+"/resume")
	is.Equal(b.Post(channel+"/resume").Location(), "/settings/alerts?done=alert-resumed")
	is.Equal(b.Post(channel+"/remove").Location(), "/settings/alerts?done=alert-removed")
	b.Get("/settings/alerts").Shows("No alert channels yet")
	b.Get("/settings/audit").Shows("alerts.add", "alerts.test", "alerts.remove")
	b.Get("/settings/audit").Lacks("supersecret")
}

// TestTaskElsewhere opens the link to a task of another organization of the user. A button leads
// there, and other users cannot find out that the task exists.
func TestTaskElsewhere(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	other, _ := storetest.Caller(t, s.Store, "Other", "bob@example.com", people.RoleOwner)
	w, _, err := s.Store.Workers.CreateWorker(t.Context(), other.Caller, workers.NewWorker{Title: "Theirs",
		Visibility: workers.Private}, db.IdempotencyKey{})
	is.NoErr(err)
	path := ""
	for _, id := range []string{"same", ""} { // an id of a client, and one of the server
		n := store.NewTurn{Caller: other.Caller, WorkerID: w.ID, TaskID: id, Input: "```offline\nsay Theirs\n```",
			Budget: store.BudgetLow, Title: "Secret plan"}
		accepted, err := s.Store.CreateTurn(t.Context(), n)
		is.NoErr(err)
		path = "/tasks/" + accepted.Turn.TaskID
	}
	is.Equal(b.Get(path).Status, http.StatusForbidden)
	is.Equal(b.Get(path+"?organization="+other.OrganizationID).Status, http.StatusForbidden)
	is.Equal(b.Get("/tasks/same").Status, http.StatusNotFound)

	storetest.Caller(t, s.Store, "Other", "ann@example.com", people.RoleMember)
	is.Equal(b.Get(path).Status, http.StatusForbidden) // a member who may not see the private worker
	storetest.Caller(t, s.Store, "Other", "ann@example.com", people.RoleAdmin)
	for _, link := range []string{path, path + "?organization=" + other.OrganizationID, "/tasks/same"} {
		p := b.Get(link)
		p.Answers(http.StatusOK).Shows("Switch to Other", "You are now viewing Acme.")
		p.Lacks("Secret plan") // nothing of the task is shown before
	}
	p := b.Post("/organization", "organization", other.OrganizationID, "next", path)
	is.Equal(p.Location(), path)
	b.Get(path).Shows("Secret plan")
	p = b.Post("/organization", "organization", other.OrganizationID, "next", "https://evil.example/")
	is.Equal(p.Location(), "/") // a form redirects only to a page of this server
}

// TestElsewhere opens the addresses in url fields and links of another organization of the user. Each
// leads to the record, also where both organizations have a task of the same id.
func TestElsewhere(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	ann, key := storetest.Caller(t, s.Store, "Other", "ann@example.com", people.RoleOwner)
	own := s.Worker(s.Owner, workers.NewWorker{Title: "Ours"})
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: own.ID, TaskID: "same", Title: "Our plan",
		Input: dashboardtest.Scripted("say x")})
	there := s.Worker(ann, workers.NewWorker{Title: "Theirs"})
	s.CarryOut(ann, store.NewTurn{WorkerID: there.ID, TaskID: "same", Title: "Their plan",
		Input: dashboardtest.Scripted(dashboardtest.Calling("write_file", "path", "a b.txt", "content", "Their text"),
			dashboardtest.Calling("publish_file", "path", "a b.txt"))})

	api := s.Visitor()
	answer := api.Send(s.Request(http.MethodGet, "/api/workers/"+there.ID+"?taskId=same", "", "Authorization",
		"Bearer "+key, "Accept", "application/json"))
	file := regexp.MustCompile(`"url":"` + regexp.QuoteMeta(s.URL) + `(/api/workers/[^"]+)"`).FindStringSubmatch(answer.Body)[1]
	answer = api.Send(s.Request(http.MethodGet, "/api/tasks/same", "", "Authorization", "Bearer "+key, "Accept",
		"application/json"))
	task := regexp.MustCompile(`"url":"` + regexp.QuoteMeta(s.URL) + `([^"]+)"`).FindStringSubmatch(answer.Body)[1]
	is.Equal(task, "/tasks/same?organization="+ann.OrganizationID)

	b.Get("/tasks/same").Shows("Our plan") // without a name, the current organization's
	worker := "/workers/" + there.ID
	for _, path := range []string{task, worker, worker + "/files", worker + "/schedules", worker + "/settings",
		worker + "/versions",
		worker + "/preview/a%20b.txt", "/usage?organization=" + ann.OrganizationID} {
		p := b.Get(path)
		p.Answers(http.StatusOK).Shows("Switch to Other")
		p.Lacks("Their plan", "Theirs", "Their text")
	}
	page := b.Get(file).Location() // signed in, but elsewhere
	is.Equal(page, worker+"/preview/a%20b.txt?v="+file[strings.Index(file, "v=")+2:])
	b.Get(page).Shows("Switch to Other", `value="/workers/`+there.ID+`/preview/a%20b.txt?v=`)
	is.Equal(s.Visitor().Get(file).Location(), "/sign-in?next="+url.QueryEscape(file)) // signed out
	is.Equal(s.Visitor().Post("/sign-in", "email", "ann@example.com", "password", dashboardtest.Password, "next",
		file).Location(), file)
	is.Equal(api.Send(s.Request(http.MethodGet, file, "", "Accept", "*/*")).Status, http.StatusUnauthorized) // a program

	b.Post("/organization", "organization", ann.OrganizationID)
	is.Equal(b.Get(file).Body, "Their text")
	b.Get(task).Shows("Their plan")
	b.Get("/usage?organization=" + ann.OrganizationID).Lacks("Switch to Other")
}

// TestForbiddenPage checks that the page speaks of the person, who has no key.
func TestForbiddenPage(t *testing.T) {
	_, s := dashboardtest.OnSite(t)
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Private", Visibility: workers.Private})
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: w.ID, TaskID: "mine", Input: dashboardtest.Scripted("say x")})
	s.Join("bob@example.com", people.RoleMember)
	for _, b := range []*dashboardtest.Browser{s.SignIn("bob@example.com"), s.Stranger("eve@example.com")} {
		p := b.Get("/workers/" + w.ID)
		p.Answers(http.StatusForbidden).Shows("you")
		p.Lacks("this key", "key’s", "key&#39;s")
	}
	s.SignIn("bob@example.com").Get("/tasks/mine").Answers(http.StatusForbidden).Shows("you are not invited")
}
