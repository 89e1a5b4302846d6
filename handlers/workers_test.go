package handlers_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers/handlerstest"
	"journeyman/runner/model"
	"journeyman/runner/model/offline"
	"journeyman/runner/toolset"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// strangersDefault returns the default of strangerTools.
func strangersDefault() (list []any) {
	for _, rule := range toolset.StrangerTools(workers.Settings{}) {
		list = append(list, rule.Tool)
	}
	return list
}

// TestCreateTemplate creates templates and reads each field back.
func TestCreateTemplate(t *testing.T) {
	_, s := onServer(t)
	for name, tt := range map[string]struct {
		body string
		want fields
	}{
		"nothing": {`{}`, fields{"instructions": "", "summary": "", "outputSchema": nil, "visibility": "public",
			"model": nil, "approvalTools": []any{}, "mcpTools": []any{}, "tools": nil, "strangerTools": strangersDefault(), "workspace": "shared"}},
		"tools": {`{"tools":["read_file",{"tool":"web_fetch","hosts":["example.com"]}],"strangerTools":[],"workspace":"task"}`,
			fields{"tools": []any{"read_file", map[string]any{"tool": "web_fetch", "hosts": []any{"example.com"}}}, "strangerTools": []any{}, "workspace": "task"}},
		"tools, null": {`{"tools":null,"strangerTools":null,"workspace":null}`, fields{"tools": nil, "strangerTools": strangersDefault(), "workspace": "shared"}},
		"settings": {`{"model":"offline","approvalTools":["shell","mail.send"],"mcpTools":["everything","notes.add"]}`,
			fields{"model": "offline", "approvalTools": []any{"shell", "mail.send"}, "mcpTools": []any{"everything", "notes.add"}}},
		"effort":         {`{"effort":"high","temperature":0.25}`, fields{"effort": "high", "temperature": 0.25}},
		"settings, null": {`{"model":null,"approvalTools":null,"mcpTools":null,"effort":null,"temperature":null}`, fields{"model": nil, "effort": nil, "temperature": nil, "approvalTools": []any{}, "mcpTools": []any{}}},
		"everything": {`{"instructions":"Be <brief> & \"kind\"","summary":"Sümmary","title":"Tïtle","visibility":"private","outputSchema":{"type":"object","properties":{"n":{"type":"number","maximum":1e300}}}}`,
			fields{"instructions": `Be <brief> & "kind"`, "summary": "Sümmary", "title": "Tïtle", "visibility": "private"}},
		"nulls":            {`{"instructions":null,"summary":null,"title":null,"visibility":null,"prompt":null,"outputSchema":null}`, fields{"instructions": "", "visibility": "public", "outputSchema": nil}},
		"unknown fields":   {`{"title":"T","colour":{"a":[1]},"Title":"other"}`, fields{"title": "T"}},
		"twice":            {`{"title":"first","title":"second"}`, fields{"title": "second"}},
		"NUL":              {`{"instructions":"\u0000"}`, fields{"instructions": "\x00"}},
		"half a surrogate": {`{"title":"\ud800!"}`, fields{"title": "\ufffd!"}},
		"longest":          {encode(fields{"title": chars(200), "summary": chars(80), "instructions": chars(20000), "prompt": chars(10000)}), fields{"title": chars(200), "summary": chars(80), "instructions": chars(20000)}},
		"astral":           {encode(fields{"title": strings.Repeat("🜁", 200)}), fields{"title": strings.Repeat("🜁", 200)}},
		"a run's fields":   {`{"budget":"huge","stream":"perhaps"}`, fields{"visibility": "public"}},
		"reference inside": {`{"outputSchema":{"$ref":"#/definitions/a","definitions":{"a":{"type":"object"}}}}`, fields{}},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			made := s.must(t, "POST", "/api/workers", tt.body)
			for field, want := range tt.want {
				if text, ok := want.(string); ok {
					want = s.store.Storable(text)
				}
				is.Equal(made.at(field), want)
			}
			is.True(made.text("title") != "") // the worker has no title
			is.Equal(made.text("organizationId"), s.owner.OrganizationID)
			is.Equal(made.text("userId"), s.owner.UserID)
			is.Equal(made.text("url"), s.url+"/workers/"+made.text("id"))
			is.Equal(made.text("createdAt"), made.text("updatedAt"))
			got := s.must(t, "GET", "/api/workers/"+made.text("id")+"/template", "")
			is.Equal(string(got.body), string(made.body)) // byte for byte
		})
	}
}

