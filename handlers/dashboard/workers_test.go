package dashboard_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// hostile is a text that must have no effect on any page.
const hostile = `<script>alert(1)</script>"><img src=x onerror=alert(2)>'{{.}}`

// harmless reports whether a page holds no part of the hostile text as markup.
func (p page) harmless() bool {
	return !strings.Contains(p.body, "<script>alert") && !strings.Contains(p.body, "<img src=x")
}

var linksToWorkers = regexp.MustCompile(`<a class="row title-row" href="/workers/(wrk_[^"]*)">.*?<span class="cut">([^<]*)<`)

// workers returns the titles that a list of workers shows.
func (p page) workers() (list []string) {
	for _, m := range linksToWorkers.FindAllStringSubmatch(p.body, -1) {
		list = append(list, strings.TrimSpace(m[2]))
	}
	return list
}

func TestWorkerList(t *testing.T) {
	is, s, b := asOwner(t)
	b.get("/workers").shows("There are no workers yet", "curl "+s.url+"/api/tasks")
	mo := s.join("mo@example.com", people.RoleMember)
	s.worker(mo, workers.NewWorker{Title: "Mo's own", Visibility: workers.Private})
	for i := range 30 {
		s.worker(s.owner, workers.NewWorker{Title: fmt.Sprintf("Worker %02d", i), Summary: "does things"})
	}
	busy := s.worker(s.owner, workers.NewWorker{Title: hostile, Summary: hostile})
	s.carryOut(s.owner, store.NewTurn{WorkerID: busy.ID, Input: scripted("say done")})

	first := b.get("/workers")
	is.Equal(first.status, http.StatusOK)
	is.Equal(len(first.workers()), 25)
	is.True(first.harmless())
	first.shows(`data-state="completed"`, `class="spark"`)
	first.smallerThan(50 << 10)
	second := b.get(link(first, "Older workers"))
	is.Equal(len(second.workers()), 7) // with Mo's: an Owner sees every worker
	is.True(second.has("To the newest") && !second.has("Older workers"))
	is.Equal(b.get("/workers?q=worker+07").workers(), []string{"Worker 07"})
	b.get("/workers?q=zebra").shows("No worker matches")
	is.Equal(b.get("/workers?cursor=%21").status, http.StatusUnprocessableEntity)
	b.get("/workers?q=" + strings.Repeat("x", 201)).shows(`id="e-q"`)

	kim := s.join("kim@example.com", people.RoleMember)
	is.True(!slices.Contains(s.signIn(kim.Email).get("/workers?q=own").workers(), "Mo&#39;s own"))
	is.Equal(s.signIn(mo.Email).get("/workers?q=own").workers(), []string{"Mo&#39;s own"})
}

func TestWorkerPage(t *testing.T) {
	is, s, b := asOwner(t)
	w := s.worker(s.owner, workers.NewWorker{Title: hostile, Summary: hostile, Instructions: hostile + strings.Repeat("ü",
		18_000)})
	p := b.get("/workers/" + w.ID)
	is.Equal(p.status, http.StatusOK)
	is.True(p.harmless())
	p.shows(w.ID+"@mail.example", "This worker has no tasks yet", "ann@example.com", "Show all of it")
	ordertest.Below(is, len(p.body), 30<<10) // long instructions are truncated

	// A run redirects to the page of its task, whose trigger is ui.
	p = b.send(b.form("/workers/"+w.ID+"/run", []string{"input", "say hello\r\nand bye", "budget", "low", "token", "one"}, "../../notes.txt", "some notes", "b.txt", "b"))
	is.Equal(p.status, http.StatusSeeOther)
	is.True(strings.HasPrefix(p.location(), "/tasks/tsk_"))
	task, _, err := s.store.Task(t.Context(), s.owner.Caller, strings.TrimPrefix(p.location(), "/tasks/"))
	is.NoErr(err)
	is.Equal(task.TriggeredBy, people.TriggerUI)
	turn := s.ended(task.ID)
	is.Equal(turn.Input, "say hello\nand bye")
	is.Equal(turn.Budget, store.BudgetLow)
	files, err := s.store.FilesByTurn(t.Context(), turn)
	is.NoErr(err)
	is.Equal(len(files), 2)
	is.Equal(files[0].Path, "notes.txt")
	b.get("/workers/"+w.ID).shows("say hello", "/tasks/"+task.ID)
}

