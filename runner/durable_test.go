package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/runner/tool"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
)

// A life is the part of a turn of seven calls that one process executes. It also defines where the
// process dies: at the beginning or the end of a call, counted over all calls.
type life struct {
	mu    sync.Mutex
	calls []string
	point int
	dies  int // the point at which the process dies; -1 for never
	die   func()
}

// sevenCalls are the calls of a turn without interruptions.
var sevenCalls = []string{"model 0", "work 0", "look 0", "model 1", "look 1", "work 1", "model 2"}

func (l *life) call(name string) (ended func()) {
	l.mu.Lock()
	l.calls = append(l.calls, name)
	l.mu.Unlock()
	l.pass()
	return l.pass
}

func (l *life) pass() {
	l.mu.Lock()
	at := l.point == l.dies
	l.point++
	l.mu.Unlock()
	if at {
		l.die()
	}
}

func (l *life) setups() []setup {
	m := &fakeModel{fn: func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		step := stepOf(req)
		defer l.call(fmt.Sprintf("model %d", step))()
		switch step {
		case 0:
			return calls(emit, 0, "work", `{"step":0}`, "look", `{"step":0}`), nil
		case 1:
			return calls(emit, 1, "look", `{"step":1}`, "work", `{"step":1}`), nil
		}
		return answer(emit, "done"), nil
	}}
	run := func(name string) func(context.Context, tool.Host, json.RawMessage) (json.RawMessage, error) {
		return func(_ context.Context, _ tool.Host, in json.RawMessage) (json.RawMessage, error) {
			var args struct{ Step int }
			if err := json.Unmarshal(in, &args); err != nil {
				return nil, err
			}
			defer l.call(fmt.Sprintf("%s %d", name, args.Step))()
			return json.RawMessage(`"ok"`), nil
		}
	}
	return []setup{withModel(m), func(c *runner.Config) {
		c.Tools = []tool.Tool{fakeTool{name: "work", fn: run("work")}, fakeTool{name: "look", repeatable: true, fn: run("look")}}
	}}
}

func TestKillAtEveryPoint(t *testing.T) {
	t.Parallel()
	for dies := range 2 * len(sevenCalls) {
		t.Run(fmt.Sprint(dies), func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			first, second := &life{dies: dies}, &life{dies: -1}
			f := newFixture(t, first.setups()...)
			copied := make(chan death, 1)
			first.die = func() { copied <- f.die() }
			turn := f.accept("go")
			g := f.after(until(t, copied, "the process dies"), second.setups()...)
			g.start()
			turn = g.wait(turn)
			is.Equal(turn.Status, store.Completed)
			is.Equal(turn.OutputText, "done")
			is.Equal(turn.Usage.Steps, int64(3)) // each model call is charged once

			cut := dies / 2
			again := cut // the interrupted call is repeated
			if strings.HasPrefix(sevenCalls[cut], "work") {
				again++ // unless it may have taken effect
			}
			is.Equal(second.calls, sevenCalls[again:])
			var states []store.CallState
			for _, st := range g.journal(turn) {
				for _, c := range st.Calls {
					states = append(states, c.State)
				}
			}
			want := []store.CallState{"completed", "completed", "completed", "completed"}
			if i := slices.Index([]string{"work 0", "look 0", "look 1", "work 1"}, sevenCalls[cut]); again > cut {
				want[i] = store.CallInterrupted
			}
			is.Equal(states, want)
			is.Equal(g.read(g.taskStream(turn, "")).messages(), g.messages(turn)[1:])
		})
	}
}

// blocked returns a model that blocks until ctx ends, and signals when it begins.
func blocked() (*fakeModel, chan struct{}) {
	begun := make(chan struct{}, 100)
	return &fakeModel{fn: func(ctx context.Context, _ model.Request, emit func(model.Delta)) (model.Response, error) {
		emit(model.Delta{Type: model.PartText, Text: "half a wo"})
		begun <- struct{}{}
		<-ctx.Done()
		return model.Response{}, ctx.Err()
	}}, begun
}

