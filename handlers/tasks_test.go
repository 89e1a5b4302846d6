package handlers_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/storetest"
)

// TestTaskFields checks every field of a task and a turn.
func TestTaskFields(t *testing.T) {
	is, s := onServer(t)
	id := s.newWorker(t, fields{})
	s.run(t, fields{"workerId": id, "taskId": "t", "budget": "low", "input": "\n# Tell me   more\nof it"})
	got := s.must(t, "GET", "/api/tasks/t", "")
	for path, want := range map[string]any{
		"task.id": "t", "task.workerId": id, "task.organizationId": s.owner.OrganizationID, "task.createdByUserId": s.owner.UserID,
		"task.url":    s.url + "/tasks/t?organization=" + s.owner.OrganizationID, // a client chose the id
		"task.status": "completed", "task.title": "Tell me more", "task.triggeredBy": "api", "task.totals.turnCount": 1.0,
		"turns.0.taskId": "t", "turns.0.seq": 0.0, "turns.0.status": "completed", "turns.0.role": "assistant",
		"turns.0.input": "\n# Tell me   more\nof it", "turns.0.structuredOutput": nil, "turns.0.files": nil,
	} {
		is.Equal(got.at(path), want) // the field of that path
	}
	ordertest.AtLeast(is, got.text("task.completedAt"), got.text("turns.0.startedAt")) // completed before it started
	ordertest.AtLeast(is, got.text("turns.0.startedAt"), got.text("task.createdAt"))   // started before it was created
	is.Equal(got.text("turns.0.completedAt"), got.text("task.completedAt"))
	list := s.must(t, "GET", "/api/tasks/t/turns", "")
	is.Equal(list.text("taskId"), "t")
	is.Equal(list.size("items.0.files"), 0)
	is.True(list.at("items.0.files") != nil) // an empty list, in this answer
	is.Equal(encode(s.must(t, "GET", "/api/tasks", "").at("items.0")), encode(got.at("task")))
}

// TestWorkerOnTheFly creates a worker from the input if none is named.
func TestWorkerOnTheFly(t *testing.T) {
	is, s := onServer(t)
	input := "Summarise:\n" + chars(21000)
	r := s.run(t, fields{"input": input})
	made := s.must(t, "GET", "/api/workers/"+r.text("id")+"/template", "")
	is.Equal(made.text("instructions"), string([]rune(input)[:20000])) // truncated to the longest instructions
	is.Equal(made.text("title"), "Summarise:")
	is.Equal(made.text("visibility"), "public")
	is.Equal(s.must(t, "GET", "/api/tasks/"+r.text("metadata.taskId"), "").text("turns.0.input"), input)
}

// TestTaskOfAnotherWorker names a task and a worker that it does not belong to.
func TestTaskOfAnotherWorker(t *testing.T) {
	is, s := onServer(t)
	a, b := s.newWorker(t, fields{}), s.newWorker(t, fields{})
	s.run(t, fields{"workerId": a, "taskId": "t", "input": "x"})
	is.Equal(s.do(t, "POST", "/api/tasks", encode(fields{"workerId": b, "taskId": "t", "input": "x"})).refused(), "400 invalid_request taskId")
	is.Equal(s.run(t, fields{"workerId": a, "taskId": "t", "input": "x"}).text("id"), a)
	is.Equal(s.run(t, fields{"taskId": "t", "input": "x"}).text("id"), a) // the task's own worker
	is.Equal(s.do(t, "POST", "/api/tasks", `{"workerId":"wrk_none","input":"x"}`).refused(), "404 not_found")
	is.Equal(s.do(t, "POST", "/api/tasks", `{"workerId":"wrk_none","taskId":"new","input":"x"}`).refused(), "404 not_found")
	is.Equal(s.do(t, "GET", "/api/tasks/new", "").status, 404)
}

