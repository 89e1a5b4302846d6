package handlers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

// A statusWalk takes tasks of one worker through random states. It does the runner's work itself,
// so that nothing happens between a step and its checks.
type statusWalk struct {
	*site
	t       *testing.T
	is      *is.I
	rnd     *rand.Rand
	worker  string
	tasks   []*walkedTask
	claimed []*walkedTurn // turns that the runner has claimed
	bodies  map[string]string
}

// A walkedTask is the expected state of a task.
type walkedTask struct {
	id    string
	turns []*walkedTurn
}

type walkedTurn struct {
	id, status string
	task       *walkedTask
	claim      store.Claim
	ready      bool
	started    bool
	cancelled  bool
	suspended  bool   // it waits for an approval
	after      string // the task's status when the turn had ended
}

func (k *walkedTask) status() string {
	for _, status := range []string{"running", "pending"} {
		if slices.ContainsFunc(k.turns, func(u *walkedTurn) bool { return u.status == status }) {
			return status
		}
	}
	return k.turns[len(k.turns)-1].status
}

func ended(status string) bool { return status != "pending" && status != "running" }

// runStatus returns a status as the run view names it.
func runStatus(status string) string {
	if ended(status) {
		return "completed"
	}
	return status
}

// step does one random step that is possible.
func (w *statusWalk) step() {
	w.t.Helper()
	switch n := w.rnd.IntN(10); {
	case len(w.tasks) == 0 || n == 0 && len(w.tasks) < 3:
		w.tasks = append(w.tasks, &walkedTask{id: fmt.Sprintf("task-%d", len(w.tasks))})
		w.send(w.tasks[len(w.tasks)-1])
	case n <= 3:
		w.send(w.tasks[w.rnd.IntN(len(w.tasks))])
	case n == 4:
		w.cancel(w.tasks[w.rnd.IntN(len(w.tasks))])
	case n == 5 && w.resume():
	case len(w.claimed) == 0:
		w.claim()
	default:
		i := w.rnd.IntN(len(w.claimed))
		u := w.claimed[i]
		if !u.cancelled && w.rnd.IntN(4) == 0 {
			w.suspend(u)
		} else {
			w.finish(u)
		}
		w.claimed = slices.Delete(w.claimed, i, i+1)
	}
}

// send adds a turn to a task. The answer describes that turn.
func (w *statusWalk) send(k *walkedTask) {
	r := w.do(w.t, "POST", "/api/tasks", encode(fields{"workerId": w.worker, "taskId": k.id, "input": "go"}),
		"Prefer: respond-async")
	w.is.Equal(r.status, 202)
	ready := len(k.turns) == 0 || ended(k.status())
	k.turns = append(k.turns, &walkedTurn{id: r.text("metadata.turnId"), status: "pending", task: k, ready: ready})
	w.is.Equal([]any{r.at("status"), r.at("running"), r.at("metadata.turnStatus"), r.at("metadata.taskStatus")},
		[]any{"pending", true, "pending", k.status()})
}

func (w *statusWalk) claim() {
	claims, err := w.store.ClaimTurns(w.t.Context(), "walker", 1, 1)
	w.is.NoErr(err)
	for _, c := range claims {
		u := w.turn(c.ID)
		w.is.True(!u.cancelled)
		u.claim, u.status, u.started = c, "running", true
		w.claimed = append(w.claimed, u)
	}
}

func (w *statusWalk) turn(id string) *walkedTurn {
	for _, k := range w.tasks {
		for _, u := range k.turns {
			if u.id == id {
				return u
			}
		}
	}
	w.t.Fatalf("nobody sent the turn %s", id)
	return nil
}

// finish ends a turn. A cancelled turn may still end normally.
func (w *statusWalk) finish(u *walkedTurn) {
	out := store.Outcome{Status: store.Completed, OutputText: "done", Duration: time.Millisecond}
	switch n := w.rnd.IntN(3); {
	case u.cancelled && n > 0:
		out = store.AbortedOutcome()
	case n == 0:
		out = store.Outcome{Status: store.Failed, Failure: &store.Failure{Code: "x", Message: "it broke"}}
	}
	_, err := w.store.FinishTurn(w.t.Context(), u.claim, nil, out)
	w.is.NoErr(err)
	u.status = string(out.Status)
	w.settle(u.task, u)
}