func TestRunTwiceIsOneTask(t *testing.T) {
	is, s, b := asOwner(t)
	w := s.worker(s.owner, workers.NewWorker{})
	run := func(token, input string) string {
		p := b.send(b.form("/workers/"+w.ID+"/run", []string{"input", input, "budget", "low", "token", token}))
		is.Equal(p.status, http.StatusSeeOther)
		return p.location()
	}
	first := run("t1", "do it")
	is.Equal(run("t1", "do it"), first)     // a double click
	is.True(run("t1", "do other") != first) // the form was changed and sent again
	is.True(run("t2", "do it") != first)    // the page was loaded again
	tasks, _, err := s.store.Tasks(t.Context(), s.owner.Caller, store.TaskQuery{WorkerID: w.ID, Limit: 10})
	is.NoErr(err)
	is.Equal(len(tasks), 3)
	token := regexp.MustCompile(`name="token" value="([^"]+)"`)
	one, two := token.FindStringSubmatch(b.get("/workers/"+w.ID).body), token.FindStringSubmatch(b.get("/workers/"+w.ID).body)
	is.True(one[1] != two[1])
}

func TestRunRefused(t *testing.T) {
	is, s, b := asOwner(t)
	w := s.worker(s.owner, workers.NewWorker{})
	p := b.send(b.form("/workers/"+w.ID+"/run", []string{"input", "  ", "budget", "low"}))
	p.answers(http.StatusUnprocessableEntity).shows(`id="e-input"`, "must not be empty", `value="low" selected`)
	p = b.send(b.form("/workers/"+w.ID+"/run", []string{"input", hostile, "budget", "vast"}))
	is.Equal(p.status, http.StatusUnprocessableEntity)
	is.True(p.has("must be low, standard, high or unlimited") && p.harmless() && p.has("&lt;script&gt;alert(1)"))
	is.Equal(b.post("/workers/"+w.ID+"/run", "input", "hi").status, http.StatusUnprocessableEntity) // no multipart form
	tasks, _, err := s.store.Tasks(t.Context(), s.owner.Caller, store.TaskQuery{WorkerID: w.ID, Limit: 10})
	is.NoErr(err)
	is.Equal(len(tasks), 0)
}

func TestNewWorker(t *testing.T) {
	is, s, b := asOwner(t)
	b.get("/workers/new").shows("Run a task now", "Describe a worker", "Write it by hand", `value="publish_file"`)

	p := b.send(b.form("/run", []string{"input", "Write a haiku about rivers to haiku.md", "token", "x"}))
	is.True(strings.HasPrefix(p.location(), "/tasks/"))
	turn := s.ended(strings.TrimPrefix(p.location(), "/tasks/"))
	is.Equal(turn.Status, store.Completed)
	made, err := s.store.Workers.Worker(t.Context(), s.owner.Caller, turn.WorkerID)
	is.NoErr(err)
	is.Equal(made.Title, "Write a haiku about rivers to haiku.md")
	is.Equal(made.Instructions, "Write a haiku about rivers to haiku.md")
	is.Equal(b.get("/workers").workers(), []string{made.Title}) // the user has asked for a worker, so it is in the list
	b.send(b.form("/run", []string{"input", ""})).shows(`id="e-input"`)

	p = b.post("/workers", "from", "prompt", "prompt", "a worker that sums up minutes of meetings", "token", "p")
	is.True(strings.HasSuffix(p.location(), "/settings?done=worker-written"))
	is.Equal(b.post("/workers", "from", "prompt", "prompt", "a worker that sums up minutes of meetings", "token", "p").location(), p.location())
	b.get(p.location()).shows("This is what the model wrote")
	b.post("/workers", "from", "prompt", "prompt", "").answers(http.StatusUnprocessableEntity).shows(`id="e-prompt"`)
	b.post("/workers", "from", "prompt", "prompt", strings.Repeat("x", 10_001)).shows("at most 10000 characters")

	fields := []string{"title", " Clerk ", "summary", "keeps books", "instructions", "One.\r\nTwo.", "visibility", "private", "model", "offline",
		"outputSchema", `{"type": "object"}`, "approvalTools", "publish_file", "approvalTools", "write_file", "otherApprovalTools", "crm.delete, crm.send",
		"mcpTools", "crm files.read", "token", "h", "workspace", "task", "toolsMode", "only", "tools", "read_file", "tools", "web_fetch",
		"toolsHosts", "example.com, *.example.org", "toolsCommands", "git", "toolsOther", "", "strangerToolsMode", "only"}
	p = b.post("/workers", fields...)
	is.True(strings.HasSuffix(p.location(), "?done=worker-made"))
	is.Equal(b.post("/workers", fields...).location(), p.location()) // a double click
	id := strings.TrimSuffix(strings.TrimPrefix(p.location(), "/workers/"), "?done=worker-made")
	made, err = s.store.Workers.Worker(t.Context(), s.owner.Caller, id)
	is.NoErr(err)
	is.Equal(made.Title, "Clerk")
	is.Equal(made.Instructions, "One.\nTwo.")
	is.Equal(made.Visibility, workers.Private)
	is.Equal(string(made.OutputSchema), `{"type": "object"}`)
	is.Equal(made.Settings, workers.Settings{Model: "offline", ApprovalTools: []string{"publish_file", "write_file",
		"crm.delete", "crm.send"},
		MCPTools: []string{"crm", "files.read"}, StrangerTools: workers.ToolRules{},
		Tools: workers.ToolRules{{Tool: "read_file"}, {Tool: "web_fetch", Hosts: []string{"example.com", "*.example.org"}},
			{Tool: "shell", Commands: []string{"git"}}}})
	is.Equal(made.Workspace, workers.TaskWorkspace)
}