// TestGeneratedTitle checks the title of a worker without one: two words.
func TestGeneratedTitle(t *testing.T) {
	is, s := onServer(t, idle)
	title := s.must(t, "POST", "/api/workers", `{}`).text("title")
	is.Equal(len(strings.Fields(title)), 2)
}

// TestPrompt checks that the model writes the missing fields, in both shapes.
func TestPrompt(t *testing.T) {
	_, s := onServer(t)
	const prompt = `"prompt":"Someone who checks invoices for mistakes."`
	for name, tt := range map[string]struct {
		body                    string
		instructions, title     string // "" for generated
		noSummary, isRun, plain bool
	}{
		"alone":           {body: `{` + prompt + `}`},
		"title given":     {body: `{` + prompt + `,"title":"Mine"}`, title: "Mine"},
		"summary only":    {body: `{` + prompt + `,"instructions":"Do it."}`, instructions: "Do it."},
		"summary refused": {body: `{` + prompt + `,"summary":""}`, noSummary: true},
		"blank":           {body: `{"prompt":"  \n"}`, plain: true},
		"with a run":      {body: `{` + prompt + `,"input":"hello"}`, isRun: true, title: "hello"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			made := s.must(t, "POST", "/api/workers", tt.body)
			got := s.must(t, "GET", "/api/workers/"+made.text("id")+"/template", "")
			is.Equal(made.text("object") == "worker", tt.isRun)
			if tt.plain {
				is.Equal(got.text("instructions"), "")
				return
			}
			is.Equal(got.text("summary") == "", tt.noSummary)
			if tt.instructions == "" {
				is.True(strings.Contains(strings.ToLower(got.text("instructions")), "invoices")) // written from the prompt
			} else {
				is.Equal(got.text("instructions"), tt.instructions)
			}
			if tt.title != "" && !tt.isRun {
				is.Equal(got.text("title"), tt.title)
			}
		})
	}
}

// counting is a model that counts its calls and holds them until released.
type counting struct {
	model.Model
	calls   atomic.Int64
	entered chan struct{}
	release chan struct{}
}

func (c *counting) Generate(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
	c.calls.Add(1)
	c.entered <- struct{}{}
	<-c.release
	return c.Model.Generate(ctx, req, emit)
}

// TestPromptPaidOnce repeats a creation while the model writes: with a key, and as a retry. The
// model is called once.
func TestPromptPaidOnce(t *testing.T) {
	t.Parallel()
	for name, headers := range map[string][2]string{
		"key":   {"Idempotency-Key: k", "Idempotency-Key: k"},
		"retry": {"X-Stainless-Retry-Count: 0", "X-Stainless-Retry-Count: 1"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &counting{Model: offline.New(), entered: make(chan struct{}, 10), release: make(chan struct{})}
			is, s := onServer(t, withModel(m))
			const body = `{"prompt":"Someone who checks invoices."}`
			var answers [4]func() response
			for i := range answers {
				answers[i] = s.begin(t, "POST", "/api/workers", body, headers[min(i, 1)])
				if i == 0 {
					<-m.entered // the first is under way
				}
			}
			close(m.release)
			first := answers[0]()
			for _, answer := range answers[1:] {
				made := answer()
				is.Equal(made.status, http.StatusOK)
				is.Equal(made.text("id"), first.text("id"))
			}
			is.Equal(first.status, http.StatusOK)
			is.Equal(m.calls.Load(), int64(1))
		})
	}
}