// settle ends the cancelled waiting turns, together with the given ones.
func (w *statusWalk) settle(k *walkedTask, together ...*walkedTurn) {
	for _, o := range k.turns {
		if o.cancelled && o.status == "pending" {
			o.status = "aborted"
			together = append(together, o)
		}
	}
	for _, o := range together {
		o.after = k.status()
	}
	for _, o := range k.turns {
		if o.status == "pending" {
			o.ready = true
			return
		}
	}
}

// suspend makes a turn wait for an approval.
func (w *statusWalk) suspend(u *walkedTurn) {
	steps, err := w.store.Journal(w.t.Context(), u.claim.Turn)
	w.is.NoErr(err)
	seq := int64(len(steps))
	st := store.Step{Seq: seq, Finish: "tool-calls", Model: "offline", StartedAt: time.Now(), CompletedAt: time.Now(),
		Parts: []store.Part{{Type: store.PartToolCall, CallID: fmt.Sprintf("call-%d", seq), ToolName: "list_files",
			Input: json.RawMessage(`{}`)}},
		Approvals: []store.Approval{{ID: db.NewID("apr", time.Now())}}}
	w.is.NoErr(w.store.JournalStep(w.t.Context(), u.claim, st))
	_, suspended, err := w.store.SuspendTurn(w.t.Context(), u.claim, seq, time.Now().Add(time.Hour))
	w.is.NoErr(err)
	w.is.True(suspended)
	u.suspended = true
}

// resume decides the approval of a waiting turn. It reports whether there was one.
func (w *statusWalk) resume() bool {
	for _, k := range w.tasks {
		for _, u := range k.turns {
			if !u.suspended {
				continue
			}
			list := w.must(w.t, "GET", "/api/tasks/"+k.id+"/approvals", "")
			w.must(w.t, "POST", "/api/tasks/"+k.id+"/approvals/"+list.text("items.0.id"), `{"approved":true}`)
			u.suspended, u.status = false, "pending"
			return true
		}
	}
	return false
}

// cancel cancels a task. If the runner has a turn of it, the task ends with that turn.
func (w *statusWalk) cancel(k *walkedTask) {
	_, running, err := w.store.AbortTask(w.t.Context(), w.owner.Caller, k.id)
	w.is.NoErr(err)
	for _, u := range k.turns {
		u.cancelled = u.cancelled || !ended(u.status)
	}
	if len(running) > 0 {
		return
	}
	var suspended []*walkedTurn
	for _, u := range k.turns {
		if u.suspended {
			u.suspended, u.status = false, "aborted"
			suspended = append(suspended, u)
		}
	}
	w.settle(k, suspended...)
}

// check compares the status of a task in every answer.
func (w *statusWalk) check() {
	w.t.Helper()
	want := map[string][]string{}
	for _, k := range w.tasks {
		want[k.status()] = append([]string{k.id}, want[k.status()]...) // the newest first
		w.checkTask(k)
		w.checkRun(k)
		w.checkStream(k)
	}
	for _, status := range []string{"pending", "running", "completed", "error", "aborted"} {
		for _, filter := range []string{"", "&workerId=" + w.worker} {
			list := w.must(w.t, "GET", "/api/tasks?status="+status+filter, "")
			var got []string
			for i := range list.size("items") {
				got = append(got, list.text(fmt.Sprintf("items.%d.id", i)))
				w.is.Equal(list.text(fmt.Sprintf("items.%d.status", i)), status)
			}
			w.is.Equal(got, want[status]) // the filter finds exactly these
		}
	}
	w.checkDeliveries()
}

