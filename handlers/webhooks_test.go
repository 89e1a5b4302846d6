package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

// An outside replaces the sender of webhooks, and stores the deliveries.
type outside struct {
	store func() *store.Store

	mu   sync.Mutex
	sent []store.Delivery

	begun, finish chan struct{} // if set, a delivery reports its start, and waits
}

func (o *outside) CheckURL(url string) error {
	if !strings.HasPrefix(url, "https://") {
		return errors.New("must begin with https://")
	}
	return nil
}

func (o *outside) Send(ctx context.Context, d store.Delivery) (store.Execution, error) {
	if o.store == nil {
		return store.Execution{}, db.Errorf(db.Busy, "nobody is there")
	}
	if o.begun != nil {
		o.begun <- struct{}{}
		<-o.finish
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sent = append(o.sent, d)
	return o.store().Effects.RecordAttempt(ctx, d, store.Attempt{Success: true, ResponseStatus: 200, Manual: true,
		StartedAt: time.Now()})
}

// hooked starts a site with an outside.
func hooked(t testing.TB, opts ...option) (*site, *outside) {
	t.Helper()
	out := &outside{}
	s := newServer(t, append([]option{func(set *settings) { set.sender = out }}, opts...)...)
	out.store = func() *store.Store { return s.store }
	return s, out
}

func TestWebhook(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s, _ := hooked(t, idle)
	worker := s.newWorker(t, fields{})
	path := "/api/workers/" + worker + "/webhook"
	none := map[string]any{"token": nil, "url": nil, "signingSecret": nil}
	is.Equal(s.must(t, "GET", path, "").value, none)
	is.Equal(s.must(t, "DELETE", path, "").value, none)
	is.Equal(s.must(t, "PUT", path, `{"url":null}`).value, none)
	for _, what := range []string{"/regenerate-token", "/test"} {
		r := s.do(t, "POST", path+what, "")
		is.Equal(r.refused(), "409 conflict")
		is.Equal(r.header.Get("x-should-retry"), "false")
	}

	first := s.must(t, "PUT", path, `{"url":"https://a.example/"}`)
	is.Equal(first.text("url"), "https://a.example/")
	second := s.must(t, "PUT", path, `{"url":"https://b.example/"}`)
	is.Equal(second.text("url"), "https://b.example/")
	is.Equal(second.text("token"), first.text("token"))
	is.Equal(second.text("signingSecret"), first.text("signingSecret"))
	is.True(sameJSON(s.must(t, "GET", path, "").value, second.value))
	renewed := s.must(t, "POST", path+"/regenerate-token", "", "Idempotency-Key: k")
	is.Equal(renewed.text("url"), "https://b.example/")
	is.True(renewed.text("token") != first.text("token"))                 // the renewed webhook has the old token
	is.True(renewed.text("signingSecret") != first.text("signingSecret")) // the renewed webhook has the old secret
	again := s.must(t, "POST", path+"/regenerate-token", "", "Idempotency-Key: k")
	is.True(sameJSON(again.value, renewed.value))
	is.Equal(again.header.Get("Idempotency-Replayed"), "true")
	is.True(sameJSON(s.must(t, "DELETE", path, "").value, renewed.value)) // as it was
	is.Equal(s.must(t, "GET", path, "").value, none)
}

func TestPutWebhookRefused(t *testing.T) {
	t.Parallel()
	s, _ := hooked(t, idle)
	path := "/api/workers/" + s.newWorker(t, fields{}) + "/webhook"
	for body, want := range map[string]string{
		`{}`:                    "400 invalid_request url",
		`{"url":""}`:            "400 invalid_request url",
		`{"url":5}`:             "400 invalid_request url",
		`{"url":"http://x/"}`:   "400 invalid_request url",
		`[]`:                    "400 invalid_request",
		`{"url":"https://x/"}x`: "400 invalid_request",
	} {
		t.Run(body, func(t *testing.T) {
			is := is.New(t)
			is.Equal(s.do(t, "PUT", path, body).refused(), want)
			is.Equal(s.must(t, "GET", path, "").at("url"), nil)
		})
	}
}

func TestWebhookTestAndRedeliver(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s, out := hooked(t)
	worker := s.newWorker(t, fields{})
	path := "/api/workers/" + worker + "/webhook"
	s.must(t, "PUT", path, `{"url":"https://a.example/"}`)
	sample := s.must(t, "POST", path+"/test", "", "Idempotency-Key: t")
	is.Equal(sample.text("requestStatus"), "success")
	is.Equal(sample.at("taskId"), nil)
	is.Equal(sample.text("workerId"), worker)
	is.Equal(s.must(t, "POST", path+"/test", "", "Idempotency-Key: t").text("id"), sample.text("id"))
	is.Equal(len(out.sent), 1)
	again := s.must(t, "POST", path+"/executions/"+sample.text("id")+"/redeliver", "")
	is.True(again.text("id") != sample.text("id")) // the second test is the first delivery
	is.Equal(out.sent[1].ID, out.sent[0].ID)       // the same webhook-id
	is.Equal(s.do(t, "POST", path+"/executions/whe_none/redeliver", "").refused(), "404 not_found")
	other := "/api/workers/" + s.newWorker(t, fields{}) + "/webhook"
	s.must(t, "PUT", other, `{"url":"https://a.example/"}`)
	is.Equal(s.do(t, "POST", other+"/executions/"+sample.text("id")+"/redeliver", "").refused(), "404 not_found")
	s.must(t, "DELETE", path, "")
	is.Equal(s.do(t, "POST", path+"/executions/"+sample.text("id")+"/redeliver", "").refused(), "409 conflict")
}

// TestReplayOfADeliveryNeedsNoShare repeats a request while another one has the only share. The
// repetition sends nothing, so it gets the stored answer.
func TestReplayOfADeliveryNeedsNoShare(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s, out := hooked(t, func(set *settings) { set.API.Limits.Sends = 1 })
	path := "/api/workers/" + s.newWorker(t, fields{}) + "/webhook"
	s.must(t, "PUT", path, `{"url":"https://a.example/"}`)
	sample := s.must(t, "POST", path+"/test", "", "Idempotency-Key: t")
	redeliver := path + "/executions/" + sample.text("id") + "/redeliver"
	again := s.must(t, "POST", redeliver, "", "Idempotency-Key: r")

	out.begun, out.finish = make(chan struct{}), make(chan struct{})
	finish := sync.OnceFunc(func() { close(out.finish) })
	defer finish() // after a failure, the delivery must not wait
	held := make(chan int, 1)
	go func() { held <- s.do(t, "POST", path+"/test", "").status }()
	<-out.begun
	is.Equal(s.do(t, "POST", path+"/test", "").status, 503) // the share is in use
	for _, tt := range []struct {
		path, key string
		first     response
	}{{path + "/test", "t", sample}, {redeliver, "r", again}} {
		replay := s.do(t, "POST", tt.path, "", "Idempotency-Key: "+tt.key)
		is.Equal(replay.status, 200)
		is.Equal(replay.header.Get("Idempotency-Replayed"), "true")
		is.Equal(replay.text("id"), tt.first.text("id"))
	}
	finish()
	is.Equal(<-held, 200)
	is.Equal(len(out.sent), 3)
}

func TestExecutions(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s, _ := hooked(t, idle)
	path := "/api/workers/" + s.newWorker(t, fields{}) + "/webhook"
	empty := s.must(t, "GET", path+"/executions", "")
	is.Equal(encode(empty.value), `{"logs":[],"page":1,"pageCount":0,"totalCount":0}`)
	s.must(t, "PUT", path, `{"url":"https://a.example/"}`)
	newest := ""
	for range 101 {
		newest = s.must(t, "POST", path+"/test", "").text("id")
	}
	seen := map[string]bool{}
	for page, want := range map[int]int{1: 50, 2: 50, 3: 1, 4: 0} {
		r := s.must(t, "GET", fmt.Sprintf("%s/executions?page=%d", path, page), "")
		is.Equal(r.size("logs"), want)
		is.Equal(r.at("page"), float64(page))
		is.Equal(r.at("pageCount"), float64(3))
		is.Equal(r.at("totalCount"), float64(101))
		for i := range want {
			seen[r.text(fmt.Sprintf("logs.%d.id", i))] = true
		}
	}
	is.Equal(len(seen), 101)
	is.Equal(s.must(t, "GET", path+"/executions", "").text("logs.0.id"), newest)
	for _, page := range []string{"0", "-1", "1.5", "one", "99999999999999999999"} {
		is.Equal(s.do(t, "GET", path+"/executions?page="+page, "").refused(), "400 invalid_request page")
	}
}

// delivery returns the newest due delivery of a worker, and its body after a check against
// openapi.yaml.
func (s *site) delivery(t testing.TB, worker string) (store.Delivery, response) {
	t.Helper()
	due, err := s.store.Effects.DueDeliveries(t.Context(), worker, 100)
	if err != nil || len(due) == 0 {
		t.Fatalf("%d deliveries, %v", len(due), err)
	}
	d := due[len(due)-1]
	return d, s.deliveryBody(t, d)
}

func (s *site) deliveryBody(t testing.TB, d store.Delivery) response {
	t.Helper()
	body, err := s.views().Delivery(t.Context(), d)
	is.New(t).NoErr(err)
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(body)))
	is.New(t).NoErr(err)
	if err := s.validator.validate("#/components/schemas/WebhookDelivery", value); err != nil {
		t.Errorf("the body of a delivery is not as openapi.yaml says: %v\n%.2000s", err, body)
	}
	return response{body: body, value: value}
}