func TestNewWorkerRefused(t *testing.T) {
	_, _, b := asOwner(t)
	for name, tt := range map[string]struct {
		field, value, says string
	}{
		"title":         {"title", strings.Repeat("x", 201), "Must have 1 to 200 characters"},
		"summary":       {"summary", strings.Repeat("x", 81), "Must have at most 80 characters"},
		"instructions":  {"instructions", strings.Repeat("x", 20_001), "Must have at most 20000 characters"},
		"visibility":    {"visibility", "secret", "Must be public or private"},
		"model":         {"model", "nobody:x", "must be one of"},
		"schema's use":  {"outputSchema", `{"required": ["a"], "properties": {"a": false}}`, "no JSON object can meet it: /properties/a: false allows no value"},
		"schema":        {"outputSchema", "{\n  \"type\": \"object\",\n}", "is not JSON: line 3, column 1"},
		"schema's type": {"outputSchema", `{"type": "objekt"}`, "is not a Draft-07 JSON Schema"},
		"approval":      {"otherApprovalTools", "a/b", "must hold names of tools"},
		"mcp":           {"mcpTools", "a.b/c", "Must hold &#34;server&#34;"},
		"tools":         {"toolsOther", "web_fech", "names &#34;web_fech&#34;, which is no tool; the nearest is &#34;web_fetch&#34;"},
		"hosts":         {"toolsHosts", "https://example.com", "is no host: write example.com"},
		"commands":      {"toolsCommands", "git;rm", "is no command: write its first word alone"},
		"workspace":     {"workspace", "mine", "Must be shared or task"},
		"waits":         {"otherApprovalTools", "shel", "the nearest is &#34;shell&#34;"},
		"many":          {"mcpTools", many(101), "Must have at most 100 items"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			fields := []string{"title", hostile, "visibility", "public", "approvalTools", "publish_file", "toolsMode", "only"}
			p := b.post("/workers", append([]string{tt.field, tt.value}, fields...)...)
			p.answers(http.StatusUnprocessableEntity).shows(tt.says, `<details class="card pad" open>`, `value="publish_file" checked`) // the fault is beside the field, and the typed values stay
			is.True(p.harmless())
		})
	}
}

// many returns n names.
func many(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("n%d", i)
	}
	return strings.Join(names, " ")
}

func TestCheckSchema(t *testing.T) {
	_, _, b := asOwner(t)
	for typed, says := range map[string]string{
		"":                     "",
		" \r\n ":               "",
		`{"type":"object"}`:    "",
		`{"type":"obj`:         "is not JSON: line 1, column 12: unexpected end of JSON input",
		"{\r\n\"ü\": x}":       "is not JSON: line 2, column 6: invalid character 'x' looking for beginning of value",
		`[]`:                   "must be a JSON object",
		`{"$ref":"http://x/"}`: "is not a Draft-07 JSON Schema",
	} {
		p := b.post("/check-schema", "outputSchema", typed)
		if p.status != http.StatusOK || !strings.HasPrefix(p.body, says) || says == "" && p.body != "" || p.header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%q: %d %q", typed, p.status, p.body)
		}
	}
}