// hanging returns a tool that blocks until ctx ends, and signals when it begins.
func hanging(name string) (fakeTool, chan struct{}) {
	begun := make(chan struct{}, 10)
	return fakeTool{name: name, fn: func(ctx context.Context, _ tool.Host, _ json.RawMessage) (json.RawMessage, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}}, begun
}

func TestThreeInterruptions(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m, begun := blocked()
	f := newFixture(t, withModel(m))
	turn := f.accept("go")
	cut := &cutReader{u: newUIReader(t)}
	for range 3 {
		until(t, begun, "the model is asked")
		s := f.taskStream(turn, cut.last)
		for seen := false; !seen; { // until the first half of the word
			for _, e := range f.next(s) {
				cut.take(e)
				seen = seen || strings.Contains(string(e.Data), "half a wo")
			}
		}
		f = f.crash()
		f.start()
	}
	turn = f.wait(turn)
	is.Equal(turn.Status, store.Failed)
	is.Equal(turn.Failure.Code, "interrupted")
	is.True(turn.Failure.Retryable)
	want := f.messages(turn)[1:]
	is.Equal(f.read(f.taskStream(turn, "")).messages(), want)
	is.NoErr(cut.follow(f, turn, 0, nil)) // the restart removes the interrupted step
	is.Equal(cut.u.messages(), want)
}

func TestProgressBetweenInterruptions(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m := &fakeModel{fn: func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		if stepOf(req) == 4 {
			return answer(emit, "done"), nil
		}
		return calls(emit, stepOf(req), "it", `{}`), nil
	}}
	it, begun := hanging("it")
	f := newFixture(t, withModel(m), withTools(it))
	turn := f.accept("go")
	for range 4 { // each death is in another call, so there was progress in between
		until(t, begun, "the tool runs")
		f = f.crash()
		f.start()
	}
	turn = f.wait(turn)
	is.Equal(turn.Status, store.Completed)
	is.Equal(turn.OutputText, "done")
	for _, st := range f.journal(turn)[:4] {
		is.Equal(st.Calls[0].State, store.CallInterrupted)
	}
}

func TestStopDoesNotCount(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m, begun := blocked()
	f := newFixture(t, withModel(m))
	turn := f.accept("go")
	for range 5 {
		until(t, begun, "the model is asked")
		f.stop()
		is.Equal(f.reload(turn.ID).Status, store.Pending)
		f = f.successor(withModel(m))
	}
	until(t, begun, "the model is asked")
	f.abort(turn)
	is.Equal(f.wait(turn).Failure.Code, "aborted")
}

// TestStopInTool stops the runner during a tool call. The model gets an error only if the call must
// not be repeated.
func TestStopInTool(t *testing.T) {
	t.Parallel()
	for _, repeatable := range []bool{false, true} {
		t.Run(fmt.Sprint(repeatable), func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			it, begun := hanging("it")
			it.repeatable = repeatable
			f := newFixture(t, withTools(it))
			turn := f.accept(script(`tool it {}`, `say done`))
			until(t, begun, "the tool runs")
			f.stop()
			g := f.successor(withTools(fakeTool{name: "it", repeatable: repeatable, fn: gives("it", `"ok"`).fn}))
			turn = g.wait(turn)
			is.Equal(turn.OutputText, "done")
			want := map[bool]store.CallState{false: store.CallInterrupted, true: store.CallCompleted}[repeatable]
			is.Equal(g.journal(turn)[0].Calls[0].State, want)
		})
	}
}