// TestPromptSurvivesClient disconnects while the model writes, and repeats the request.
func TestPromptSurvivesClient(t *testing.T) {
	m := &counting{Model: offline.New(), entered: make(chan struct{}, 10), release: make(chan struct{})}
	is, s := onServer(t, withModel(m))
	const body = `{"prompt":"Someone who checks invoices."}`
	ctx, cancel := context.WithCancel(t.Context())
	req := s.request(t, "POST", "/api/workers", body, "Idempotency-Key: k").WithContext(ctx)
	gone := make(chan error, 1)
	go func() {
		resp, err := handlerstest.Client.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		gone <- err
	}()
	<-m.entered
	cancel()
	is.True(<-gone != nil)
	close(m.release)
	storetest.Eventually(t, "the worker that nobody waits for", func() bool {
		return s.must(t, "GET", "/api/workers", "").size("items") == 1
	})
	again := s.must(t, "POST", "/api/workers", body, "Idempotency-Key: k")
	is.Equal(again.header.Get("Idempotency-Replayed"), "true")
	is.Equal(m.calls.Load(), int64(1))
}

// TestCreateAndRun creates workers with an input: shape 1.
func TestCreateAndRun(t *testing.T) {
	_, s := onServer(t)
	t.Run("plain", func(t *testing.T) {
		is := is.New(t)
		r := s.must(t, "POST", "/api/workers", encode(fields{"input": scripted("say hi")}), "Prefer: wait=20")
		is.Equal(r.text("output_text"), "hi")
		tmpl := s.must(t, "GET", "/api/workers/"+r.text("id")+"/template", "")
		is.Equal(tmpl.text("instructions"), "") // empty unless given
	})
	t.Run("with a template's fields", func(t *testing.T) {
		is := is.New(t)
		r := s.must(t, "POST", "/api/workers", encode(fields{"input": "hello", "title": "T", "summary": "S", "instructions": "I",
			"visibility": "private", "budget": "low", "outputSchema": fields{"type": "object"}, "model": "offline", "approvalTools": []string{"shell"}}),
			"Prefer: wait=20")
		is.Equal(r.text("metadata.budget"), "low")
		is.True(r.at("structured_output") != nil)
		tmpl := s.must(t, "GET", "/api/workers/"+r.text("id")+"/template", "")
		for field, want := range map[string]string{"title": "T", "summary": "S", "instructions": "I", "visibility": "private", "model": "offline"} {
			is.Equal(tmpl.text(field), want)
		}
		is.Equal(tmpl.at("approvalTools"), []any{"shell"})
	})
}

