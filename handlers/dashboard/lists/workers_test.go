package lists_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

func TestWorkerList(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	b.Get("/workers").Shows("There are no workers yet", "curl "+s.URL+"/api/tasks")
	mo := s.Join("mo@example.com", people.RoleMember)
	s.Worker(mo, workers.NewWorker{Title: "Mo's own", Visibility: workers.Private})
	for i := range 30 {
		s.Worker(s.Owner, workers.NewWorker{Title: fmt.Sprintf("Worker %02d", i), Summary: "does things"})
	}
	busy := s.Worker(s.Owner, workers.NewWorker{Title: dashboardtest.Hostile, Summary: dashboardtest.Hostile})
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: busy.ID, Input: dashboardtest.Scripted("say done")})

	first := b.Get("/workers")
	is.Equal(first.Status, http.StatusOK)
	is.Equal(len(first.Workers()), 25)
	is.True(first.Harmless())
	first.Shows(`data-state="completed"`, `class="spark"`)
	first.SmallerThan(50 << 10)
	second := b.Get(dashboardtest.Href(first, "Older workers"))
	is.Equal(len(second.Workers()), 7) // with Mo's: an Owner sees every worker
	is.True(second.Has("To the newest") && !second.Has("Older workers"))
	is.Equal(b.Get("/workers?q=worker+07").Workers(), []string{"Worker 07"})
	b.Get("/workers?q=zebra").Shows("No worker matches")
	is.Equal(b.Get("/workers?cursor=%21").Status, http.StatusUnprocessableEntity)
	b.Get("/workers?q=" + strings.Repeat("x", 201)).Shows(`id="e-q"`)

	kim := s.Join("kim@example.com", people.RoleMember)
	is.True(!slices.Contains(s.SignIn(kim.Email).Get("/workers?q=own").Workers(), "Mo&#39;s own"))
	is.Equal(s.SignIn(mo.Email).Get("/workers?q=own").Workers(), []string{"Mo&#39;s own"})
}

func TestWorkerPage(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	w := s.Worker(s.Owner, workers.NewWorker{Title: dashboardtest.Hostile, Summary: dashboardtest.Hostile,
		Instructions: dashboardtest.Hostile + strings.Repeat("ü", 18_000)})
	p := b.Get("/workers/" + w.ID)
	is.Equal(p.Status, http.StatusOK)
	is.True(p.Harmless())
	p.Shows(w.ID+"@mail.example", "This worker has no tasks yet", "ann@example.com", "Show all of it")
	ordertest.Below(is, len(p.Body), 30<<10) // long instructions are truncated

	// A run redirects to the page of its task, whose trigger is ui.
	p = b.Send(b.Form("/workers/"+w.ID+"/run", []string{"input", "say hello\r\nand bye", "budget", "low", "token", "one"},
		"../../notes.txt", "some notes", "b.txt", "b"))
	is.Equal(p.Status, http.StatusSeeOther)
	is.True(strings.HasPrefix(p.Location(), "/tasks/tsk_"))
	task, _, err := s.Store.Task(t.Context(), s.Owner.Caller, strings.TrimPrefix(p.Location(), "/tasks/"))
	is.NoErr(err)
	is.Equal(task.TriggeredBy, people.TriggerUI)
	turn := s.Ended(task.ID)
	is.Equal(turn.Input, "say hello\nand bye")
	is.Equal(turn.Budget, store.BudgetLow)
	files, err := s.Store.FilesByTurn(t.Context(), turn)
	is.NoErr(err)
	is.Equal(len(files), 2)
	is.Equal(files[0].Path, "notes.txt")
	b.Get("/workers/"+w.ID).Shows("say hello", "/tasks/"+task.ID)
}

