package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/runner/tool"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// runs returns a script line that runs a worker with the given input.
func runs(worker, input string) string {
	args, _ := json.Marshal(map[string]any{"worker": worker, "input": input}) // strings
	return "tool run_worker " + string(args)
}

// children returns the turns that a turn has started.
func (f *fixture) children(t store.Turn) []store.Child {
	f.t.Helper()
	list, err := f.store.Children(f.ctx(), t)
	is.New(f.t).NoErr(err)
	return list
}

// output returns the result of a tool call of a turn's first step.
func (f *fixture) output(t store.Turn, step, call int) (c store.Call, text string) {
	f.t.Helper()
	for _, c := range f.journal(t)[step].Calls {
		if c.Seq == int64(call) {
			return c, string(c.Output)
		}
	}
	f.t.Fatalf("call %d of step %d has not ended", call, step)
	return c, ""
}

// TestRunWorker runs another worker by its title, and checks the views of both workers.
func TestRunWorker(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	reader := f.newWorker(workers.NewWorker{Title: "Reader", Instructions: "Read."})
	turn := f.run("Ask.\n" + script(`tool write_file {"path":"in.txt","content":"secret word"}`,
		`tool run_worker {"worker":"reader","files":["in.txt"],"input":"`+strings.ReplaceAll(strings.ReplaceAll(
			script(`usage 1000 100`, `tool read_file {"path":"in.txt"}`, `tool write_file {"path":"out/a.txt","content":"made"}`,
				`tool publish_file {"path":"out/a.txt"}`, `say I read {{last}}`), "\n", `\n`), `"`, `\"`)+`"}`,
		`tool read_file {"path":"from/none"}`, `say done`))
	is.Equal(turn.Status, store.Completed)
	kids := f.children(turn)
	is.Equal(len(kids), 1)
	is.Equal(kids[0].WorkerID, reader.ID)
	is.Equal(kids[0].Depth, int64(1))
	is.Equal(kids[0].CreatedByUserID, f.owner.UserID)
	is.True(strings.Contains(kids[0].Envelope, `another worker, "Scribe"`)) // names the caller
	is.True(strings.Contains(kids[0].Envelope, "; what you use counts for the budget of the worker that asks, too\n"))
	is.True(!strings.Contains(turn.Envelope, "counts for the budget"))
	call, out := f.output(turn, 1, 0)
	is.Equal(call.State, store.CallCompleted)
	var rep struct {
		Worker, Task, Status, Output string
		Files                        []struct{ Path, URL string }
		Credits                      float64
	}
	is.NoErr(json.Unmarshal([]byte(out), &rep))
	is.Equal(rep.Worker, "Reader")
	is.Equal(rep.Task, kids[0].TaskID)
	is.True(strings.Contains(rep.Output, "I read"))
	is.Equal(len(rep.Files), 1)
	is.Equal(rep.Files[0].Path, "from/"+kids[0].TaskID+"/out/a.txt")
	is.Equal(call.Cost, int64(0))   // only the child is charged, not the call
	is.Equal(turn.Claims, int64(2)) // the turn was suspended once

	p, found, err := f.store.Parent(f.ctx(), kids[0].Turn)
	is.NoErr(err)
	is.True(found) // the child has a parent
	is.Equal(p.ID, turn.ID)

	// With "continue", the author's next turn belongs to their own task, not to the child's.
	next, err := f.store.CreateTurn(f.ctx(), store.NewTurn{Caller: f.owner, WorkerID: reader.ID, Continue: true,
		Input: "hello", Budget: store.BudgetStandard})
	is.NoErr(err)
	is.True(next.Turn.TaskID != kids[0].TaskID) // not the child's task
}

