package dashboard_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// scripted returns an instruction that the offline model carries out line by line.
func scripted(lines ...string) string { return "```offline\n" + strings.Join(lines, "\n") + "\n```" }

// calling returns a script line that calls a tool. arguments alternates names and values.
func calling(name string, arguments ...string) string {
	input := map[string]string{}
	for i := 0; i+1 < len(arguments); i += 2 {
		input[arguments[i]] = arguments[i+1]
	}
	text, _ := json.Marshal(input) // strings
	return "tool " + name + " " + string(text)
}

// worker creates a worker as that user.
func (s *site) worker(who people.Identity, n workers.NewWorker) workers.Worker {
	s.t.Helper()
	w, _, err := s.store.Workers.CreateWorker(s.t.Context(), who.Caller, n, db.IdempotencyKey{})
	s.ok(err)
	return w
}

// begin accepts a turn as that user.
func (s *site) begin(who people.Identity, n store.NewTurn) store.Turn {
	s.t.Helper()
	n.Caller, n.Budget = who.Caller, store.BudgetUnlimited
	a, err := s.store.CreateTurn(s.t.Context(), n)
	s.ok(err)
	s.runner.Wake()
	return a.Turn
}

// carryOut accepts a turn and waits until it has ended.
func (s *site) carryOut(who people.Identity, n store.NewTurn) store.Turn {
	s.t.Helper()
	turn := s.begin(who, n)
	s.ok(s.runner.Wait(s.t.Context(), turn.ID))
	turn, err := s.store.Turn(s.t.Context(), turn.ID)
	s.ok(err)
	return turn
}

var titles = regexp.MustCompile(`<a class="title" href="[^"]*"><span class="cut">([^<]*)</span>`)

// listed returns the titles that a list of tasks shows.
func (p page) listed() (list []string) {
	for _, m := range titles.FindAllStringSubmatch(p.body, -1) {
		list = append(list, m[1])
	}
	return list
}

func TestTaskFilters(t *testing.T) {
	is, s, b := asOwner(t)
	empty := b.get("/tasks")
	is.Equal(empty.has("Filter tasks"), false) // there is nothing to filter
	empty.shows("There are no tasks yet", "curl "+s.url+"/api/tasks", "@mail.example")

	scribe := s.worker(s.owner, workers.NewWorker{Title: "Scribe"})
	clerk := s.worker(s.owner, workers.NewWorker{Title: "Clerk"})
	s.carryOut(s.owner, store.NewTurn{WorkerID: scribe.ID, Title: "first letter", Input: scripted("say done")})
	s.carryOut(s.owner, store.NewTurn{WorkerID: scribe.ID, Title: "second letter", Input: scripted("fail 400 no")})
	ui := s.owner
	ui.Trigger = people.TriggerUI
	s.carryOut(ui, store.NewTurn{WorkerID: clerk.ID, Title: "third 100%", Input: scripted("say done")})
	gone := s.carryOut(s.owner, store.NewTurn{WorkerID: clerk.ID, Title: "put away", Input: scripted("say done")})
	_, _, err := s.store.ArchiveTask(t.Context(), s.owner.Caller, gone.TaskID, "")
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
			p := b.get("/tasks?" + tt.query)
			is.Equal(p.status, 200)
			is.Equal(strings.Join(p.listed(), " "), tt.want)
			is.Equal(p.has("There are no tasks yet"), false) // there are tasks
			is.Equal(p.has("No task matches"), tt.want == "")
		})
	}
	for query, field := range map[string]string{"status=odd": "status", "triggeredBy=odd": "triggeredBy", "createdAfter=yesterday": "createdAfter",
		"cursor=%21": "", "q=" + strings.Repeat("x", 201): "q"} {
		p := b.get("/tasks?" + query)
		is.Equal(p.status, http.StatusUnprocessableEntity)
		if field != "" {
			p.shows(`id="e-` + field + `"`) // the error is beside its field
		}
	}
	is.Equal(b.get("/tasks?workerId=wrk_none").status, http.StatusNotFound)
	b.get("/tasks?status=error&q=x").shows(`<option value="error" selected>`, `value="x"`) // the chosen values stay
}

// TestTaskPaging reads a long list to its end, with a filter.
func TestTaskPaging(t *testing.T) {
	is, s, b := asOwner(t)
	w := s.worker(s.owner, workers.NewWorker{Title: "Scribe"})
	for i := range 120 {
		s.begin(s.owner, store.NewTurn{WorkerID: w.ID, Title: fmt.Sprintf("task %d", i), Input: scripted("say " + fmt.Sprint(i%2))})
	}
	seen := map[string]bool{}
	next := "/tasks?q=task&workerId=" + w.ID
	pages := 0
	for ; next != ""; pages++ {
		p := b.get(next)
		is.Equal(p.status, 200)
		p.smallerThan(50 << 10)
		is.Equal(p.has(">Newest</a>"), pages > 0)
		for _, title := range p.listed() {
			is.True(!seen[title]) // shown once
			seen[title] = true
		}
		next = link(p, "Older")
	}
	is.Equal(len(seen), 120)
	is.Equal(pages, 4)
}