func TestRunTwiceIsOneTask(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	w := s.Worker(s.Owner, workers.NewWorker{})
	run := func(token, input string) string {
		p := b.Send(b.Form("/workers/"+w.ID+"/run", []string{"input", input, "budget", "low", "token", token}))
		is.Equal(p.Status, http.StatusSeeOther)
		return p.Location()
	}
	first := run("t1", "do it")
	is.Equal(run("t1", "do it"), first)     // a double click
	is.True(run("t1", "do other") != first) // the form was changed and sent again
	is.True(run("t2", "do it") != first)    // the page was loaded again
	tasks, _, err := s.Store.Tasks(t.Context(), s.Owner.Caller, store.TaskQuery{WorkerID: w.ID, Limit: 10})
	is.NoErr(err)
	is.Equal(len(tasks), 3)
	token := regexp.MustCompile(`name="token" value="([^"]+)"`)
	one, two := token.FindStringSubmatch(b.Get("/workers/"+w.ID).Body), token.FindStringSubmatch(b.Get("/workers/"+w.ID).Body)
	is.True(one[1] != two[1])
}

func TestRunRefused(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	w := s.Worker(s.Owner, workers.NewWorker{})
	p := b.Send(b.Form("/workers/"+w.ID+"/run", []string{"input", "  ", "budget", "low"}))
	p.Answers(http.StatusUnprocessableEntity).Shows(`id="e-input"`, "must not be empty", `value="low" selected`)
	p = b.Send(b.Form("/workers/"+w.ID+"/run", []string{"input", dashboardtest.Hostile, "budget", "vast"}))
	is.Equal(p.Status, http.StatusUnprocessableEntity)
	is.True(p.Has("must be low, standard, high or unlimited") && p.Harmless() && p.Has("&lt;script&gt;alert(1)"))
	is.Equal(b.Post("/workers/"+w.ID+"/run", "input", "hi").Status, http.StatusUnprocessableEntity) // no multipart form
	tasks, _, err := s.Store.Tasks(t.Context(), s.Owner.Caller, store.TaskQuery{WorkerID: w.ID, Limit: 10})
	is.NoErr(err)
	is.Equal(len(tasks), 0)
}

