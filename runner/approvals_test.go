package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/runner/stream"
	"journeyman/runner/tool"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// askingWorker creates a worker for the fixture. Calls of the given tools need approval.
func (f *fixture) askingWorker(tools ...string) {
	f.t.Helper()
	f.worker = f.newWorker(workers.NewWorker{Title: "Careful", Instructions: "Ask.",
		Settings: workers.Settings{ApprovalTools: tools}})
}

// newAsking returns a fixture whose worker asks for approval of each call of danger, but not of safe. It
// also returns the calls that were executed.
func newAsking(t *testing.T, m *fakeModel, setups ...setup) (*fixture, *effects) {
	t.Helper()
	var e effects
	f := newFixture(t, append(setups, withModel(m), withTools(e.tool("danger"), e.tool("safe")))...)
	f.askingWorker("danger")
	return f, &e
}

// effects records the calls that tools have executed.
type effects struct {
	mu   sync.Mutex
	done []string
}

func (e *effects) tool(name string) fakeTool {
	return fakeTool{name: name, fn: func(_ context.Context, _ tool.Host, in json.RawMessage) (json.RawMessage, error) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.done = append(e.done, name)
		return json.RawMessage(`"ok"`), nil
	}}
}

func (e *effects) list() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.done)
}

// asks returns a model that calls tools in its first step and then answers with their results.
func asks(names ...string) *fakeModel {
	var pairs []string
	for i, name := range names {
		pairs = append(pairs, name, fmt.Sprintf(`{"n":%d}`, i))
	}
	return asksThen(resultsIn, pairs...)
}

// pending waits until the turn is suspended with n pending approvals. It returns them in the order
// of their calls.
func (f *fixture) pending(t store.Turn, n int) (list []store.Approval) {
	f.t.Helper()
	storetest.Eventually(f.t, fmt.Sprintf("%d approvals wait", n), func() bool {
		list = slices.DeleteFunc(f.approvalsOf(t), func(a store.Approval) bool {
			return a.TurnID != t.ID || a.Status != store.ApprovalPending
		})
		return len(list) == n && f.Running() == 0
	})
	slices.Reverse(list)
	return list
}

func (f *fixture) decide(a store.Approval, approved bool, reason string) {
	f.t.Helper()
	_, err := f.DecideApproval(f.ctx(), f.owner, a.TaskID, a.ID, store.Decision{Approved: approved, Reason: reason})
	is.New(f.t).NoErr(err)
}

// upTo reads events up to and including the first event that contains text.
func (f *fixture) upTo(s source, u *uiReader, text string) {
	f.t.Helper()
	feed(u, f.watchUntil(s, text))
}

func TestApproval(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f, e := newAsking(t, asks("danger", "safe", "danger"), func(c *runner.Config) { c.Concurrency = 1 })
	turn := f.accept("go")
	live := newUIReader(t)
	stream := f.taskStream(turn, "")
	list := f.pending(turn, 2)
	is.Equal(e.list(), []string{"safe"}) // the call that needs no approval runs
	for _, tl := range f.cfg.Model.(*fakeModel).seen()[0].Tools {
		is.Equal(strings.Contains(tl.Description, "A person decides on each call"), tl.Name == "danger") // the model is told
	}
	is.Equal([]any{list[0].ToolName, string(list[0].Input), list[1].ToolName, string(list[1].Input)}, []any{"danger", `{"n":0}`, "danger", `{"n":2}`})
	f.upTo(stream, live, "safe")
	is.Equal(f.reload(turn.ID).Status, store.Running)

	// The suspended turn holds no slot: another turn takes the only one.
	other := f.worker
	f.worker = f.newWorker(workers.NewWorker{Title: "Free"})
	is.Equal(f.run("go").OutputText, "danger: ok; safe: ok; danger: ok")
	f.worker = other

	f.decide(list[1], false, "not twice") // in any order
	is.Equal(len(f.pending(turn, 1)), 1)
	f.decide(list[0], true, "once is fine")
	done := f.wait(turn)
	is.Equal(done.OutputText, `danger: ok; safe: ok; danger: a person has denied this call: not twice`)
	is.Equal(e.list(), []string{"safe", "danger", "safe", "danger", "danger"})
	want := f.messages(turn)[1:]
	feed(live, f.events(stream))
	is.Equal(live.messages(), want)
	is.Equal(live.approvals, []string{"danger pending", "danger pending", "danger denied not twice", "danger approved once is fine"})
	is.Equal(f.read(f.taskStream(turn, "")).messages(), want)
	is.Equal(f.read(f.Streams.Turn(turn)).messages(), want)
}

