package handlers_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// fuzzed returns a site for a fuzz target: nothing runs, and the queue has no limit.
func fuzzed(f *testing.F) (s *site, worker string) {
	s = newServer(f, idle, func(set *settings) { set.Store.QueueLimit = 1 << 40 })
	worker = s.newWorker(f, fields{})
	s.do(f, "POST", "/api/tasks", encode(fields{"workerId": worker, "taskId": "t", "input": "x"}), "Prefer: respond-async")
	return s, worker
}

// withstands serves a request without a connection, so that it can be one that no client would
// send. It fails unless the answer is allowed: no internal error, and every refusal in the common
// form. It does not read streams to their end.
func (s *site) withstands(t *testing.T, req *http.Request) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // some headers ask to wait long
	defer cancel()
	req.RemoteAddr, req.Proto, req.ProtoMajor, req.ProtoMinor = "192.0.2.1:1", "HTTP/1.1", 1, 1
	if req.Header.Get("Authorization") == "" {
		req.Header.Set("Authorization", "Bearer "+s.key)
	}
	w := &leaver{httptest.NewRecorder(), cancel}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.web.Config.Handler.ServeHTTP(w, req.WithContext(ctx))
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s %q hangs", req.Method, req.URL)
	}
	if w.Code >= 500 && ctx.Err() == nil { // after the end of ctx there is no client
		t.Fatalf("%s %q answered %d: %s", req.Method, req.URL, w.Code, w.Body)
	}
	if w.Code < 400 || req.Method == http.MethodHead {
		return
	}
	value, err := jsonschema.UnmarshalJSON(w.Body)
	if err == nil {
		err = s.validator.validate("#/components/schemas/Error", value)
	}
	if err != nil {
		t.Fatalf("%s %q answered %d with no refusal of ours: %v", req.Method, req.URL, w.Code, err)
	}
}

// A leaver is a client that disconnects from streams, which would not end otherwise.
type leaver struct {
	*httptest.ResponseRecorder
	leave context.CancelFunc
}

// Flush disconnects from a stream.
func (l *leaver) Flush() {
	l.ResponseRecorder.Flush()
	if strings.HasPrefix(l.Header().Get("Content-Type"), "text/event-stream") {
		l.leave()
	}
}

// bodyRequest returns a request with a body for withstands.
func bodyRequest(method, path, contentType string, body []byte) *http.Request {
	req := httptest.NewRequest(method, path, bytes.NewReader(body))
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Prefer", "respond-async")
	return req
}

// FuzzBodies sends random bodies to the endpoints with JSON bodies.
func FuzzBodies(f *testing.F) {
	for _, body := range []string{``, `{}`, `null`, `[]`, `{"input":"x"}`, `{"input":"x","stream":true}`, `{"input":"x","taskId":"t"}`, `{"input":"x","workerId":""}`,
		`{"title":"a\u0000","summary":"\ud800","prompt":"p","visibility":"private"}`, `{"outputSchema":{"$ref":"#"},"input":"x"}`,
		`{"outputSchema":{"allOf":[{"$ref":"#/allOf/0"}]}}`, `{"outputSchema":{"$id":"x","$schema":"http://json-schema.org/draft-07/schema#","pattern":"(a+)+$"}}`,
		`{"input":"x","budget":"low"}garbage`, strings.Repeat(`{"a":`, 200), "\xef\xbb\xbf{}", `{"input":1e999}`, `{"input":"` + "\xff" + `"}`,
		`{"approved":true}`, `{"approved":false,"reason":"no\u0000"}`, `{"approved":null,"reason":[]}`} {
		for call := range byte(5) {
			f.Add(call, []byte(body))
		}
	}
	s, worker := fuzzed(f)
	f.Fuzz(func(t *testing.T, call byte, body []byte) {
		method, path, _ := strings.Cut([]string{"POST /api/workers", "POST /api/workers/" + worker, "PATCH /api/workers/" + worker, "POST /api/tasks",
			"POST /api/tasks/t/approvals/apr_x"}[call%5], " ")
		s.withstands(t, bodyRequest(method, path, "application/json", body))
	})
}