func TestDeliveryBody(t *testing.T) {
	t.Parallel()
	s, _ := hooked(t)
	for name, tt := range map[string]struct{ input, kind, status string }{
		"completed": {scripted("say Done."), "task.completed", "completed"},
		"failed":    {scripted("say Half.", "fail 400 No."), "task.failed", "error"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			worker := s.newWorker(t, fields{})
			s.must(t, "PUT", "/api/workers/"+worker+"/webhook", `{"url":"https://a.example/"}`)
			run := s.run(t, fields{"workerId": worker, "input": tt.input})
			d, body := s.delivery(t, worker)
			is.Equal(body.text("id"), d.ID)
			is.Equal(body.text("type"), tt.kind)
			is.Equal(body.text("task.id"), run.text("metadata.taskId"))
			is.Equal(body.text("task.status"), tt.status)
			is.Equal(body.text("turn.id"), run.text("metadata.turnId"))
			is.Equal(body.text("turn.status"), tt.status)
			is.Equal(body.text("worker.id"), worker)
			is.True(sameJSON(body.at("worker"), run.value)) // the run view
			is.Equal(body.at("truncated"), nil)
			is.Equal(body.at("test"), nil)
		})
	}
	is := is.New(t)
	worker := s.newWorker(t, fields{})
	s.must(t, "PUT", "/api/workers/"+worker+"/webhook", `{"url":"https://a.example/"}`)
	d, err := s.store.Effects.CreateTestDelivery(t.Context(), s.owner.Caller, worker)
	is.NoErr(err)
	body := s.deliveryBody(t, d)
	is.Equal(body.at("test"), true)
	is.Equal(body.text("type"), "task.completed")
	is.Equal(body.text("worker.id"), worker)
	is.True(sameJSON(s.deliveryBody(t, d).value, body.value)) // the same on every attempt
}