// TestApprovalOfFiles checks that approval of write_file covers the other tools that write a file.
func TestApprovalOfFiles(t *testing.T) {
	t.Parallel()
	var e effects
	m := asksThen(resultsIn, "web_fetch", `{"url":"https://example.com/","save":"a.csv"}`, "make_chart", `{"path":"a.png"}`,
		"web_fetch", `{"url":"https://example.com/"}`)
	f := newFixture(t, withModel(m), withTools(e.tool("web_fetch"), e.tool("make_chart"), e.tool("write_file")))
	f.askingWorker("write_file")
	list := f.pending(f.accept("go"), 2)
	is.New(t).Equal([]string{list[0].ToolName, list[1].ToolName}, []string{"web_fetch", "make_chart"})
}

// TestStreamsAcrossSuspensions checks readers of all kinds. They reconnect repeatedly before,
// during and after a suspension of their turn.
func TestStreamsAcrossSuspensions(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f, _ := newAsking(t, asks("danger", "safe", "danger"))
	r := rand.New(rand.NewPCG(1, 2))
	wide, joined, followed := newWideReader(t), make(chan struct{}), make(chan error, 1)
	wide.turns = map[string]*uiReader{}
	go func() { followed <- wide.follow(f, 1, 3, false, r, joined) }()
	until(t, joined, "the stream is open")
	turn := f.accept("go")
	cut := &cutReader{u: newUIReader(t), r: rand.New(rand.NewPCG(3, 4))}
	cutDone := make(chan error, 1)
	go cut.send(cutDone, f, turn, 2, nil)
	list := f.pending(turn, 2)
	late, lateFollowed := f.watching(1) // joins while the turn is suspended
	f.decide(list[0], true, "")
	f.decide(list[1], true, "")
	f.wait(turn)
	is.NoErr(until(t, followed, "the first reader is done"))
	is.NoErr(until(t, lateFollowed, "the second reader is done"))
	is.NoErr(until(t, cutDone, "the reader is done"))
	want := f.messages(turn)[1:]
	is.Equal(cut.u.messages(), want)
	is.Equal(wide.turns[turn.ID].messages(), want)
	is.Equal(wide.turns[turn.ID].approvals, []string{"danger pending", "danger pending", "danger approved", "danger approved"})
	is.Equal(late.turns[turn.ID].messages(), want)
	f.forgotten()
}

// TestWorkerStreamOfSuspendedTurn checks a ring that is created while a turn is suspended. The ring
// must contain the whole turn after it continues, and after a cancellation.
func TestWorkerStreamOfSuspendedTurn(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(f *fixture, turn store.Turn, a store.Approval){
		"decided":   func(f *fixture, _ store.Turn, a store.Approval) { f.decide(a, true, "") },
		"cancelled": func(f *fixture, turn store.Turn, _ store.Approval) { f.abort(turn) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f, _ := newAsking(t, asks("danger"))
			turn := f.accept("go")
			a := f.pending(turn, 1)[0]
			wide, followed := f.watching(1)
			end(f, turn, a)
			f.wait(turn)
			is.NoErr(until(t, followed, "the reader is done"))
			is.Equal(wide.turns[turn.ID].messages(), f.messages(turn)[1:])
			f.forgotten()
		})
	}
}

