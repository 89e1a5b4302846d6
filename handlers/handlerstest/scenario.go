package handlerstest

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// A Scenario is one request, and what the answer to it must be.
type Scenario struct {
	Method  string
	URL     string   // the path and the query
	Body    string   // "" for none
	Headers []string // see Server.Request

	Status   int
	Code     string   // of a refusal; "" is not checked
	Answers  []string // headers of the answer, "Name: value"; the value may be a part of the whole
	Contents []string // texts that the body contains
	Absent   []string // texts that the body does not contain
	Events   []string // texts of the data of events, in this order; further events may be between them
}

// Run runs scenarios beside each other, each as a test of its name.
func Run(t *testing.T, s *Server, list map[string]Scenario) {
	t.Helper()
	for name, sc := range list {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc.Run(t, s)
		})
	}
}

// Run sends the request with the server's key, and checks the answer. It returns the answer for further checks.
func (sc Scenario) Run(t testing.TB, s *Server) (*http.Response, string) {
	t.Helper()
	req := s.Request(t, sc.Method, sc.URL, sc.Body, sc.Headers...)
	resp, raw := do(t, req)
	if s.Validate != nil {
		s.Validate(t, req, resp, raw)
	}
	body := string(raw)
	if resp.StatusCode != sc.Status {
		t.Fatalf("%s %s: status %d, not %d: %.500s", sc.Method, sc.URL, resp.StatusCode, sc.Status, body)
	}
	if resp.Header.Get("X-Request-Id") == "" {
		t.Errorf("%s %s: the answer has no X-Request-Id", sc.Method, sc.URL)
	}
	if sc.Code != "" {
		sc.checkRefusal(t, resp, raw)
	}
	for _, text := range sc.Contents {
		if !strings.Contains(body, text) {
			t.Errorf("%s %s: no %q in\n%s", sc.Method, sc.URL, text, body)
		}
	}
	for _, text := range sc.Absent {
		if strings.Contains(body, text) {
			t.Errorf("%s %s: %q in\n%s", sc.Method, sc.URL, text, body)
		}
	}
	for _, h := range sc.Answers {
		name, value, _ := strings.Cut(h, ": ")
		if got := resp.Header.Get(name); got == "" || !strings.Contains(got, value) {
			t.Errorf("%s %s: %s is %q, without %q", sc.Method, sc.URL, name, got, value)
		}
	}
	sc.checkEvents(t, body)
	return resp, body
}

// checkRefusal checks the body of a refusal: its code, its message and the id of the request.
func (sc Scenario) checkRefusal(t testing.TB, resp *http.Response, raw []byte) {
	t.Helper()
	var p struct{ Error, Code, RequestID string }
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatalf("%s %s: %v\n%s", sc.Method, sc.URL, err, raw)
	}
	if p.Code != sc.Code || p.Error == "" || p.RequestID != resp.Header.Get("X-Request-Id") {
		t.Errorf("%s %s: not a refusal with the code %q: %s", sc.Method, sc.URL, sc.Code, raw)
	}
}

// checkEvents checks that the events of a stream contain the texts, in their order.
func (sc Scenario) checkEvents(t testing.TB, body string) {
	t.Helper()
	left := sc.Events
	for line := range strings.Lines(body) {
		if data, ok := strings.CutPrefix(line, "data: "); ok && len(left) > 0 && strings.Contains(data, left[0]) {
			left = left[1:]
		}
	}
	if len(left) > 0 {
		t.Errorf("%s %s: no event with %q, or not in this order:\n%s", sc.Method, sc.URL, left[0], body)
	}
}

// do sends a request, and returns the answer with its whole body.
func do(t testing.TB, req *http.Request) (*http.Response, []byte) {
	t.Helper()
	resp, err := Client.Do(req)
	is.New(t).NoErr(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	is.New(t).NoErr(err)
	return resp, body
}