func TestDeliveryBodyIsBounded(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s, _ := hooked(t, idle)
	is.NoErr(s.store.StartRunner(t.Context(), "r", time.Hour))
	worker := s.newWorker(t, fields{})
	s.must(t, "PUT", "/api/workers/"+worker+"/webhook", `{"url":"https://a.example/"}`)
	finish := func(input, output string) response {
		t.Helper()
		is.Equal(s.do(t, "POST", "/api/tasks", encode(fields{"workerId": worker, "input": input}), "Prefer: respond-async").status, 202)
		claims, err := s.store.ClaimTurns(t.Context(), "r", 1, 1)
		is.NoErr(err)
		step := store.Step{Parts: []store.Part{{Type: store.PartText, Text: output}}, Finish: "stop"}
		_, err = s.store.FinishTurn(t.Context(), claims[0], &step, store.Outcome{Status: store.Completed, OutputText: output})
		is.NoErr(err)
		_, body := s.delivery(t, worker)
		return body
	}
	body := finish("short", strings.Repeat("word ", 60_000))
	is.Equal(body.at("truncated"), true)
	ordertest.AtMost(is, len(body.body), 256<<10) // the body is larger than 256 KiB
	is.Equal(body.text("turn.outputText"), "")
	is.Equal(body.text("worker.output_text"), "")
	is.Equal(body.size("worker.messages"), 0)
	is.Equal(body.text("turn.input"), "short") // the input is complete
	is.Equal(body.text("turn.status"), "completed")

	body = finish(strings.Repeat("\"\u0001é", 60_000), "short")
	is.Equal(body.at("truncated"), true)
	ordertest.AtMost(is, len(body.body), 256<<10) // the body is larger than 256 KiB
	is.Equal(len([]rune(body.text("turn.input"))), 10_000)

	body = finish("short", "short")
	is.Equal(body.at("truncated"), nil)
	is.Equal(body.text("worker.output_text"), "short")
}