// forgotten waits until no ring contains an unfinished turn.
func (f *fixture) forgotten() {
	f.t.Helper()
	storetest.Eventually(f.t, "no turn is kept", func() bool {
		_, running, _, _ := f.Kept()
		return running == 0
	})
}

// TestDecidedAgainAfterTheEnd checks that a repeated decision changes nothing and sends no event to
// watchers.
func TestDecidedAgainAfterTheEnd(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f, _ := newAsking(t, asks("danger"))
	s := f.workerStream(f.worker.ID, "")
	defer s.Close()
	turn := f.accept("go")
	a := f.pending(turn, 1)[0]
	f.decide(a, true, "")
	f.wait(turn)
	f.forgotten()
	f.decide(a, true, "")
	next := f.accept("again") // queued after all earlier events
	seen := map[string]bool{}
	for !seen["next"] {
		for _, ev := range f.next(s) {
			is.True(!seen[string(ev.ID)]) // no event comes twice
			seen[string(ev.ID)] = true
			seen["next"] = seen["next"] || strings.Contains(string(ev.Data), next.ID)
		}
	}
	f.abort(next)
	f.forgotten()
}

// TestReadersOfApprovals checks that the readers of each version of the AI SDK build the messages that the
// run view has for this version: while the turn is suspended, at its end, replayed, and after coming back
// at any event.
func TestReadersOfApprovals(t *testing.T) {
	t.Parallel()
	for _, sdk := range view.SDKs {
		t.Run(fmt.Sprint(sdk), func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f, _ := newAsking(t, asks("danger", "safe", "danger", "danger", "danger"))
			turn := f.accept("go")
			list := f.pending(turn, 4)
			u := f.reader(sdk)
			live := f.taskStream(turn, "").For(sdk)
			f.upTo(live, u, `tool-output-available`)
			is.Equal(u.messages(), f.messagesFor(turn, sdk)) // while the turn is suspended
			f.decide(list[1], false, "no")
			f.decide(list[0], true, "yes")
			f.upTo(live, u, `"approved","reason":"yes"`)
			is.Equal(u.messages(), f.messagesFor(turn, sdk)) // two are decided
			f.decide(list[2], false, "")
			f.decide(list[3], true, "")
			f.wait(turn)
			feed(u, f.events(live))
			want := f.messagesFor(turn, sdk)
			is.Equal(u.messages(), want)
			events := f.events(f.taskStream(turn, "").For(sdk))
			for i := range events {
				u := f.reader(sdk)
				feed(u, events[:i+1])
				feed(u, f.events(f.taskStream(turn, string(events[i].ID)).For(sdk)))
				is.Equal(u.messages(), want)
			}
		})
	}
}

// TestFormsOfApprovals checks how messages show approvals to each version of the AI SDK.
func TestFormsOfApprovals(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f, _ := newAsking(t, asks("danger", "danger"))
	turn := f.accept("go")
	list := f.pending(turn, 2)
	is.Equal(f.shown(turn, view.SDK5, 1), "input-available")
	is.Equal(f.shown(turn, view.SDK6, 1), "input-available")
	is.Equal(f.shown(turn, view.SDK6, 3), "data-approval "+list[0].ID+" pending")
	is.Equal(f.shown(turn, view.SDK7, 1), "approval-requested "+list[0].ID)
	f.decide(list[0], true, "yes")
	is.Equal(f.shown(turn, view.SDK6, 3), "data-approval "+list[0].ID+" approved yes")
	is.Equal(f.shown(turn, view.SDK7, 1), "approval-responded "+list[0].ID+" true yes")
	is.Equal(f.shown(turn, view.SDK7, 2), "approval-requested "+list[1].ID)
	f.decide(list[1], false, "")
	f.wait(turn)
	is.Equal(f.shown(turn, view.SDK5, 2), "output-error")
	is.Equal(f.shown(turn, view.SDK6, 1), "output-available")
	is.Equal(f.shown(turn, view.SDK6, 2), "output-error")
	is.Equal(f.shown(turn, view.SDK6, 4), "data-approval "+list[1].ID+" denied")
	is.Equal(f.shown(turn, view.SDK7, 1), "output-available "+list[0].ID+" true yes")
	is.Equal(f.shown(turn, view.SDK7, 2), "output-denied "+list[1].ID+" false")
}

