package handlers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
)

// shapes are the objects of the API with their fields. "x: shape" is a field with such an object,
// "x[]: shape" a list of them, and "x[]+: shape" a list that must not be empty here.
var shapes = map[string]string{
	"run": `id created_at error incomplete_details files[]:file messages metadata:metadata object output[]:output output_text running
		sources[]:source status costs:costs usage:usage structured_output url waitingFor`,
	"metadata": `taskId turnId turnStatus taskStatus triggeredBy budget model`,
	"file":     `filename mediaType url size`,
	"output":   `id content role status type`,
	"source":   `id title type url`,
	"costs":    `internalCostUsd modelCostUsd sandboxCostUsd toolCostUsd`,
	"usage":    `cacheReadTokens cacheWriteTokens costUsd inputTokens outputTokens reasoningTokens steps totalTokens credits durationMs`,
	"template": `id createdAt updatedAt instructions organizationId userId outputSchema summary title url visibility`,
	"task":     `id completedAt createdAt createdByUserId organizationId status title totals:totals triggeredBy url waitingFor workerId`,
	"totals":   `credits durationMs turnCount`,
	"turn": `id taskId seq role status input outputText inputTokens outputTokens credits durationMs startedAt completedAt
		structuredOutput waitingFor`,
	"turnfiles":  `files[]:file`,
	"schedule":   `id type budget input nextRunAt`,
	"webhook":    `token url signingSecret`,
	"execution":  `id createdAt durationMs errorMessage requestStatus responseStatus taskId taskTitle url workerId`,
	"executions": `logs[]+:execution page pageCount totalCount`,
	"delivery":   `id type createdAt task:task turn:turn worker:run`,
	"tasks":      `items[]+:task nextCursor`,
	"templates":  `items[]+:template nextCursor`,
	"whole":      `task:task turns[]+:turn`,
	"turns":      `items[]+:turn items[]+:turnfiles taskId`,
	"schedules":  `schedules[]+:schedule workerId timezone`,
	"problem":    `error message code requestId`,
}

// lacks returns the fields of a shape that are absent from value.
func lacks(shape, at string, value any) (missing []string) {
	object, ok := value.(map[string]any)
	if !ok {
		return []string{at + " is no object"}
	}
	for _, field := range strings.Fields(shapes[shape]) {
		name, inner, _ := strings.Cut(field, ":")
		name, some := strings.CutSuffix(name, "+")
		name, list := strings.CutSuffix(name, "[]")
		v, there := object[name]
		switch {
		case !there:
			missing = append(missing, at+"."+name)
		case list:
			items, ok := v.([]any)
			if !ok || some && len(items) == 0 {
				missing = append(missing, at+"."+name+" is no list, or an empty one")
			}
			for i, item := range items {
				missing = append(missing, lacks(inner, fmt.Sprintf("%s.%s.%d", at, name, i), item)...)
			}
		case inner != "":
			missing = append(missing, lacks(inner, at+"."+name, v)...)
		}
	}
	return missing
}

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
	return u.store.RecordAttempt(ctx, d, a)
}

// TestEveryFieldIsPresent reads every object of the API while most of its fields have no value. Such
// a field is null, never absent.
func TestEveryFieldIsPresent(t *testing.T) {
	t.Parallel()
	hook := &unreachable{}
	s := newServer(t, func(set *settings) { set.sender = hook })
	hook.store = s.store
	worker := s.newWorker(t, fields{})
	s.must(t, "PUT", "/api/workers/"+worker+"/webhook", `{"url":"https://a.example/"}`)
	file := scripted(publishing("a.txt", "1"), "say done")
	run := func(id, input string) string { return encode(fields{"workerId": worker, "taskId": id, "input": input}) }
	for _, step := range []struct{ method, path, body, shape string }{
		{"GET", "/api/workers/" + worker, "", "run"}, // it never ran
		{"POST", "/api/workers", `{}`, "template"},
		{"GET", "/api/workers/" + worker + "/template", "", "template"},
		{"PATCH", "/api/workers/" + worker, `{}`, "template"},
		{"GET", "/api/workers", "", "templates"},
		{"POST", "/api/workers", `{"input":"hi"}`, "run"},
		{"POST", "/api/workers/" + worker, `{"input":"hi"}`, "run"},
		{"POST", "/api/tasks", run("done", file), "run"},
		{"POST", "/api/tasks", run("broken", scripted("fail 400 no")), "run"},
		{"GET", "/api/workers/" + worker + "?taskId=broken", "", "run"},
		{"POST", "/api/tasks", run("slow", scripted("wait 1h")), "run"}, // 202
		{"GET", "/api/workers/" + worker + "?taskId=slow", "", "run"},
		{"GET", "/api/tasks/slow", "", "whole"},
		{"POST", "/api/tasks/slow/cancel", "", "cancelled"},
		{"GET", "/api/tasks/done", "", "whole"},
		{"GET", "/api/tasks/done/turns", "", "turns"},
		{"GET", "/api/tasks", "", "tasks"},
		{"POST", "/api/workers/" + worker + "/schedules", `{"input":"x","when":{"type":"delayed","delayInSeconds":3600}}`,
			"schedule"},
		{"GET", "/api/workers/" + worker + "/schedules", "", "schedules"},
		{"POST", "/api/workers/" + worker + "/webhook/test", "", "execution"}, // the delivery fails
		{"POST", "/api/workers/" + worker + "/webhook/test", "", "execution"},
		{"GET", "/api/workers/" + worker + "/webhook/executions", "", "executions"},
		{"GET", "/api/workers/" + worker + "/webhook", "", "webhook"},
		{"DELETE", "/api/workers/" + worker + "/webhook", "", "webhook"},
		{"GET", "/api/workers/" + worker + "/webhook", "", "webhook"}, // none is configured
		{"GET", "/api/tasks/none", "", "problem"},
		{"POST", "/api/tasks", `{}`, "problem"},
	} {
		prefer := ""
		if strings.Contains(step.body, "wait 1h") {
			prefer = "Prefer: respond-async"
		}
		r := s.do(t, step.method, step.path, step.body, prefer)
		if (r.status >= http.StatusBadRequest) != (step.shape == "problem") {
			t.Fatalf("%s %s answered %d: %s", step.method, step.path, r.status, r.body)
		}
		shape, value := step.shape, r.value
		if shape == "cancelled" {
			shape, value = "task", r.at("task")
		}
		for _, missing := range lacks(shape, shape, value) {
			t.Errorf("%s %s: %s", step.method, step.path, missing)
		}
	}
	checkDeliveries(t, s, worker)
}

// checkDeliveries checks the fields of webhook bodies.
func checkDeliveries(t *testing.T, s *site, worker string) {
	t.Helper()
	is := is.New(t)
	s.must(t, "PUT", "/api/workers/"+worker+"/webhook", `{"url":"https://a.example/"}`)
	s.run(t, fields{"workerId": worker, "input": "hello"})
	sample, err := s.store.CreateTestDelivery(t.Context(), s.owner.Caller, worker)
	is.NoErr(err)
	due, err := s.store.DueDeliveries(t.Context(), worker, 10)
	is.NoErr(err)
	is.Equal(len(due), 1)
	for _, d := range slices.Concat(due, []store.Delivery{sample}) {
		body, err := s.views().Delivery(t.Context(), d)
		is.NoErr(err)
		var value any
		is.NoErr(json.Unmarshal(body, &value))
		is.Equal(len(lacks("delivery", d.Type, value)), 0)
	}
}
