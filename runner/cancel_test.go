package runner_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/runner/tool"
	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

// abort cancels a task, and checks the duration of the cancellation.
func (f *fixture) abort(turn store.Turn) store.Task {
	f.t.Helper()
	begun := time.Now()
	task, err := f.AbortTask(f.ctx(), f.owner, turn.TaskID)
	is.New(f.t).NoErr(err)
	if took := time.Since(begun); took > 20*time.Second { // a busy machine may take longer than the promised second
		f.t.Errorf("cancelling took %v", took)
	}
	return task
}

func TestCancelModel(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m, begun := blocked()
	f := newFixture(t, withModel(m))
	turn := f.accept("go")
	live := f.reading(f.Streams.Turn(turn))
	until(t, begun, "the model is asked")
	is.Equal(f.abort(turn).Status, store.Aborted)
	turn = f.wait(turn)
	is.Equal(turn.OutputText, "half a wo")           // the output so far is kept
	is.Equal(turn.Usage.OutputTokens, int64(3))      // and it is charged
	ordertest.Above(is, turn.Usage.InputTokens, 100) // the cancelled call was not charged
	is.Equal(f.journal(turn)[0].Usage.OutputTokens, int64(3))
	is.Equal(turn.Failure.Code, "aborted")
	u := until(t, live, "the stream ends")
	is.Equal(u.messages(), f.messages(turn)[1:])
	is.Equal(u.status, []string{"pending", "running", "aborted"})
	is.Equal(f.abort(turn).Status, store.Aborted) // a second cancellation is no error
}

// TestDeleteBusyWorker deletes a worker with one running turn and more waiting ones than one write ends. All of them
// have ended when the deletion returns, and their watchers know it.
func TestDeleteBusyWorker(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m, begun := blocked()
	f := newFixture(t, withModel(m), func(c *runner.Config) { c.Concurrency = 1 })
	running := f.accept("go")
	until(t, begun, "the model is asked")
	turns := []store.Turn{running, f.accept("more", running.TaskID)}
	for range 600 {
		turns = append(turns, f.accept("go"))
	}
	live := f.reading(f.Streams.Turn(turns[len(turns)-1]))
	is.NoErr(f.DeleteWorker(f.ctx(), f.owner, f.worker.ID))
	for _, turn := range turns {
		got := f.reload(turn.ID)
		is.Equal([]store.Status{got.Status, got.TaskStatus}, []store.Status{store.Aborted, store.Aborted})
	}
	u := until(t, live, "the stream ends")
	is.Equal(u.status[len(u.status)-1], "aborted")
}

// TestCancelInTheMiddle checks that the output of an interrupted model call stays as clients saw
// it. The interruption may be inside a character of a text or inside a string of arguments.
func TestCancelInTheMiddle(t *testing.T) {
	t.Parallel()
	for name, deltas := range map[string][]model.Delta{
		"nothing":    {},
		"reasoning":  {{Type: model.PartReasoning, Text: "hm"}},
		"character":  {{Type: model.PartText, Text: "a\xe2\x82"}},
		"arguments":  {{Type: model.PartText, Text: "so"}, {Part: 1, Type: model.PartToolCall, CallID: "c", ToolName: "it", Text: `{"a": "b`}},
		"whole call": {{Type: model.PartToolCall, CallID: "c", ToolName: "it", Text: `{"a": 1}`}},
		"two calls": {{Type: model.PartToolCall, CallID: "c", ToolName: "it", Text: `{"a": <`}, {Part: 1, Type: model.PartToolCall, CallID: "c", ToolName: "it"},
			{Part: 2, Type: model.PartText, Text: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			begun := make(chan struct{}, 1)
			f := newFixture(t, withModel(&fakeModel{fn: func(ctx context.Context, _ model.Request, emit func(model.Delta)) (model.Response, error) {
				for _, d := range deltas {
					emit(d)
				}
				begun <- struct{}{}
				<-ctx.Done()
				return model.Response{}, ctx.Err()
			}}))
			turn := f.accept("go")
			live := f.reading(f.Streams.Turn(turn))
			until(t, begun, "the model is asked")
			f.abort(turn)
			want := f.messages(turn)[1:]
			is.Equal(until(t, live, "the stream ends").messages(), want)
			is.Equal(f.read(f.taskStream(turn, "")).messages(), want)
		})
	}
}