// shown describes part i of the answer to a turn.
func (f *fixture) shown(t store.Turn, sdk view.SDK, i int) string {
	f.t.Helper()
	p := f.messagesFor(t, sdk)[0].(map[string]any)["parts"].([]any)[i].(map[string]any)
	var words []string
	for _, v := range []any{p["state"], p["approval"], p["data"]} {
		switch v := v.(type) {
		case string:
			words = append(words, v)
		case map[string]any:
			for _, name := range []string{"id", "approved", "approvalId", "status", "reason"} {
				if v[name] != nil {
					words = append(words, fmt.Sprint(v[name]))
				}
			}
		}
	}
	if p["type"] != "dynamic-tool" {
		words = append([]string{p["type"].(string)}, words...)
	}
	return strings.Join(words, " ")
}

// reader returns a reader that behaves like a version of the AI SDK.
func (f *fixture) reader(sdk view.SDK) *uiReader {
	u := newUIReader(f.t)
	u.sdk = sdk
	return u
}

// messagesFor returns the assistant's messages for a version of the AI SDK.
func (f *fixture) messagesFor(t store.Turn, sdk view.SDK) []any {
	f.t.Helper()
	return assistants(plain(f.t, f.views().Messages(f.conversation(t), sdk)).([]any))
}

// TestCancelSuspended cancels a suspended turn, and checks how streams and messages present the
// undecided call.
func TestCancelSuspended(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f, e := newAsking(t, asks("danger", "danger"))
	turn := f.accept("go")
	list := f.pending(turn, 2)
	f.decide(list[0], true, "")
	live, streams := map[view.SDK]*uiReader{}, map[view.SDK]*stream.Stream{}
	for _, sdk := range view.SDKs {
		live[sdk], streams[sdk] = f.reader(sdk), f.taskStream(turn, "").For(sdk)
		f.upTo(streams[sdk], live[sdk], `"status":"approved"`)
	}
	waits := make(chan error, 1)
	go func() { waits <- f.Wait(f.ctx(), turn.ID) }()
	is.Equal(f.abort(turn).Status, store.Aborted)
	is.NoErr(until(t, waits, "who waits is told"))
	is.Equal(len(e.list()), 0)
	for sdk, u := range live {
		feed(u, f.events(streams[sdk]))
		want := f.messagesFor(turn, sdk)
		is.Equal(u.messages(), want)
		u = f.reader(sdk)
		feed(u, f.events(f.taskStream(turn, "").For(sdk)))
		is.Equal(u.messages(), want)
	}
	is.Equal(f.shown(turn, view.SDK6, 4), "data-approval "+list[1].ID+" cancelled")
	is.Equal(f.shown(turn, view.SDK7, 2), "output-denied "+list[1].ID+" false the call did not run")
	f.pending(f.accept("again", turn.TaskID), 2) // the turn asks again
}

// TestSuspendedTimeIsFree checks that suspensions count neither for the time budget nor for the
// duration. The turn is suspended before and after the call.
func TestSuspendedTimeIsFree(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m := &fakeModel{fn: func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		if n := stepOf(req); n < 2 {
			return calls(emit, n, "danger", `{}`), nil
		}
		return answer(emit, "done"), nil
	}}
	c := newClock()
	f, e := newAsking(t, m, withClock(c.now), withBudget(runner.Limits{Time: time.Minute}))
	turn := f.accept("go")
	for range 2 {
		a := f.pending(turn, 1)[0]
		c.advance(3 * time.Hour)
		f.decide(a, true, "")
	}
	done := f.wait(turn)
	is.Equal([]any{done.Status, done.IncompleteReason, e.list()}, []any{store.Completed, "", []string{"danger", "danger"}})
	ordertest.Below(is, done.Duration, time.Minute) // the wait for the decision counts as work
}

