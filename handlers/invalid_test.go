package handlers_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers"
	"journeyman/handlers/handlerstest"
	"journeyman/store/storetest"
)

// TestInvalidFields sends values that break a rule, and checks that the answer names each of them.
func TestInvalidFields(t *testing.T) {
	is, s := onServer(t, idle)
	worker := "/api/workers/" + s.newWorker(t, fields{})
	deep := strings.Repeat(`{"not":`, 40) + `{}` + strings.Repeat(`}`, 40)
	for name, tt := range map[string]struct {
		call, body, details string
	}{
		"template, wrong types": {"POST /api/workers", `{"instructions":1,"summary":[],"title":{},"visibility":true,"outputSchema":"x","prompt":2}`,
			"instructions summary title visibility outputSchema prompt"},
		"template, too long": {"POST /api/workers", encode(fields{"instructions": chars(20001), "summary": chars(81), "title": chars(201), "prompt": chars(10001)}),
			"instructions summary title prompt"},
		"template, empty title":     {"POST /api/workers", `{"title":""}`, "title"},
		"template, visibility":      {"POST /api/workers", `{"visibility":"Public"}`, "visibility"},
		"settings, wrong types":     {"POST /api/workers", `{"model":1,"approvalTools":"shell","mcpTools":[1]}`, "model approvalTools mcpTools"},
		"effort, wrong types":       {"POST /api/workers", `{"effort":1,"temperature":"1"}`, "effort temperature"},
		"effort, unknown":           {"POST /api/workers", `{"effort":"High","temperature":2.5}`, "effort temperature"},
		"effort, empty":             {"PATCH " + worker, `{"effort":"","temperature":-0.1}`, "effort temperature"},
		"temperature, too large":    {"PATCH " + worker, `{"temperature":1e400}`, "temperature"},
		"settings, null inside":     {"POST /api/workers", `{"input":"x","approvalTools":[null],"mcpTools":{"a":"b"}}`, "approvalTools mcpTools"},
		"settings, names":           {"POST /api/workers", `{"input":"x","approvalTools":["a b"],"mcpTools":["a..","../x"]}`, "approvalTools mcpTools"},
		"settings, empty names":     {"POST /api/workers", `{"model":"","approvalTools":[""],"mcpTools":["a."]}`, "model approvalTools mcpTools"},
		"settings, unknown tools":   {"POST /api/workers", `{"approvalTools":["write_fil"],"tools":["x"],"strangerTools":["read_file","shel"]}`, "tools strangerTools approvalTools"},
		"tools, MCP server":         {"POST /api/workers", `{"tools":["crm"],"strangerTools":["crm.find"]}`, "tools strangerTools"},
		"days, wrong type":          {"POST /api/workers", `{"keepTaskDays":"7"}`, "keepTaskDays"},
		"days, out of range":        {"PATCH " + worker, `{"keepTaskDays":36501}`, "keepTaskDays"},
		"days, negative":            {"PATCH " + worker, `{"keepTaskDays":-1}`, "keepTaskDays"},
		"tools, wrong types":        {"POST /api/workers", `{"tools":"shell","strangerTools":[1],"workspace":5}`, "workspace tools strangerTools"},
		"tools, null inside":        {"POST /api/workers", `{"tools":[null],"strangerTools":[{"tool":null}]}`, "tools strangerTools"},
		"tools, forms":              {"POST /api/workers", `{"tools":["a b"],"strangerTools":[{"tool":"shell","command":["ls"]}],"workspace":"mine"}`, "workspace strangerTools tools"},
		"tools, twice":              {"POST /api/workers", `{"tools":["shell",{"tool":"shell","commands":["ls"]}],"strangerTools":["a","a"]}`, "tools strangerTools"},
		"tools, arguments":          {"POST /api/workers", `{"tools":[{"tool":"shell","hosts":["a.b"]}],"strangerTools":[{"tool":"web_fetch","commands":["ls"]}]}`, "tools strangerTools"},
		"tools, no arguments":       {"POST /api/workers", `{"tools":[{"tool":"shell","commands":[]}],"strangerTools":[{"tool":"web_fetch","hosts":[]}]}`, "tools strangerTools"},
		"tools, hosts":              {"POST /api/workers", `{"tools":[{"tool":"web_fetch","hosts":["https://a.b"]}],"strangerTools":[{"tool":"web_fetch","hosts":["*"]}]}`, "tools strangerTools"},
		"tools, commands":           {"POST /api/workers", `{"tools":[{"tool":"shell","commands":["git log"]}],"strangerTools":[{"tool":"shell","commands":["$x"]}]}`, "tools strangerTools"},
		"tools, too many":           {"POST /api/workers", encode(fields{"tools": numbered(201), "strangerTools": numbered(201)}), "tools strangerTools"},
		"settings, twice":           {"POST /api/workers", `{"approvalTools":["shell","x","shell"],"mcpTools":["a.b","a.b"]}`, "approvalTools mcpTools"},
		"settings, too many":        {"POST /api/workers", encode(fields{"approvalTools": numbered(51), "mcpTools": numbered(101)}), "approvalTools mcpTools"},
		"settings, long names":      {"POST /api/workers", encode(fields{"approvalTools": []string{strings.Repeat("a", 129)}, "mcpTools": []string{strings.Repeat("a", 129)}}), "approvalTools mcpTools"},
		"model, no key":             {"POST /api/workers", `{"model":"openai:gpt-5-mini"}`, "model"},
		"model, of the server only": {"POST /api/workers", `{"model":"replay:/tmp","input":"x"}`, "model"},
		"schema, boolean":           {"POST /api/workers", `{"outputSchema":true}`, "outputSchema"},
		"schema, list":              {"POST /api/workers", `{"outputSchema":[{}]}`, "outputSchema"},
		"schema, type unknown":      {"POST /api/workers", `{"outputSchema":{"type":"thing"}}`, "outputSchema"},
		"schema, bad pattern":       {"POST /api/workers", `{"outputSchema":{"type":"object","properties":{"a":{"pattern":"("}}}}`, "outputSchema"},
		"schema, remote":            {"POST /api/workers", `{"outputSchema":{"$ref":"http://example.com/s.json"}}`, "outputSchema"},
		"schema, of a file":         {"POST /api/workers", `{"outputSchema":{"$ref":"file:///etc/passwd"}}`, "outputSchema"},
		"schema, base and relative": {"POST /api/workers", `{"outputSchema":{"$id":"http://example.com/","properties":{"a":{"$ref":"b.json"}}}}`, "outputSchema"},
		"schema, to nowhere":        {"POST /api/workers", `{"outputSchema":{"$ref":"#/definitions/none"}}`, "outputSchema"},
		"schema, of no object":      {"POST /api/workers", `{"outputSchema":{"type":"string"}}`, "outputSchema"},
		"schema, of nothing":        {"POST /api/workers", `{"outputSchema":{"required":["a"],"additionalProperties":false},"input":"go"}`, "outputSchema"},
		"schema, patched":           {"PATCH " + worker, `{"outputSchema":{"type":"array"}}`, "outputSchema"},
		"schema, deep":              {"POST /api/workers", `{"outputSchema":` + deep + `}`, "outputSchema"},
		"schema, large":             {"POST /api/workers", `{"outputSchema":{"description":"` + strings.Repeat("a", 70000) + `"}}`, "outputSchema"},
		"run, wrong types": {"POST /api/workers", `{"input":1,"budget":2,"stream":"true","title":3}`,
			"title input budget stream"},
		"run, null":             {"POST /api/workers", `{"input":null}`, "input"},
		"run, blank":            {"POST /api/workers", `{"input":" \n\t"}`, "input"},
		"continue, nothing":     {"POST " + worker, `{}`, "input"},
		"continue, wrong types": {"POST " + worker, `{"input":[],"budget":"","stream":1}`, "input budget stream"},
		"task, nothing":         {"POST /api/tasks", `{}`, "input"},
		"task, wrong types": {"POST /api/tasks", `{"input":{},"budget":[],"taskId":1,"workerId":2,"stream":"false"}`,
			"input budget workerId taskId stream"},
		"task, empty ids":          {"POST /api/tasks", `{"input":"x","taskId":"","workerId":""}`, "workerId taskId"},
		"task, long id":            {"POST /api/tasks", `{"input":"x","taskId":"` + strings.Repeat("a", 129) + `"}`, "taskId"},
		"task, id of letters":      {"POST /api/tasks", `{"input":"x","taskId":"é"}`, "taskId"},
		"task, id with a slash":    {"POST /api/tasks", `{"input":"x","taskId":"a/b"}`, "taskId"},
		"task, id of a folder":     {"POST /api/tasks", `{"input":"x","taskId":"."}`, "taskId"},
		"task, id of the parent":   {"POST /api/tasks", `{"input":"x","taskId":".."}`, "taskId"},
		"worker, blank title":      {"POST /api/workers", `{"title":" \t"}`, "title"},
		"worker, title of nothing": {"POST /api/workers", `{"title":"\u200b\ufeff"}`, "title"},
		"worker, NUL in title":     {"POST /api/workers", `{"title":"a\u0000b"}`, "title"},
		"worker, NUL in summary":   {"POST /api/workers", `{"summary":"a\u0000b"}`, "summary"},
		"task, id with a NUL":      {"POST /api/tasks", `{"input":"x","taskId":"a\u0000"}`, "taskId"},
		"patch, nulls":             {"PATCH " + worker, `{"title":null,"summary":null,"instructions":null,"visibility":null,"approvalTools":null,"mcpTools":null,"workspace":null}`, "instructions summary title visibility approvalTools mcpTools workspace"},
		"patch, unknown tools":     {"PATCH " + worker, `{"tools":["web_fech"]}`, "tools"},
		"patch, too long":          {"PATCH " + worker, encode(fields{"instructions": chars(20001), "summary": chars(81), "title": chars(201)}), "instructions summary title"},
		"patch, wrong types":       {"PATCH " + worker, `{"title":1,"outputSchema":1,"model":[],"mcpTools":true}`, "title outputSchema model mcpTools"},
		"patch, model":             {"PATCH " + worker, `{"model":"anthropic:claude-opus-5"}`, "model"},
		"workers, limit 0":         {"GET /api/workers?limit=0", "", "limit"},
		"workers, limit 101":       {"GET /api/workers?limit=101", "", "limit"},
		"workers, limit no number": {"GET /api/workers?limit=ten", "", "limit"},
		"workers, everything":      {"GET /api/workers?limit=-1&cursor=x&q=" + strings.Repeat("a", 201), "", "limit q cursor"},
		"workers, NUL":             {"GET /api/workers?q=%00", "", "q"},
		"tasks, everything":        {"GET /api/tasks?limit=1.5&cursor=%21&q=" + strings.Repeat("a", 201) + "&status=done&triggeredBy=me&waitingFor=rain&createdAfter=now&createdBefore=2026-01-31&archived=both", "", "createdAfter createdBefore limit q cursor status triggeredBy waitingFor archived"},
		"stream, neither":          {"GET " + worker + "?stream=perhaps", "", "stream"},
		"key, empty":               {"POST /api/tasks\nIdempotency-Key: ", `{"input":"x"}`, "Idempotency-Key"},
		"key, long":                {"POST /api/tasks\nIdempotency-Key: " + strings.Repeat("k", 256), `{"input":"x"}`, "Idempotency-Key"},
		"key, twice":               {"POST /api/tasks\nIdempotency-Key: a\nIdempotency-Key: b", `{"input":"x"}`, "Idempotency-Key"},
		"key, long, of a template": {"POST /api/workers\nIdempotency-Key: " + strings.Repeat("k", 256), `{}`, "Idempotency-Key"},
		"key, long, of a cancel":   {"POST /api/tasks/t/cancel\nIdempotency-Key: " + strings.Repeat("k", 256), ``, "Idempotency-Key"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			lines := strings.Split(tt.call, "\n")
			method, path, _ := strings.Cut(lines[0], " ")
			got := s.do(t, method, path, tt.body, lines[1:]...)
			is.Equal(got.refused(), "400 invalid_request "+tt.details)
			first, _, _ := strings.Cut(tt.details, " ")
			is.True(strings.HasPrefix(got.text("error"), first+": ")) // the message also names a field
		})
	}
	is.Equal(s.must(t, "GET", "/api/tasks", "").size("items"), 0) // no request has created anything
}

