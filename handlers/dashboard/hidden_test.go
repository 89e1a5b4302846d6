package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"journeyman/store"
	"journeyman/store/visible"
	"journeyman/store/workers"
)

// unseen holds a character of each kind that people cannot see: for the direction of writing, of no
// width, a variation selector, tags, a soft hyphen, separators, a filler and controls.
const unseen = "\u202e\u2066\u200b\u200d\ufeff\ufe0f\U000e0100\U000e0041\u00ad\u2028\u2029\u3164\u061c\x1b\u009b"

// showsHidden fails unless a page shows each character of unseen as an escape, and has none itself.
func (p page) showsHidden(t *testing.T) {
	t.Helper()
	if !strings.Contains(p.body, visible.Line(unseen)) {
		t.Errorf("the page does not show %s", visible.Line(unseen))
	}
	for _, r := range p.body {
		if r != '\n' && r != '\t' && visible.Hidden(r) {
			t.Fatalf("the page holds %U", r)
		}
	}
}

// TestHiddenCharacters puts hidden characters into names and texts of others, and opens the pages on
// which somebody decides on them.
func TestHiddenCharacters(t *testing.T) {
	is, s, b := asOwner(t)
	w := s.worker(s.owner, workers.NewWorker{Title: "Worker" + unseen, Settings: workers.Settings{
		ApprovalTools: []string{"write_file", "edit_file"}}})
	for name, script := range map[string]string{
		"write":    calling("write_file", "path", "a.txt", "content", "x"+unseen),
		"edit":     calling("edit_file", "path", "a.txt", "old", "x", "new", "x"+unseen),
		"question": calling("ask_user", "question", "Pay? "+unseen),
	} {
		s.begin(s.owner, store.NewTurn{WorkerID: w.ID, TaskID: name, Input: "About " + unseen + "\n" + scripted(script, "say over")})
		s.approval(name)
		b.get("/tasks/" + name).answers(200).showsHidden(t)
		s.visitor().get(s.decisionLink(s.owner, name)).answers(200).showsHidden(t)
	}
	for _, path := range []string{"/tasks", "/workers", "/workers/" + w.ID} {
		b.get(path).answers(200).showsHidden(t)
	}
	client, err := s.store.People.RegisterOAuthClient(t.Context(), "Program"+unseen, []string{callback})
	is.NoErr(err)
	q := url.Values{"client_id": {client.ID}, "redirect_uri": {callback}, "response_type": {"code"},
		"code_challenge_method": {"S256"}, "code_challenge": {strings.Repeat("a", 43)}}
	b.get("/oauth/authorize?" + q.Encode()).answers(200).showsHidden(t)
}

// TestEmojiOnPages shows an emoji of several characters in a title, and as escapes where somebody
// decides.
func TestEmojiOnPages(t *testing.T) {
	_, s, b := asOwner(t)
	const astronaut = "👩\u200d🚀"
	w := s.worker(s.owner, workers.NewWorker{Title: astronaut + " of ours"})
	b.get("/workers").shows(astronaut)
	s.begin(s.owner, store.NewTurn{WorkerID: w.ID, TaskID: "one", Input: scripted(calling("ask_user", "question", astronaut+"?"), "say over")})
	s.approval("one")
	b.get("/tasks/one").shows(astronaut, visible.Text(astronaut)+"?")
	s.visitor().get(s.decisionLink(s.owner, "one")).shows(visible.Text(astronaut)+"?", visible.Text(astronaut)+" of ours")
}

// TestHiddenCharactersInForms opens a form with hidden characters in its fields and sends it again. The
// fields keep them: escapes would become a part of the text.
func TestHiddenCharactersInForms(t *testing.T) {
	is, s, b := asOwner(t)
	title, does := `A "quoted" > title`+"\u200b\ufe0f", "Do\u00ad <this>\u202e.\n</textarea> \u200d"
	w := s.worker(s.owner, workers.NewWorker{Title: title, Instructions: does})
	p := b.get("/workers/" + w.ID + "/settings").answers(http.StatusOK)
	is.True(p.has(`value="A &#34;quoted&#34; &gt; title` + "\u200b\ufe0f" + `"`))
	is.True(p.has("Do\u00ad &lt;this&gt;\u202e.\n&lt;/textarea&gt; \u200d</textarea>"))
	is.True(p.has(`title\u200b\ufe0f`)) // its heading
}

// TestTextsHideNothing reads the templates and texts of the pages: they have no hidden characters of
// their own, which pages would show as escapes.
func TestTextsHideNothing(t *testing.T) {
	_, s, b := asOwner(t)
	w := s.worker(s.owner, workers.NewWorker{Title: "W"})
	for _, language := range []string{"en", "de"} {
		for _, path := range []string{"/", "/tasks", "/workers", "/workers/" + w.ID, "/workers/" + w.ID + "/settings", "/account", "/usage"} {
			p := b.send(s.request("GET", path, "", "Accept-Language", language))
			if i := strings.Index(p.body, `\u`); i >= 0 {
				t.Errorf("%s: %q", path, p.body[max(0, i-40):min(len(p.body), i+20)])
			}
		}
	}
}