// TestWorkerStreamSendsEachDecision checks that a decision is sent at once, even while other
// decisions are pending.
func TestWorkerStreamSendsEachDecision(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f, _ := newAsking(t, asks("danger", "danger"))
	turn := f.accept("go")
	list := f.pending(turn, 2)
	s := f.workerStream(f.worker.ID, "")
	defer s.Close()
	f.decide(list[1], true, "")
	u := newUIReader(t)
	u.wide = true
	f.upTo(s, u, `"status":"approved"`)
	is.Equal(len(f.pending(turn, 1)), 1)
}

func TestApprovalTimeout(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var e effects
	c := newClock()
	f := onClock(t, c, withModel(asks("danger")), withTools(e.tool("danger")))
	f.askingWorker("danger")
	turn := f.accept("go")
	f.pending(turn, 1)
	next := f.accept("go on", turn.TaskID)
	wide, followed := f.watching(1)
	c.advance(runner.ApprovalWait - time.Second)
	f.ExpireSuspended()
	is.Equal(f.reload(turn.ID).Status, store.Running)
	c.advance(time.Second)
	f.ExpireSuspended()
	done := f.wait(turn)
	is.Equal([]any{done.Status, done.Failure.Code, len(e.list())}, []any{store.Failed, "approval_timeout", 0})
	is.NoErr(until(t, followed, "the reader is done"))
	is.Equal(wide.turns[turn.ID].messages(), f.messages(turn)[1:2])
	f.pending(next, 1) // the queued turn behind it now runs
}

// TestManyApprovals checks that calls beyond the limit of approvals in a step fail.
func TestManyApprovals(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	names := slices.Repeat([]string{"danger"}, runner.MaxApprovals+2)
	f, e := newAsking(t, asks(names...))
	turn := f.accept("go")
	for _, a := range f.pending(turn, runner.MaxApprovals) {
		f.decide(a, true, "")
	}
	done := f.wait(turn)
	is.Equal(len(e.list()), runner.MaxApprovals)
	is.Equal(strings.Count(done.OutputText, "at most 32 calls at once may wait for approval"), 2)
}

// TestNoQuestions checks that calls that fail before they run need no approval.
func TestNoQuestions(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f, e := newAsking(t, asksOnce("danger", `{bad`, "missing", `{}`))
	f.askingWorker("danger", "missing")
	is.Equal(f.run("go").OutputText, "done")
	is.Equal(len(e.list()), 0)
}

// TestManySuspended checks that suspended turns hold no goroutine and no slot. It counts
// goroutines, so it does not run in parallel with other tests.
func TestManySuspended(t *testing.T) {
	is := is.New(t)
	n := storetest.Rounds(200, 30)
	f, e := newAsking(t, asks("danger"), func(c *runner.Config) { c.Concurrency = 4 })
	before := runtime.NumGoroutine()
	var turns []store.Turn
	for range n {
		turns = append(turns, f.accept("go"))
	}
	for _, turn := range turns {
		f.pending(turn, 1)
	}
	_, running, watched, reserved := f.Kept()
	is.Equal([]int{f.Running(), running, watched, reserved}, []int{0, 0, 0, 0})
	storetest.Eventually(t, "the goroutines end", func() bool { return runtime.NumGoroutine() <= before })
	for _, turn := range turns {
		f.decide(f.pending(turn, 1)[0], true, "")
	}
	for _, turn := range turns {
		is.Equal(f.wait(turn).Status, store.Completed)
	}
	is.Equal(len(e.list()), n)
}