// TestRunWorkerRefusals checks the errors that the model gets if no worker can run.
func TestRunWorkerRefusals(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	gone := f.newWorker(workers.NewWorker{Title: "Gone"})
	is.New(t).NoErr(f.store.DeleteWorker(f.ctx(), f.owner, gone.ID))
	f.newWorker(workers.NewWorker{Title: "Twin"})
	f.newWorker(workers.NewWorker{Title: "Twin"})
	for name, tt := range map[string]struct{ args, says string }{
		"unknown":       {`{"worker":"Nobody","input":"x"}`, `there are: `},
		"deleted":       {`{"worker":"` + gone.ID + `","input":"x"}`, "no worker has that id"},
		"two of a name": {`{"worker":"twin","input":"x"}`, "name one by its id"},
		"no input":      {`{"worker":"Scribe"}`, "input is required"},
		"empty input":   {`{"worker":"Scribe","input":""}`, "must not be empty"},
		"no file":       {`{"worker":"Scribe","input":"x","files":["none.txt"]}`, "none.txt"},
		"outside":       {`{"worker":"Scribe","input":"x","files":["../x"]}`, "files[0]"},
		"foreign task":  {`{"task":"tsk_none"}`, "no call of this task"},
		"both":          {`{"task":"tsk_none","worker":"Scribe"}`, "stands alone"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			turn := f.run(script("tool run_worker "+tt.args, "say done"))
			call, out := f.output(turn, 0, 0)
			is.Equal(call.State, store.CallFailed)
			if !strings.Contains(out, tt.says) {
				t.Fatalf("says %s", out)
			}
			is.Equal(len(f.children(turn)), 0)
		})
	}
}

// TestChildFails checks that a child's failure is an error of the call, and that the parent
// continues.
func TestChildFails(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	turn := f.run("Ask.\n" + nested(script(`fail broken it is broken`)))
	is.Equal(turn.Status, store.Completed)
	call, out := f.output(turn, 0, 0)
	is.Equal(call.State, store.CallFailed)
	is.True(strings.Contains(out, "it is broken")) // the reason
}

// nested returns a script that runs the worker Scribe with the inner script.
func nested(inner string) string {
	return script(strings.ReplaceAll(runs("Scribe", inner), "\n", ""), "say done {{last}}")
}

// TestDepth nests workers until the depth limit.
func TestDepth(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	input := script("say bottom")
	for range store.MaxDepth + 1 {
		input = chain(input)
	}
	f := newFixture(t)
	turn := f.run(input)
	is.Equal(turn.Status, store.Completed)
	depth := 0
	for {
		kids := f.children(turn)
		if len(kids) == 0 {
			break
		}
		turn, depth = kids[0].Turn, depth+1
	}
	is.Equal(depth, store.MaxDepth)
	_, out := f.output(turn, 0, 0)
	is.True(strings.Contains(out, "5 levels deep")) // the refusal
}

// chain returns a script that runs the same worker with the inner script. Code fences cannot be
// nested, so the inner script is a JSON argument.
func chain(inner string) string {
	args, _ := json.Marshal(map[string]any{"worker": "Scribe", "input": inner}) // strings
	return "```offline\ntool run_worker " + string(args) + "\nsay {{last}}\n```"
}

// TestChildrenSideBySide runs three children in one step. The parent holds no slot.
func TestChildrenSideBySide(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	g := newGate("look", true)
	m := teamModel(func(input string) []string {
		if input == "root" {
			return []string{"run_worker", `{"worker":"Scribe","input":"a"}`, "run_worker", `{"worker":"Scribe","input":"b"}`,
				"look", called("own"), "run_worker", `{"worker":"Scribe","input":"c"}`}
		}
		return []string{"look", called(input)}
	})
	f := newFixture(t, withModel(m), withTools(g), func(c *runner.Config) { c.Concurrency = 3 })
	turn := f.accept("root")
	begun := map[string]bool{}
	begun[until(t, g.begun, "the parent looks")] = true
	close(g.of("own"))
	for len(begun) < 4 {
		begun[until(t, g.begun, "all children look")] = true
	}
	f.watchUntil(f.Streams.Turn(turn), `"status":"pending"`) // the chunk that announces a child
	is.Equal(f.Running(), 3)                                 // the children, without the parent
	now := f.reload(turn.ID)
	is.Equal(now.Wait.For, store.WaitForWorker)
	is.Equal(now.Wait.Reason, "Scribe")
	for _, name := range []string{"c", "a", "b"} {
		close(g.of(name))
	}
	turn = f.wait(turn)
	is.Equal(turn.Status, store.Completed)
	is.Equal(turn.Claims, int64(2)) // resumed once, after the last child
	f.streamsContinueAnywhere(turn)
}

