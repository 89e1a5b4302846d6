package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

	"journeyman/store/people"
	"journeyman/store/workers"
)

// TestWorkersOfTasks runs a task on the first page. Its worker is in no list until somebody keeps it.
func TestWorkersOfTasks(t *testing.T) {
	is, s, b := asOwner(t)
	s.worker(s.owner, workers.NewWorker{Title: "Clerk"})
	b.get("/workers").lacks("Workers made by tasks") // there are none
	b.get("/workers?origin=task").shows("There are no workers made by tasks")

	p := b.send(b.form("/run", []string{"from", "home", "input", scripted("say Only once")}))
	is.Equal(p.status, http.StatusSeeOther)
	made, _, err := s.store.Workers.List(t.Context(), s.owner.Caller, workers.Query{Limit: 1})
	is.NoErr(err)
	is.Equal(made[0].Origin, workers.TaskOrigin)
	address := "/workers/" + made[0].ID
	listed := func(path string) bool { return strings.Contains(b.get(path).body, `href="`+address+`"`) }
	offered := func(path string) bool { return strings.Contains(b.get(path).body, `<option value="`+made[0].ID) }

	is.Equal(b.get("/workers").workers(), []string{"Clerk"})
	is.Equal(b.get("/workers?q=once").workers(), nil)
	is.True(!offered("/") && !offered("/tasks"))
	is.True(!listed("/search?q=once"))
	b.get("/tasks?workerId=" + made[0].ID).shows(`value="` + made[0].ID + `" selected>` + made[0].Title) // it was chosen
	task := b.get(p.header.Get("Location"))
	task.shows(`href="` + address + `"`) // the page of the task leads to it
	all := b.get(link(b.get("/workers"), "Workers made by tasks"))
	is.Equal(all.workers(), []string{made[0].Title})
	is.Equal(b.get("/workers?origin=task&q=zebra").workers(), nil)

	mo := s.signIn(s.join("mo@example.com", people.RoleMember).Email)
	mo.get(address).lacks(">Keep<")
	b.get(address).shows("A task made this worker", ">Keep<")
	p = b.post(address + "/keep")
	b.get(p.header.Get("Location")).shows("The worker is in the lists now.")
	b.get(address).lacks("A task made this worker")
	is.Equal(b.get("/workers").workers(), []string{made[0].Title, "Clerk"})
	is.True(offered("/") && offered("/tasks") && listed("/search?q=once"))
	is.Equal(b.post(address+"/keep").status, http.StatusSeeOther) // a second click
}
