package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

	"journeyman/store"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// decisionLink returns the path of the link with which a user decides on a waiting task.
func (s *site) decisionLink(who people.Identity, task string) string {
	s.t.Helper()
	id := s.approval(task)
	a, err := s.store.Approval(s.t.Context(), s.owner.Caller, task, id)
	s.ok(err)
	turn, err := s.store.Turn(s.t.Context(), a.TurnID)
	s.ok(err)
	token, err := s.store.DecisionToken(turn, a, who.UserID)
	s.ok(err)
	return "/decide/" + token
}

// TestDecisionByLink decides without signing in.
func TestDecisionByLink(t *testing.T) {
	is, s := onSite(t)
	guest := s.visitor()
	w := s.worker(s.owner, workers.NewWorker{Title: "Careful",
		Settings: workers.Settings{ApprovalTools: []string{"write_file"}}})
	s.begin(s.owner, store.NewTurn{WorkerID: w.ID, TaskID: "one", Input: scripted(calling("write_file", "path", "<b>.txt", "content", "x"), "say over")})
	link := s.decisionLink(s.owner, "one")
	for range 3 { // mail scanners open it
		p := guest.get(link)
		p.answers(200).shows("Allow <code>write_file</code>?", "&lt;b&gt;.txt", `name="decision" value="approve"`)
		is.Equal([]string{p.header.Get("Referrer-Policy"), p.header.Get("Cache-Control")}, []string{"no-referrer", "no-store"})
		is.True(strings.Contains(p.header.Get("Content-Security-Policy"), "default-src 'none'"))
	}
	is.Equal(guest.post(link, "decision", "maybe").status, 422)
	is.Equal(guest.post(link, "decision", "deny", "reason", strings.Repeat("x", 1001)).status, 422)
	is.Equal(guest.post(link, "decision", "approve").location(), link)
	is.Equal(s.ended("one").Status, store.Completed)
	p := guest.get(link)
	p.shows("Approved by", "Nothing is left to decide")
	is.Equal(p.has("<button name"), false)
	is.Equal(guest.post(link, "decision", "deny").location(), link) // the decision has no effect
	guest.get(link).shows("Approved by")

	// A question.
	s.begin(s.owner, store.NewTurn{WorkerID: w.ID, TaskID: "two", Input: scripted(`tool ask_user {"question": "Which <i>?", "choices": ["red"]}`, "say {{last}}")})
	link = s.decisionLink(s.owner, "two")
	guest.get(link).shows("Which &lt;i&gt;?", `name="choice" value="1">red</button>`)
	guest.post(link, "answer", " ").answers(422).shows("must not be empty")
	is.Equal(guest.post(link, "answer", "blue").location(), link)
	is.Equal(s.ended("two").OutputText, `{"answer":"blue"}`)
	guest.get(link).shows("Answered by")
}

// TestForgedDecisionLinks checks the pages of forged links, and that they do not block valid links.
func TestForgedDecisionLinks(t *testing.T) {
	is, s := onSite(t)
	guest := s.visitor()
	member := s.join("mo@example.com", people.RoleMember)
	w := s.worker(s.owner, workers.NewWorker{Title: "Careful",
		Settings: workers.Settings{ApprovalTools: []string{"list_files"}}})
	s.begin(s.owner, store.NewTurn{WorkerID: w.ID, TaskID: "one", Input: scripted(calling("list_files"), "say over")})
	good := s.decisionLink(s.owner, "one")
	for _, link := range []string{"/decide/x", good + "x", s.decisionLink(member, "one")} {
		is.Equal(guest.get(link).status, http.StatusNotFound)
		is.Equal(guest.post(link, "decision", "approve").status, http.StatusNotFound)
	}
	for range 10 {
		guest.get("/decide/x")
	}
	is.Equal(guest.get("/decide/x").status, http.StatusNotFound)
	is.Equal(guest.get(good).status, http.StatusOK) // forged links do not block others
}