// streamsContinueAnywhere checks that the stream of a task can continue after each event: it sends
// all later events once.
func (f *fixture) streamsContinueAnywhere(turn store.Turn) {
	f.t.Helper()
	all := f.events(f.taskStream(turn, ""))
	for i, e := range all {
		rest := f.events(f.taskStream(turn, string(e.ID)))
		if got, want := len(rest), len(all)-i-1; got != want {
			f.t.Fatalf("after event %d (%s) there are %d, not %d", i, e.ID, got, want)
		}
	}
}

// teamModel returns a model that makes the calls next(instruction) in the first step of each turn.
// Then it answers with the instruction.
func teamModel(next func(input string) []string) *fakeModel {
	return &fakeModel{fn: func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		input := ""
		for _, p := range req.Messages[req.TurnStart].Parts {
			if p.Type == model.PartText && !p.Aside {
				input += p.Text
			}
		}
		if pairs := next(input); stepOf(req) == 0 && len(pairs) > 0 {
			return calls(emit, 0, pairs...), nil
		}
		return answer(emit, "answer to "+input), nil
	}}
}

// TestCancelTeam cancels the root of a team. Children that run, wait in the queue or wait for
// others end at once with it.
func TestCancelTeam(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	g := newGate("look", true)
	m := teamModel(func(input string) []string {
		switch input {
		case "root":
			return []string{"run_worker", `{"worker":"Scribe","input":"middle"}`, "run_worker", `{"worker":"Scribe","input":"leaf"}`}
		case "middle":
			return []string{"run_worker", `{"worker":"Scribe","input":"leaf"}`, "run_worker", `{"worker":"Scribe","input":"leaf"}`}
		case "leaf":
			return []string{"look", called(input)}
		}
		return nil
	})
	f := newFixture(t, withModel(m), withTools(g), func(c *runner.Config) { c.Concurrency = 2 })
	turn := f.accept("root")
	for range 2 {
		until(t, g.begun, "leaves run") // the third leaf waits for a slot
	}
	list, err := f.store.UnfinishedBelow(f.ctx(), turn)
	is.NoErr(err)
	is.Equal(len(list), 4)
	is.Equal(f.abort(turn).Status, store.Aborted) // without waiting for a timeout
	for _, child := range list {
		is.Equal(f.wait(child).Status, store.Aborted)
	}
	is.Equal(len(g.begun), 0) // the third leaf never ran
	is.Equal(f.run("after").Status, store.Completed)
}

// withRunningLeaf returns a fixture with a turn that waits for a child, its leaf. The leaf runs until it
// is cancelled.
func withRunningLeaf(t *testing.T) (f *fixture, root store.Turn) {
	t.Helper()
	g := newGate("look", true)
	m := teamModel(func(input string) []string {
		if input == "root" {
			return []string{"run_worker", `{"worker":"Scribe","input":"leaf"}`}
		}
		return []string{"look", called(input)}
	})
	f = newFixture(t, withModel(m), withTools(g))
	root = f.accept("root")
	until(t, g.begun, "the leaf runs")
	return f, root
}

// TestCancelTeamOfLeavingClient cancels the root of a team for a client that disconnects after the
// commit. The child that runs still ends.
func TestCancelTeamOfLeavingClient(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f, turn := withRunningLeaf(t)
	_, turns, err := f.store.TaskTurns(f.ctx(), f.owner, turn.TaskID)
	is.NoErr(err)
	below, err := f.store.UnfinishedBelow(f.ctx(), turn)
	is.NoErr(err)
	is.Equal(len(below), 1)
	task, _, err := f.store.AbortTask(f.ctx(), f.owner, turn.TaskID)
	is.NoErr(err)
	left, leave := context.WithCancel(f.ctx())
	leave()
	is.NoErr(f.StopAborted(left, task, turns, below))
	is.Equal(f.wait(below[0]).Status, store.Aborted)
}