func TestWorkerSettings(t *testing.T) {
	is, s, b := asOwner(t)
	w := s.worker(s.owner, workers.NewWorker{Title: "Clerk", OutputSchema: []byte(`{"type":"object"}`),
		Instructions: "Be brief.",
		Settings:     workers.Settings{ApprovalTools: []string{"write_file", "crm.send"}, MCPTools: []string{"crm"}}})
	path := "/workers/" + w.ID + "/settings"
	p := b.get(path)
	p.shows(`value="Clerk"`, "Be brief.</textarea>", "{\n  &#34;type&#34;: &#34;object&#34;\n}", `value="write_file" checked`, `value="crm.send"`, `value="crm"`)

	// Saving the page unchanged creates no version.
	same := []string{"title", "Clerk", "summary", "", "instructions", "Be brief.", "visibility", "public", "outputSchema", "{\r\n  \"type\": \"object\"\r\n}",
		"approvalTools", "write_file", "otherApprovalTools", "crm.send", "mcpTools", "crm", "model", ""}
	is.Equal(b.post(path, same...).location(), path+"?done=worker-changed")
	now, err := s.store.Workers.Worker(t.Context(), s.owner.Caller, w.ID)
	is.NoErr(err)
	is.Equal(now.Version, int64(1))

	is.Equal(b.post(path, "title", "Chief clerk", "summary", "x", "instructions", "", "visibility", "private").status, http.StatusSeeOther)
	now, err = s.store.Workers.Worker(t.Context(), s.owner.Caller, w.ID)
	is.NoErr(err)
	is.Equal(now.Version, int64(2))
	is.Equal(now.Title+now.Summary+now.Instructions+string(now.Visibility)+string(now.OutputSchema), "Chief clerkxprivate")
	is.Equal(now.Settings, workers.Settings{ApprovalTools: []string{}, MCPTools: []string{}})

	other := s.worker(s.owner, workers.NewWorker{Title: "Other"})
	theirs := s.signIn(s.join("mo@example.com", people.RoleMember).Email).get("/workers/" + other.ID + "/settings")
	theirs.shows("nobody else can change it")
	theirs.lacks(`<form method="post" action="/workers/`)

	b.post("/workers/" + w.ID + "/delete").answers(http.StatusUnprocessableEntity).shows("Tick the box")
	is.Equal(b.post("/workers/"+w.ID+"/delete", "confirm", "yes").location(), "/workers?done=worker-deleted")
	is.Equal(b.get("/workers/"+w.ID).status, http.StatusNotFound)
}

// TestWorkerPagesInGerman reads texts that do not come from a template.
func TestWorkerPagesInGerman(t *testing.T) {
	_, s, b := asOwner(t)
	b.post("/account/preferences", "language", "de")
	w := s.worker(s.owner, workers.NewWorker{Title: "Clerk"})
	b.get("/workers/" + w.ID).shows("<title>Clerk")
	b.get("/workers/" + w.ID + "/schedules").shows("<title>Clerk · Zeitpläne")
	b.post("/workers/" + w.ID + "/delete").shows("Setze das Häkchen")
}

func TestWorkerMembers(t *testing.T) {
	is, s, b := asOwner(t)
	mo := s.join("mo@example.com", people.RoleMember)
	w := s.worker(s.owner, workers.NewWorker{Title: "Secret", Visibility: workers.Private})
	path := "/workers/" + w.ID + "/members"
	b.get(path).shows("No members are invited yet", `<option value="mo@example.com">`)
	theirs := s.signIn(mo.Email)
	is.Equal(theirs.get("/workers/"+w.ID).status, http.StatusForbidden)
	is.Equal(b.post(path, "email", " MO@example.com ").location(), path+"?done=worker-member-invited")
	b.get(path).shows("mo@example.com", "/members/"+mo.UserID+"/remove")
	is.Equal(theirs.get("/workers/"+w.ID).status, http.StatusOK)
	storetest.Caller(t, s.store, "Globex", "eve@globex.example", people.RoleOwner)
	for _, email := range []string{"nobody@example.com", "eve@globex.example", hostile} {
		p := b.post(path, "email", email)
		is.Equal(p.status, http.StatusUnprocessableEntity)
		is.True(p.has("nobody in this organization has that address") && p.harmless())
	}
	is.Equal(b.post(path+"/"+mo.UserID+"/remove").location(), path+"?done=worker-member-removed")
	is.Equal(theirs.get("/workers/"+w.ID).status, http.StatusForbidden)
}
