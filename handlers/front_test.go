package handlers_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers"
	"journeyman/handlers/handlerstest"
	"journeyman/store/ordertest"
)

// TestSlashes sends paths with doubled slashes. Each is treated like the path with single slashes.
func TestSlashes(t *testing.T) {
	is, s := onServer(t)
	pages := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusTeapot) })
	front := httptest.NewServer(handlers.Front(s.api, pages))
	defer front.Close()
	for _, path := range []string{"//api/tasks", "/api//tasks", "///api///tasks", "/api/tasks?q=a//b", "//api//me",
		"//healthz", "/%2Fapi/tasks"} {
		t.Run(path, func(t *testing.T) {
			is := is.New(t)
			req, err := http.NewRequestWithContext(t.Context(), "GET", front.URL+path, nil)
			is.NoErr(err)
			req.Header.Set("Authorization", "Bearer "+s.key)
			resp, err := handlerstest.Client.Transport.RoundTrip(req) // without following redirects
			is.NoErr(err)
			defer resp.Body.Close()
			is.Equal(resp.StatusCode, http.StatusOK)
			is.True(strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json"))
		})
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", front.URL+"//api/tasks",
		strings.NewReader(`{"input":"hi"}`))
	is.NoErr(err)
	req.Header.Set("Authorization", "Bearer "+s.key)
	resp, err := handlerstest.Client.Do(req)
	is.NoErr(err)
	defer resp.Body.Close()
	is.Equal(resp.StatusCode, http.StatusOK) // the POST did not become a GET
	is.Equal(resp.Request.Method, "POST")
}

// TestLocation serves under a base URL with a path, as behind a proxy.
func TestLocation(t *testing.T) {
	is, s := onServer(t, func(set *settings) { set.API.BaseURL = "https://agents.example/jm" })
	worker := s.newWorker(t, fields{})
	for _, path := range []string{"/api/workers", "/api/workers/" + worker, "/api/tasks"} {
		r := s.do(t, "POST", path, `{"input":"hi"}`, "Prefer: respond-async")
		is.Equal(r.header.Get("Location"), "https://agents.example/jm/api/tasks/"+r.text("metadata.taskId"))
	}
}

// TestCompressedBodies sends compressed bodies to every kind of endpoint with a body.
func TestCompressedBodies(t *testing.T) {
	is, s := onServer(t)
	worker := s.newWorker(t, fields{})
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err := io.WriteString(z, `{"input":"hi"}`)
	is.NoErr(err)
	is.NoErr(z.Close())
	for _, encoding := range []string{"gzip", "deflate", "br", "identity, gzip", "GZIP"} {
		for _, address := range []string{"POST /api/tasks", "POST /api/workers", "POST /api/workers/" + worker,
			"PATCH /api/workers/" + worker,
			"POST /api/workers/" + worker + "/schedules", "PUT /api/workers/" + worker + "/webhook", "POST /api/inbound-email",
			"POST /api/workers/import", "POST /mcp"} {
			method, path, _ := strings.Cut(address, " ")
			kind := "application/json"
			if path == "/api/inbound-email" {
				kind = "message/rfc822"
			}
			r := s.do(t, method, path, zipped.String(), "Content-Encoding: "+encoding, "Content-Type: "+kind)
			is.Equal(r.refused(), "415 unsupported_encoding")
			is.Equal(r.header.Get("Accept-Encoding"), "identity")
		}
	}
	is.Equal(s.do(t, "POST", "/api/tasks", `{"input":"hi"}`, "Content-Encoding: identity").status, 200)
	for _, address := range []string{"GET /api/workers/" + worker, "GET /api/tasks", "GET /api/me",
		"POST /api/workers/" + worker + "/versions/1/restore", "DELETE /api/workers/" + worker} {
		method, path, _ := strings.Cut(address, " ")
		is.Equal(s.do(t, method, path, zipped.String(), "Content-Encoding: gzip").status, 200) // it reads no body
	}
}