// TestUpdateWorker changes each field, and all at once.
func TestUpdateWorker(t *testing.T) {
	_, s := onServer(t, idle)
	for name, tt := range map[string]struct {
		patch string
		want  fields
	}{
		"nothing":      {`{}`, fields{}},
		"title":        {`{"title":"New"}`, fields{"title": "New"}},
		"summary":      {`{"summary":""}`, fields{"summary": ""}},
		"instructions": {`{"instructions":"` + chars(20000) + `"}`, fields{"instructions": chars(20000)}},
		"visibility":   {`{"visibility":"private"}`, fields{"visibility": "private"}},
		"schema":       {`{"outputSchema":{"type":"object","required":["a"]}}`, fields{"outputSchema": map[string]any{"type": "object", "required": []any{"a"}}}},
		"no schema":    {`{"outputSchema":null}`, fields{"outputSchema": nil}},
		"unknown":      {`{"prompt":5,"id":"x"}`, fields{}},
		"model":        {`{"model":"offline"}`, fields{"model": "offline"}},
		"no model":     {`{"model":null}`, fields{"model": nil}},
		"effort":       {`{"effort":"none"}`, fields{"effort": "none"}},
		"no effort":    {`{"effort":null,"temperature":null}`, fields{"effort": nil, "temperature": nil}},
		"cold":         {`{"temperature":0}`, fields{"temperature": 0}},
		"approvals":    {`{"approvalTools":["shell"]}`, fields{"approvalTools": []any{"shell"}}},
		"no MCP":       {`{"mcpTools":[]}`, fields{"mcpTools": []any{}}},
		"tools": {`{"tools":["read_file",{"hosts":["*.Example.com"],"tool":"web_fetch"},{"tool":"shell","commands":["git"]}]}`,
			fields{"tools": []any{"read_file", fields{"tool": "web_fetch", "hosts": []any{"*.Example.com"}}, fields{"tool": "shell", "commands": []any{"git"}}}}},
		"every tool":         {`{"tools":null}`, fields{"tools": nil}},
		"strangers":          {`{"strangerTools":["web_search"]}`, fields{"strangerTools": []any{"web_search"}}},
		"strangers' default": {`{"strangerTools":null}`, fields{"strangerTools": strangersDefault()}},
		"workspace":          {`{"workspace":"shared"}`, fields{"workspace": "shared"}},
		"days":               {`{"keepTaskDays":0}`, fields{"keepTaskDays": 0}},
		"the server's days":  {`{"keepTaskDays":null}`, fields{"keepTaskDays": nil}},
		"all": {`{"title":"A","summary":"B","instructions":"C","visibility":"private","outputSchema":null}`,
			fields{"title": "A", "summary": "B", "instructions": "C", "visibility": "private", "outputSchema": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			before := s.must(t, "POST", "/api/workers", `{"title":"Old","summary":"Old","instructions":"Old","outputSchema":{"type":"object"},
				"model":"offline","approvalTools":["a.b"],"mcpTools":["b"],"tools":["shell"],"strangerTools":[],"workspace":"task","keepTaskDays":30,"effort":"low","temperature":1.5}`)
			path := "/api/workers/" + before.text("id")
			got := s.must(t, "PATCH", path, tt.patch)
			for _, field := range []string{"title", "summary", "instructions", "visibility", "outputSchema", "createdAt", "userId", "id",
				"model", "approvalTools", "mcpTools", "tools", "strangerTools", "workspace", "keepTaskDays", "effort", "temperature"} {
				want, sent := tt.want[field]
				if !sent {
					want = before.at(field) // absent fields do not change
				}
				is.True(sameJSON(got.at(field), want))
			}
			is.Equal(string(s.must(t, "GET", path+"/template", "").body), string(got.body))
		})
	}
}

// TestUpdateReachesLaterTurns changes a worker while a turn of it runs.
func TestUpdateReachesLaterTurns(t *testing.T) {
	is, s := onServer(t)
	id := s.newWorker(t, fields{"instructions": scripted("wait 300ms", "say old")})
	task := encode(fields{"workerId": id, "input": "go", "taskId": "t"})
	s.do(t, "POST", "/api/tasks", task, "Prefer: respond-async")
	s.do(t, "POST", "/api/tasks", task, "Prefer: respond-async") // queued behind it
	s.must(t, "PATCH", "/api/workers/"+id, encode(fields{"instructions": scripted("say new")}))
	is.Equal(s.run(t, fields{"input": "go", "taskId": "t"}).text("output_text"), "new")
	turns := s.must(t, "GET", "/api/tasks/t", "")
	is.Equal(turns.text("turns.0.outputText"), "old")
	is.Equal(turns.text("turns.1.outputText"), "old") // fixed at acceptance
	is.Equal(turns.text("turns.2.outputText"), "new")
}