// link returns the address of the link with that text; "" without one.
func link(p page, text string) string {
	m := regexp.MustCompile(`<a [^>]*href="([^"]*)"[^>]*>` + regexp.QuoteMeta(text) + `</a>`).FindStringSubmatch(p.body)
	if m == nil {
		return ""
	}
	return strings.ReplaceAll(m[1], "&amp;", "&")
}

// claimed creates a turn of a new worker of Acme, and claims it as the runner "r".
func claimed(t testing.TB, st *store.Store, n store.NewTurn) store.Claim {
	t.Helper()
	is, ctx := is.New(t), t.Context()
	who, _ := storetest.Caller(t, st, "Acme", "ann@example.com", people.RoleOwner)
	w, _, err := st.Workers.CreateWorker(ctx, who.Caller, workers.NewWorker{Title: "Busy"}, db.IdempotencyKey{})
	is.NoErr(err)
	n.Caller, n.WorkerID, n.Budget = who.Caller, w.ID, store.BudgetLow
	_, err = st.CreateTurn(ctx, n)
	is.NoErr(err)
	is.NoErr(st.StartRunner(ctx, "r", time.Minute))
	claims, err := st.ClaimTurns(ctx, "r", 1, 1)
	is.NoErr(err)
	return claims[0]
}

// TestTaskAccess checks that a list shows only tasks of workers that the user may see, and that the id of a
// task of another organization is free.
func TestTaskAccess(t *testing.T) {
	is, s, owner := asOwner(t)
	member := s.signIn(s.join("mo@example.com", people.RoleMember).Email)
	eve, _ := storetest.Caller(t, s.store, "Other", "eve@example.com", people.RoleOwner)
	private := s.worker(s.owner, workers.NewWorker{Title: "Secret", Visibility: workers.Private})
	public := s.worker(s.owner, workers.NewWorker{Title: "Open"})
	s.carryOut(s.owner, store.NewTurn{WorkerID: private.ID, Title: "hidden", Input: scripted("say x")})
	shown := s.carryOut(s.owner, store.NewTurn{WorkerID: public.ID, Title: "shown", Input: scripted("say x")})
	theirs := s.worker(eve, workers.NewWorker{Title: "Theirs"})
	s.carryOut(eve, store.NewTurn{WorkerID: theirs.ID, TaskID: "same", Input: scripted("say theirs")})

	is.Equal(member.get("/tasks").listed(), []string{"shown"})
	is.Equal(owner.get("/tasks").listed(), []string{"shown", "hidden"})
	is.Equal(member.get("/tasks?workerId="+private.ID).status, 403)
	for _, path := range []string{"", "/turns/0", "/calls/0/0/0", "/raw/0/input"} {
		is.Equal(owner.get("/tasks/same"+path).status, 404)
	}
	member.get("/tasks/" + shown.TaskID).lacks("Archive</button>")
	is.Equal(member.followUp("same", "me too").status, 404) // and it creates no task with that id
	is.Equal(member.get("/tasks/same").status, 404)
}

// TestTaskNames opens tasks with ids of clients, by the url field of the API.
func TestTaskNames(t *testing.T) {
	is, s, b := asOwner(t)
	w := s.worker(s.owner, workers.NewWorker{Title: "Scribe"})
	for _, id := range []string{"order-1", "A.b_c:d-9", "...", "new", "-", strings.Repeat("x", 128)} {
		s.carryOut(s.owner, store.NewTurn{WorkerID: w.ID, TaskID: id, Title: "named " + id, Input: scripted(calling("list_files"), "say done")})
		var got struct {
			Task struct {
				URL string `json:"url"`
			} `json:"task"`
		}
		is.NoErr(json.Unmarshal([]byte(s.ofAPI("/api/tasks/"+id)), &got))
		address, err := url.Parse(got.Task.URL)
		is.NoErr(err)
		path := address.ResolveReference(&url.URL{}).EscapedPath() // as a browser requests the address
		b.get(path).answers(200).shows("<h1>named " + id + "</h1>")
		is.Equal(b.get(path+"/turns/0").status, 200)
		is.Equal(b.get(path+"/calls/0/0/0").status, 200)
		is.Equal(b.followUp(strings.TrimPrefix(path, "/tasks/"), "again").status, 303)
	}
}

// ofAPI returns the body of a GET request to the API.
func (s *site) ofAPI(path string) string {
	s.t.Helper()
	p := s.visitor().send(s.request(http.MethodGet, path, "", "Authorization", "Bearer "+s.key))
	if p.status != http.StatusOK {
		s.t.Fatalf("%s: %d %s", path, p.status, p.body)
	}
	return p.body
}