func TestCancelTool(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		result json.RawMessage
		state  store.CallState
		says   string
	}{
		"cut off":           {nil, store.CallInterrupted, "cut off"},
		"done all the same": {json.RawMessage(`"sent"`), store.CallCompleted, "sent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			begun := make(chan struct{}, 1)
			it := fakeTool{name: "it", fn: func(ctx context.Context, _ tool.Host, _ json.RawMessage) (json.RawMessage, error) {
				begun <- struct{}{}
				<-ctx.Done()
				if tt.result == nil {
					return nil, ctx.Err()
				}
				return tt.result, nil
			}}
			f := newFixture(t, withTools(it))
			turn := f.accept(script(`say so`, `tool it {}`, `tool it {}`, `say never`))
			until(t, begun, "the tool runs")
			f.abort(turn)
			turn = f.wait(turn)
			is.Equal(turn.Status, store.Aborted)
			steps := f.journal(turn)
			is.Equal(len(steps), 1)
			is.Equal(steps[0].Calls[0].State, tt.state)
			is.True(strings.Contains(string(steps[0].Calls[0].Output), tt.says))
			is.Equal(f.read(f.taskStream(turn, "")).messages(), f.messages(turn)[1:])
		})
	}
}

func TestCancelQueued(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m, begun := blocked()
	f := newFixture(t, withModel(m))
	first := f.accept("one")
	second := f.accept("two", first.TaskID)
	until(t, begun, "the model is asked")
	live := f.reading(f.Streams.Turn(second))
	waited := make(chan error, 1)
	go func() { waited <- f.Wait(f.ctx(), second.ID) }()
	f.abort(first)
	is.NoErr(until(t, waited, "the queued turn has ended"))
	is.Equal(f.wait(second).Status, store.Aborted)
	u := until(t, live, "the stream ends")
	is.Equal(u.status, []string{"aborted"}) // the task then still had the status of its first turn
	is.Equal(u.messages(), f.messages(first)[3:])
	is.Equal(len(m.seen()), 1) // the second turn never ran
	third := f.accept("three", first.TaskID)
	until(t, begun, "the next turn runs")
	f.abort(third)
}

// TestCancelRaces cancels tasks while their turns are claimed. Every turn ends cancelled.
func TestCancelRaces(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m, _ := blocked()
	f := newFixture(t, withModel(m))
	for range storetest.Rounds(60, 20) {
		turn := f.accept("go")
		f.abort(turn)
		is.Equal(f.wait(turn).Status, store.Aborted)
	}
	_, _, watched, _ := f.Kept()
	is.Equal(watched, 0)
}

func TestRetries(t *testing.T) {
	t.Parallel()
	busy := &model.Error{Code: "503", Message: "overloaded", Retryable: true, RetryAfter: 20 * time.Millisecond}
	for name, tt := range map[string]struct {
		fails int
		err   error
		calls int64
		code  string
	}{
		"passes":             {2, busy, 3, ""},
		"gives up":           {99, busy, 5, "503"},
		"is not tried again": {99, &model.Error{Code: "401", Message: "bad key"}, 1, "401"},
		"is unknown":         {99, errOutside, 1, "internal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			var n atomic.Int64
			f := newFixture(t, withModel(&fakeModel{fn: func(_ context.Context, _ model.Request, emit func(model.Delta)) (model.Response, error) {
				if n.Add(1) <= int64(tt.fails) {
					emit(model.Delta{Type: model.PartText, Text: "this is withdrawn "})
					return model.Response{}, tt.err
				}
				return answer(emit, "fine"), nil
			}}), withPatience(1))
			begun := time.Now()
			turn := f.accept("go")
			u := f.read(f.Streams.Turn(turn))
			turn = f.wait(turn)
			is.Equal(n.Load(), tt.calls)
			ordertest.AtLeast(is, time.Since(begun), time.Duration(tt.calls-1)*busy.RetryAfter) // too early
			is.Equal(u.messages(), f.messages(turn)[1:])
			if tt.code == "" {
				is.Equal(turn.OutputText, "fine")
				return
			}
			is.Equal(turn.Failure.Code, tt.code)
			is.Equal(turn.OutputText, "this is withdrawn ") // no later attempt replaced it
		})
	}
}