// TestDeleteWorker checks that a deleted worker is not found, and that its results are still
// readable.
func TestDeleteWorker(t *testing.T) {
	is, s := onServer(t)
	id := s.newWorker(t, fields{"title": "Gone"})
	done := s.run(t, fields{"workerId": id, "taskId": "t", "input": scripted(
		publishing("a.txt", "kept"), "say done")})
	is.Equal(s.must(t, "DELETE", "/api/workers/"+id, "").at("deleted"), true)
	for _, call := range [][3]string{
		{"GET", "/api/workers/" + id, ""}, {"GET", "/api/workers/" + id + "/template", ""}, {"GET", "/api/workers/" + id + "/email", ""},
		{"GET", "/api/workers/" + id + "/stream", ""}, {"GET", "/api/workers/" + id + "?stream=true", ""}, {"DELETE", "/api/workers/" + id, ""},
		{"PATCH", "/api/workers/" + id, `{"title":"x"}`}, {"POST", "/api/workers/" + id, `{"input":"x"}`},
		{"POST", "/api/tasks", `{"input":"x","workerId":"` + id + `"}`}, {"POST", "/api/tasks", `{"input":"x","taskId":"t"}`},
		{"GET", "/api/workers/" + id + "/members", ""},
	} {
		is.Equal(s.do(t, call[0], call[1], call[2]).refused(), "404 not_found") // a deleted worker is not found
	}
	is.Equal(s.must(t, "GET", "/api/workers", "").size("items"), 0)
	is.Equal(s.must(t, "GET", "/api/tasks/t", "").text("turns.0.outputText"), "done")
	is.Equal(s.must(t, "GET", "/api/tasks?workerId="+id, "").size("items"), 1)
	url := strings.TrimPrefix(done.text("files.0.url"), s.url)
	is.Equal(string(s.must(t, "GET", url, "").body), "kept")
}

// TestListWorkers pages through workers, newest first, and searches them.
func TestListWorkers(t *testing.T) {
	is, s := onServer(t, idle)
	const n = 7
	for i := range n {
		s.newWorker(t, fields{"title": fmt.Sprintf("Worker %d", i), "summary": []string{"50% off_", "plain"}[i%2]})
	}
	var titles []string
	path := "/api/workers?limit=3"
	for cursor := any(""); cursor != nil; {
		page := s.must(t, "GET", path, "")
		for i := range page.size("items") {
			titles = append(titles, page.text(fmt.Sprintf("items.%d.title", i)))
		}
		cursor = page.at("nextCursor")
		path = fmt.Sprintf("/api/workers?limit=3&cursor=%v", cursor)
	}
	is.Equal(strings.Join(titles, ","), "Worker 6,Worker 5,Worker 4,Worker 3,Worker 2,Worker 1,Worker 0")
	for query, want := range map[string]int{
		"": n, "?limit=100": n, "?limit=1": 1, "?q=worker+6": 1, "?q=WORKER": n, "?q=50%25": 4, "?q=f_": 4, "?q=%25": 4, "?q=x": 0,
		"?q=plain": 3, "?q=%5C": 0, "?q=" + strings.Repeat("%C3%A9", 200): 0, "?unknown=1": n, "?limit=": n, "?q=": n,
	} {
		is.Equal(s.must(t, "GET", "/api/workers"+query, "").size("items"), want) // the number of results
	}
}

// TestEmail reads a worker's address in both forms.
func TestEmail(t *testing.T) {
	is, s := onServer(t, idle)
	id := s.newWorker(t, fields{})
	path, address := "/api/workers/"+id+"/email", id+"@mail.example"
	for name, tt := range map[string]struct {
		query, accept string
		want          string
		mediaType     string
	}{
		"object":          {"", "*/*", `{"email":"` + address + `"}`, "application/json"},
		"asked for":       {"?format=object", "text/plain", `{"email":"` + address + `"}`, "application/json"},
		"string":          {"?format=string", "*/*", `"` + address + `"`, "application/json"},
		"plain":           {"", "text/plain", `"` + address + `"`, "text/plain; charset=utf-8"},
		"axios's default": {"", "application/json, text/plain, */*", `{"email":"` + address + `"}`, "application/json"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			got := s.must(t, "GET", path+tt.query, "", "Accept: "+tt.accept)
			is.Equal(strings.TrimSpace(string(got.body)), tt.want)
			is.Equal(got.header.Get("Content-Type"), tt.mediaType)
		})
	}
	is.Equal(s.do(t, "GET", path+"?format=xml", "").refused(), "400 invalid_request format")
}

