package lists_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

func TestTaskFilters(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	empty := b.Get("/tasks")
	is.Equal(empty.Has("Filter tasks"), false) // there is nothing to filter
	empty.Shows("There are no tasks yet", "curl "+s.URL+"/api/tasks", "@mail.example")

	scribe := s.Worker(s.Owner, workers.NewWorker{Title: "Scribe"})
	clerk := s.Worker(s.Owner, workers.NewWorker{Title: "Clerk"})
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: scribe.ID, Title: "first letter",
		Input: dashboardtest.Scripted("say done")})
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: scribe.ID, Title: "second letter",
		Input: dashboardtest.Scripted("fail 400 no")})
	ui := s.Owner
	ui.Trigger = people.TriggerUI
	s.CarryOut(ui, store.NewTurn{WorkerID: clerk.ID, Title: "third 100%", Input: dashboardtest.Scripted("say done")})
	gone := s.CarryOut(s.Owner, store.NewTurn{WorkerID: clerk.ID, Title: "put away",
		Input: dashboardtest.Scripted("say done")})
	_, _, err := s.Store.ArchiveTask(t.Context(), s.Owner.Caller, gone.TaskID, "")
	is.NoErr(err)

	soon := time.Now().UTC().Add(time.Hour).Format("2006-01-02T15:04")
	for name, tt := range map[string]struct {
		query string
		want  string
	}{
		"all":        {"", "third 100% second letter first letter"},
		"status":     {"status=error", "second letter"},
		"trigger":    {"triggeredBy=ui", "third 100%"},
		"worker":     {"workerId=" + scribe.ID, "second letter first letter"},
		"text":       {"q=LETTER", "second letter first letter"},
		"percent":    {"q=0%25", "third 100%"},
		"both":       {"q=letter&status=completed", "first letter"},
		"before":     {"createdBefore=2001-01-01", ""},
		"after":      {"createdAfter=" + soon, ""},
		"until soon": {"createdBefore=" + soon, "third 100% second letter first letter"},
		"archived":   {"archived=1", "put away"},
		"nothing":    {"q=zebra", ""},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			p := b.Get("/tasks?" + tt.query)
			is.Equal(p.Status, 200)
			is.Equal(strings.Join(p.Listed(), " "), tt.want)
			is.Equal(p.Has("There are no tasks yet"), false) // there are tasks
			is.Equal(p.Has("No task matches"), tt.want == "")
		})
	}
	for query, field := range map[string]string{"status=odd": "status", "triggeredBy=odd": "triggeredBy",
		"createdAfter=yesterday": "createdAfter",
		"cursor=%21":             "", "q=" + strings.Repeat("x", 201): "q"} {
		p := b.Get("/tasks?" + query)
		is.Equal(p.Status, http.StatusUnprocessableEntity)
		if field != "" {
			p.Shows(`id="e-` + field + `"`) // the error is beside its field
		}
	}
	is.Equal(b.Get("/tasks?workerId=wrk_none").Status, http.StatusNotFound)
	b.Get("/tasks?status=error&q=x").Shows(`<option value="error" selected>`, `value="x"`) // the chosen values stay
}

// TestTaskPaging reads a long list to its end, with a filter.
func TestTaskPaging(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Scribe"})
	for i := range 120 {
		s.Begin(s.Owner, store.NewTurn{WorkerID: w.ID, Title: fmt.Sprintf("task %d", i),
			Input: dashboardtest.Scripted("say " + fmt.Sprint(i%2))})
	}
	seen := map[string]bool{}
	next := "/tasks?q=task&workerId=" + w.ID
	pages := 0
	for ; next != ""; pages++ {
		p := b.Get(next)
		is.Equal(p.Status, 200)
		p.SmallerThan(50 << 10)
		is.Equal(p.Has(">Newest</a>"), pages > 0)
		for _, title := range p.Listed() {
			is.True(!seen[title]) // shown once
			seen[title] = true
		}
		next = dashboardtest.Href(p, "Older")
	}
	is.Equal(len(seen), 120)
	is.Equal(pages, 4)
}

// TestTaskAccess checks that a list shows only tasks of workers that the user may see, and that the id of a
// task of another organization is free.
func TestTaskAccess(t *testing.T) {
	is, s, owner := dashboardtest.AsOwner(t)
	member := s.SignIn(s.Join("mo@example.com", people.RoleMember).Email)
	eve, _ := storetest.Caller(t, s.Store, "Other", "eve@example.com", people.RoleOwner)
	private := s.Worker(s.Owner, workers.NewWorker{Title: "Secret", Visibility: workers.Private})
	public := s.Worker(s.Owner, workers.NewWorker{Title: "Open"})
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: private.ID, Title: "hidden", Input: dashboardtest.Scripted("say x")})
	shown := s.CarryOut(s.Owner, store.NewTurn{WorkerID: public.ID, Title: "shown",
		Input: dashboardtest.Scripted("say x")})
	theirs := s.Worker(eve, workers.NewWorker{Title: "Theirs"})
	s.CarryOut(eve, store.NewTurn{WorkerID: theirs.ID, TaskID: "same", Input: dashboardtest.Scripted("say theirs")})

	is.Equal(member.Get("/tasks").Listed(), []string{"shown"})
	is.Equal(owner.Get("/tasks").Listed(), []string{"shown", "hidden"})
	is.Equal(member.Get("/tasks?workerId="+private.ID).Status, 403)
	for _, path := range []string{"", "/turns/0", "/calls/0/0/0", "/raw/0/input"} {
		is.Equal(owner.Get("/tasks/same"+path).Status, 404)
	}
	member.Get("/tasks/" + shown.TaskID).Lacks("Archive</button>")
	is.Equal(member.FollowUp("same", "me too").Status, 404) // and it creates no task with that id
	is.Equal(member.Get("/tasks/same").Status, 404)
}

// TestTaskNames opens tasks with ids of clients, by the url field of the API.
func TestTaskNames(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Scribe"})
	for _, id := range []string{"order-1", "A.b_c:d-9", "...", "new", "-", strings.Repeat("x", 128)} {
		s.CarryOut(s.Owner, store.NewTurn{WorkerID: w.ID, TaskID: id, Title: "named " + id,
			Input: dashboardtest.Scripted(dashboardtest.Calling("list_files"), "say done")})
		var got struct {
			Task struct {
				URL string `json:"url"`
			} `json:"task"`
		}
		is.NoErr(json.Unmarshal([]byte(s.OfAPI("/api/tasks/"+id)), &got))
		address, err := url.Parse(got.Task.URL)
		is.NoErr(err)
		path := address.ResolveReference(&url.URL{}).EscapedPath() // as a browser requests the address
		b.Get(path).Answers(200).Shows("<h1>named " + id + "</h1>")
		is.Equal(b.Get(path+"/turns/0").Status, 200)
		is.Equal(b.Get(path+"/calls/0/0/0").Status, 200)
		is.Equal(b.FollowUp(strings.TrimPrefix(path, "/tasks/"), "again").Status, 303)
	}
}