func TestNewWorker(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	b.Get("/workers/new").Shows("Run a task now", "Describe a worker", "Write it by hand", `value="publish_file"`)

	p := b.Send(b.Form("/run", []string{"input", "Write a haiku about rivers to haiku.md", "token", "x"}))
	is.True(strings.HasPrefix(p.Location(), "/tasks/"))
	turn := s.Ended(strings.TrimPrefix(p.Location(), "/tasks/"))
	is.Equal(turn.Status, store.Completed)
	made, err := s.Store.Workers.Worker(t.Context(), s.Owner.Caller, turn.WorkerID)
	is.NoErr(err)
	is.Equal(made.Title, "Write a haiku about rivers to haiku.md")
	is.Equal(made.Instructions, "Write a haiku about rivers to haiku.md")
	is.Equal(b.Get("/workers").Workers(), []string{made.Title}) // the user has asked for a worker, so it is in the list
	b.Send(b.Form("/run", []string{"input", ""})).Shows(`id="e-input"`)

	p = b.Post("/workers", "from", "prompt", "prompt", "a worker that sums up minutes of meetings", "token", "p")
	is.True(strings.HasSuffix(p.Location(), "/settings?done=worker-written"))
	is.Equal(b.Post("/workers", "from", "prompt", "prompt", "a worker that sums up minutes of meetings", "token",
		"p").Location(), p.Location())
	b.Get(p.Location()).Shows("This is what the model wrote")
	b.Post("/workers", "from", "prompt", "prompt", "").Answers(http.StatusUnprocessableEntity).Shows(`id="e-prompt"`)
	b.Post("/workers", "from", "prompt", "prompt", strings.Repeat("x", 10_001)).Shows("at most 10000 characters")

	fields := []string{"title", " Clerk ", "summary", "keeps books", "instructions", "One.\r\nTwo.", "visibility",
		"private", "model", "offline",
		"outputSchema", `{"type": "object"}`, "approvalTools", "publish_file", "approvalTools", "write_file", "otherApprovalTools", "crm.delete, crm.send",
		"mcpTools", "crm files.read", "token", "h", "workspace", "task", "toolsMode", "only", "tools", "read_file", "tools", "web_fetch",
		"toolsHosts", "example.com, *.example.org", "toolsCommands", "git", "toolsOther", "", "strangerToolsMode", "only"}
	p = b.Post("/workers", fields...)
	is.True(strings.HasSuffix(p.Location(), "?done=worker-made"))
	is.Equal(b.Post("/workers", fields...).Location(), p.Location()) // a double click
	id := strings.TrimSuffix(strings.TrimPrefix(p.Location(), "/workers/"), "?done=worker-made")
	made, err = s.Store.Workers.Worker(t.Context(), s.Owner.Caller, id)
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
	_, _, b := dashboardtest.AsOwner(t)
	for name, tt := range map[string]struct {
		field, value, says string
	}{
		"title":        {"title", strings.Repeat("x", 201), "Must have 1 to 200 characters"},
		"summary":      {"summary", strings.Repeat("x", 81), "Must have at most 80 characters"},
		"instructions": {"instructions", strings.Repeat("x", 20_001), "Must have at most 20000 characters"},
		"visibility":   {"visibility", "secret", "Must be public or private"},
		"model":        {"model", "nobody:x", "must be one of"},
		"schema's use": {"outputSchema", `{"required": ["a"], "properties": {"a": false}}`,
			"no JSON object can meet it: /properties/a: false allows no value"},
		"schema":        {"outputSchema", "{\n  \"type\": \"object\",\n}", "is not JSON: line 3, column 1"},
		"schema's type": {"outputSchema", `{"type": "objekt"}`, "is not a Draft-07 JSON Schema"},
		"approval":      {"otherApprovalTools", "a/b", "must hold names of tools"},
		"mcp":           {"mcpTools", "a.b/c", "Must hold &#34;server&#34;"},
		"tools": {"toolsOther", "web_fech",
			"names &#34;web_fech&#34;, which is no tool; the nearest is &#34;web_fetch&#34;"},
		"hosts":     {"toolsHosts", "https://example.com", "is no host: write example.com"},
		"commands":  {"toolsCommands", "git;rm", "is no command: write its first word alone"},
		"workspace": {"workspace", "mine", "Must be shared or task"},
		"waits":     {"otherApprovalTools", "shel", "the nearest is &#34;shell&#34;"},
		"many":      {"mcpTools", many(101), "Must have at most 100 items"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			fields := []string{"title", dashboardtest.Hostile, "visibility", "public", "approvalTools", "publish_file",
				"toolsMode", "only"}
			p := b.Post("/workers", append([]string{tt.field, tt.value}, fields...)...)
			p.Answers(http.StatusUnprocessableEntity).Shows(tt.says, `<details class="card pad" open>`,
				`value="publish_file" checked`) // the fault is beside the field, and the typed values stay
			is.True(p.Harmless())
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
	_, _, b := dashboardtest.AsOwner(t)
	for typed, says := range map[string]string{
		"":                     "",
		" \r\n ":               "",
		`{"type":"object"}`:    "",
		`{"type":"obj`:         "is not JSON: line 1, column 12: unexpected end of JSON input",
		"{\r\n\"ü\": x}":       "is not JSON: line 2, column 6: invalid character 'x' looking for beginning of value",
		`[]`:                   "must be a JSON object",
		`{"$ref":"http://x/"}`: "is not a Draft-07 JSON Schema",
	} {
		p := b.Post("/check-schema", "outputSchema", typed)
		if p.Status != http.StatusOK || !strings.HasPrefix(p.Body,
			says) || says == "" && p.Body != "" || p.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%q: %d %q", typed, p.Status, p.Body)
		}
	}
}

func TestWorkerSettings(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Clerk", OutputSchema: []byte(`{"type":"object"}`),
		Instructions: "Be brief.",
		Settings:     workers.Settings{ApprovalTools: []string{"write_file", "crm.send"}, MCPTools: []string{"crm"}}})
	path := "/workers/" + w.ID + "/settings"
	p := b.Get(path)
	p.Shows(`value="Clerk"`, "Be brief.</textarea>", "{\n  &#34;type&#34;: &#34;object&#34;\n}",
		`value="write_file" checked`, `value="crm.send"`, `value="crm"`)

	// Saving the page unchanged creates no version.
	same := []string{"title", "Clerk", "summary", "", "instructions", "Be brief.", "visibility", "public", "outputSchema",
		"{\r\n  \"type\": \"object\"\r\n}",
		"approvalTools", "write_file", "otherApprovalTools", "crm.send", "mcpTools", "crm", "model", ""}
	is.Equal(b.Post(path, same...).Location(), path+"?done=worker-changed")
	now, err := s.Store.Workers.Worker(t.Context(), s.Owner.Caller, w.ID)
	is.NoErr(err)
	is.Equal(now.Version, int64(1))

	is.Equal(b.Post(path, "title", "Chief clerk", "summary", "x", "instructions", "", "visibility", "private").Status,
		http.StatusSeeOther)
	now, err = s.Store.Workers.Worker(t.Context(), s.Owner.Caller, w.ID)
	is.NoErr(err)
	is.Equal(now.Version, int64(2))
	is.Equal(now.Title+now.Summary+now.Instructions+string(now.Visibility)+string(now.OutputSchema), "Chief clerkxprivate")
	is.Equal(now.Settings, workers.Settings{ApprovalTools: []string{}, MCPTools: []string{}})

	other := s.Worker(s.Owner, workers.NewWorker{Title: "Other"})
	theirs := s.SignIn(s.Join("mo@example.com", people.RoleMember).Email).Get("/workers/" + other.ID + "/settings")
	theirs.Shows("nobody else can change it")
	theirs.Lacks(`<form method="post" action="/workers/`)

	b.Post("/workers/" + w.ID + "/delete").Answers(http.StatusUnprocessableEntity).Shows("Tick the box")
	is.Equal(b.Post("/workers/"+w.ID+"/delete", "confirm", "yes").Location(), "/workers?done=worker-deleted")
	is.Equal(b.Get("/workers/"+w.ID).Status, http.StatusNotFound)
}