func TestStopGivesTime(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	asked, goOn := make(chan struct{}), make(chan struct{})
	f := newFixture(t, withModel(&fakeModel{fn: func(ctx context.Context, _ model.Request, emit func(model.Delta)) (model.Response, error) {
		close(asked)
		select {
		case <-goOn:
			return answer(emit, "in time"), nil
		case <-ctx.Done():
			return model.Response{}, ctx.Err()
		}
	}}))
	turn := f.accept("go")
	until(t, asked, "the model is asked")
	stopped := make(chan error, 1)
	go func() { stopped <- f.Stop(context.Background()) }()
	close(goOn)
	is.NoErr(until(t, stopped, "the runner has stopped"))
	is.Equal(f.wait(turn).OutputText, "in time")
	queued := f.accept("too late")
	err := f.Wait(f.ctx(), queued.ID)
	is.True(db.IsKind(err, db.Busy)) // clients do not wait for a turn that will not run
}

func TestAbortBeforeKill(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m, begun := blocked()
	f := newFixture(t, withModel(m))
	turn := f.accept("go")
	until(t, begun, "the model is asked")
	_, _, err := f.store.AbortTask(f.ctx(), f.owner, turn.TaskID) // before the process gets it
	is.NoErr(err)
	g := f.crash()
	g.start()
	turn = g.wait(turn)
	is.Equal(turn.Status, store.Aborted)
	is.Equal(turn.IncompleteReason, store.ReasonAborted)
}

// TestStopWhileClaiming checks that a stop at any moment leaves no claimed turn without a runner.
func TestStopWhileClaiming(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m, _ := blocked()
	f := newFixture(t, withModel(m))
	f.stop()
	var turns []store.Turn
	for i := range 40 {
		r := f.successor(withModel(m), func(c *runner.Config) { c.Concurrency = 3 })
		turns = append(turns, r.accept("go"))
		if i%2 == 0 {
			r.Wake()
		}
		r.stop()
		for _, turn := range turns {
			is.Equal(f.reload(turn.ID).Status, store.Pending)
		}
		is.Equal(r.Running(), 0)
	}
	is.Equal(f.store.Queued(), int64(len(turns)))
}

func TestPublishedBeforeKill(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dead := make(chan death, 1)
	var f *fixture
	die := fakeTool{name: "die", repeatable: true, fn: func(context.Context, tool.Host, json.RawMessage) (json.RawMessage, error) {
		select {
		case dead <- f.die():
		default:
		}
		return json.RawMessage(`1`), nil
	}}
	f = newFixture(t, withTools(die))
	turn := f.accept(script(`tool write_file {"path":"a.txt","content":"x"}`, `tool publish_file {"path":"a.txt"}`, `tool die {}`, `say done`))
	g := f.after(until(t, dead, "the process dies"))
	stream := g.taskStream(turn, "")
	wide, rendered := g.watching(1)
	g.start()
	live := g.reading(stream)
	turn = g.wait(turn)
	is.NoErr(until(t, rendered, "the end is told"))
	wide.check(g, []store.Turn{turn})
	u := until(t, live, "the stream ends")
	is.Equal(u.messages(), g.messages(turn)[1:])
	parts := g.messages(turn)[1].(map[string]any)["parts"].([]any)
	is.Equal(parts[len(parts)-1].(map[string]any)["type"], "file")
}

func TestPersist(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	tries := 0
	begun := time.Now()
	err := f.Persist(func(context.Context) error {
		if tries++; tries == 1 {
			return db.Errorf(db.Busy, "the disk is full")
		}
		return nil
	})
	is.NoErr(err)
	is.Equal(tries, 2)
	ordertest.AtLeast(is, time.Since(begun), runner.PersistRetry)                      // too early
	is.Equal(f.Persist(func(context.Context) error { return errOutside }), errOutside) // other errors are not retried

	full := make(chan struct{})
	failed := make(chan error, 1)
	var once sync.Once
	go func() {
		failed <- f.Persist(func(context.Context) error {
			once.Do(func() { close(full) })
			return db.Errorf(db.Busy, "the disk is full")
		})
	}()
	until(t, full, "the disk is full")
	f.stop() // a stop does not wait for a full disk
	is.True(db.IsKind(until(t, failed, "the write is given up"), db.Busy))
}
