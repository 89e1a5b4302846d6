package lists_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// TestFirstSteps checks that done steps are marked, and that the steps stay hidden once a user
// hides them.
func TestFirstSteps(t *testing.T) {
	is, s := dashboardtest.OnSite(t)
	s.Join("mo@example.com", people.RoleMember)
	ann, mo := s.SignIn("ann@example.com"), s.SignIn("mo@example.com")
	left := func(b *dashboardtest.Browser) string { // the addresses of the remaining steps
		body := b.Get("/").Body
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
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Scribe"})
	is.Equal(left(mo), "/mail /workers")
	s.Schedule(w, "Go", store.When{Type: store.CronType, Cron: "0 9 1 1 *"})
	is.Equal(left(mo), "/mail")
	_, _, err := s.Store.ReceiveEmails(t.Context(), []store.NewEmail{{Worker: w, Status: store.EmailHeld, Reason: "x",
		Verdicts:  []byte("{}"),
		MessageID: "m@x", From: "b@x", To: "c@x"}}, []byte(dashboardtest.RawMail("b@x", w.ID)), store.MailLimits{})
	is.NoErr(err)
	is.Equal(left(mo), "") // all are done
	is.Equal(left(ann), "/settings/models")
	is.Equal(ann.Post("/first-steps").Location(), "/")
	is.Equal(left(ann), "")
}

// TestHome checks that the first page shows waiting, running and failed tasks, and the spent
// credits.
func TestHome(t *testing.T) {
	is, s := dashboardtest.OnSite(t)
	s.Join("mo@example.com", people.RoleMember)
	ann, mo := s.SignIn("ann@example.com"), s.SignIn("mo@example.com")
	ann.Get("/").Shows("Tasks that are running, waiting for you or failed appear here.", "credits")
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Scribe"})
	hidden := s.Worker(s.Owner, workers.NewWorker{Title: "Hidden", Visibility: workers.Private})
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: w.ID, Title: "broken", Input: dashboardtest.Scripted("fail 400 no ink")})
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: hidden.ID, Title: "secret",
		Input: dashboardtest.Scripted("fail 400 no ink")})
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: w.ID, Title: "fine", Input: dashboardtest.Scripted("say x")})
	is.Equal(ann.Get("/").Listed(), []string{"secret", "broken"})
	is.Equal(mo.Get("/").Listed(), []string{"broken"})
	is.Equal(mo.Get("/").Has("Spent in"), false)                        // a Member may not see it
	ann.Get("/").Shows("Spent in " + time.Now().UTC().Month().String()) // as the page of the usage names it
	half := 1e6
	storetest.CapCredits(t, s.Store, s.Owner.Caller, &half)
	ann.Get("/").Shows("of 1000000.00 credits", `role="img"`)

	// An instruction goes to the chosen worker, or to a new one.
	p := ann.Send(ann.Form("/run", []string{"workerId", w.ID, "from", "home", "input", "Hello"}))
	is.Equal(p.Status, http.StatusSeeOther)
	tasks, _, err := s.Store.Tasks(t.Context(), s.Owner.Caller, store.TaskQuery{WorkerID: w.ID, Limit: 9})
	is.NoErr(err)
	is.Equal(len(tasks), 3)
	p = ann.Send(ann.Form("/run", []string{"workerId", w.ID, "from", "home", "input", " "}))
	is.True(p.Status == http.StatusUnprocessableEntity && p.Has("must not be empty", `value="`+w.ID+`" selected`,
		"First steps"))
	// A refused file leaves the instruction on the page that it came from.
	tooMany := make([]string, 2*21)
	for i := range tooMany {
		tooMany[i] = "a.txt"
	}
	for path, shows := range map[string]string{"/run": "First steps", "/workers/" + w.ID + "/run": "Schedules"} {
		p = ann.Send(ann.Form(path, []string{"from", "home", "input", "Keep these words"}, tooMany...))
		p.Answers(http.StatusUnprocessableEntity).Shows("A request has at most 20 files.", "Keep these words</textarea>",
			`value="standard" selected`, shows)
	}
	is.Equal(mo.Send(mo.Form("/run", []string{"workerId", hidden.ID, "from", "home", "input", "x"})).Status,
		http.StatusUnprocessableEntity) // the worker is hidden from Mo
}

// TestPinnedWorkers pins a worker in the list, and checks that every page shows it.
func TestPinnedWorkers(t *testing.T) {
	is, s, ann := dashboardtest.AsOwner(t)
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Scribe"})
	is.Equal(ann.Get("/tasks").Has("Scribe</span>"), false)
	is.Equal(ann.Post("/workers/"+w.ID+"/pin", "back", "/workers?q=Scr").Location(), "/workers?q=Scr")
	ann.Get("/tasks").Shows(`id="pinned"`, "Scribe</span>")
	ann.Get("/workers").Shows("Unpin Scribe")
	is.Equal(ann.Post("/workers/"+w.ID+"/unpin", "back", "//evil.example/").Location(), "/workers")
	is.Equal(ann.Get("/tasks").Has(`id="pinned"`), false)
}