// TestMembers adds a member to a private worker and removes it.
func TestMembers(t *testing.T) {
	is, s := onServer(t, idle)
	guest, bob := s.member(t, "bob@example.com")
	path := "/api/workers/" + s.newWorker(t, fields{"visibility": "private"})
	is.Equal(guest.do(t, "GET", path, "").refused(), "403 forbidden")
	is.Equal(s.do(t, "GET", path+"/members/"+bob.UserID, "").refused(), "404 not_found")
	invited := s.must(t, "PUT", path+"/members/"+bob.UserID, "")
	is.Equal(invited.text("email"), "bob@example.com")
	is.Equal(string(s.must(t, "PUT", path+"/members/"+bob.UserID, "").body), string(invited.body)) // a repetition changes nothing
	is.Equal(string(s.must(t, "GET", path+"/members/"+bob.UserID, "").body), string(invited.body))
	is.Equal(s.must(t, "GET", path+"/members", "").text("items.0.userId"), bob.UserID)
	is.Equal(guest.must(t, "GET", path, "").text("status"), "pending")
	for _, call := range [][2]string{{"GET", "/members"}, {"PUT", "/members/" + bob.UserID}, {"DELETE", "/members/" + bob.UserID}} {
		is.Equal(guest.do(t, call[0], path+call[1], "").refused(), "403 forbidden") // creator only
	}
	other, _ := storetest.Caller(t, s.store, "Rival", "eve@example.net", people.RoleOwner)
	is.Equal(s.do(t, "PUT", path+"/members/"+other.UserID, "").refused(), "404 not_found")
	is.Equal(s.must(t, "DELETE", path+"/members/"+bob.UserID, "").at("removed"), true)
	is.Equal(s.must(t, "DELETE", path+"/members/"+bob.UserID, "").at("removed"), false)
	is.Equal(guest.do(t, "GET", path, "").refused(), "403 forbidden")
	is.Equal(s.must(t, "GET", path+"/members", "").size("items"), 0)
}

// TestMe checks whose key it is.
func TestMe(t *testing.T) {
	is, s := onServer(t, idle)
	me := s.must(t, "GET", "/api/me", "")
	is.Equal(me.text("organization.name"), "Acme")
	is.Equal(me.text("user.email"), "ann@example.com")
	is.Equal(me.text("user.id"), s.owner.UserID)
	is.Equal(me.text("role"), "owner")
	is.Equal(me.text("key.prefix"), s.key[:12])
	guest, _ := s.member(t, "bob@example.com")
	is.Equal(guest.must(t, "GET", "/api/me", "").text("role"), "member")
}

// TestPromptWithARefusedKey checks that a worker that the model cannot write gets the error of the
// provider, which clients do not repeat, and that one of an overloaded provider is repeated.
func TestPromptWithARefusedKey(t *testing.T) {
	is, s := onServer(t)
	r := s.do(t, "POST", "/api/workers", encode(fields{"prompt": scripted("fail 401 Incorrect API key provided")}))
	is.Equal(r.refused(), "502 model_error")
	is.Equal(r.text("message"), "the model could not write the worker: 401: Incorrect API key provided")
	is.Equal(r.header.Get("x-should-retry"), "false")
	busy := s.do(t, "POST", "/api/workers", encode(fields{"prompt": scripted("fail 503 overloaded"), "input": "go"}))
	is.Equal(busy.refused(), "503 busy")
	is.True(busy.header.Get("Retry-After") != "")
}