// TestTurnsInOrder queues turns of one task while it runs.
func TestTurnsInOrder(t *testing.T) {
	is, s := onServer(t)
	const n = 6
	for i := range n {
		s.do(t, "POST", "/api/tasks", encode(fields{"taskId": "t", "input": scripted("wait 10ms", fmt.Sprintf("say %d", i))}), "Prefer: respond-async")
	}
	s.run(t, fields{"taskId": "t", "input": scripted("say last")})
	turns := s.must(t, "GET", "/api/tasks/t/turns", "")
	is.Equal(turns.size("items"), n+1)
	for i := range n {
		at := fmt.Sprintf("items.%d.", i)
		is.Equal(turns.at(at+"seq"), float64(i))
		is.Equal(turns.text(at+"outputText"), fmt.Sprint(i))
		next := turns.text(fmt.Sprintf("items.%d.startedAt", i+1))
		ordertest.AtMost(is, turns.text(at+"completedAt"), next) // one turn at a time
	}
	is.Equal(s.must(t, "GET", "/api/tasks/t", "").at("task.totals.turnCount"), float64(n+1))
}

// TestContinue adds a turn to the caller's newest task of the worker.
func TestContinue(t *testing.T) {
	is, s := onServer(t)
	guest, _ := s.member(t, "bob@example.com")
	id := s.newWorker(t, fields{})
	more := func(s *site) string {
		return s.must(t, "POST", "/api/workers/"+id, `{"input":"hello"}`, "Prefer: wait=20").text("metadata.taskId")
	}
	mine := more(s)
	is.Equal(more(s), mine)
	theirs := more(guest)
	is.True(theirs != mine)
	is.Equal(more(s), mine)
	s.run(t, fields{"workerId": id, "taskId": "newer", "input": "x"})
	is.Equal(more(s), "newer")
	s.must(t, "DELETE", "/api/tasks/newer", "")
	is.Equal(more(s), mine) // an archived task gets no turns
	is.Equal(s.must(t, "GET", "/api/tasks/"+mine, "").at("task.totals.turnCount"), 4.0)
}

// TestArchive checks that an archived task is not listed, and still readable.
func TestArchive(t *testing.T) {
	is, s := onServer(t)
	guest, _ := s.member(t, "bob@example.com")
	id := s.newWorker(t, fields{})
	r := guest.run(t, fields{"workerId": id, "taskId": "t", "input": scripted(publishing("a.txt", "kept"), "say done")})
	is.Equal(guest.do(t, "DELETE", "/api/tasks/t", "").refused(), "403 forbidden") // the worker is not theirs
	is.Equal(s.must(t, "DELETE", "/api/tasks/t", "").at("archived"), true)
	is.Equal(s.must(t, "DELETE", "/api/tasks/t", "").at("archived"), true) // a repetition changes nothing
	is.Equal(s.must(t, "GET", "/api/tasks", "").size("items"), 0)
	is.Equal(s.must(t, "GET", "/api/tasks?archived=true", "").size("items"), 1)
	is.Equal(s.must(t, "GET", "/api/tasks/t", "").text("turns.0.outputText"), "done")
	is.Equal(string(s.must(t, "GET", strings.TrimPrefix(r.text("files.0.url"), s.url), "").body), "kept")
	for _, headers := range [][]string{nil, {"Prefer: respond-async"}, {"Idempotency-Key: k"}} {
		refused := s.do(t, "POST", "/api/tasks", `{"taskId":"t","input":"x"}`, headers...)
		is.Equal(refused.refused(), "409 conflict")
		is.Equal(refused.header.Get("x-should-retry"), "false")
	}
}

// TestArchiveWhileRunning checks that a running turn is aborted, unless its client waits for the result. Then
// only the turns behind it are aborted, and the task can still be cancelled.
func TestArchiveWhileRunning(t *testing.T) {
	is, s := onServer(t)
	runs := func() bool { return s.do(t, "GET", "/api/tasks/t", "").text("task.status") == "running" }
	input := encode(fields{"taskId": "t", "input": scripted("wait 1h")})
	waits := s.begin(t, "POST", "/api/tasks", input)
	storetest.Eventually(t, "the task", runs)
	is.Equal(s.do(t, "POST", "/api/tasks", `{"taskId":"t","input":"later"}`, "Prefer: respond-async").status, 202)
	s.must(t, "DELETE", "/api/tasks/t", "")
	is.True(runs())
	s.must(t, "POST", "/api/tasks/t/cancel", "")
	is.Equal(waits().text("incomplete_details.reason"), "aborted")
	is.Equal(s.must(t, "GET", "/api/tasks/t", "").text("turns.1.status"), "aborted")

	is.Equal(s.do(t, "POST", "/api/tasks", strings.ReplaceAll(input, `"t"`, `"u"`), "Prefer: respond-async").status, 202)
	s.must(t, "DELETE", "/api/tasks/u", "")
	is.Equal(s.must(t, "GET", "/api/tasks/u", "").text("task.status"), "aborted")
}

