package task_test

import (
	"net/http"
	"strings"
	"testing"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// TestDecisionByLink decides without signing in.
func TestDecisionByLink(t *testing.T) {
	is, s := dashboardtest.OnSite(t)
	guest := s.Visitor()
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Careful",
		Settings: workers.Settings{ApprovalTools: []string{"write_file"}}})
	s.Begin(s.Owner, store.NewTurn{WorkerID: w.ID, TaskID: "one",
		Input: dashboardtest.Scripted(dashboardtest.Calling("write_file", "path", "<b>.txt", "content", "x"), "say over")})
	link := s.DecisionLink(s.Owner, "one")
	for range 3 { // mail scanners open it
		p := guest.Get(link)
		p.Answers(200).Shows("Allow <code>write_file</code>?", "&lt;b&gt;.txt", `name="decision" value="approve"`)
		is.Equal([]string{p.Header.Get("Referrer-Policy"), p.Header.Get("Cache-Control")}, []string{"no-referrer",
			"no-store"})
		is.True(strings.Contains(p.Header.Get("Content-Security-Policy"), "default-src 'none'"))
	}
	is.Equal(guest.Post(link, "decision", "maybe").Status, 422)
	is.Equal(guest.Post(link, "decision", "deny", "reason", strings.Repeat("x", 1001)).Status, 422)
	is.Equal(guest.Post(link, "decision", "approve").Location(), link)
	is.Equal(s.Ended("one").Status, store.Completed)
	p := guest.Get(link)
	p.Shows("Approved by", "Nothing is left to decide")
	is.Equal(p.Has("<button name"), false)
	is.Equal(guest.Post(link, "decision", "deny").Location(), link) // the decision has no effect
	guest.Get(link).Shows("Approved by")

	// A question.
	s.Begin(s.Owner, store.NewTurn{WorkerID: w.ID, TaskID: "two",
		Input: dashboardtest.Scripted(`tool ask_user {"question": "Which <i>?", "choices": ["red"]}`, "say {{last}}")})
	link = s.DecisionLink(s.Owner, "two")
	guest.Get(link).Shows("Which &lt;i&gt;?", `name="choice" value="1">red</button>`)
	guest.Post(link, "answer", " ").Answers(422).Shows("must not be empty")
	is.Equal(guest.Post(link, "answer", "blue").Location(), link)
	is.Equal(s.Ended("two").OutputText, `{"answer":"blue"}`)
	guest.Get(link).Shows("Answered by")
}

// TestForgedDecisionLinks checks the pages of forged links, and that they do not block valid links.
func TestForgedDecisionLinks(t *testing.T) {
	is, s := dashboardtest.OnSite(t)
	guest := s.Visitor()
	member := s.Join("mo@example.com", people.RoleMember)
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Careful",
		Settings: workers.Settings{ApprovalTools: []string{"list_files"}}})
	s.Begin(s.Owner, store.NewTurn{WorkerID: w.ID, TaskID: "one",
		Input: dashboardtest.Scripted(dashboardtest.Calling("list_files"), "say over")})
	good := s.DecisionLink(s.Owner, "one")
	for _, link := range []string{"/decide/x", good + "x", s.DecisionLink(member, "one")} {
		is.Equal(guest.Get(link).Status, http.StatusNotFound)
		is.Equal(guest.Post(link, "decision", "approve").Status, http.StatusNotFound)
	}
	for range 10 {
		guest.Get("/decide/x")
	}
	is.Equal(guest.Get("/decide/x").Status, http.StatusNotFound)
	is.Equal(guest.Get(good).Status, http.StatusOK) // forged links do not block others
}