func (w *statusWalk) checkTask(k *walkedTask) {
	w.t.Helper()
	r := w.must(w.t, "GET", "/api/tasks/"+k.id, "")
	w.is.Equal(r.text("task.status"), k.status())
	w.is.Equal(r.at("task.completedAt") != nil, ended(k.status()))
	w.is.Equal(r.at("task.totals.turnCount"), float64(len(k.turns)))
	list := w.must(w.t, "GET", "/api/tasks/"+k.id+"/turns", "")
	for i, u := range k.turns {
		w.is.Equal(r.text(fmt.Sprintf("turns.%d.status", i)), u.status)
		w.is.Equal(list.text(fmt.Sprintf("items.%d.status", i)), u.status)
	}
}

func (w *statusWalk) checkRun(k *walkedTask) {
	w.t.Helper()
	r := w.must(w.t, "GET", "/api/workers/"+w.worker+"?taskId="+k.id, "")
	newest := k.turns[len(k.turns)-1]
	w.is.Equal(r.text("metadata.turnId"), newest.id)
	w.is.Equal(r.text("metadata.turnStatus"), newest.status)
	w.is.Equal(r.text("metadata.taskStatus"), k.status())
	w.is.Equal(r.text("status"), runStatus(k.status()))
	w.is.Equal(r.at("running"), !ended(k.status()))
	w.is.Equal(r.at("error") != nil, newest.status == "error" || newest.status == "aborted")
}

// checkStream reads a task's stream as far as it has events.
func (w *statusWalk) checkStream(k *walkedTask) {
	w.t.Helper()
	var want, got []string
	for _, u := range k.turns {
		if u.ready {
			want = append(want, "pending")
		}
		if u.started {
			want = append(want, "running")
		}
		if !ended(u.status) {
			break // later turns wait for its end
		}
		want = append(want, u.after)
	}
	w.is.Equal(want[len(want)-1] == "running", k.status() == "running" || w.resumes(k))
	s := w.open(w.t, "GET", "/api/workers/"+w.worker+"?stream=true&taskId="+k.id, "")
	defer s.cancel()
	for len(got) < len(want) {
		var chunk struct{ Data struct{ Status string } }
		w.is.NoErr(json.Unmarshal([]byte(s.until(w.t, `"data-status"`)), &chunk))
		got = append(got, chunk.Data.Status)
	}
	w.is.Equal(got, want)
	if ended(k.status()) {
		w.is.True(s.ended(w.t))
	}
}

// resumes reports whether the next turn has run before: its stream does not go back.
func (w *statusWalk) resumes(k *walkedTask) bool {
	return slices.ContainsFunc(k.turns, func(u *walkedTurn) bool { return u.status == "pending" && u.started })
}

// checkDeliveries checks that the parts of each body agree, and that no body changes later.
func (w *statusWalk) checkDeliveries() {
	w.t.Helper()
	due, err := w.store.Effects.DueDeliveries(w.t.Context(), w.worker, 1000)
	w.is.NoErr(err)
	views := w.views()
	waits := 0 // deliveries about a wait, not an end
	for _, d := range due {
		if d.Type == "task.waiting" {
			waits++
		}
		raw, err := views.Delivery(w.t.Context(), d)
		w.is.NoErr(err)
		if was, told := w.bodies[d.ID]; told {
			w.is.Equal(string(raw), was)
			continue
		}
		w.bodies[d.ID] = string(raw)
		w.checkBody(raw)
	}
	last := map[string]*walkedTurn{}
	aborted := 0
	for _, k := range w.tasks {
		for _, u := range k.turns {
			if ended(u.status) && u.status != "aborted" {
				last[u.id] = u
			}
			if u.status == "aborted" {
				aborted++
			}
		}
	}
	ends := len(due) - waits
	ordertest.Between(w.is, ends, len(last), len(last)+aborted) // one delivery for each end
}

