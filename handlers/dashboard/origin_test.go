package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// TestWorkersOfTasks runs a task on the first page. Its worker is in no list until somebody keeps it.
func TestWorkersOfTasks(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	s.Worker(s.Owner, workers.NewWorker{Title: "Clerk"})
	b.Get("/workers").Lacks("Workers made by tasks") // there are none
	b.Get("/workers?origin=task").Shows("There are no workers made by tasks")

	p := b.Send(b.Form("/run", []string{"from", "home", "input", dashboardtest.Scripted("say Only once")}))
	is.Equal(p.Status, http.StatusSeeOther)
	made, _, err := s.Store.Workers.List(t.Context(), s.Owner.Caller, workers.Query{Limit: 1})
	is.NoErr(err)
	is.Equal(made[0].Origin, workers.TaskOrigin)
	address := "/workers/" + made[0].ID
	listed := func(path string) bool { return strings.Contains(b.Get(path).Body, `href="`+address+`"`) }
	offered := func(path string) bool { return strings.Contains(b.Get(path).Body, `<option value="`+made[0].ID) }

	is.Equal(b.Get("/workers").Workers(), []string{"Clerk"})
	is.Equal(b.Get("/workers?q=once").Workers(), nil)
	is.True(!offered("/") && !offered("/tasks"))
	is.True(!listed("/search?q=once"))
	b.Get("/tasks?workerId=" + made[0].ID).Shows(`value="` + made[0].ID + `" selected>` + made[0].Title) // it was chosen
	task := b.Get(p.Header.Get("Location"))
	task.Shows(`href="` + address + `"`) // the page of the task leads to it
	all := b.Get(dashboardtest.Href(b.Get("/workers"), "Workers made by tasks"))
	is.Equal(all.Workers(), []string{made[0].Title})
	is.Equal(b.Get("/workers?origin=task&q=zebra").Workers(), nil)

	mo := s.SignIn(s.Join("mo@example.com", people.RoleMember).Email)
	mo.Get(address).Lacks(">Keep<")
	b.Get(address).Shows("A task made this worker", ">Keep<")
	p = b.Post(address + "/keep")
	b.Get(p.Header.Get("Location")).Shows("The worker is in the lists now.")
	b.Get(address).Lacks("A task made this worker")
	is.Equal(b.Get("/workers").Workers(), []string{made[0].Title, "Clerk"})
	is.True(offered("/") && offered("/tasks") && listed("/search?q=once"))
	is.Equal(b.Post(address+"/keep").Status, http.StatusSeeOther) // a second click
}
