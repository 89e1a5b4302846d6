package handlers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

// TestRunView checks a run in each of its states.
func TestRunView(t *testing.T) {
	_, s := onServer(t, impatient)
	for name, tt := range map[string]struct {
		input string
		want  fields
	}{
		"completed": {scripted("think hm", "say hello", "say world", "usage 1000 200"), fields{"status": "completed", "running": false, "error": nil, "incomplete_details": nil,
			"object": "worker", "output_text": "hello\nworld", "output.0.content.0.text": "hello\nworld", "output.0.content.0.type": "output_text", "output.0.role": "assistant",
			"output.0.status": "completed", "output.0.type": "message", "structured_output": nil, "metadata.taskStatus": "completed", "metadata.triggeredBy": "api",
			"metadata.budget": "standard", "metadata.model": "offline", "usage.inputTokens": 1000.0, "usage.outputTokens": 200.0, "usage.totalTokens": 1200.0, "usage.steps": 1.0}},
		"answer after the last call": {scripted("say before", calling("list_files"), "say after"), fields{"output_text": "after", "usage.steps": 2.0}},
		"nothing said":               {scripted(calling("list_files"), `say `), fields{"status": "completed", "output_text": "", "error": nil}},
		"failed": {scripted("say part", calling("list_files"), "fail 400 the model is broken"), fields{"status": "completed", "running": false, "error.code": "400",
			"error.message": "the model is broken", "error.retryable": false, "incomplete_details": nil, "metadata.taskStatus": "error"}},
		"failed, retryable": {scripted("fail 503 overloaded"), fields{"error.code": "503", "error.retryable": true, "metadata.taskStatus": "error"}},
		"script broken":     {scripted("say fine", "sing"), fields{"error.code": "script", "error.retryable": false, "metadata.taskStatus": "error"}},
		"tool unknown":      {scripted("tool no_such_tool {}", "say {{last}}"), fields{"status": "completed", "error": nil, "metadata.taskStatus": "completed"}},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			r := s.run(t, fields{"input": tt.input})
			for path, want := range tt.want {
				is.Equal(r.at(path), want) // the field of that path
			}
			is.Equal(r.text("url"), s.url+"/workers/"+r.text("id"))
			is.Equal(r.at("created_at").(float64), float64(int64(r.at("created_at").(float64))))
			ordertest.Below(is, time.Since(time.Unix(int64(r.at("created_at").(float64)), 0)), time.Minute)
			again := s.must(t, "GET", "/api/workers/"+r.text("id"), "")
			is.Equal(string(again.body), string(r.body)) // a later read returns the same as the wait
		})
	}
}

// TestRunCosts checks that the figures of a run are never all zero, and the same in every answer.
func TestRunCosts(t *testing.T) {
	is, s := onServer(t)
	r := s.run(t, fields{"taskId": "t", "input": scripted("usage 1000 200", "say hello")})
	cost := r.at("usage.costUsd").(float64)
	ordertest.Above(is, cost, 0) // the turn cost nothing
	is.Equal(r.at("costs.modelCostUsd"), cost)
	is.Equal(r.at("costs.toolCostUsd"), 0.0)
	credits := r.at("usage.credits").(float64)
	ordertest.Above(is, credits/cost, 99.9)  // a credit is a hundredth of a dollar
	ordertest.Below(is, credits/cost, 100.1) // a credit is a hundredth of a dollar
	task := s.must(t, "GET", "/api/tasks/t", "")
	is.Equal(task.at("task.totals.credits"), credits)
	is.Equal(task.at("turns.0.credits"), credits)
	is.Equal(task.at("turns.0.inputTokens"), 1000.0)
	is.Equal(task.at("turns.0.outputTokens"), 200.0)
	is.Equal(task.at("task.totals.durationMs"), task.at("turns.0.durationMs"))
	next := s.run(t, fields{"taskId": "t", "input": scripted("usage 1000 200", "say again")})
	is.Equal(next.at("usage.credits"), credits) // of the last turn
	total := s.must(t, "GET", "/api/tasks/t", "").at("task.totals.credits").(float64)
	ordertest.Above(is, total, 1.99*credits) // of all turns
	ordertest.Below(is, total, 2.01*credits) // of all turns
}