func (w *statusWalk) checkBody(raw []byte) {
	w.t.Helper()
	r := response{}
	w.is.NoErr(json.Unmarshal(raw, &r.value))
	u, status := w.turn(r.text("turn.id")), r.text("task.status")
	kinds := map[string]string{"completed": ".completed", "error": ".failed", "aborted": ".aborted"}
	kind := "turn"
	if ended(status) {
		kind = "task"
	}
	turnStatus := r.text("turn.status")
	if r.text("type") == "task.waiting" { // the body shows the moment of the wait, whatever the turn's status is now
		w.is.Equal(turnStatus, "running")
		w.is.Equal(status, "running")
	} else {
		w.is.Equal(r.text("type"), kind+kinds[u.status])
		w.is.Equal(turnStatus, u.status)
	}
	if ended(status) {
		w.is.Equal(status, u.status)
	}
	w.is.Equal(r.at("task.completedAt") != nil, ended(status))
	w.is.Equal(r.text("worker.metadata.taskStatus"), status)
	w.is.Equal(r.text("worker.metadata.turnStatus"), turnStatus)
	w.is.Equal(r.text("worker.status"), runStatus(status))
	w.is.Equal(r.at("worker.running"), !ended(status))
	w.is.Equal(r.text("worker.metadata.turnId"), u.id)
	w.is.Equal(r.at("worker.error") != nil, turnStatus == "error" || turnStatus == "aborted")
}

// TestStatusAgrees takes tasks through random sequences of steps. After each step every answer,
// filter, stream and webhook shows the same status.
func TestStatusAgrees(t *testing.T) {
	t.Parallel()
	for seed := range storetest.Rounds(6, 1) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			_, s := onServer(t, idle)
			is.New(t).NoErr(s.store.StartRunner(t.Context(), "walker", time.Hour))
			w := &statusWalk{site: s, t: t, is: is.New(t), rnd: rand.New(rand.NewPCG(uint64(seed), 9)), bodies: map[string]string{}}
			w.worker = s.newWorker(t, fields{"title": "Walker"})
			s.must(t, "PUT", "/api/workers/"+w.worker+"/webhook", `{"url":"https://a.example/"}`)
			for range 30 {
				w.step()
				w.check()
			}
		})
	}
}

// TestOneCancelIsOneDelivery cancels three turns of a task, one of which runs. All waiting clients
// get the same answer.
func TestOneCancelIsOneDelivery(t *testing.T) {
	is, s := onServer(t)
	worker := s.newWorker(t, fields{"title": "W"})
	s.must(t, "PUT", "/api/workers/"+worker+"/webhook", `{"url":"https://a.example/"}`)
	var answers []func() response
	for n := range 3 {
		answers = append(answers, s.begin(t, "POST", "/api/tasks", encode(fields{"workerId": worker, "taskId": "t",
			"input": scripted("say part", calling("list_files"), "wait 1h")})))
		storetest.Eventually(t, "the turn is accepted", func() bool {
			return s.do(t, "GET", "/api/tasks/t", "").at("task.totals.turnCount") == float64(n+1)
		})
	}
	storetest.Eventually(t, "the first turn runs", func() bool {
		return s.must(t, "GET", "/api/tasks/t",
			"").text("turns.0.status") == "running"
	})
	list := s.must(t, "GET", "/api/tasks?status=running", "")
	is.Equal(list.text("items.0.id"), "t") // although its newest turn waits
	task := s.must(t, "POST", "/api/tasks/t/cancel", "")
	is.Equal(task.text("task.status"), "aborted")
	for _, answer := range answers {
		r := answer()
		is.Equal([]any{r.at("status"), r.at("running"), r.at("metadata.turnStatus"), r.at("metadata.taskStatus"),
			r.at("error.code")},
			[]any{"completed", false, "aborted", "aborted", "aborted"})
	}
	due, err := s.store.Effects.DueDeliveries(context.Background(), worker, 10)
	is.NoErr(err)
	is.Equal(len(due), 1)
	is.Equal(due[0].Type, store.TaskAborted)
	body, err := s.views().Delivery(t.Context(), due[0])
	is.NoErr(err)
	r := response{}
	is.NoErr(json.Unmarshal(body, &r.value))
	is.Equal(r.at("turn.seq"), 2.0) // the newest
}
