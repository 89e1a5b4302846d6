package handlers_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"journeyman/handlers"
	"journeyman/handlers/handlerstest"
	"journeyman/runner/model"
	"journeyman/runner/model/offline"
	"journeyman/store/storetest"
)

// panicking is a model that panics.
type panicking struct{ model.Model }

func (panicking) Generate(context.Context, model.Request, func(model.Delta)) (model.Response, error) {
	panic("the secret reason")
}

// TestPanic checks that a panic fails one request only, and that only the log has its value.
func TestPanic(t *testing.T) {
	is, s := onServer(t, idle, withModel(panicking{offline.New()}))
	for range 2 { // the second request does not wait for the first
		got := s.do(t, "POST", "/api/workers", `{"prompt":"Someone who checks invoices."}`)
		is.Equal(got.refused(), "500 internal")
		is.True(!strings.Contains(string(got.body), "secret")) // the answer shows internals
		is.True(strings.Contains(got.text("error"), "request id"))
	}
	is.Equal(s.do(t, "GET", "/api/me", "").status, 200)
}

// failing is a model that fails with err.
type failing struct {
	model.Model
	err error
}

func (f failing) Generate(context.Context, model.Request, func(model.Delta)) (model.Response, error) {
	return model.Response{}, f.err
}

// TestPromptFails checks that the provider's message is returned, and that no worker is created.
func TestPromptFails(t *testing.T) {
	is, s := onServer(t, idle, withModel(failing{offline.New(), &model.Error{Code: "401", Message: "the provider's key is wrong"}}))
	for _, body := range []string{`{"prompt":"Someone."}`, `{"prompt":"Someone.","input":"x"}`} {
		got := s.do(t, "POST", "/api/workers", body)
		is.Equal(got.refused(), "502 model_error")
		is.True(strings.Contains(got.text("error"), "the provider's key is wrong"))
	}
	is.Equal(s.must(t, "GET", "/api/workers", "").size("items"), 0)
}

// TestStopsWhileWaiting stops the runner while clients wait. A client without an answer gets a 503,
// and one whose answer has begun gets the error in the body.
func TestStopsWhileWaiting(t *testing.T) {
	is, s := onServer(t, idle, withTiming(handlers.Timing{SilentFor: time.Millisecond, SpaceEvery: 10 * time.Millisecond}))
	resp, err := handlerstest.Client.Do(s.request(t, "POST", "/api/tasks", `{"input":"x"}`))
	is.NoErr(err)
	defer resp.Body.Close()
	is.Equal(resp.StatusCode, 200)
	patient := newServer(t, idle)
	early := patient.begin(t, "POST", "/api/tasks", `{"input":"x"}`)
	storetest.Eventually(t, "the other's task", func() bool { return patient.store.Queued() == 1 })
	is.NoErr(s.runner.Stop(t.Context()))
	is.NoErr(patient.runner.Stop(t.Context()))
	told := early()
	is.Equal(told.refused(), "503 stopping")
	is.Equal(told.header.Get("Location"), patient.url+"/api/tasks/"+told.text("taskId")) // both name the task
	is.Equal(patient.must(t, "GET", "/api/tasks/"+told.text("taskId"), "").text("turns.0.id"), told.text("turnId"))
	raw, err := io.ReadAll(resp.Body)
	is.NoErr(err)
	var got map[string]string
	is.NoErr(json.Unmarshal(raw, &got))
	is.Equal(got["code"], "stopping")
	is.Equal(got["requestId"], resp.Header.Get("X-Request-Id"))
	is.Equal(got["message"], got["error"])
	is.Equal(s.must(t, "GET", "/api/tasks/"+got["taskId"], "").text("turns.0.id"), got["turnId"])
}