// TestPendingAndRunning checks a worker that never ran, one that is pending and one that is
// running.
func TestPendingAndRunning(t *testing.T) {
	is, s := onServer(t, func(set *settings) { set.Runner.Concurrency = 1 })
	id := s.newWorker(t, fields{})
	never := s.must(t, "GET", "/api/workers/"+id, "")
	is.Equal(never.text("status"), "pending")
	is.Equal(never.at("running"), false)
	is.Equal(never.size("messages"), 0)
	is.Equal(never.at("metadata.taskId"), nil)
	is.Equal(len(never.at("metadata").(map[string]any)), 7) // all null

	other := s.do(t, "POST", "/api/tasks", encode(fields{"input": scripted("say part", calling("list_files"), "wait 1h")}), "Prefer: respond-async")
	storetest.Eventually(t, "the first task's first step", func() bool {
		r := s.must(t, "GET", "/api/workers/"+other.text("id"), "")
		return r.text("status") == "running" && r.size("messages.1.parts") > 1
	})
	working := s.must(t, "GET", "/api/workers/"+other.text("id"), "")
	is.Equal(working.at("running"), true)
	is.Equal(working.text("metadata.taskStatus"), "running")
	is.Equal(working.at("output_text"), "") // there is no answer yet
	is.Equal(working.text("messages.1.parts.1.text"), "part")
	waits := s.do(t, "POST", "/api/tasks", encode(fields{"workerId": id, "input": "x"}), "Prefer: respond-async")
	is.Equal(waits.text("status"), "pending")
	is.Equal(waits.at("running"), true)
	is.Equal(waits.size("messages"), 1)
	task := s.must(t, "GET", "/api/tasks/"+waits.text("metadata.taskId"), "")
	is.Equal(task.at("task.completedAt"), nil)
	is.Equal(task.text("turns.0.startedAt"), task.text("task.createdAt")) // the time of its acceptance, until it runs
}

// TestLimits exceeds each limit of a budget, and checks that the answer names it.
func TestLimits(t *testing.T) {
	_, s := onServer(t, func(set *settings) {
		set.Runner.Budgets = map[store.Budget]runner.Limits{
			store.BudgetLow:       {Credits: 1},
			store.BudgetStandard:  {Steps: 2},
			store.BudgetHigh:      {Time: 100 * time.Millisecond},
			store.BudgetUnlimited: {},
		}
	})
	files := strings.TrimSuffix(strings.Repeat(calling("list_files")+"\n", 5), "\n")
	for name, tt := range map[string]struct{ budget, input, limit string }{
		"credits": {"low", scripted("usage 100000000 0", files), "credits"},
		"steps":   {"standard", scripted(files), "steps"},
		"time":    {"high", scripted("wait 300ms", calling("list_files"), "say done"), "time"},
		"none":    {"unlimited", scripted(files, "say done"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			r := s.run(t, fields{"budget": tt.budget, "input": tt.input})
			is.Equal(r.at("error"), nil)
			is.Equal(r.text("metadata.taskStatus"), "completed")
			is.Equal(r.text("incomplete_details.limit"), tt.limit)
			if tt.limit != "" {
				is.Equal(r.text("incomplete_details.reason"), "budget_exhausted")
			}
		})
	}
}

// TestStructuredOutput checks answers that match the schema, and some that never do.
func TestStructuredOutput(t *testing.T) {
	is, s := onServer(t)
	id := s.newWorker(t, fields{"outputSchema": fields{"type": "object", "required": []string{"n"}, "properties": fields{"n": fields{"type": "integer"}}}})
	for name, tt := range map[string]struct {
		lines []string
		want  any
		code  string
	}{
		"meets it":        {[]string{`json {"n":1}`}, map[string]any{"n": 1.0}, ""},
		"repaired":        {[]string{`json {"n":"one"}`, `json {"n":2}`}, map[string]any{"n": 2.0}, ""},
		"never":           {[]string{"repeat 10", `json {"n":"one"}`}, nil, "schema_mismatch"},
		"after a call":    {[]string{calling("list_files"), `json {"n":3}`}, map[string]any{"n": 3.0}, ""},
		"a number beyond": {[]string{`json {"n":12345678901234567890123}`}, map[string]any{"n": 12345678901234567890123.0}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			r := s.run(t, fields{"workerId": id, "input": scripted(tt.lines...)})
			is.True(sameJSON(r.at("structured_output"), tt.want))
			is.Equal(r.text("error.code"), tt.code)
			is.True(r.text("output_text") != "") // the text is kept
			turn := s.must(t, "GET", "/api/tasks/"+r.text("metadata.taskId"), "")
			is.True(sameJSON(turn.at("turns.0.structuredOutput"), tt.want))
		})
	}
	is.True(s.run(t, fields{"workerId": id, "input": "plain words"}).at("structured_output.n") != nil) // also without a script
}

