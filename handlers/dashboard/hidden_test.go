package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/visible"
	"journeyman/store/workers"
)

// TestHiddenCharacters puts hidden characters into names and texts of others, and opens the pages on
// which somebody decides on them.
func TestHiddenCharacters(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Worker" + dashboardtest.Unseen, Settings: workers.Settings{
		ApprovalTools: []string{"write_file", "edit_file"}}})
	for name, script := range map[string]string{
		"write":    dashboardtest.Calling("write_file", "path", "a.txt", "content", "x"+dashboardtest.Unseen),
		"edit":     dashboardtest.Calling("edit_file", "path", "a.txt", "old", "x", "new", "x"+dashboardtest.Unseen),
		"question": dashboardtest.Calling("ask_user", "question", "Pay? "+dashboardtest.Unseen),
	} {
		s.Begin(s.Owner, store.NewTurn{WorkerID: w.ID, TaskID: name,
			Input: "About " + dashboardtest.Unseen + "\n" + dashboardtest.Scripted(script, "say over")})
		s.Approval(name)
		b.Get("/tasks/" + name).Answers(200).ShowsHidden(t)
		s.Visitor().Get(s.DecisionLink(s.Owner, name)).Answers(200).ShowsHidden(t)
	}
	for _, path := range []string{"/tasks", "/workers", "/workers/" + w.ID} {
		b.Get(path).Answers(200).ShowsHidden(t)
	}
	client, err := s.Store.People.RegisterOAuthClient(t.Context(), "Program"+dashboardtest.Unseen,
		[]string{dashboardtest.Callback})
	is.NoErr(err)
	q := url.Values{"client_id": {client.ID}, "redirect_uri": {dashboardtest.Callback}, "response_type": {"code"},
		"code_challenge_method": {"S256"}, "code_challenge": {strings.Repeat("a", 43)}}
	b.Get("/oauth/authorize?" + q.Encode()).Answers(200).ShowsHidden(t)
}

// TestEmojiOnPages shows an emoji of several characters in a title, and as escapes where somebody
// decides.
func TestEmojiOnPages(t *testing.T) {
	_, s, b := dashboardtest.AsOwner(t)
	const astronaut = "👩\u200d🚀"
	w := s.Worker(s.Owner, workers.NewWorker{Title: astronaut + " of ours"})
	b.Get("/workers").Shows(astronaut)
	s.Begin(s.Owner, store.NewTurn{WorkerID: w.ID, TaskID: "one",
		Input: dashboardtest.Scripted(dashboardtest.Calling("ask_user", "question", astronaut+"?"), "say over")})
	s.Approval("one")
	b.Get("/tasks/one").Shows(astronaut, visible.Text(astronaut)+"?")
	s.Visitor().Get(s.DecisionLink(s.Owner, "one")).Shows(visible.Text(astronaut)+"?", visible.Text(astronaut)+" of ours")
}

// TestHiddenCharactersInForms opens a form with hidden characters in its fields and sends it again. The
// fields keep them: escapes would become a part of the text.
func TestHiddenCharactersInForms(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	title, does := `A "quoted" > title`+"\u200b\ufe0f", "Do\u00ad <this>\u202e.\n</textarea> \u200d"
	w := s.Worker(s.Owner, workers.NewWorker{Title: title, Instructions: does})
	p := b.Get("/workers/" + w.ID + "/settings").Answers(http.StatusOK)
	is.True(p.Has(`value="A &#34;quoted&#34; &gt; title` + "\u200b\ufe0f" + `"`))
	is.True(p.Has("Do\u00ad &lt;this&gt;\u202e.\n&lt;/textarea&gt; \u200d</textarea>"))
	is.True(p.Has(`title\u200b\ufe0f`)) // its heading
}

// TestTextsHideNothing reads the templates and texts of the pages: they have no hidden characters of
// their own, which pages would show as escapes.
func TestTextsHideNothing(t *testing.T) {
	_, s, b := dashboardtest.AsOwner(t)
	w := s.Worker(s.Owner, workers.NewWorker{Title: "W"})
	for _, language := range []string{"en", "de"} {
		for _, path := range []string{"/", "/tasks", "/workers", "/workers/" + w.ID, "/workers/" + w.ID + "/settings", "/account", "/usage"} {
			p := b.Send(s.Request("GET", path, "", "Accept-Language", language))
			if i := strings.Index(p.Body, `\u`); i >= 0 {
				t.Errorf("%s: %q", path, p.Body[max(0, i-40):min(len(p.Body), i+20)])
			}
		}
	}
}
