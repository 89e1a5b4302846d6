package handlers_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/matryer/is"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	refusal  = `{"error":"no","message":"no","code":"invalid","requestId":"r1"}`
	idHeader = "X-Request-Id: r1\n"
	asJSON   = idHeader + "Content-Type: application/json\n"
	asStream = idHeader + "Content-Type: text/event-stream; charset=utf-8\nx-vercel-ai-ui-message-stream: v1\n"
	asFile   = idHeader + "ETag: \"9f86\"\nAccept-Ranges: bytes\nContent-Length: 3\nContent-Type: text/csv\n" +
		"Content-Security-Policy: sandbox\nX-Content-Type-Options: nosniff\n"
	restart = `{"type":"data-restart","data":{"stepId":"2"},"transient":true`
)

// TestValidator checks which answers the validator accepts.
func TestValidator(t *testing.T) {
	t.Parallel()
	v := newValidator(t)
	for name, tt := range map[string]struct {
		request string
		status  int
		headers string
		body    string
		says    string // "" if the answer is as described
	}{
		"as described":          {"DELETE /api/workers/w", 200, asJSON, `{"deleted":true}`, ""},
		"refusal":               {"POST /api/tasks", 400, asJSON, refusal, ""},
		"unknown field":         {"DELETE /api/workers/w", 200, asJSON, `{"deleted":true,"id":"w"}`, "additional properties 'id'"},
		"status unknown":        {"DELETE /api/workers/w", 204, idHeader, ``, "does not have this status"},
		"media type unknown":    {"DELETE /api/workers/w", 200, idHeader + "Content-Type: text/plain\n", `{"deleted":true}`, "does not answer text/plain"},
		"no media type":         {"DELETE /api/workers/w", 200, idHeader, `{"deleted":true}`, "content type"},
		"no request id":         {"DELETE /api/workers/w", 200, "Content-Type: application/json\n", `{"deleted":true}`, "X-Request-Id is missing"},
		"header not a number":   {"DELETE /api/workers/w", 200, asJSON + "RateLimit-Limit: many\n", `{"deleted":true}`, "RateLimit-Limit"},
		"429 without wait":      {"GET /api/me", 429, asJSON, refusal, "Retry-After is missing"},
		"429":                   {"GET /api/me", 429, asJSON + "Retry-After: 1\nretry-after-ms: 200\n", refusal, ""},
		"409 that says retry":   {"POST /api/tasks", 409, asJSON + "x-should-retry: true\n", refusal, "x-should-retry"},
		"401 without challenge": {"GET /api/me", 401, asJSON, refusal, "WWW-Authenticate is missing"},
		"other request id":      {"POST /api/tasks", 400, asJSON, strings.Replace(refusal, "r1", "r2", 1), "requestId"},
		"other message":         {"POST /api/tasks", 400, asJSON, strings.Replace(refusal, "no", "yes", 1), "message and error differ"},
		"no such path":          {"GET /api/nothing", 404, asJSON, refusal, ""},
		"no such path, found":   {"GET /api/nothing", 200, asJSON, `{}`, "document does not have it"},
		"no such method":        {"PUT /api/tasks", 405, asJSON + "Allow: GET, POST\n", refusal, ""},
		"no Allow":              {"PUT /api/tasks", 405, asJSON, refusal, "Allow is missing"},
		"file":                  {"GET /api/workers/w/files/a/b%20c.csv?v=0123456789ab", 200, asFile, "a,b", ""},
		"file, slash escaped":   {"GET /api/workers/w/files/a%2Fb.csv", 200, asFile, "a,b", ""},
		"file that may sniff":   {"GET /api/workers/w/files/a", 200, strings.Replace(asFile, "nosniff", "sniff", 1), "a,b", "X-Content-Type-Options"},
		"file with a weak tag":  {"GET /api/workers/w/files/a", 200, strings.Replace(asFile, `"9f86"`, `9f86`, 1), "a,b", "ETag"},
		"head":                  {"HEAD /api/workers/w/files/a", 200, asFile, "", ""},
		"head with a body":      {"HEAD /api/workers/w/files/a", 200, asFile, "a,b", "no body"},
		"head of a missing one": {"HEAD /api/workers/w/files/a", 404, asJSON, "", ""},
		"not modified":          {"GET /api/workers/w/files/a", 304, idHeader + "ETag: \"9f86\"\n", "", ""},
		"address":               {"GET /api/workers/w/email", 200, idHeader + "Content-Type: text/plain; charset=utf-8\n", `"w@localhost"`, ""},
		"stream":                {"POST /api/tasks", 200, asStream + "Location: http://h/api/tasks/t\n", "id: 1\ndata: {\"type\":\"start-step\"}\n\n: beat\n\ndata: [DONE]\n\n", ""},
		"stream cut off":        {"POST /api/tasks", 200, asStream + "Location: http://h/api/tasks/t\n", "id: 1\ndata: {\"type\":\"sta", ""},
		"stream, unknown chunk": {"GET /api/workers/w", 200, asStream, "data: {\"type\":\"begin\"}\n", "oneOf"},
		"stream, unknown field": {"GET /api/workers/w", 200, asStream, "data: {\"type\":\"start-step\",\"taskId\":\"t\"}\n", "taskId"},
		"stream, event name":    {"GET /api/workers/w", 200, asStream, "event: news\n", "no place"},
		"stream, no version":    {"GET /api/workers/w", 200, idHeader + "Content-Type: text/event-stream\n", "", "version"},
		"worker stream":         {"GET /api/workers/w/stream", 200, asStream, "data: " + restart + `,"taskId":"t","turnId":"trn_01k9zr1a4c8e2g6j0m4q8s2v6x"}` + "\n", ""},
		"worker stream, whose?": {"GET /api/workers/w/stream", 200, asStream, "data: " + restart + "}\n", "'taskId', 'turnId'"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			method, target, _ := strings.Cut(tt.request, " ")
			resp := &http.Response{StatusCode: tt.status, Header: http.Header{}}
			for line := range strings.Lines(tt.headers) {
				key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
				resp.Header.Add(key, value)
			}
			req := httptest.NewRequest(method, target, nil)
			if tt.says == "" {
				v.check(t, req, resp, []byte(tt.body))
				return
			}
			err := v.problem(req, resp, []byte(tt.body))
			is.True(err != nil)                             // the validator accepts the answer
			is.True(strings.Contains(err.Error(), tt.says)) // the error names the reason
		})
	}
}