// FuzzForms sends random forms.
func FuzzForms(f *testing.F) {
	const head = "--b\r\nContent-Disposition: form-data; name="
	for _, body := range []string{"", "--b--", head + "input\r\n\r\nx\r\n--b--", head + "input\r\n\r\nx\r\n" + head + "f; filename=\"../a\"\r\n\r\nbytes\r\n--b--\r\n",
		head + "f; filename*=utf-8''%00%2f..\r\n\r\nx\r\n" + head + "input\r\n\r\nx\r\n--b--", head + "\"\r\n\r\n", head + "input\r\nContent-Transfer-Encoding: base64\r\n\r\neA==\r\n--b--",
		head + "stream\r\n\r\ntrue\r\n" + head + "input\r\n\r\nx\r\n--b--", head + "input\r\n\r\n\xff\r\n--b--", strings.Repeat(head+"a\r\n\r\nx\r\n", 120) + "--b--"} {
		f.Add("b", []byte(body))
	}
	f.Add(`"--"`, []byte("-------"))
	f.Add("", []byte(""))
	s, _ := fuzzed(f)
	f.Fuzz(func(t *testing.T, boundary string, body []byte) {
		s.withstands(t, bodyRequest("POST", "/api/tasks", "multipart/form-data; boundary="+boundary, body))
	})
}

// FuzzAddresses requests random paths, ids, files, cursors and filters.
func FuzzAddresses(f *testing.F) {
	for _, address := range []string{"", "*", "/", "//", "/api", "/api/workers/", "/api/workers/W", "/api/workers/W/files/", "/api/workers/W/files/../x", "/api/workers/W/files/%2e%2e/x",
		"/api/workers/W/files/a\x00b", "/api/workers/W/members/\xff", "/api/workers/W/stream", "/api/tasks/t", "/api/tasks/t/turns", "/api/tasks/t/cancel", "/api/tasks/t/approvals", "/api/tasks/t/approvals/\x00", "/api/approvals", "/api/tasks/", "/api/me/x", "/healthz/"} {
		for _, query := range []string{"", "limit=1&cursor=MSAx&q=%25", "cursor=OTk5OTk5OTk5OTk5OTk5OTk5OTkgMQ", "cursor=LTEgLTE&limit=100", "stream=true&taskId=t&lastEventId=1.0.0.1.0",
			"createdAfter=9999-12-31T23:59:59%2B23:59&createdBefore=0000-01-01T00:00:00Z", "v=%00&format=string", "%zz;&=&&", "status=running&triggeredBy=api&archived=1&workerId=W"} {
			f.Add(byte(0), address, query)
		}
		for method := range byte(5) {
			f.Add(method, address, "stream=true")
		}
	}
	s, worker := fuzzed(f)
	f.Fuzz(func(t *testing.T, method byte, path, query string) {
		u := &url.URL{Path: strings.Replace(path, "W", worker, 1), RawQuery: strings.ReplaceAll(query, "W", worker)}
		verb := []string{"GET", "HEAD", "POST", "PUT", "OPTIONS"}[method%5] // no method that deletes something other requests need
		s.withstands(t, &http.Request{Method: verb, URL: u, Header: http.Header{}, Body: http.NoBody})
	})
}

// FuzzHeaders sends random values in the headers that the server reads.
func FuzzHeaders(f *testing.F) {
	names := []string{"Authorization", "Prefer", "Idempotency-Key", "X-Stainless-Retry-Count", "Last-Event-ID", "Accept", "Content-Type", "Range", "If-None-Match", "If-Range"}
	for i := range names {
		for _, value := range []string{"", "x", "Bearer x", "wait=1, respond-async", "wait=\"", ";=,", "999999999999999999999", "-1", "1.0.0.1.0", "text/event-stream", "multipart/form-data; boundary=\"",
			"bytes=0-,-1,5-4", "bytes=-9223372036854775808", `W/"a", *`, "\xff\x00", strings.Repeat("a,", 1000)} {
			f.Add(byte(i), value, byte(i))
		}
	}
	s, worker := fuzzed(f)
	file := strings.TrimPrefix(attached(f, s, worker), s.url)
	f.Fuzz(func(t *testing.T, name byte, value string, call byte) {
		method, path, _ := strings.Cut([]string{"POST /api/workers", "GET /api/workers/" + worker, "GET /api/workers/" + worker + "/stream", "GET " + file, "GET /api/workers/" + worker + "/email"}[call%5], " ")
		req := httptest.NewRequest(method, path, nil)
		if method == "POST" {
			req = bodyRequest(method, path, "application/json", []byte(`{"input":"x"}`))
		}
		req.Header.Set(names[int(name)%len(names)], value)
		s.withstands(t, req)
	})
}

// attached returns the URL of a file that was attached to a task.
func attached(t testing.TB, s *site, worker string) string {
	body, contentType := form(t, part{name: "input", content: "x"}, part{name: "workerId", content: worker}, part{name: "f", file: "a.txt", content: "0123456789"})
	r := s.do(t, "POST", "/api/tasks", body, contentType, "Prefer: respond-async")
	return r.text("messages.0.parts.1.url")
}