// TestCancelChild cancels only a child: its parent gets an error and continues.
func TestCancelChild(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f, turn := withRunningLeaf(t)
	f.abort(f.children(turn)[0].Turn)
	is.Equal(f.wait(turn).Status, store.Completed)
	call, out := f.output(turn, 0, 0)
	is.Equal(call.State, store.CallFailed)
	is.True(strings.Contains(out, "cancelled")) // the reason
}

// TestBackground starts a child without waiting for it, and requests its answer later.
func TestBackground(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	g := newGate("look", true)
	m := &fakeModel{}
	m.fn = func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		first := req.Messages[req.TurnStart].Parts
		if first[len(first)-1].Text == "leaf" {
			if stepOf(req) == 0 {
				return calls(emit, 0, "look", called("leaf")), nil
			}
			return answer(emit, "the answer"), nil
		}
		switch stepOf(req) {
		case 0:
			return calls(emit, 0, "run_worker", `{"worker":"Scribe","input":"leaf","wait":false}`), nil
		case 1:
			var rep struct{ Task string }
			last := req.Messages[len(req.Messages)-1].Parts
			if err := json.Unmarshal([]byte(last[0].Text), &rep); err != nil {
				return model.Response{}, err
			}
			return calls(emit, 1, "run_worker", fmt.Sprintf(`{"task":%q,"wait":false}`, rep.Task),
				"run_worker", fmt.Sprintf(`{"task":%q}`, rep.Task)), nil
		}
		return answer(emit, "done"), nil
	}
	f := newFixture(t, withModel(m), withTools(g))
	turn := f.accept("root")
	until(t, g.begun, "the leaf runs")
	f.watchUntil(f.Streams.Turn(turn), `"toolCallId":"cba","output"`) // the second step has asked
	close(g.of("leaf"))
	is.Equal(f.wait(turn).Status, store.Completed)
	_, out := f.output(turn, 1, 1)
	is.True(strings.Contains(out, "the answer")) // of the child
	is.Equal(len(f.children(turn)), 1)
}

// spendingTeam returns the setups of a team with 20 credits. Its root runs six workers at once, whose
// titles worker returns. Each model call takes up to pause.
func spendingTeam(t *testing.T, worker func(i int) string, pause time.Duration) []setup {
	m := teamModel(func(input string) []string {
		if input == "root" {
			var pairs []string
			for i := range 6 {
				pairs = append(pairs, "run_worker", fmt.Sprintf(`{"worker":%q,"input":"leaf"}`, worker(i)))
			}
			return pairs
		}
		return []string{"list_files", `{}`}
	})
	m.name = "priced"
	spends := m.fn
	m.fn = func(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		if pause > 0 {
			<-time.After(rand.N(pause))
		}
		resp, err := spends(ctx, req, emit)
		resp.Usage = model.Usage{InputTokens: 1000, OutputTokens: int64(min(req.MaxTokens, 1000))}
		return resp, err
	}
	return []setup{withModel(m), withPrices(t, `{"priced":{"input":10,"output":10,"maxOutput":4000,"contextWindow":100000}}`),
		withBudget(runner.Limits{Credits: 20, Steps: 8, Time: time.Minute})}
}

// TestTeamBudget checks that a team shares the budget of its root, also in parallel turns.
func TestTeamBudget(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t, spendingTeam(t, func(int) string { return "Scribe" }, 0)...)
	turn := f.run("root")
	is.Equal(turn.Status, store.Completed)
	team, ok, err := f.store.Team(f.ctx(), turn)
	is.NoErr(err)
	is.True(ok)                           // the turn has children
	ordertest.AtMost(is, team.Steps, 8+7) // each of seven turns may make one last call
	t.Logf("the team has spent %v credits in %d steps", db.Credits(team.Cost), team.Steps)
	ordertest.AtMost(is, db.Credits(team.Cost), 20)
	is.Equal(turn.OutputText, "answer to root") // the credits for its last call were kept
	f.checkSums()                               // nothing is counted twice
	f.nothingReserved()
}