// guardedCalls are the calls of a turn with one call that needs approval and one that does not. A
// guardedLife is the part of this turn that one process executes until it dies.
var guardedCalls = []string{"model 0", "look 0", "work 0", "model 1"}

func guardedLife(l *life) []setup {
	m := &fakeModel{fn: func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		step := stepOf(req)
		defer l.call(fmt.Sprintf("model %d", step))()
		if step == 0 {
			return calls(emit, 0, "work", `{}`, "look", `{}`), nil
		}
		return answer(emit, "done"), nil
	}}
	run := func(name string) fakeTool {
		return fakeTool{name: name, repeatable: name == "look", fn: func(context.Context, tool.Host, json.RawMessage) (json.RawMessage, error) {
			defer l.call(name + " 0")()
			return json.RawMessage(`"ok"`), nil
		}}
	}
	return []setup{withModel(m), func(c *runner.Config) { c.Tools = []tool.Tool{run("work"), run("look")} }}
}

// TestKillAroundApprovals ends the process at the beginning and at the end of each call. It also
// ends the process during the suspension, and between the decision and the call. In all cases the
// approved call begins once, and no finished call is repeated.
func TestKillAroundApprovals(t *testing.T) {
	t.Parallel()
	for dies := range 2 * len(guardedCalls) {
		t.Run(fmt.Sprint("call ", dies), func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			first, second := &life{dies: dies}, &life{dies: -1}
			f := newFixture(t, guardedLife(first)...)
			f.askingWorker("work")
			copied := make(chan death, 1)
			first.die = func() { copied <- f.die() }
			turn := f.accept("go")
			if dies >= 4 {
				f.decide(f.pending(turn, 1)[0], true, "")
			}
			g := f.after(until(t, copied, "the process dies"), guardedLife(second)...)
			g.start()
			if dies < 4 {
				g.decide(g.pending(turn, 1)[0], true, "")
			}
			checkGuarded(is, g, turn, second, dies/2, "")
		})
	}
	for name, decided := range map[string]bool{"suspended": false, "decided": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			first, second := &life{dies: -1}, &life{dies: -1}
			f := newFixture(t, guardedLife(first)...)
			f.askingWorker("work")
			turn := f.accept("go")
			a := f.pending(turn, 1)[0]
			cut := &cutReader{u: newUIReader(t)}
			feed(cut, f.next(f.taskStream(turn, ""))) // the events so far
			is.Equal(cut.u.approvals, []string{"work pending"})
			if decided { // while no process has claimed the turn
				_, err := f.store.DecideApproval(f.ctx(), f.owner, a.TaskID, a.ID, store.Decision{Approved: true})
				is.NoErr(err)
			}
			g := f.crash(guardedLife(second)...)
			g.start()
			if !decided {
				g.decide(g.pending(turn, 1)[0], true, "")
			}
			checkGuarded(is, g, turn, second, 2, "fresh")
			is.NoErr(cut.follow(g, turn, 0, nil)) // reconnects to another process
			is.Equal(cut.u.messages(), g.messages(turn)[1:])
			is.Equal(cut.u.approvals, []string{"work pending", "work approved"})
		})
	}
}

// checkGuarded checks the end of a guarded turn. cut is the index of the call during which the
// first process died. fresh is not empty if the process died before the call began.
func checkGuarded(is *is.I, g *fixture, turn store.Turn, second *life, cut int, fresh string) {
	is.Helper()
	done := g.wait(turn)
	is.Equal([]any{done.Status, done.OutputText, done.Usage.Steps}, []any{store.Completed, "done", int64(2)})
	again, want := cut, store.CallCompleted
	if guardedCalls[cut] == "work 0" && fresh == "" {
		again, want = cut+1, store.CallInterrupted // it may have taken effect
	}
	is.Equal(second.calls, guardedCalls[again:])
	c, ended := g.journal(turn)[0].Call(0)
	is.True(ended)
	is.Equal(c.State, want)
	is.Equal(g.read(g.taskStream(turn, "")).messages(), g.messages(turn)[1:])
}

