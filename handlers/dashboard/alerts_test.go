package dashboard_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"journeyman/store"
	"journeyman/store/storetest"
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
	all := []string{"topics", "failed", "topics", "waiting", "rhythm", "now"}
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
	b.post("/settings/alerts", "to", "ann@example.com", "rhythm", "now").shows("ust name at least one event")

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
	other, _ := storetest.Caller(t, s.store, "Other", "bob@example.com", store.RoleOwner)
	w, _, err := s.store.CreateWorker(t.Context(), other.Caller, store.NewWorker{Title: "Theirs", Visibility: store.Private}, store.IdempotencyKey{})
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

	storetest.Caller(t, s.store, "Other", "ann@example.com", store.RoleMember)
	is.Equal(b.get(path).status, http.StatusForbidden) // a member who may not see the private worker
	storetest.Caller(t, s.store, "Other", "ann@example.com", store.RoleAdmin)
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