func TestCancelBackOff(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	failed := make(chan struct{}, 1)
	f := newFixture(t, withModel(&fakeModel{fn: func(_ context.Context, _ model.Request, emit func(model.Delta)) (model.Response, error) {
		emit(model.Delta{Type: model.PartText, Text: "half"})
		failed <- struct{}{}
		return model.Response{}, &model.Error{Code: "429", Message: "slow down", Retryable: true, RetryAfter: time.Hour}
	}}), withPatience(2*time.Hour))
	turn := f.accept("go")
	until(t, failed, "the call has failed")
	is.Equal(f.abort(turn).Status, store.Aborted)
	is.Equal(f.read(f.Streams.Turn(turn)).messages(), f.messages(turn)[1:])
}

// TestStreamDiffersFromResponse uses a provider whose response differs from its stream. Readers get
// a restart of the step, followed by the response.
func TestStreamDiffersFromResponse(t *testing.T) {
	t.Parallel()
	for name, deltas := range map[string][]model.Delta{
		"other text":     {{Type: model.PartText, Text: "something else"}},
		"other kind":     {{Type: model.PartReasoning, Text: "fine"}},
		"more parts":     {{Type: model.PartText, Text: "fine"}, {Part: 1, Type: model.PartText, Text: "x"}},
		"a gap":          {{Part: 7, Type: model.PartText, Text: "fine"}},
		"no place":       {{Part: -1, Type: model.PartText, Text: "fine"}, {Part: 1 << 40, Type: model.PartText, Text: "fine"}},
		"another call":   {{Type: model.PartToolCall, CallID: "x", ToolName: "y", Text: "{}"}},
		"back and forth": {{Type: model.PartText, Text: "f"}, {Part: 1, Type: model.PartText, Text: "x"}, {Type: model.PartText, Text: "ine"}},
		"only a part":    {{Type: model.PartText, Text: "fi"}},
		"nothing":        {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			streamed, goOn := make(chan struct{}), make(chan struct{})
			f := newFixture(t, withModel(&fakeModel{fn: func(_ context.Context, _ model.Request, emit func(model.Delta)) (model.Response, error) {
				for _, d := range deltas {
					emit(d)
				}
				close(streamed)
				<-goOn
				return answer(nil, "fine"), nil
			}}))
			turn := f.accept("go")
			until(t, streamed, "the model has streamed")
			s := f.Streams.Turn(turn)
			events, done, err := s.Next(t.Context())
			is.NoErr(err)
			is.True(!done)
			close(goOn)
			u := newUIReader(t)
			feed(u, append(events, f.events(s)...))
			is.Equal(f.wait(turn).OutputText, "fine")
			is.Equal(u.messages(), f.messages(turn)[1:])
		})
	}
}

// TestAbortBeforeBegin cancels a task after the claim of its turn is committed, but before the
// runner gets that claim.
func TestAbortBeforeBegin(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	if !storetest.OnServer() {
		t.Skip("the embedded database commits nothing before it has reported the claim")
	}
	m, _ := blocked()
	f := newFixture(t, withModel(m))
	claimed, let := make(chan struct{}), make(chan struct{})
	f.store.OnClaimed(func(c store.Claim) {
		close(claimed)
		<-let
		f.Begin(c)
	})
	go f.accept("go")
	until(t, claimed, "the turn is claimed")
	tasks, _, err := f.store.Tasks(t.Context(), f.owner, store.TaskQuery{Limit: 1})
	is.NoErr(err)
	aborted := make(chan struct{})
	go func() {
		defer close(aborted)
		if task, err := f.AbortTask(f.ctx(), f.owner, tasks[0].ID); err != nil || task.Status != store.Aborted {
			t.Errorf("the task is %s: %v", task.Status, err)
		}
	}()
	storetest.Eventually(t, "the cancelling", func() bool {
		turns := storetest.Rows(t, f.store.Dir(), "SELECT abort_requested FROM turns")
		return turns[0][0] == "1"
	})
	close(let)
	until(t, aborted, "the task is cancelled")
}