// TestDeletedAndArchivedAreSilent deletes a worker and archives a task while turns run, wait for an
// answer and wait in the queue. All of them are aborted when the request is answered, and none is
// delivered. Without the deletion, the owner can cancel them.
func TestDeletedAndArchivedAreSilent(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ method, path, status string }{
		"deleted":  {"DELETE", "/api/workers/WORKER", "404 not_found"},
		"archived": {"DELETE", "/api/tasks/TASK", "409 conflict"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			s, _ := hooked(t)
			worker := s.newWorker(t, fields{})
			hook := "/api/workers/" + worker + "/webhook"
			s.must(t, "PUT", hook, `{"url":"https://a.example/"}`)
			begin := func(task, script string) {
				body := encode(fields{"workerId": worker, "taskId": task, "input": script})
				is.Equal(s.do(t, "POST", "/api/tasks", body, "Prefer: respond-async").status, 202)
			}
			begin("runs", scripted("wait 1h"))
			begin("runs", scripted("say later"))
			begin("asks", scripted(`tool ask_user {"question": "Which?"}`))
			storetest.Eventually(t, "the question", func() bool {
				due, err := s.store.Effects.DueDeliveries(t.Context(), worker, 9)
				return err == nil && len(due) == 1
			})
			d, _ := s.delivery(t, worker)
			e, err := s.store.Effects.RecordAttempt(t.Context(), d, store.Attempt{ErrorMessage: "no", Retry: time.Now()})
			is.NoErr(err)
			for _, task := range []string{"runs", "asks"} {
				s.must(t, tt.method, strings.NewReplacer("WORKER", worker, "TASK", task).Replace(tt.path), "")
				if name == "deleted" {
					break
				}
			}
			for _, task := range []string{"runs", "asks"} {
				is.Equal(s.must(t, "GET", "/api/tasks/"+task, "").text("task.status"), "aborted")
				s.must(t, "POST", "/api/tasks/"+task+"/cancel", "") // there is nothing to cancel, and that is no error
			}
			due, err := s.store.Effects.DueDeliveries(t.Context(), worker, 9)
			is.NoErr(err)
			is.Equal(len(due), 0)
			is.Equal(s.do(t, "POST", hook+"/executions/"+e.ID+"/redeliver", "").refused(), tt.status)
		})
	}
}

// TestCancelAfterDeletion checks that a turn that is still running after the deletion of its worker can
// be cancelled by the same people as before, and by nobody else.
func TestCancelAfterDeletion(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := newServer(t)
	worker := s.newWorker(t, fields{})
	body := encode(fields{"workerId": worker, "taskId": "runs", "input": scripted("wait 1h")})
	is.Equal(s.do(t, "POST", "/api/tasks", body, "Prefer: respond-async").status, 202)
	is.NoErr(s.store.DeleteWorker(t.Context(), s.owner.Caller, worker)) // no runner learns of it
	is.Equal(s.must(t, "POST", "/api/tasks/runs/cancel", "").text("task.status"), "aborted")
}

// TestWaitingDelivery checks that a wait for a person is delivered once, and that the body shows
// the moment at which the wait began, also after the end.
func TestWaitingDelivery(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s, _ := hooked(t)
	worker := s.newWorker(t, fields{"approvalTools": []string{"write_file"}})
	s.must(t, "PUT", "/api/workers/"+worker+"/webhook", `{"url":"https://a.example/"}`)
	s.do(t, "POST", "/api/tasks", encode(fields{"workerId": worker, "taskId": "waits",
		"input": scripted(`tool ask_user {"question": "Which?", "choices": ["a"]}`, `tool write_file {"path": "a.txt", "content": "x"}`, "say Done.")}), "Prefer: respond-async")
	open := func() response { return s.must(t, "GET", "/api/approvals", "") }
	// The question is visible before the turn is suspended; the delivery is created with the
	// suspension.
	waits := func(what string, deliveries int) {
		storetest.Eventually(t, what, func() bool {
			due, err := s.store.Effects.DueDeliveries(t.Context(), worker, 100)
			return err == nil && len(due) == deliveries && open().size("items") == 1
		})
	}
	waits("the question", 1)
	asked, body := s.delivery(t, worker)
	is.Equal([]any{body.text("type"), body.text("task.status"), body.text("turn.status"), body.at("worker.running")}, []any{"task.waiting", "running", "running", true})
	is.Equal([]any{body.text("task.waitingFor.for"), body.text("turn.waitingFor.for"), body.text("worker.waitingFor.for")}, []any{"person", "person", "person"})
	is.Equal([]any{body.size("waiting.approvals"), body.text("waiting.approvals.0.question"), body.text("waiting.approvals.0.id")}, []any{1, "Which?", open().text("items.0.id")})
	s.must(t, "POST", "/api/tasks/waits/approvals/"+open().text("items.0.id"), `{"answer":"a"}`)
	waits("the approval", 2)
	is.Equal(open().text("items.0.kind"), "approval")
	second, next := s.delivery(t, worker)
	is.Equal([]any{next.text("type"), next.text("waiting.approvals.0.toolName")}, []any{"task.waiting", "write_file"})
	s.must(t, "POST", "/api/tasks/waits/approvals/"+open().text("items.0.id"), `{"approved":true}`)
	storetest.Eventually(t, "the end", func() bool { return s.must(t, "GET", "/api/tasks/waits", "").text("task.status") == "completed" })
	is.Equal(string(s.deliveryBody(t, asked).body), string(body.body)) // each attempt has the same body
	is.Equal(string(s.deliveryBody(t, second).body), string(next.body))
	due, err := s.store.Effects.DueDeliveries(t.Context(), worker, 100)
	is.NoErr(err)
	is.Equal(len(due), 3) // the two waits and the end
}
