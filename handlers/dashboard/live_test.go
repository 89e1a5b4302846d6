package dashboard_test

import (
	"regexp"
	"strings"
	"testing"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// TestLivePieces reads the updates of a hostile turn. They must be as harmless as a page, and a
// reconnecting browser gets only the pieces that it does not have.
func TestLivePieces(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	w := s.Worker(s.Owner, workers.NewWorker{Title: evil,
		Settings: workers.Settings{ApprovalTools: []string{"list_files"}}})
	s.Begin(s.Owner, store.NewTurn{WorkerID: w.ID, TaskID: "live", Title: evil,
		Input: evil + "\n\n" + dashboardtest.Scripted("think "+evil, "say "+evil,
			dashboardtest.Calling("write_file", "path", "a.html", "content", evil), dashboardtest.Calling("read_file", "path",
				evil), dashboardtest.Calling("list_files"), "say # The **end** "+evil)})
	id := s.Approval("live")
	address := dashboardtest.StreamOf(b.Get("/tasks/live"))
	waits := b.Live(address, "", func(u dashboardtest.Update) bool {
		return strings.Contains(u.Text(),
			"Waiting for your approval")
	})
	last := waits[len(waits)-1]
	is.True(strings.Contains(last.Text(), `name="decision" value="approve"`)) // the update holds the card of the approval
	_, err := s.Runner.DecideApproval(t.Context(), s.Owner.Caller, "live", id, store.Decision{Approved: true})
	is.NoErr(err)
	s.Ended("live")
	rest := b.Live(address, last.ID, nil)
	whole := b.Live("/tasks/live/live", "", nil)
	for _, u := range append(append(waits, rest...), whole...) {
		dashboardtest.Page{Body: u.Text()}.Check(t, "an update")
	}
	after := ""
	for _, u := range rest {
		after += u.Text()
	}
	is.True(strings.Contains(after, "<strong>end</strong>"))
	is.True(strings.Contains(after, "Run again"))
	is.True(!strings.Contains(after, `id="c0-0-0"`)) // a call that the browser has
	is.True(strings.Contains(whole[0].Text(), `id="c0-0-0"`))
	is.Equal(b.Live(address, rest[len(rest)-1].ID, nil)[0].ID, rest[len(rest)-1].ID) // it may also reconnect after the end

	for _, query := range []string{"?turn=99&step=99&has=99", "?turn=-1&step=x&has=-5", "?turn=99999999999999999999"} {
		ordertest.Above(is, len(b.Live("/tasks/live/live"+query, "7-x", nil)), 0) // an invalid position does no harm
	}
}

// TestRunAgain runs an instruction again, and an edited one. The files are attached again.
func TestRunAgain(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Scribe"})
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: w.ID, TaskID: "talk", Input: dashboardtest.Scripted("say one")})
	sent := b.Form("/tasks/talk", []string{"input", dashboardtest.Scripted("fail 400 on strike"), "budget", "low"},
		"notes.txt", "remember the milk")
	is.Equal(b.Send(sent).Status, 303)
	is.Equal(s.Ended("talk").Status, store.Failed)
	p := b.Get("/tasks/talk")
	p.Shows(`action="/tasks/talk/turns/1/again"`, "Try again</button>")
	token := regexp.MustCompile(`turns/1/again".*?name="token" value="([^"]+)"`).FindStringSubmatch(p.Body)[1]
	for range 2 { // two clicks are one turn
		p := b.Post("/tasks/talk/turns/1/again", "token", token)
		if p.Location() != "/tasks/talk#newest" {
			t.Fatal(p.Status, regexp.MustCompile(`role="alert">.*`).FindString(p.Body), p.Body[max(0, len(p.Body)-800):])
		}
	}
	turn := s.Ended("talk")
	is.Equal([]any{turn.Seq, turn.Budget, turn.TriggeredBy}, []any{int64(2), store.BudgetLow, people.TriggerUI})
	files, err := s.Store.FilesByTurn(t.Context(), turn)
	is.NoErr(err)
	is.Equal(len(files), 1) // the attached file is attached again

	b.Get("/tasks/talk?edit=1").Shows(`name="from" value="1"`, "fail 400 on strike", "notes.txt")
	is.Equal(b.Send(b.Form("/tasks/talk", []string{"from", "1", "input", dashboardtest.Scripted("say edited"), "budget",
		"low"}, "more.txt", "x")).Status, 303)
	turn = s.Ended("talk")
	is.Equal(turn.OutputText, "edited")
	files, err = s.Store.FilesByTurn(t.Context(), turn)
	is.NoErr(err)
	is.Equal(len(files), 2) // the old one and the new one

	is.Equal(b.Post("/tasks/talk/turns/9/again", "token", "x").Status, 404)
	is.Equal(b.Get("/tasks/talk?edit=9").Status, 200) // an invalid number leaves the form empty
	is.Equal(b.Post("/tasks/talk/archive").Status, 303)
	p = b.Post("/tasks/talk/turns/0/again", "token", "y")
	is.Equal(p.Status, 422)
	is.True(p.Has("Is archived",
		"takes no new instructions") || p.Has("archived")) // the page of the task shows the reason
}

// TestAllowRestOfTask approves a call for the rest of its task.
func TestAllowRestOfTask(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Careful",
		Settings: workers.Settings{ApprovalTools: []string{"write_file", "edit_file"}}})
	s.Begin(s.Owner, store.NewTurn{WorkerID: w.ID, TaskID: "rest",
		Input: dashboardtest.Scripted(dashboardtest.Calling("write_file", "path", "a.txt", "content", "one\ntwo\n"),
			dashboardtest.Calling("write_file", "path", "b.txt", "content", "x"), dashboardtest.Calling("edit_file", "path",
				"a.txt", "old", "two", "new", "three"), "say over")})
	id := s.Approval("rest")
	b.Get("/tasks/rest").Shows("Write a.txt?", "one\ntwo", "This call replaces the file if it exists.",
		"Allow write_file for the rest of this task")
	is.Equal(b.Post("/tasks/rest/approvals/"+id, "decision", "approve", "restOfTask", "yes").Location(),
		"/tasks/rest?done=tool-allowed")
	next := s.Approval("rest")
	p := b.Get("/tasks/rest")
	p.Shows("Change a.txt?", `class="del"`, `class="add"`) // another tool needs approval, and shows a difference
	p.Lacks("Write b.txt?")
	is.Equal(b.Post("/tasks/rest/approvals/"+next, "decision", "deny").Status, 303)
	is.Equal(s.Ended("rest").Status, store.Completed)
	is.Equal(b.Post("/tasks/rest/approvals/"+next, "decision", "approve").Location(), "/tasks/rest?done=decided-already")
	refused := b.Post("/tasks/rest/approvals/"+next, "decision", "maybe")
	refused.Answers(422).Shows(`role="alert"`, "must be approve or deny") // on the page of the task
}