// TestWorkerPagesInGerman reads texts that do not come from a template.
func TestWorkerPagesInGerman(t *testing.T) {
	_, s, b := dashboardtest.AsOwner(t)
	b.Post("/account/preferences", "language", "de")
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Clerk"})
	b.Get("/workers/" + w.ID).Shows("<title>Clerk")
	b.Get("/workers/" + w.ID + "/schedules").Shows("<title>Clerk · Zeitpläne")
	b.Post("/workers/" + w.ID + "/delete").Shows("Setze das Häkchen")
}

func TestWorkerMembers(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	mo := s.Join("mo@example.com", people.RoleMember)
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Secret", Visibility: workers.Private})
	path := "/workers/" + w.ID + "/members"
	b.Get(path).Shows("No members are invited yet", `<option value="mo@example.com">`)
	theirs := s.SignIn(mo.Email)
	is.Equal(theirs.Get("/workers/"+w.ID).Status, http.StatusForbidden)
	is.Equal(b.Post(path, "email", " MO@example.com ").Location(), path+"?done=worker-member-invited")
	b.Get(path).Shows("mo@example.com", "/members/"+mo.UserID+"/remove")
	is.Equal(theirs.Get("/workers/"+w.ID).Status, http.StatusOK)
	storetest.Caller(t, s.Store, "Globex", "eve@globex.example", people.RoleOwner)
	for _, email := range []string{"nobody@example.com", "eve@globex.example", dashboardtest.Hostile} {
		p := b.Post(path, "email", email)
		is.Equal(p.Status, http.StatusUnprocessableEntity)
		is.True(p.Has("nobody in this organization has that address") && p.Harmless())
	}
	is.Equal(b.Post(path+"/"+mo.UserID+"/remove").Location(), path+"?done=worker-member-removed")
	is.Equal(theirs.Get("/workers/"+w.ID).Status, http.StatusForbidden)
}