// TestStrangersCannotRunWorkers checks that a stranger's turn may run other workers only if the worker
// permits it.
func TestStrangersCannotRunWorkers(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.newWorker(workers.NewWorker{Title: "Inner"})
	f.newWorker(workers.NewWorker{Title: "Hidden", Visibility: workers.Private})
	open := f.newWorker(workers.NewWorker{Title: "Open", Settings: workers.Settings{
		StrangerTools: workers.ToolRules{{Tool: tool.RunWorkerName}}}})
	ask := func(worker workers.Worker, name string) string {
		turn := f.wait(f.acceptTurn(store.NewTurn{Caller: f.stranger(), WorkerID: worker.ID, Budget: store.BudgetStandard,
			Input: "```offline\ntool run_worker {\"worker\":\"" + name + "\",\"input\":\"hello\"}\nsay done\n```"}))
		_, out := f.output(turn, 0, 0)
		return out
	}
	is.True(strings.Contains(ask(f.worker, "Inner"), "there is no tool") ||
		strings.Contains(ask(f.worker, "Inner"), "may not use")) // the default
	is.True(strings.Contains(ask(open, "Inner"), `"status":"completed"`)) // the worker permits it
	is.True(strings.Contains(ask(open, "Hidden"), "no worker has"))       // a private worker is refused
}

// TestManyTrees runs 64 trees of depth 5 with 8 slots. Each turn except the leaves waits for two
// others, so turns that held their slots would cause a deadlock.
func TestManyTrees(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m := teamModel(func(input string) []string {
		if input == "0" {
			return nil
		}
		below := fmt.Sprintf(`{"worker":"Scribe","input":"%d"}`, input[0]-'1')
		if input == "1" {
			return []string{"run_worker", below, "run_worker", below}
		}
		return []string{"run_worker", below}
	})
	f := newFixture(t, withModel(m), func(c *runner.Config) { c.Concurrency = 8 })
	var roots []store.Turn
	for range storetest.Rounds(64, 8) {
		roots = append(roots, f.accept("5"))
	}
	for _, turn := range roots {
		turn = f.wait(turn)
		is.Equal(turn.Status, store.Completed)
		ordertest.AtMost(is, turn.Claims, 2) // ended children need no wait
	}
	f.checkSums()
}

// TestWorkersAreListed checks which workers a turn knows, and that the list stays the same.
func TestWorkersAreListed(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	const head = "Workers that run_worker can call"
	m := says("one", "two")
	f := newFixture(t, withModel(m))
	f.run("go")
	is.True(!strings.Contains(m.last().Preamble, head)) // there are no others
	f.newWorker(workers.NewWorker{Title: "Reader", Summary: "Reads\nmuch."})
	f.run("go")
	is.True(strings.Contains(m.last().Preamble, head))
	is.True(strings.HasSuffix(m.last().Preamble, "\n- \"Reader\": \"Reads much.\""))
	// A worker that may not run workers does not know them.
	f.worker = f.newWorker(workers.NewWorker{Title: "Alone", Settings: workers.Settings{Tools: rules(t, `["read_file"]`)}})
	f.run("go")
	is.True(!strings.Contains(m.last().Preamble, head))
}

// TestListedWorkersStay stops a turn after its first step. Its next claim knows the same workers.
func TestListedWorkersStay(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	made := make(chan struct{}, 1)
	m := &fakeModel{fn: func(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		if stepOf(req) == 0 {
			return calls(emit, 0, "it", `{}`), nil
		}
		select {
		case made <- struct{}{}:
			<-ctx.Done()
			return model.Response{}, ctx.Err()
		default:
			return answer(emit, "done"), nil
		}
	}}
	f := newFixture(t, withModel(m), withTools(gives("it", `1`)))
	f.newWorker(workers.NewWorker{Title: "Reader"})
	turn := f.accept("go")
	storetest.Eventually(t, "the second call", func() bool { return len(m.seen()) == 2 })
	f.newWorker(workers.NewWorker{Title: "Later"})
	f.stop()
	<-made
	made <- struct{}{}
	f = f.successor(withModel(m), withTools(gives("it", `1`)))
	f.wait(turn)
	is.Equal(m.last().Preamble, m.seen()[0].Preamble)
}
