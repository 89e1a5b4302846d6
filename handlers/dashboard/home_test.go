package dashboard_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"journeyman/store"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// TestFirstSteps checks that done steps are marked, and that the steps stay hidden once a user
// hides them.
func TestFirstSteps(t *testing.T) {
	is, s := onSite(t)
	s.join("mo@example.com", people.RoleMember)
	ann, mo := s.signIn("ann@example.com"), s.signIn("mo@example.com")
	left := func(b *browser) string { // the addresses of the remaining steps
		body := b.get("/").body
		from := strings.Index(body, `class="card firststeps"`)
		if from < 0 {
			return ""
		}
		var list []string
		for _, part := range strings.Split(body[from:strings.Index(body[from:], "</ol>")+from], `<a href="`)[1:] {
			list = append(list, part[:strings.Index(part, `"`)])
		}
		return strings.Join(list, " ")
	}
	is.Equal(left(ann), "/settings/models /workers/new /mail /workers")
	is.Equal(left(mo), "/workers/new /mail /workers") // a Member cannot connect a model
	w := s.worker(s.owner, workers.NewWorker{Title: "Scribe"})
	is.Equal(left(mo), "/mail /workers")
	s.schedule(w, "Go", store.When{Type: store.CronType, Cron: "0 9 1 1 *"})
	is.Equal(left(mo), "/mail")
	_, _, err := s.store.ReceiveEmails(t.Context(), []store.NewEmail{{Worker: w, Status: store.EmailHeld, Reason: "x", Verdicts: []byte("{}"),
		MessageID: "m@x", From: "b@x", To: "c@x"}}, []byte(rawMail("b@x", w.ID)), store.MailLimits{})
	is.NoErr(err)
	is.Equal(left(mo), "") // all are done
	is.Equal(left(ann), "/settings/models")
	is.Equal(ann.post("/first-steps").location(), "/")
	is.Equal(left(ann), "")
}

// TestHome checks that the first page shows waiting, running and failed tasks, and the spent
// credits.
func TestHome(t *testing.T) {
	is, s := onSite(t)
	s.join("mo@example.com", people.RoleMember)
	ann, mo := s.signIn("ann@example.com"), s.signIn("mo@example.com")
	ann.get("/").shows("Tasks that are running, waiting for you or failed appear here.", "credits")
	w := s.worker(s.owner, workers.NewWorker{Title: "Scribe"})
	hidden := s.worker(s.owner, workers.NewWorker{Title: "Hidden", Visibility: workers.Private})
	s.carryOut(s.owner, store.NewTurn{WorkerID: w.ID, Title: "broken", Input: scripted("fail 400 no ink")})
	s.carryOut(s.owner, store.NewTurn{WorkerID: hidden.ID, Title: "secret", Input: scripted("fail 400 no ink")})
	s.carryOut(s.owner, store.NewTurn{WorkerID: w.ID, Title: "fine", Input: scripted("say x")})
	is.Equal(ann.get("/").listed(), []string{"secret", "broken"})
	is.Equal(mo.get("/").listed(), []string{"broken"})
	is.Equal(mo.get("/").has("Spent in"), false)                        // a Member may not see it
	ann.get("/").shows("Spent in " + time.Now().UTC().Month().String()) // as the page of the usage names it
	half := 1e6
	storetest.CapCredits(t, s.store, s.owner.Caller, &half)
	ann.get("/").shows("of 1000000.00 credits", `role="img"`)

	// An instruction goes to the chosen worker, or to a new one.
	p := ann.send(ann.form("/run", []string{"workerId", w.ID, "from", "home", "input", "Hello"}))
	is.Equal(p.status, http.StatusSeeOther)
	tasks, _, err := s.store.Tasks(t.Context(), s.owner.Caller, store.TaskQuery{WorkerID: w.ID, Limit: 9})
	is.NoErr(err)
	is.Equal(len(tasks), 3)
	p = ann.send(ann.form("/run", []string{"workerId", w.ID, "from", "home", "input", " "}))
	is.True(p.status == http.StatusUnprocessableEntity && p.has("must not be empty", `value="`+w.ID+`" selected`, "First steps"))
	// A refused file leaves the instruction on the page that it came from.
	tooMany := make([]string, 2*21)
	for i := range tooMany {
		tooMany[i] = "a.txt"
	}
	for path, shows := range map[string]string{"/run": "First steps", "/workers/" + w.ID + "/run": "Schedules"} {
		p = ann.send(ann.form(path, []string{"from", "home", "input", "Keep these words"}, tooMany...))
		p.answers(http.StatusUnprocessableEntity).shows("A request has at most 20 files.", "Keep these words</textarea>", `value="standard" selected`, shows)
	}
	is.Equal(mo.send(mo.form("/run", []string{"workerId", hidden.ID, "from", "home", "input", "x"})).status, http.StatusUnprocessableEntity) // the worker is hidden from Mo
}

// TestPinnedWorkers pins a worker in the list, and checks that every page shows it.
func TestPinnedWorkers(t *testing.T) {
	is, s, ann := asOwner(t)
	w := s.worker(s.owner, workers.NewWorker{Title: "Scribe"})
	is.Equal(ann.get("/tasks").has("Scribe</span>"), false)
	is.Equal(ann.post("/workers/"+w.ID+"/pin", "back", "/workers?q=Scr").location(), "/workers?q=Scr")
	ann.get("/tasks").shows(`id="pinned"`, "Scribe</span>")
	ann.get("/workers").shows("Unpin Scribe")
	is.Equal(ann.post("/workers/"+w.ID+"/unpin", "back", "//evil.example/").location(), "/workers")
	is.Equal(ann.get("/tasks").has(`id="pinned"`), false)
}
