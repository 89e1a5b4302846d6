package dashboard_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

// apiRows has a row for each route, and for each way to name a thing in a body.
var apiRows = map[string][]accessRow{
	"POST /api/workers":                                     {{rule: forMembers, body: `{"title":"T"}`}},
	"GET /api/workers":                                      {{rule: forMembers, lists: true}},
	"GET /api/workers/:workerId":                            {{rule: seesWorker}},
	"POST /api/workers/:workerId":                           {{rule: seesWorker, body: `{"input":"x"}`}},
	"PATCH /api/workers/:workerId":                          {{rule: ownsWorker, body: `{"title":"T"}`}},
	"DELETE /api/workers/:workerId":                         {{rule: ownsWorker}},
	"GET /api/workers/:workerId/template":                   {{rule: seesWorker}},
	"GET /api/workers/:workerId/export":                     {{rule: seesWorker}},
	"GET /api/workers/:workerId/versions":                   {{rule: seesWorker}},
	"GET /api/workers/:workerId/versions/:version":          {{rule: seesWorker}},
	"GET /api/workers/:workerId/stream":                     {{rule: seesWorker}},
	"GET /api/workers/:workerId/email":                      {{rule: seesWorker}},
	"GET /api/workers/:workerId/files/*filePath":            {{rule: seesTask}},
	"GET /api/workers/:workerId/members":                    {{rule: ownsWorker}},
	"POST /api/workers/:workerId/versions/:version/restore": {{rule: ownsWorker}},
	"GET /api/workers/:workerId/members/:userId":            {{rule: ownsWorker}},
	"PUT /api/workers/:workerId/members/:userId":            {{rule: ownsWorker}},
	"DELETE /api/workers/:workerId/members/:userId":         {{rule: ownsWorker}},

	"GET /api/secrets":                            {{rule: manages}},
	"PUT /api/secrets/:name":                      {{rule: manages, body: `{}`, status: http.StatusBadRequest}}, // sets no secret
	"DELETE /api/secrets/:name":                   {{rule: manages, status: http.StatusNotFound}},
	"GET /api/workers/:workerId/secrets":          {{rule: ownsWorker}},
	"PUT /api/workers/:workerId/secrets/:name":    {{rule: ownsWorker, body: `{"value":"12345678"}`}},
	"DELETE /api/workers/:workerId/secrets/:name": {{rule: ownsWorker, once: true}},

	"GET /api/workers/:workerId/schedules": {{rule: seesWorker}},
	"POST /api/workers/:workerId/schedules": {{rule: seesWorker,
		body: `{"input":"x","when":{"type":"delayed","delayInSeconds":3600}}`}},
	"GET /api/workers/:workerId/schedules/:scheduleId":                      {{rule: seesWorker}},
	"PATCH /api/workers/:workerId/schedules/:scheduleId":                    {{rule: seesWorker, body: `{"input":"y"}`}},
	"DELETE /api/workers/:workerId/schedules/:scheduleId":                   {{rule: seesWorker, once: true}},
	"POST /api/workers/:workerId/schedules/:scheduleId/run":                 {{rule: seesWorker, once: true}},
	"GET /api/workers/:workerId/webhook":                                    {{rule: ownsWorker}},
	"PUT /api/workers/:workerId/webhook":                                    {{rule: ownsWorker, body: `{"url":"{hook}"}`}},
	"DELETE /api/workers/:workerId/webhook":                                 {{rule: ownsWorker}},
	"POST /api/workers/:workerId/webhook/regenerate-token":                  {{rule: ownsWorker}},
	"POST /api/workers/:workerId/webhook/test":                              {{rule: ownsWorker}},
	"GET /api/workers/:workerId/webhook/executions":                         {{rule: ownsWorker}},
	"POST /api/workers/:workerId/webhook/executions/:executionId/redeliver": {{rule: ownsWorker}},

	"POST /api/tasks": {{rule: forMembers, body: `{"input":"x"}`},
		{rule: seesWorker, body: `{"input":"x","workerId":"{workerId}"}`},
		{rule: continues, body: `{"input":"x","taskId":"{taskId}"}`, either: http.StatusNotFound},
		{rule: continues, body: `{"input":"x","taskId":"{taskId}","workerId":"{workerId}"}`, either: http.StatusNotFound},
		{rule: seesWorker, body: `{"input":"x","taskId":"{taskId}","workerId":"{publicId}"}`,
			status: http.StatusBadRequest, either: http.StatusNotFound}},
	"GET /api/tasks":                   {{rule: forMembers, lists: true}},
	"GET /api/tasks/:taskId":           {{rule: seesTask}},
	"DELETE /api/tasks/:taskId":        {{rule: ownsTask}},
	"GET /api/tasks/:taskId/turns":     {{rule: seesTask}},
	"POST /api/tasks/:taskId/cancel":   {{rule: seesTask}},
	"GET /api/tasks/:taskId/approvals": {{rule: seesTask}},
	"POST /api/tasks/:taskId/approvals/:approvalId": {{rule: decides, body: `{"approved":true}`,
		status: http.StatusNotFound}}, // no call waits
	"GET /api/approvals": {{rule: forMembers, lists: true}},

	"POST /api/inbound-email": {{rule: seesWorker, kind: "message/rfc822", body: "{mail}",
		query: "?to={workerId}@mail.example", either: http.StatusNotFound},
		{rule: seesWorker, kind: "message/rfc822", body: "{mail}", either: http.StatusNotFound}},
	"GET /api/emails":          {{rule: forMembers, lists: true}},
	"GET /api/emails/:emailId": {{rule: seesTask}},
	"POST /api/emails/:emailId/release": {{rule: releasesMail, once: true,
		in: map[state]int{private: http.StatusConflict}}},
	"POST /mcp":             {{rule: forMembers, body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`}},
	"GET /api/me":           {{rule: forMembers}},
	"GET /api/models":       {{rule: forMembers}},
	"GET /api/openapi.json": {{rule: forAll}},
	"GET /healthz":          {{rule: forAll}},
	"GET /readyz":           {{rule: forAll}},
	"GET /metrics":          {{rule: forAll}}, // on this machine
}

var apiRegistered = regexp.MustCompile(`a\.(on|onPage|onWith|open)\((?:a\.mcpKey, )?(?:"([A-Z]+)", )?"(/[^"]*)"`)

// apiRoutes returns the kind of registration of each route of the API in the source, by method and
// pattern.
func apiRoutes(t testing.TB) map[string]string {
	t.Helper()
	source, err := os.ReadFile("../routes.go")
	is.New(t).NoErr(err)
	routes := map[string]string{}
	for _, m := range apiRegistered.FindAllStringSubmatch(string(source), -1) {
		method := m[2]
		if m[1] == "onPage" {
			method = http.MethodGet
		}
		routes[method+" "+m[3]] = m[1]
	}
	registered := strings.Count(string(source), "\ta.on") + strings.Count(string(source), "\ta.open(")
	if registered != len(routes) {
		t.Fatalf("read %d of %d registrations", len(routes), registered)
	}
	return routes
}

// TestAccessToTheAPI calls every route as every caller, in every state.
func TestAccessToTheAPI(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPeople(t)
	things := map[state]thing{}
	for _, in := range states {
		things[in] = p.make(in)
	}
	routes, asked := apiRoutes(t), 0
	for route := range apiRows {
		if routes[route] == "" {
			t.Errorf("the row %q is of no route", route)
		}
	}
	for route, kind := range routes {
		if len(apiRows[route]) == 0 {
			t.Errorf("%s has no row: say in apiRows who may use it", route)
		}
		_, pattern, _ := strings.Cut(route, " ")
		for _, row := range apiRows[route] {
			for _, in := range states {
				about := row.lists || aboutThing(pattern+row.body+row.query)
				if !about && in != public || about && skipsState(route, in) {
					continue // the same in every state
				}
				th := things[in]
				if about && !strings.HasPrefix(route, "GET ") {
					th = p.make(in)
				}
				asked += p.askAll(route, row, in, th, p.apiAsker(route, row, in, p.withKey))
				if kind == "onPage" { // also browsers may read it
					asked += p.askAll(route, row, in, th, p.apiAsker(route, row, in, p.withCookie))
				}
			}
		}
	}
	ordertest.Above(is, asked, leastAsked(storetest.Rounds(1500, 700)))
}

// apiAsker returns the function that sends a request as a caller and checks the answer. sign adds what names the
// caller.
func (p *visitors) apiAsker(route string, row accessRow, in state,
	sign func(*http.Request, caller)) func(caller, thing) string {
	return func(c caller, th thing) string {
		p.T.Helper()
		r := p.apiRequest(route, row, c, th)
		sign(r, c)
		status, _, body := p.answered(r)
		p.checkAnswer(route, row, c, in, status, body)
		return body
	}
}

// withKey adds the key of a caller to a request.
func (p *visitors) withKey(r *http.Request, c caller) {
	if c != nobody {
		r.Header.Set("Authorization", "Bearer "+p.keys[c])
	}
}

// withCookie adds the session of a caller's browser to a request.
func (p *visitors) withCookie(r *http.Request, c caller) {
	if c != nobody {
		r.AddCookie(&http.Cookie{Name: "journeyman_session", Value: p.sessions[c]})
	}
}

func (p *visitors) apiRequest(route string, row accessRow, c caller, th thing) *http.Request {
	p.T.Helper()
	method, pattern, _ := strings.Cut(route, " ")
	body := strings.ReplaceAll(th.fill(row.body), "{mail}", dashboardtest.RawMail(string(c)+"@example.com", th.worker.ID))
	r := p.Request(method, th.fill(pattern+row.query), body)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if row.kind != "" {
		r.Header.Set("Content-Type", row.kind)
	}
	if method == http.MethodPost {
		r.Header.Set("Prefer", "wait=0")
	}
	if pattern == "/mcp" {
		r.Header.Set("Accept", "application/json, text/event-stream")
	}
	return r
}

func (p *visitors) checkAnswer(route string, row accessRow, c caller, in state, status int, body string) {
	p.T.Helper()
	want := expect(row.rule, c, in)
	if want == allowed {
		want = cmp.Or(row.in[in], row.status, http.StatusOK)
	} else if status == row.either && row.either != 0 {
		return
	}
	if status != want {
		p.T.Errorf("%s, %s, %s: answers %d, want %d: %.200s", route, c, in, status, want, body)
	}
	if strings.Contains(body, "Asked for") && status >= 400 {
		p.T.Errorf("%s, %s, %s: the refusal tells of the worker: %s", route, c, in, body)
	}
}

// mcpRows has a row for each tool of /mcp. "own" is the tool of a worker.
var mcpRows = map[string]struct {
	rule      rule
	arguments string
}{
	"run_worker":   {seesWorker, `{"worker":"{workerId}","input":"x","waitSeconds":0}`},
	"get_task":     {seesTask, `{"task":"{taskId}"}`},
	"list_workers": {forMembers, `{}`},
	"own":          {seesWorker, `{"input":"x","waitSeconds":0}`},
}

// TestAccessToTools calls every tool of /mcp as every caller, in every state.
func TestAccessToTools(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPeople(t)
	for _, name := range p.toolNames(creator) {
		if _, ok := mcpRows[name]; !ok && !strings.HasSuffix(name, strings.TrimPrefix(p.public.ID, "wrk_")) {
			t.Errorf("the tool %s has no row: say in mcpRows who may call it", name)
		}
	}
	for _, in := range states {
		th := p.make(in)
		for _, c := range callers {
			names := p.toolNames(c)
			own := slices.ContainsFunc(names, func(name string) bool {
				return strings.HasSuffix(name, strings.TrimPrefix(th.worker.ID, "wrk_"))
			})
			open := in == public || in == archived
			is.Equal(own, open && !c.foreign() && expect(forMembers, c, in) == allowed) // no other tool is listed
			for name, row := range mcpRows {
				if name == "own" {
					name = "asked_for_" + strings.TrimPrefix(th.worker.ID, "wrk_")
				}
				status, failed, text := p.callTool(c, name, th.fill(row.arguments))
				want := expect(row.rule, c, in)
				switch {
				case want == noSession && status != noSession, want != noSession && status != http.StatusOK:
					t.Errorf("%s, %s, %s: answers %d", name, c, in, status)
				case want != noSession && failed != (want != allowed):
					t.Errorf("%s, %s, %s: %s", name, c, in, text)
				case name == "list_workers" && strings.Contains(text, th.worker.ID) && !c.sees(in):
					t.Errorf("%s shows %s a worker that is %s", name, c, in)
				}
			}
		}
	}
}

// rpc sends a message to /mcp and returns the result of the answer.
func (p *visitors) rpc(c caller, method, params string) (status int, result json.RawMessage) {
	p.T.Helper()
	message := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
	r := p.apiRequest("POST /mcp", accessRow{body: message}, c, thing{})
	p.withKey(r, c)
	status, _, body := p.answered(r)
	var answer struct{ Result json.RawMessage }
	for line := range strings.Lines(body) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			p.OK(json.Unmarshal([]byte(data), &answer))
		}
	}
	return status, answer.Result
}

func (p *visitors) toolNames(c caller) (names []string) {
	p.T.Helper()
	_, result := p.rpc(c, "tools/list", `{}`)
	var list struct{ Tools []struct{ Name string } }
	if result != nil {
		p.OK(json.Unmarshal(result, &list))
	}
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

func (p *visitors) callTool(c caller, name, arguments string) (status int, failed bool, text string) {
	p.T.Helper()
	status, result := p.rpc(c, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments))
	var r struct{ IsError bool }
	if result != nil {
		p.OK(json.Unmarshal(result, &r))
	}
	return status, r.IsError, string(result)
}