// TestMessages checks a task's messages.
func TestMessages(t *testing.T) {
	is, s := onServer(t)
	input := scripted("think hm", "say first", calling("write_file", "path", "a.txt", "content", "abc"), calling("publish_file", "path", "a.txt"),
		calling("read_file", "path", "none"), "say last")
	r := s.run(t, fields{"taskId": "t", "input": input})
	s.run(t, fields{"taskId": "t", "input": "thanks"})
	r = s.must(t, "GET", "/api/workers/"+r.text("id")+"?taskId=t", "")
	is.Equal(r.size("messages"), 4)
	for i, role := range []string{"user", "assistant", "user", "assistant"} {
		at := fmt.Sprintf("messages.%d.", i)
		is.Equal(r.text(at+"role"), role)
		is.Equal(r.text(at+"metadata.taskId"), "t")
		is.Equal(r.at(at+"metadata.seq"), float64(i/2))
	}
	is.Equal(r.text("messages.0.parts.0.text"), input)
	is.Equal(r.text("messages.2.parts.0.text"), "thanks")
	var got []string
	for i := range r.size("messages.1.parts") {
		at := fmt.Sprintf("messages.1.parts.%d.", i)
		got = append(got, strings.TrimSpace(strings.Join([]string{r.text(at + "type"), r.text(at + "text"), r.text(at + "toolName"), r.text(at + "state"), r.text(at + "mediaType")}, " ")))
	}
	is.Equal(strings.Join(got, "\n"), strings.Join([]string{
		"step-start", "reasoning hm  done", "text first  done", "dynamic-tool  write_file output-available",
		"step-start", "dynamic-tool  publish_file output-available",
		"step-start", "dynamic-tool  read_file output-error",
		"step-start", "text last  done", "file    text/plain"}, "\n"))
}

// TestFilesOfRun lists the newest version of each path of the task.
func TestFilesOfRun(t *testing.T) {
	is, s := onServer(t)
	r := s.run(t, fields{"taskId": "t", "input": scripted(publishing("a.txt", "1"), publishing("b.txt", "22"), publishing("a.txt", "333"))})
	is.Equal(r.size("files"), 2)
	r = s.run(t, fields{"taskId": "t", "input": scripted(publishing("b.txt", "4444"))})
	sizes := map[string]any{}
	for i := range r.size("files") {
		at := fmt.Sprintf("files.%d.", i)
		sizes[r.text(at+"filename")] = r.at(at + "size")
		is.Equal(r.text(at+"mediaType"), "text/plain")
	}
	is.Equal(encode(sizes), `{"a.txt":3,"b.txt":4}`) // of the whole task
	turns := s.must(t, "GET", "/api/tasks/t/turns", "")
	is.Equal(turns.size("items.1.files"), 1) // the files of that turn
	other := s.run(t, fields{"workerId": r.text("id"), "input": scripted("say x")})
	is.Equal(other.size("files"), 0) // another task of the worker
}

// TestTaskOfWorker checks the most recent task and a named one.
func TestTaskOfWorker(t *testing.T) {
	is, s := onServer(t)
	id := s.newWorker(t, fields{})
	for _, task := range []string{"one", "two"} {
		s.run(t, fields{"workerId": id, "taskId": task, "input": scripted("say " + task)})
	}
	is.Equal(s.must(t, "GET", "/api/workers/"+id, "").text("output_text"), "two")
	is.Equal(s.must(t, "GET", "/api/workers/"+id+"?taskId=one", "").text("output_text"), "one")
	is.Equal(s.must(t, "GET", "/api/workers/"+id+"?taskId=", "").text("output_text"), "two")
	other := s.run(t, fields{"taskId": "elsewhere", "input": "x"})
	is.True(other.text("id") != id) // the other run has the same ID
	is.Equal(s.do(t, "GET", "/api/workers/"+id+"?taskId=elsewhere", "").refused(), "404 not_found")
	s.must(t, "DELETE", "/api/tasks/two", "")
	is.Equal(s.must(t, "GET", "/api/workers/"+id, "").text("output_text"), "one") // archived tasks do not count
	is.Equal(s.must(t, "GET", "/api/workers/"+id+"?taskId=two", "").text("output_text"), "two")
}
