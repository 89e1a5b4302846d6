package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

	"journeyman/store"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// TestManyTasks changes several tasks with one form, each as the user may, and checks the result in
// the list.
func TestManyTasks(t *testing.T) {
	is, s := onSite(t)
	ctx := t.Context()
	mo := s.join("mo@example.com", people.RoleMember)
	ann, member := s.signIn("ann@example.com"), s.signIn("mo@example.com")
	w := s.worker(s.owner, workers.NewWorker{Title: "Scribe"})
	hidden := s.worker(s.owner, workers.NewWorker{Title: "Hidden", Visibility: workers.Private})
	task := func(who people.Identity, worker workers.Worker, script ...string) string {
		return s.carryOut(who, store.NewTurn{WorkerID: worker.ID, Input: scripted(script...)}).TaskID
	}
	failed, failedToo, fine := task(s.owner, w, "fail 400 no"), task(mo, w, "fail 400 no"), task(s.owner, w, "say x")
	secret := task(s.owner, hidden, "fail 400 no")

	to := ann.post("/tasks", "do", "retry", "id", failed, "id", failedToo, "id", failed, "id", fine, "token", "one").location()
	ann.get(to).shows("2 tasks run again.", "One task was not changed:")
	again := ann.post("/tasks", "do", "retry", "id", failed, "token", "one").location() // a second click
	is.True(strings.Contains(again, "did=1") || strings.Contains(again, "why=state"))   // the same turn, which may still run
	turns := func(id string) int64 {
		got, _, err := s.store.Task(ctx, s.owner.Caller, id)
		is.NoErr(err)
		return got.TurnCount
	}
	is.Equal([]int64{turns(failed), turns(failedToo), turns(fine)}, []int64{2, 2, 1})

	// A member can neither archive tasks of another user's worker nor change hidden ones.
	to = member.post("/tasks", "do", "archive", "id", fine, "id", secret, "id", "none", "back", "status=error&x=y").location()
	is.True(strings.HasPrefix(to, "/tasks?bulk=archive&did=0&not=3&status=error&why="))
	to = member.post("/tasks", "do", "retry", "id", secret).location()
	is.True(strings.Contains(to, "did=0&not=1&why=rights"))
	is.Equal(turns(secret), int64(1))

	ann.get(ann.post("/tasks", "do", "archive", "id", fine).location()).shows("One task is archived.")
	ann.get(ann.post("/tasks", "do", "cancel", "id", failed).location()).shows("the task has ended")
	is.Equal(ann.post("/tasks", "do", "burn", "id", fine).status, http.StatusBadRequest)
	var many []string
	for range 101 {
		many = append(many, "id", "x")
	}
	is.Equal(ann.post("/tasks", append(many, "do", "cancel")...).status, http.StatusBadRequest)
	// An address cannot put text or an invalid number on the page.
	is.Equal(ann.get("/tasks?bulk=cancel&did=999999&not=1&why=<b>evil").has("999999 tasks"), false)
}

// TestRunAgainForWhom checks that a retry keeps the files, and that the instruction of a non-member
// does not become that of a member.
func TestRunAgainForWhom(t *testing.T) {
	is, s, ann := asOwner(t)
	w := s.worker(s.owner, workers.NewWorker{Title: "Scribe"})
	s.carryOut(s.owner, store.NewTurn{WorkerID: w.ID, TaskID: "talk", Input: scripted("say one")})
	is.Equal(ann.send(ann.form("/tasks/talk", []string{"input", scripted("fail 400 no"), "budget", "low"}, "n.txt", "x")).status, 303)
	is.Equal(s.ended("talk").Status, store.Failed)
	is.True(strings.Contains(ann.post("/tasks", "do", "retry", "id", "talk", "token", "t").location(), "did=1"))
	turn := s.ended("talk")
	files, err := s.store.FilesByTurn(t.Context(), turn)
	is.NoErr(err)
	is.Equal([]int64{turn.Seq, int64(len(files))}, []int64{2, 1})

	stranger := people.Identity{Caller: people.Caller{OrganizationID: s.owner.OrganizationID,
		Trigger: people.TriggerEmail}}
	s.carryOut(stranger, store.NewTurn{WorkerID: w.ID, TaskID: "mail", Input: scripted("fail 400 no")})
	ann.get("/tasks/mail").lacks("turns/0/again")
	ann.post("/tasks/mail/turns/0/again", "token", "x").
		answers(http.StatusUnprocessableEntity).shows("from a non-member")
	is.True(strings.Contains(ann.post("/tasks", "do", "retry", "id", "mail", "token", "t").location(), "did=0"))
	is.Equal(s.ended("mail").Seq, int64(0)) // no turn of a member has the non-member's instruction
}

// TestWaitingTasksComeFirst checks that tasks that wait for the user come first, and have their own
// segment of the list.
func TestWaitingTasksComeFirst(t *testing.T) {
	is, s := onSite(t)
	s.join("mo@example.com", people.RoleMember)
	careful := s.worker(s.owner, workers.NewWorker{Title: "Careful",
		Settings: workers.Settings{ApprovalTools: []string{"write_file"}}})
	plain := s.worker(s.owner, workers.NewWorker{Title: "Plain"})
	ann, mo := s.signIn("ann@example.com"), s.signIn("mo@example.com")
	asks := s.begin(s.owner, store.NewTurn{WorkerID: careful.ID, Title: "asks first", Input: scripted(calling("write_file", "path", "a.txt", "content", "x"), "say done")})
	storetest.Eventually(t, "a task that asks", func() bool {
		task, _, err := s.store.Task(t.Context(), s.owner.Caller, asks.TaskID)
		is.NoErr(err)
		return task.Wait != nil
	})
	s.carryOut(s.owner, store.NewTurn{WorkerID: plain.ID, Title: "newer", Input: scripted("say x")})
	s.carryOut(s.owner, store.NewTurn{WorkerID: plain.ID, Title: "broken", Input: scripted("fail 400 the sky fell")})

	list := ann.get("/tasks")
	is.Equal(list.listed(), []string{"asks first", "broken", "newer"}) // the first one only once
	list.shows("asks: write_file", "Review", "the sky fell", "<title>(1) Tasks", "icon-waiting.svg")
	is.Equal(ann.get("/tasks?show=waiting").listed(), []string{"asks first"})
	is.Equal(mo.get("/tasks").listed(), []string{"broken", "newer", "asks first"}) // others decide
	mo.get("/tasks").shows("waits for a person", "<title>Tasks")
	mo.get("/tasks?show=waiting").shows("Nothing waits for you.")
}