// TestOpenAPIRequests checks which bodies the document accepts: limits count characters, unknown
// fields pass, wrong types do not.
func TestOpenAPIRequests(t *testing.T) {
	t.Parallel()
	v := newValidator(t)
	chars := func(n int) string { return `"` + strings.Repeat("é", n) + `"` }
	for name, tt := range map[string]struct {
		schema, body string
		valid        bool
	}{
		"empty template":         {"WorkerCreate", `{}`, true},
		"run":                    {"WorkerCreate", `{"input":"hi"}`, true},
		"run with template":      {"WorkerCreate", `{"input":"hi","title":"T","budget":"low","stream":true}`, true},
		"run, empty input":       {"WorkerCreate", `{"input":""}`, false},
		"run, input no text":     {"WorkerCreate", `{"input":1}`, false},
		"unknown field":          {"WorkerCreate", `{"colour":"red"}`, true},
		"no object":              {"WorkerCreate", `[]`, false},
		"longest instructions":   {"WorkerCreate", `{"instructions":` + chars(20000) + `}`, true},
		"too long instructions":  {"WorkerCreate", `{"instructions":` + chars(20001) + `}`, false},
		"longest prompt":         {"WorkerCreate", `{"prompt":` + chars(10000) + `}`, true},
		"too long prompt":        {"WorkerCreate", `{"prompt":` + chars(10001) + `}`, false},
		"longest summary":        {"WorkerCreate", `{"summary":` + chars(80) + `}`, true},
		"too long summary":       {"WorkerCreate", `{"summary":` + chars(81) + `}`, false},
		"longest title":          {"WorkerUpdate", `{"title":` + chars(200) + `}`, true},
		"too long title":         {"WorkerUpdate", `{"title":` + chars(201) + `}`, false},
		"empty title":            {"WorkerUpdate", `{"title":""}`, false},
		"schema cleared":         {"WorkerUpdate", `{"outputSchema":null}`, true},
		"schema no object":       {"WorkerUpdate", `{"outputSchema":true}`, false},
		"visibility unknown":     {"WorkerUpdate", `{"visibility":"secret"}`, false},
		"nothing to change":      {"WorkerUpdate", `{}`, true},
		"continue":               {"WorkerContinue", `{"input":"more","budget":"unlimited"}`, true},
		"continue without input": {"WorkerContinue", `{}`, false},
		"budget unknown":         {"WorkerContinue", `{"input":"more","budget":"huge"}`, false},
		"task":                   {"TaskCreate", `{"input":"hi","taskId":"a.B_c:d-1"}`, true},
		"longest task id":        {"TaskCreate", `{"input":"hi","taskId":"` + strings.Repeat("a", 128) + `"}`, true},
		"too long task id":       {"TaskCreate", `{"input":"hi","taskId":"` + strings.Repeat("a", 129) + `"}`, false},
		"task id with slash":     {"TaskCreate", `{"input":"hi","taskId":"a/b"}`, false},
		"task id with newline":   {"TaskCreate", `{"input":"hi","taskId":"a\n"}`, false},
		"files":                  {"TaskCreateMultipart", `{"input":"hi","files":["a,b"]}`, true},
		"21 files":               {"TaskCreateMultipart", `{"input":"hi","files":[` + strings.Repeat(`"",`, 20) + `""]}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			is.True(json.Valid([]byte(tt.body)))
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(tt.body))
			is.NoErr(err)
			err = v.validate("#/components/schemas/"+tt.schema, value)
			is.Equal(err == nil, tt.valid) // valid
		})
	}
}
