package lists_test

import (
	"net/http"
	"strings"
	"testing"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// TestManyTasks changes several tasks with one form, each as the user may, and checks the result in
// the list.
func TestManyTasks(t *testing.T) {
	is, s := dashboardtest.OnSite(t)
	ctx := t.Context()
	mo := s.Join("mo@example.com", people.RoleMember)
	ann, member := s.SignIn("ann@example.com"), s.SignIn("mo@example.com")
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Scribe"})
	hidden := s.Worker(s.Owner, workers.NewWorker{Title: "Hidden", Visibility: workers.Private})
	task := func(who people.Identity, worker workers.Worker, script ...string) string {
		return s.CarryOut(who, store.NewTurn{WorkerID: worker.ID, Input: dashboardtest.Scripted(script...)}).TaskID
	}
	failed, failedToo, fine := task(s.Owner, w, "fail 400 no"), task(mo, w, "fail 400 no"), task(s.Owner, w, "say x")
	secret := task(s.Owner, hidden, "fail 400 no")

	to := ann.Post("/tasks", "do", "retry", "id", failed, "id", failedToo, "id", failed, "id", fine, "token",
		"one").Location()
	ann.Get(to).Shows("2 tasks run again.", "One task was not changed:")
	again := ann.Post("/tasks", "do", "retry", "id", failed, "token", "one").Location() // a second click
	is.True(strings.Contains(again, "did=1") || strings.Contains(again,
		"why=state")) // the same turn, which may still run
	turns := func(id string) int64 {
		got, _, err := s.Store.Task(ctx, s.Owner.Caller, id)
		is.NoErr(err)
		return got.TurnCount
	}
	is.Equal([]int64{turns(failed), turns(failedToo), turns(fine)}, []int64{2, 2, 1})

	// A member can neither archive tasks of another user's worker nor change hidden ones.
	to = member.Post("/tasks", "do", "archive", "id", fine, "id", secret, "id", "none", "back",
		"status=error&x=y").Location()
	is.True(strings.HasPrefix(to, "/tasks?bulk=archive&did=0&not=3&status=error&why="))
	to = member.Post("/tasks", "do", "retry", "id", secret).Location()
	is.True(strings.Contains(to, "did=0&not=1&why=rights"))
	is.Equal(turns(secret), int64(1))

	ann.Get(ann.Post("/tasks", "do", "archive", "id", fine).Location()).Shows("One task is archived.")
	ann.Get(ann.Post("/tasks", "do", "cancel", "id", failed).Location()).Shows("the task has ended")
	is.Equal(ann.Post("/tasks", "do", "burn", "id", fine).Status, http.StatusBadRequest)
	var many []string
	for range 101 {
		many = append(many, "id", "x")
	}
	is.Equal(ann.Post("/tasks", append(many, "do", "cancel")...).Status, http.StatusBadRequest)
	// An address cannot put text or an invalid number on the page.
	is.Equal(ann.Get("/tasks?bulk=cancel&did=999999&not=1&why=<b>evil").Has("999999 tasks"), false)
}

// TestRunAgainForWhom checks that a retry keeps the files, and that the instruction of a non-member
// does not become that of a member.
func TestRunAgainForWhom(t *testing.T) {
	is, s, ann := dashboardtest.AsOwner(t)
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Scribe"})
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: w.ID, TaskID: "talk", Input: dashboardtest.Scripted("say one")})
	is.Equal(ann.Send(ann.Form("/tasks/talk", []string{"input", dashboardtest.Scripted("fail 400 no"), "budget", "low"},
		"n.txt", "x")).Status, 303)
	is.Equal(s.Ended("talk").Status, store.Failed)
	is.True(strings.Contains(ann.Post("/tasks", "do", "retry", "id", "talk", "token", "t").Location(), "did=1"))
	turn := s.Ended("talk")
	files, err := s.Store.FilesByTurn(t.Context(), turn)
	is.NoErr(err)
	is.Equal([]int64{turn.Seq, int64(len(files))}, []int64{2, 1})

	stranger := people.Identity{Caller: people.Caller{OrganizationID: s.Owner.OrganizationID,
		Trigger: people.TriggerEmail}}
	s.CarryOut(stranger, store.NewTurn{WorkerID: w.ID, TaskID: "mail", Input: dashboardtest.Scripted("fail 400 no")})
	ann.Get("/tasks/mail").Lacks("turns/0/again")
	ann.Post("/tasks/mail/turns/0/again", "token", "x").
		Answers(http.StatusUnprocessableEntity).Shows("from a non-member")
	is.True(strings.Contains(ann.Post("/tasks", "do", "retry", "id", "mail", "token", "t").Location(), "did=0"))
	is.Equal(s.Ended("mail").Seq, int64(0)) // no turn of a member has the non-member's instruction
}

// TestWaitingTasksComeFirst checks that tasks that wait for the user come first, and have their own
// segment of the list.
func TestWaitingTasksComeFirst(t *testing.T) {
	is, s := dashboardtest.OnSite(t)
	s.Join("mo@example.com", people.RoleMember)
	careful := s.Worker(s.Owner, workers.NewWorker{Title: "Careful",
		Settings: workers.Settings{ApprovalTools: []string{"write_file"}}})
	plain := s.Worker(s.Owner, workers.NewWorker{Title: "Plain"})
	ann, mo := s.SignIn("ann@example.com"), s.SignIn("mo@example.com")
	asks := s.Begin(s.Owner, store.NewTurn{WorkerID: careful.ID, Title: "asks first",
		Input: dashboardtest.Scripted(dashboardtest.Calling("write_file", "path", "a.txt", "content", "x"), "say done")})
	storetest.Eventually(t, "a task that asks", func() bool {
		task, _, err := s.Store.Task(t.Context(), s.Owner.Caller, asks.TaskID)
		is.NoErr(err)
		return task.Wait != nil
	})
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: plain.ID, Title: "newer", Input: dashboardtest.Scripted("say x")})
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: plain.ID, Title: "broken",
		Input: dashboardtest.Scripted("fail 400 the sky fell")})

	list := ann.Get("/tasks")
	is.Equal(list.Listed(), []string{"asks first", "broken", "newer"}) // the first one only once
	list.Shows("asks: write_file", "Review", "the sky fell", "<title>(1) Tasks", "icon-waiting.svg")
	is.Equal(ann.Get("/tasks?show=waiting").Listed(), []string{"asks first"})
	is.Equal(mo.Get("/tasks").Listed(), []string{"broken", "newer", "asks first"}) // others decide
	mo.Get("/tasks").Shows("waits for a person", "<title>Tasks")
	mo.Get("/tasks?show=waiting").Shows("Nothing waits for you.")
}