// TestStopWhileApprovedCallRuns checks that a normal stop interrupts an approved call like a crash.
// The call may have taken effect, so it is not repeated.
func TestStopWhileApprovedCallRuns(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	hangs, begun := hanging("danger")
	f := newFixture(t, withModel(asks("danger")), withTools(hangs))
	f.askingWorker("danger")
	turn := f.accept("go")
	f.decide(f.pending(turn, 1)[0], true, "")
	until(t, begun, "the call runs")
	f.stop()
	done := f.successor(withModel(asks("danger")), withTools(hangs)).wait(turn)
	is.True(strings.Contains(done.OutputText, "may have taken effect"))
	is.Equal(len(begun), 0)
}

// TestDecisionsMeet approves, denies and cancels at the same moment. Only one of two opposite
// decisions succeeds, each turn ends, and an approved call runs at most once.
func TestDecisionsMeet(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	const n = 24
	var mu sync.Mutex
	ran := map[string]int{}
	danger := fakeTool{name: "danger", fn: func(_ context.Context, _ tool.Host, in json.RawMessage) (json.RawMessage, error) {
		mu.Lock()
		defer mu.Unlock()
		ran[string(in)]++
		return json.RawMessage(`"ok"`), nil
	}}
	m := &fakeModel{fn: func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		if stepOf(req) == 0 {
			return calls(emit, 0, "danger", fmt.Sprintf(`{"turn":%q}`, textOf(req.Messages[req.TurnStart]))), nil
		}
		return answer(emit, "done"), nil
	}}
	f := newFixture(t, withModel(m), withTools(danger), func(c *runner.Config) { c.Concurrency = 3 })
	f.askingWorker("danger")
	var people sync.WaitGroup
	won := make([]int, n) // 1 approved, 2 denied
	turns := make([]store.Turn, n)
	for i := range n {
		turns[i] = f.accept(fmt.Sprint("t", i))
		decide := func(approved bool, win int) {
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for range tick.C {
				list, _, err := f.store.Approvals(f.ctx(), f.owner, store.ApprovalQuery{TaskID: turns[i].TaskID, Limit: 1})
				if err != nil {
					t.Error(err)
					return
				}
				if len(list) == 0 { // not asked yet, or already cancelled
					if ended, err := f.store.TurnEnded(f.ctx(), turns[i].ID); err != nil || ended {
						return
					}
					continue
				}
				_, err = f.DecideApproval(f.ctx(), f.owner, turns[i].TaskID, list[0].ID, store.Decision{Approved: approved})
				if err == nil {
					won[i] = win
				} else if !db.IsKind(err, db.Conflict) {
					t.Error(err)
				}
				return
			}
		}
		people.Go(func() { decide(true, 1) })
		people.Go(func() { decide(false, 2) })
		if i%4 == 0 {
			people.Go(func() {
				if _, err := f.AbortTask(f.ctx(), f.owner, turns[i].TaskID); err != nil {
					t.Error(err)
				}
			})
		}
	}
	people.Wait()
	for i := range turns {
		turns[i] = f.wait(turns[i])
	}
	mu.Lock()
	defer mu.Unlock()
	for i, done := range turns {
		times := ran[fmt.Sprintf(`{"turn":"t%d"}`, i)]
		switch {
		case done.Status == store.Aborted:
			ordertest.AtMost(is, times, 1) // the call ran twice
		case won[i] == 1:
			is.Equal([]any{done.Status, times}, []any{store.Completed, 1})
		default:
			is.Equal([]any{done.Status, won[i], times}, []any{store.Completed, 2, 0})
		}
	}
	f.forgotten()
	_, _, watched, _ := f.Kept()
	is.Equal(watched, 0)
}
