package dashboard_test

import (
	"testing"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/workers"
)

// TestBrowserQuestion answers questions on the page of a task, by a button and as text, and decides
// by the link of a mail without signing in.
func TestBrowserQuestion(t *testing.T) {
	is, s, w := inBrowser(t)
	wrk := s.Worker(s.Owner, workers.NewWorker{Title: "Waiter",
		Settings: workers.Settings{ApprovalTools: []string{"list_files"}}})
	s.Begin(s.Owner, store.NewTurn{WorkerID: wrk.ID, TaskID: "lunch", Title: "Order lunch", Input: dashboardtest.Scripted(
		`tool ask_user {"question": "Soup or <b>salad</b>?", "choices": ["Soup", "Salad"]}`, `tool ask_user {"question": "For how many?"}`, "say Ordered {{last}}.")})
	s.Approval("lunch")
	w.open("/tasks/lunch")
	w.sees("Soup or <b>salad</b>?", "Waiting for your answer")
	w.look("task-question")
	is.Equal(w.text(`(() => { const bottom = (e) => document.querySelector(e).getBoundingClientRect().bottom;
		return document.querySelector(".answering .main").getBoundingClientRect().top - bottom(".answering textarea") >= 8; })()`), "true")
	w.click("Salad")
	w.sees("Answered. The worker continues.")
	s.Approval("lunch") // the list of tasks shows it once the turn is suspended
	w.open("/tasks")
	w.sees("Waiting for you")
	w.look("tasks-waiting")
	w.open("/tasks/lunch")
	w.fill("Your answer", "For two")
	w.click("Answer")
	is.Equal(s.Ended("lunch").OutputText, `Ordered {"answer":"For two"}.`)

	s.Begin(s.Owner, store.NewTurn{WorkerID: wrk.ID, TaskID: "call", Title: "Look",
		Input: dashboardtest.Scripted(dashboardtest.Calling("list_files"), "say over")})
	link := s.DecisionLink(s.Owner, "call")
	guest := newWindow(s)
	guest.open(link)
	guest.sees("Allow list_files?")
	guest.look("decide")
	guest.click("Approve")
	guest.sees("Approved by", "Nothing is left to decide here.")
	guest.look("decided")
	is.Equal(s.Ended("call").Status, store.Completed)
}