// TestCancel cancels a long turn and the queued ones within a second.
func TestCancel(t *testing.T) {
	is, s := onServer(t)
	input := scripted("say part of it", calling("write_file", "path", "a", "content", "x"), "say more", "wait 1h", "say never")
	waits := s.begin(t, "POST", "/api/tasks", encode(fields{"taskId": "t", "input": input}))
	var worker string
	storetest.Eventually(t, "the task", func() bool {
		worker = s.do(t, "GET", "/api/tasks/t", "").text("task.workerId")
		return worker != ""
	})
	s.open(t, "GET", "/api/workers/"+worker+"?stream=true&taskId=t", "").until(t, `"more"`) // the second step's text
	for range 2 {
		is.Equal(s.do(t, "POST", "/api/tasks", `{"taskId":"t","input":"later"}`, "Prefer: respond-async").status, 202)
	}
	begun := time.Now()
	got := s.must(t, "POST", "/api/tasks/t/cancel", "")
	ordertest.Below(is, time.Since(begun), 20*time.Second) // the promise is one second; a busy machine may take longer
	is.Equal(got.text("task.status"), "aborted")
	is.True(got.at("task.completedAt") != nil)
	waited := waits()
	is.Equal(waited.status, http.StatusOK)
	is.Equal(waited.text("metadata.taskStatus"), "aborted") // waiting clients see the abort
	is.Equal(waited.text("incomplete_details.reason"), "aborted")
	is.Equal(waited.text("error.code"), "aborted")
	is.Equal(waited.at("running"), false)
	turns := s.must(t, "GET", "/api/tasks/t", "")
	for i := range 3 {
		is.Equal(turns.text(fmt.Sprintf("turns.%d.status", i)), "aborted")
	}
	is.True(strings.Contains(turns.text("turns.0.outputText"), "more")) // the output so far is kept
	is.Equal(s.must(t, "POST", "/api/tasks/t/cancel", "").text("task.status"), "aborted")
	is.Equal(s.must(t, "POST", "/api/tasks/t/cancel", `{"a":1}`).text("task.status"), "aborted")
	next := s.run(t, fields{"taskId": "t", "input": scripted("say goes on")})
	is.Equal(next.text("output_text"), "goes on")
	is.Equal(s.must(t, "POST", "/api/tasks/t/cancel", "").text("task.status"), "completed") // an ended task does not change
}

// TestCancelWaiting aborts a turn that has not started, and so has no model.
func TestCancelWaiting(t *testing.T) {
	is, s := onServer(t, idle)
	r := s.do(t, "POST", "/api/tasks", `{"taskId":"t","input":"x"}`, "Prefer: respond-async")
	is.Equal(s.must(t, "POST", "/api/tasks/t/cancel", "").text("task.status"), "aborted")
	is.Equal(s.must(t, "GET", "/api/workers/"+r.text("id"), "").at("metadata.model"), nil)
}