// numbered returns n names.
func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("n%d", i)
	}
	return names
}

// TestMalformedBodies sends bodies that are no JSON object to each endpoint with a JSON body.
func TestMalformedBodies(t *testing.T) {
	_, s := onServer(t, idle)
	worker := "/api/workers/" + s.newWorker(t, fields{})
	for name, tt := range map[string]struct {
		contentType, body string
		want              string
	}{
		"empty":           {"application/json", "", "400 invalid_request"},
		"spaces":          {"application/json", " \n", "400 invalid_request"},
		"null":            {"application/json", "null", "400 invalid_request"},
		"list":            {"application/json", `[{"input":"x"}]`, "400 invalid_request"},
		"text":            {"application/json", `"x"`, "400 invalid_request"},
		"number":          {"application/json", `1`, "400 invalid_request"},
		"cut off":         {"application/json", `{"input":"x"`, "400 invalid_request"},
		"garbage behind":  {"application/json", `{"input":"x"} x`, "400 invalid_request"},
		"two objects":     {"application/json", `{"input":"x"}{"input":"y"}`, "400 invalid_request"},
		"single quotes":   {"application/json", `{'input':'x'}`, "400 invalid_request"},
		"no UTF-8":        {"application/json", "{\"input\":\"\xff\xfe\"}", "400 invalid_request"},
		"nested":          {"application/json", `{"input":"x","a":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, "400 invalid_request"},
		"no key":          {"application/json", `{"input":"x",}`, "400 invalid_request"},
		"a form":          {"application/x-www-form-urlencoded", `input=x`, "415 unsupported_media_type"},
		"text/plain":      {"text/plain", `{"input":"x"}`, "415 unsupported_media_type"},
		"no media type":   {"json", `{"input":"x"}`, "415 unsupported_media_type"},
		"bad media type":  {"application/json; charset", `{"input":"x"}`, "415 unsupported_media_type"},
		"multipart/mixed": {"multipart/mixed; boundary=b", `--b--`, "415 unsupported_media_type"},
		"too large":       {"application/json", `{"input":"` + strings.Repeat("a", 1<<20) + `"}`, "413 too_large"},
	} {
		for _, call := range []string{"POST /api/workers", "POST " + worker, "PATCH " + worker, "POST /api/tasks"} {
			t.Run(name+" "+call[:5], func(t *testing.T) {
				is := is.New(t)
				method, path, _ := strings.Cut(call, " ")
				r := s.do(t, method, path, tt.body, "Content-Type: "+tt.contentType)
				is.Equal(r.refused(), tt.want)
				// The message of a 415 names all that the address accepts.
				is.Equal(strings.Contains(r.text("error"), "multipart/form-data"), r.status == 415 && method == "POST")
			})
		}
	}
}

// TestAcceptedBodies sends unusual but valid bodies.
func TestAcceptedBodies(t *testing.T) {
	_, s := onServer(t)
	const mebibyte = 1 << 20
	frame := len(encode(fields{"input": ""}))
	for name, tt := range map[string]struct{ contentType, body, input string }{
		"charset":        {"application/json; charset=utf-8", `{"input":"say"}`, "say"},
		"byte order":     {"application/json", "\ufeff{\"input\":\"say\"}", "say"},
		"capitals":       {"Application/JSON", `{"input":"say"}`, "say"},
		"a JSON suffix":  {"application/vnd.api+json", `{"input":"say"}`, "say"},
		"no media type":  {"", `{"input":"say"}`, "say"},
		"spaces around":  {"application/json", "\r\n\t {\"input\":\"say\"} \n", "say"},
		"twice":          {"application/json", `{"input":"first","input":"second"}`, "second"},
		"nulls":          {"application/json", `{"input":"say","budget":null,"taskId":null,"workerId":null,"stream":null}`, "say"},
		"unknown fields": {"application/json", `{"input":"say","messages":[1,{"a":null}],"Stream":true}`, "say"},
		"NUL":            {"application/json", `{"input":"a\u0000b"}`, "a\x00b"},
		"controls":       {"application/json", `{"input":"\u0001\u007f\u2028\ufeff"}`, "\x01\x7f\u2028\ufeff"},
		"one mebibyte":   {"application/json", encode(fields{"input": strings.Repeat("a", mebibyte-frame)}), strings.Repeat("a", mebibyte-frame)},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			r := s.do(t, "POST", "/api/tasks", tt.body, "Content-Type: "+tt.contentType, "Prefer: respond-async")
			is.Equal(r.status, 202)
			is.Equal(r.text("messages.0.parts.0.text"), s.store.Storable(tt.input))
			turns := s.must(t, "GET", "/api/tasks/"+r.text("metadata.taskId"), "")
			is.Equal(turns.text("turns.0.input"), s.store.Storable(tt.input))
			is.True(turns.text("task.title") != "") // the task has no title
		})
	}
}

// TestIdsAtTheirLimits uses the longest and most unusual task ids that are allowed.
func TestIdsAtTheirLimits(t *testing.T) {
	_, s := onServer(t)
	for _, id := range []string{"a", strings.Repeat("Z", 128), "...", "a:b-c_d.e", "tsk_mine", "-", "0"} {
		t.Run(id[:min(len(id), 10)], func(t *testing.T) {
			is := is.New(t)
			r := s.run(t, fields{"input": "hello", "taskId": id})
			is.Equal(r.text("metadata.taskId"), id)
			is.Equal(r.header.Get("Location"), s.url+"/api/tasks/"+id)
			path := "/api/tasks/" + strings.ReplaceAll(id, ".", "%2E")
			is.Equal(s.must(t, "GET", path, "").text("task.id"), id)
			again := s.must(t, "POST", "/api/tasks", encode(fields{"input": "again", "taskId": id}), "Idempotency-Key: "+id[:min(len(id), 5)]+chars(255-min(len(id), 5)))
			is.Equal(again.text("metadata.taskId"), id)
		})
	}
}

// TestAddresses requests unknown paths, unsupported methods and unusual spellings.
func TestAddresses(t *testing.T) {
	_, s := onServer(t)
	id := s.newWorker(t, fields{})
	s.run(t, fields{"workerId": id, "taskId": "a:b", "input": "x"})
	for name, tt := range map[string]struct {
		call, want, allow string
	}{
		"root":                  {"GET /", "404 not_found", ""},
		"api":                   {"GET /api", "404 not_found", ""},
		"unknown":               {"GET /api/nothing", "404 not_found", ""},
		"trailing slash":        {"POST /api/tasks/", "404 not_found", ""},
		"trailing slash, list":  {"GET /api/workers/", "404 not_found", ""},
		"trailing slash, task":  {"GET /api/tasks/a:b/", "404 not_found", ""},
		"two slashes":           {"GET //api/tasks", "404 not_found", ""},
		"capitals":              {"GET /API/tasks", "404 not_found", ""},
		"unknown worker":        {"GET /api/workers/wrk_01k9zq6v3e8m4t2x7r5d0hcfgj", "404 not_found", ""},
		"unknown, no such form": {"GET /api/workers/%00%ff", "404 not_found", ""},
		"dots":                  {"GET /api/workers/%2e%2e/me", "404 not_found", ""},
		"unknown task":          {"GET /api/tasks/none", "404 not_found", ""},
		"unknown task's turns":  {"GET /api/tasks/none/turns", "404 not_found", ""},
		"unknown, archive":      {"DELETE /api/tasks/none", "404 not_found", ""},
		"unknown, cancel":       {"POST /api/tasks/none/cancel", "404 not_found", ""},
		"unknown, shown":        {"GET /api/workers/" + id + "?taskId=none", "404 not_found", ""},
		"escaped colon":         {"GET /api/tasks/a%3Ab", "200 ", ""},
		"PUT on a list":         {"PUT /api/tasks", "405 method_not_allowed", "GET, HEAD, OPTIONS, POST"},
		"DELETE on a list":      {"DELETE /api/workers", "405 method_not_allowed", "GET, HEAD, OPTIONS, POST"},
		"PUT on a worker":       {"PUT /api/workers/" + id, "405 method_not_allowed", "DELETE, GET, HEAD, OPTIONS, PATCH, POST"},
		"GET on cancel":         {"GET /api/tasks/a:b/cancel", "405 method_not_allowed", "OPTIONS, POST"},
		"POST on a file":        {"POST /api/workers/" + id + "/files/a", "405 method_not_allowed", "GET, HEAD, OPTIONS"},
		"own method":            {"BREW /api/tasks", "405 method_not_allowed", "GET, HEAD, OPTIONS, POST"},
		"OPTIONS":               {"OPTIONS /api/tasks", "200 ", "GET, HEAD, OPTIONS, POST"},
		"OPTIONS, unknown":      {"OPTIONS /api/nothing", "404 not_found", ""},
		"malformed query":       {"GET /api/tasks?q=100%", "400 invalid_request", ""},
		"malformed, unread":     {"GET /api/me?x=%zz", "400 invalid_request", ""},
		"semicolons":            {"GET /api/workers?limit=1;q=x", "400 invalid_request", ""},
		"malformed, stream":     {"HEAD /api/workers/" + id + "/stream?lastEventId=%zz", "400 ", ""},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			method, path, _ := strings.Cut(tt.call, " ")
			got := s.do(t, method, path, "")
			is.Equal(got.refused(), tt.want)
			is.Equal(got.header.Get("Allow"), tt.allow)
			is.True(strings.HasPrefix(got.header.Get("X-Request-Id"), "req_"))
		})
	}
}

// TestHead checks that HEAD returns the headers of GET without a body.
func TestHead(t *testing.T) {
	is, s := onServer(t)
	id := s.newWorker(t, fields{})
	s.run(t, fields{"workerId": id, "taskId": "t", "input": scripted(publishing("a.txt", "abc"))})
	for _, path := range []string{"/healthz", "/readyz", "/api/me", "/api/openapi.json", "/api/workers", "/api/tasks", "/api/tasks/t", "/api/tasks/t/turns",
		"/api/workers/" + id, "/api/workers/" + id + "/template", "/api/workers/" + id + "/email", "/api/workers/" + id + "/files/a.txt",
		"/api/workers/" + id + "/members", "/api/workers/" + id + "/stream", "/api/workers/" + id + "?stream=true"} {
		t.Run(path, func(t *testing.T) {
			is := is.New(t)
			head := s.do(t, "HEAD", path, "")
			is.Equal(head.status, 200)
			is.Equal(len(head.body), 0)
			if strings.Contains(path, "stream") {
				is.Equal(head.header.Get("Content-Type"), "text/event-stream")
				return
			}
			got := s.must(t, "GET", path, "")
			is.Equal(head.header.Get("Content-Type"), got.header.Get("Content-Type"))
			is.Equal(head.header.Get("Content-Length"), got.header.Get("Content-Length"))
		})
	}
	is.Equal(s.do(t, "HEAD", "/api/tasks/none", "").status, 404)
}

// TestOpenEndpoints checks the endpoints that need no key. Readiness names the part that has stopped.
func TestOpenEndpoints(t *testing.T) {
	alive := true
	is, s := onServer(t, func(set *settings) { set.API.SchedulerAlive = func() bool { return alive } })
	s = s.as("")
	is.Equal(s.must(t, "GET", "/healthz", "").text("status"), "ok")
	ready := s.must(t, "GET", "/readyz", "")
	is.Equal([]string{ready.text("checks.database"), ready.text("checks.scheduler")}, []string{"ok", "ok"})
	alive = false
	stopped := s.do(t, "GET", "/readyz", "")
	is.Equal([]any{stopped.status, stopped.text("checks.scheduler")}, []any{503, "failing"})
	stopped = newServer(t, idle).do(t, "GET", "/readyz", "")
	is.Equal([]any{stopped.status, stopped.text("checks.runner")}, []any{503, "failing"})
	document := s.must(t, "GET", "/api/openapi.json", "")
	is.Equal(document.text("openapi"), "3.1.0")
	is.Equal(document.text("info.version"), "1.2.3")
}

// TestDamaged overwrites pages, which the daily check finds. From then on every refusal gives the
// reason, and /readyz the advice.
func TestDamaged(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	storetest.Embedded(t)
	s := newServer(t, idle) // a runner could not store its state
	id := s.newWorker(t, fields{})
	f, err := os.OpenFile(filepath.Join(s.store.Dir(), "journeyman.db"), os.O_RDWR, 0)
	is.NoErr(err)
	_, err = f.WriteAt(bytes.Repeat([]byte{0xee}, 20*4096), 40*4096)
	is.NoErr(errors.Join(err, f.Close()))
	is.True(s.store.CheckDatabase(t.Context()) != nil) // the check does not find the page
	ready := s.do(t, "GET", "/readyz", "")
	is.Equal(ready.status, 503)
	is.Equal(ready.text("checks.database"), "damaged")
	is.True(strings.Contains(ready.text("advice"), "journeyman restore"))
	refused := s.do(t, "POST", "/api/tasks", `{"workerId":"`+id+`","input":"x"}`)
	is.Equal(refused.status, 503)
	is.Equal(refused.text("code"), "storage_damaged")
	is.Equal(refused.header.Get("Retry-After"), "600")
	is.Equal(s.do(t, "GET", "/healthz", "").status, 200)
	is.True(strings.Contains(string(s.as("").do(t, "GET", "/metrics", "").body), "journeyman_store_damaged 1"))
}

// TestRawRequests sends HTTP that no client library would send.
func TestRawRequests(t *testing.T) {
	_, s := onServer(t)
	auth := "Host: x\r\nAuthorization: Bearer " + s.key + "\r\n"
	for name, tt := range map[string]struct {
		request string
		status  int
	}{
		"absolute form, no path": {"GET http://x HTTP/1.1\r\n" + auth + "\r\n", 404},
		"asterisk":               {"OPTIONS * HTTP/1.1\r\n" + auth + "\r\n", 200},
		"no path":                {"GET ? HTTP/1.1\r\n" + auth + "\r\n", 400},
		"chunked":                {"POST /api/workers HTTP/1.1\r\n" + auth + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 200},
		"chunks broken":          {"POST /api/workers HTTP/1.1\r\n" + auth + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
		"two authorizations":     {"GET /api/me HTTP/1.1\r\n" + auth + "Authorization: Bearer x\r\n\r\n", 401},
		"HTTP/1.0":               {"GET /api/me HTTP/1.0\r\n" + auth + "\r\n", 200},
		"expect":                 {"POST /api/workers HTTP/1.1\r\n" + auth + "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}", 100},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			resp := s.raw(t, tt.request)
			defer resp.Body.Close()
			is.Equal(resp.StatusCode, tt.status)
		})
	}
}

// raw sends bytes and reads the beginning of an answer.
func (s *site) raw(t testing.TB, request string) *http.Response {
	t.Helper()
	return answerOn(t, dialed(t, s.web.Listener.Addr().String(), nil, request))
}

var shortPatience = handlers.Timing{ReadIn: 300 * time.Millisecond}

// TestPatience checks that a client that stops in the middle of a body is disconnected, and a slow
// one is not.
func TestPatience(t *testing.T) {
	is, s := onServer(t, withTiming(shortPatience))
	stuck := s.raw(t, "POST /api/workers HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+s.key+"\r\nContent-Length: 20\r\n\r\n{\"title\"")
	defer stuck.Body.Close()
	body, err := io.ReadAll(stuck.Body)
	is.NoErr(err)
	is.Equal(stuck.StatusCode, 400)
	is.True(bytes.Contains(body, []byte("incomplete"))) // the answer does not say that the body broke off

	unasked := s.raw(t, "POST /api/workers HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n{")
	defer unasked.Body.Close()
	is.Equal(unasked.StatusCode, 401) // answered without the missing body

	piped, slow := io.Pipe()
	go func() {
		for _, piece := range []string{`{`, `"ti`, `tle":`, `"Sl`, `ow"`, `}`} {
			<-time.After(shortPatience.ReadIn / 2)
			fmt.Fprint(slow, piece)
		}
		slow.Close()
	}()
	req := s.request(t, "POST", "/api/workers", "")
	req.Body, req.ContentLength = piped, -1
	resp, err := handlerstest.Client.Do(req)
	is.NoErr(err)
	defer resp.Body.Close()
	is.Equal(resp.StatusCode, 200)
}
