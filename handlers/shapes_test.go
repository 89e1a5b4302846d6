package handlers_test

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"journeyman/store"
)

// unreachable is a webhook sender whose deliveries fail.
type unreachable struct {
	store *store.Store
	n     int
}

func (*unreachable) CheckURL(string) error { return nil }

func (u *unreachable) Send(ctx context.Context, d store.Delivery) (store.Execution, error) {
	u.n++
	a := []store.Attempt{{Success: true, ResponseStatus: 200},
		{ErrorMessage: "the endpoint refused the connection"}}[u.n%2]
	a.StartedAt, a.Manual = time.Now(), true
	return u.store.Effects.RecordAttempt(ctx, d, a)
}

// TestEveryFieldIsPresent reads every object of the API while most of its fields have no value. Such
// a field is null, never absent: openapi.yaml requires it, and do compares each answer with openapi.yaml.
func TestEveryFieldIsPresent(t *testing.T) {
	hook := &unreachable{}
	is, s := onServer(t, func(set *settings) { set.sender = hook })
	hook.store = s.store
	worker := s.newWorker(t, fields{})
	s.must(t, "PUT", "/api/workers/"+worker+"/webhook", `{"url":"https://a.example/"}`)
	file := scripted(publishing("a.txt", "1"), "say done")
	run := func(id, input string) string { return encode(fields{"workerId": worker, "taskId": id, "input": input}) }
	for _, step := range []struct{ method, path, body string }{
		{"GET", "/api/workers/" + worker, ""}, // it never ran
		{"POST", "/api/workers", `{}`},
		{"GET", "/api/workers/" + worker + "/template", ""},
		{"PATCH", "/api/workers/" + worker, `{}`},
		{"GET", "/api/workers", ""},
		{"POST", "/api/workers", `{"input":"hi"}`},
		{"POST", "/api/workers/" + worker, `{"input":"hi"}`},
		{"POST", "/api/tasks", run("done", file)},
		{"POST", "/api/tasks", run("broken", scripted("fail 400 no"))},
		{"GET", "/api/workers/" + worker + "?taskId=broken", ""},
		{"POST", "/api/tasks", run("slow", scripted("wait 1h"))}, // 202
		{"GET", "/api/workers/" + worker + "?taskId=slow", ""},
		{"GET", "/api/tasks/slow", ""},
		{"POST", "/api/tasks/slow/cancel", ""},
		{"GET", "/api/tasks/done", ""},
		{"GET", "/api/tasks/done/turns", ""},
		{"GET", "/api/tasks", ""},
		{"POST", "/api/workers/" + worker + "/schedules", `{"input":"x","when":{"type":"delayed","delayInSeconds":3600}}`},
		{"GET", "/api/workers/" + worker + "/schedules", ""},
		{"POST", "/api/workers/" + worker + "/webhook/test", ""}, // the delivery fails
		{"POST", "/api/workers/" + worker + "/webhook/test", ""},
		{"GET", "/api/workers/" + worker + "/webhook/executions", ""},
		{"GET", "/api/workers/" + worker + "/webhook", ""},
		{"DELETE", "/api/workers/" + worker + "/webhook", ""},
		{"GET", "/api/workers/" + worker + "/webhook", ""}, // none is configured
	} {
		prefer := ""
		if strings.Contains(step.body, "wait 1h") {
			prefer = "Prefer: respond-async"
		}
		r := s.do(t, step.method, step.path, step.body, prefer)
		if r.status >= http.StatusBadRequest || bytes.Contains(r.body, []byte(`"items":[]`)) ||
			bytes.Contains(r.body, []byte(`"schedules":[]`)) || bytes.Contains(r.body, []byte(`"logs":[]`)) {
			t.Errorf("%s %s: %d %.500s", step.method, step.path, r.status, r.body)
		}
	}
	is.Equal(s.do(t, "GET", "/api/tasks/none", "").status, http.StatusNotFound)
	is.Equal(s.do(t, "POST", "/api/tasks", `{}`).status, http.StatusBadRequest)
}