// TestIgnoredFields sends misspelt fields. The answer names them, and strict handling refuses them.
func TestIgnoredFields(t *testing.T) {
	is, s := onServer(t, idle)
	worker := s.newWorker(t, fields{})
	const when = `"when":{"type":"interval","intervalSeconds":60,"interval_seconds":5}`
	for name, tt := range map[string]struct{ address, body, ignored, says string }{
		"task": {"POST /api/tasks", `{"input":"x","worker_id":"w","Budget":"low"}`, "Budget, worker_id",
			`did you mean "budget"?`},
		"task, capitals": {"POST /api/tasks", `{"input":"x","taskID":"w"}`, "taskID", `did you mean "taskId"?`},
		"nothing is like": {"POST /api/tasks", `{"input":"x","temperature":1}`, "temperature",
			"is not a field of this request"},
		"template":         {"POST /api/workers", `{"instruction":"x"}`, "instruction", `did you mean "instructions"?`},
		"template, budget": {"POST /api/workers", `{"budget":"low"}`, "budget", "is not a field"}, // nothing runs
		"change":           {"PATCH /api/workers/" + worker, `{"titel":"x"}`, "titel", `did you mean "title"?`},
		"continue":         {"POST /api/workers/" + worker, `{"input":"x","taskId":"t"}`, "taskId", "is not a field"},
		"nested": {"POST /api/workers/" + worker + "/schedules", `{"input":"x",` + when + `}`,
			"when.interval_seconds", "is not a field"},
		"webhook": {"PUT /api/workers/" + worker + "/webhook", `{"url":null,"secret":"x"}`, "secret",
			"is not a field"},
		"no name":          {"POST /api/tasks", `{"input":"x","":1}`, `""`, "is not a field"},
		"no name, and one": {"POST /api/tasks", `{"input":"x","":1,"a":1}`, `"", a`, "is not a field"},
		"not for a header": {"POST /api/tasks", `{"input":"x","a\r\nB: c":1}`, "a%0D%0AB%3A+c", "is not a field"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			method, path, _ := strings.Cut(tt.address, " ")
			r := s.do(t, method, path, tt.body, "Prefer: respond-async")
			ordertest.Below(is, r.status, 300)
			is.Equal(r.header.Get("X-Ignored-Fields"), tt.ignored)
			r = s.do(t, method, path, tt.body, "Prefer: respond-async, handling=strict")
			is.Equal(r.status, 400)
			is.Equal(r.size("details"), strings.Count(tt.ignored, ",")+1) // each is named
			is.True(strings.Contains(string(r.body), strings.ReplaceAll(tt.says, `"`, `\"`)))
		})
	}
	r := s.do(t, "POST", "/api/tasks", `{"input":"x"}`, "Prefer: respond-async, handling=strict")
	is.Equal(r.status, 202)
	is.Equal(r.header.Values("X-Ignored-Fields"), nil)
}

// TestMetricsStayHere requests metrics as simple clients of this machine do, and as proxies on it
// do.
func TestMetricsStayHere(t *testing.T) {
	_, s := onServer(t)
	s = s.as("")
	for _, header := range []string{"", "User-Agent: Prometheus/3.0", "X-Prometheus-Scrape-Timeout-Seconds: 10",
		"Accept-Encoding: gzip", "Authorization: Bearer x",
		"Traceparent: 00-1-1-00", "Sec-Fetch-Mode: navigate", "Cookie: a=b", "Host: localhost:9090", "Host: [::1]"} {
		if status := s.metricsWith(t, header); status != 200 {
			t.Errorf("with %q: %d", header, status)
		}
	}
	for _, header := range []string{"Forwarded: for=1.2.3.4", "X-Forwarded-For: 1.2.3.4", "X-Forwarded-Host: a",
		"X-Forwarded-Proto: https", "X-Forwarded-Server: a",
		"X-Forwarded-Port: 1", "X-Forwarded: a", "Via: 1.1 a",
		"X-Real-Ip: 1.2.3.4", "X-Client-Ip: 1.2.3.4", "Client-Ip: 1.2.3.4", "True-Client-Ip: 1.2.3.4",
		"X-Cluster-Client-Ip: 1.2.3.4", "Cf-Connecting-Ip: 1.2.3.4", "Cf-Ray: 1", "Cdn-Loop: a",
		"Fastly-Client-Ip: 1.2.3.4", "Fly-Client-Ip: 1.2.3.4",
		"X-Original-Url: /", "X-Original-Forwarded-For: 1.2.3.4", "X-Envoy-External-Address: 1.2.3.4", "X-Request-Id: a",
		"X-Amzn-Trace-Id: a", "X-Azure-Clientip: a",
		"X-Appengine-User-Ip: a", "X-Varnish: 1", "X-Scheme: https", "Proxy-Connection: close",
		"X-Whatever-A-Proxy-Invents: 1", "X-Forwarded-For: ", "Host: agents.example"} {
		if status := s.metricsWith(t, header); status != 403 {
			t.Errorf("with %q: %d", header, status)
		}
	}
}

// metricsWith requests metrics with a header and returns the status.
func (s *site) metricsWith(t *testing.T, header string) int {
	t.Helper()
	req := s.request(t, "GET", "/metrics", "")
	if name, value, ok := strings.Cut(header, ": "); ok {
		req.Header[name] = []string{value}
		if name == "Host" {
			delete(req.Header, name)
			req.Host = value
		}
	}
	resp, err := handlerstest.Client.Do(req)
	is.New(t).NoErr(err)
	defer resp.Body.Close()
	return resp.StatusCode
}