// TestListTasks combines all filters.
func TestListTasks(t *testing.T) {
	now := newClock()
	is, s := onServer(t, func(set *settings) { set.Store.Now = now.Now; set.Runner.Concurrency = 1 })
	type listed struct {
		id, worker, status, trigger string
		at                          time.Time
	}
	var all []listed
	workers := []string{s.newWorker(t, fields{}), s.newWorker(t, fields{})}
	for i, worker := range []int{0, 1, 0, 1, 0, 1} {
		now.advance(time.Minute)
		id := fmt.Sprintf("t%d", i)
		input, status := scripted("say done"), "completed"
		if i%3 == 0 {
			input, status = scripted("fail 400 broken"), "error"
		}
		trigger := people.TriggerAPI
		if i >= 4 {
			trigger = people.TriggerEmail
		}
		caller := s.owner.Caller
		caller.Trigger = trigger
		accepted, err := s.store.CreateTurn(t.Context(), store.NewTurn{Caller: caller, WorkerID: workers[worker], TaskID: id, Input: input, Budget: store.BudgetLow,
			Title: fmt.Sprintf("Task %d 100%%_", i)})
		is.New(t).NoErr(err)
		s.runner.Wake()
		is.New(t).NoErr(s.runner.Wait(t.Context(), accepted.Turn.ID))
		all = append(all, listed{id, workers[worker], status, string(trigger), now.Now()})
	}
	stamp := func(i int) string { return all[i].at.Format(time.RFC3339) }
	for _, worker := range []string{"", workers[0], workers[1]} {
		for _, status := range []string{"", "completed", "error", "pending"} {
			for _, trigger := range []string{"", "api", "email", "schedule"} {
				for _, span := range [][2]int{{-1, -1}, {1, -1}, {-1, 4}, {0, 5}} {
					q, want := url.Values{}, []string{}
					set := func(name, value string) {
						if value != "" {
							q.Set(name, value)
						}
					}
					set("workerId", worker)
					set("status", status)
					set("triggeredBy", trigger)
					for i, name := range []string{"createdAfter", "createdBefore"} {
						if span[i] >= 0 {
							q.Set(name, stamp(span[i]))
						}
					}
					for i, task := range slices.Backward(all) {
						if (worker == "" || task.worker == worker) && (status == "" || task.status == status) && (trigger == "" || task.trigger == trigger) &&
							(span[0] < 0 || i > span[0]) && (span[1] < 0 || i < span[1]) {
							want = append(want, task.id)
						}
					}
					t.Run(q.Encode(), func(t *testing.T) {
						is := is.New(t)
						is.Equal(strings.Join(s.taskIDs(t, q, 2), " "), strings.Join(want, " "))
					})
				}
			}
		}
	}
	for query, want := range map[string]string{
		"q=TASK+3": "t3", "q=100%25_": "t5 t4 t3 t2 t1 t0", "q=nothing": "", "archived=false": "t5 t4 t3 t2 t1 t0", "archived=true": "",
		"createdAfter=" + strings.Replace(all[3].at.In(time.FixedZone("", 7200)).Format(time.RFC3339), "+", "%2B", 1): "t5 t4",
		"createdAfter=" + all[3].at.In(time.FixedZone("", 7200)).Format(time.RFC3339):                                 "t5 t4", // the + not escaped
		"createdBefore=0001-01-02T00:00:00Z": "", "createdAfter=9999-12-31T23:59:59Z": "",
	} {
		t.Run(query, func(t *testing.T) {
			is := is.New(t)
			q, err := url.ParseQuery(query)
			is.NoErr(err)
			is.Equal(strings.Join(s.taskIDs(t, q, 100), " "), want)
		})
	}
	is.Equal(s.do(t, "GET", "/api/tasks?workerId=wrk_none", "").refused(), "404 not_found")
	is.Equal(s.stranger(t).do(t, "GET", "/api/tasks?workerId="+workers[0], "").refused(), "403 forbidden")
}

// taskIDs lists tasks page by page.
func (s *site) taskIDs(t testing.TB, query url.Values, limit int) []string {
	t.Helper()
	ids := []string{}
	query.Set("limit", fmt.Sprint(limit))
	for {
		page := s.must(t, "GET", "/api/tasks?"+query.Encode(), "")
		if page.size("items") > limit {
			t.Errorf("a page has %d items", page.size("items"))
		}
		for i := range page.size("items") {
			ids = append(ids, page.text(fmt.Sprintf("items.%d.id", i)))
		}
		next := page.text("nextCursor")
		if next == "" {
			return ids
		}
		query.Set("cursor", next)
	}
}

// TestPagingWhileTasksArrive adds tasks between two pages. No task is shown twice, and no earlier one
// is missed.
func TestPagingWhileTasksArrive(t *testing.T) {
	is, s := onServer(t, idle)
	add := func(id string) {
		s.do(t, "POST", "/api/tasks", encode(fields{"taskId": id, "input": "x"}), "Prefer: respond-async")
	}
	for i := range 4 {
		add(fmt.Sprint(i))
	}
	first := s.must(t, "GET", "/api/tasks?limit=2", "")
	add("new")
	rest := s.must(t, "GET", "/api/tasks?limit=2&cursor="+first.text("nextCursor"), "")
	is.Equal(rest.text("items.0.id")+rest.text("items.1.id"), "10")
	is.Equal(rest.at("nextCursor"), nil) // there is no further page
}
