package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner/model"
	"journeyman/runner/stream"
	"journeyman/runner/tool"
	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

// A play is the random behaviour of a model in one turn: the tries of each step.
type play struct {
	steps [][]try // in each step, only the last try succeeds
	ends  string  // the end of the last step's last try: "" for success, "fail" or "stuck"
}

type try struct {
	parts  []model.Part
	deltas []model.Delta
	fails  bool
}

var alphabet = []string{"a", "é", "€", "😀", " ", "\n", "<b>", "&", "\u2028", "\"", "\\", "\xff", "\xe2\x82", "word "}

func randomText(r *rand.Rand, n int) string {
	var b strings.Builder
	for range r.IntN(n) + 1 {
		b.WriteString(alphabet[r.IntN(len(alphabet))])
	}
	return b.String()
}

// randomInput returns random arguments for a tool. Most of them are valid.
func randomInput(r *rand.Rand) string {
	switch r.IntN(6) {
	case 0:
		return randomText(r, 10)
	case 1:
		return ""
	case 2:
		return `{"__proto__": {"x": 1}}`
	}
	text, _ := json.Marshal(randomText(r, 30))
	return fmt.Sprintf(`{ "text": %s , "n": [1, 2.50]}`, text)
}

// randomTry returns random parts, split into deltas at any byte.
func randomTry(r *rand.Rand, step, n int, withCalls bool) try {
	var t try
	for i := range r.IntN(3) + 1 {
		p := model.Part{Type: model.PartText, Text: randomText(r, 40)}
		switch r.IntN(4) {
		case 0:
			p.Type = model.PartReasoning
		case 1:
			p.Text = ""
		}
		if withCalls && (i == 0 || r.IntN(2) == 0) {
			p = model.Part{Type: model.PartToolCall, CallID: fmt.Sprintf("c%d.%d.%d", step, n, i), ToolName: []string{"good", "bad", "none"}[r.IntN(3)],
				Input: json.RawMessage(randomInput(r))}
		}
		t.parts = append(t.parts, p)
		for rest := p.Text + string(p.Input); rest != ""; {
			k := r.IntN(min(len(rest), 12)) + 1
			t.deltas = append(t.deltas, model.Delta{Part: i, Type: p.Type, CallID: p.CallID, ToolName: p.ToolName, Text: rest[:k]})
			rest = rest[k:]
		}
	}
	return t
}

func randomPlay(r *rand.Rand, ends string) play {
	p := play{ends: ends}
	n := r.IntN(4) + 1
	for step := range n {
		var tries []try
		for i := range r.IntN(3) {
			failed := randomTry(r, step, i, r.IntN(2) == 0)
			failed.deltas = failed.deltas[:r.IntN(len(failed.deltas)+1)]
			failed.fails = true
			tries = append(tries, failed)
		}
		p.steps = append(p.steps, append(tries, randomTry(r, step, 9, step < n-1)))
	}
	return p
}

// playModel returns a model that plays the turns. The instruction of a turn is its number. At each
// delta the model yields to other goroutines and calls at.
func playModel(plays []play, at func(turn, delta int)) *fakeModel {
	tries := map[string]int{}
	deltas := make([]int, len(plays))
	m := &fakeModel{}
	m.fn = func(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		var turn int
		fmt.Sscan(textOf(req.Messages[req.TurnStart]), &turn)
		p := plays[turn]
		step := min(stepOf(req), len(p.steps)-1)
		key := fmt.Sprint(turn, step)
		m.mu.Lock()
		n := min(tries[key], len(p.steps[step])-1)
		tries[key]++
		m.mu.Unlock()
		t := p.steps[step][n]
		for _, d := range t.deltas {
			at(turn, deltas[turn])
			deltas[turn]++
			emit(d)
			runtime.Gosched()
		}
		if t.fails {
			return model.Response{}, &model.Error{Code: "503", Message: "busy", Retryable: true}
		}
		if step == len(p.steps)-1 {
			switch p.ends {
			case "fail":
				return model.Response{}, &model.Error{Code: "400", Message: "no"}
			case "stuck":
				at(turn, -1)
				<-ctx.Done()
				return model.Response{}, ctx.Err()
			}
		}
		r := model.Response{Model: "fake", Parts: t.parts, Finish: model.FinishStop, Usage: model.Usage{InputTokens: 1, OutputTokens: 1}}
		if step < len(p.steps)-1 {
			r.Finish = model.FinishToolCalls
		}
		return r, ctx.Err()
	}
	return m
}

func playTools() setup {
	bad := fakeTool{name: "bad", repeatable: true, fn: func(context.Context, tool.Host, json.RawMessage) (json.RawMessage, error) {
		return nil, tool.Errorf("this \xff tool is <bad>")
	}}
	good := fakeTool{name: "good", repeatable: true, fn: func(_ context.Context, h tool.Host, in json.RawMessage) (json.RawMessage, error) { return in, nil }}
	return withTools(good, bad)
}

// A cutReader reads a task's stream, and reconnects by id after any event.
type cutReader struct {
	u    *uiReader
	r    *rand.Rand
	last string
	cuts int
}

func (c *cutReader) take(e stream.Event) {
	c.u.take(e)
	c.last = string(e.ID)
}

// follow reads until the stream is done, or until stop is closed and no event is ready. It
// disconnects after about one of every n events.
func (c *cutReader) follow(f *fixture, task store.TaskRef, n int, stop <-chan struct{}) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if stop != nil {
		go func() { // ends with stop
			<-stop
			cancel()
		}()
	}
again:
	s, err := f.Streams.Task(context.Background(), task, c.last)
	if err != nil {
		return err
	}
	for {
		events, done, err := s.Next(ctx)
		for _, e := range events {
			c.take(e)
			if n > 0 && c.r.IntN(n) == 0 {
				c.cuts++
				goto again
			}
		}
		if done || err != nil {
			return err
		}
	}
}

// send calls follow, and signals its return even if the test fails in between.
func (c *cutReader) send(done chan<- error, f *fixture, task store.TaskRef, n int, stop <-chan struct{}) {
	err := errOutside
	defer func() { done <- err }()
	err = c.follow(f, task, n, stop)
}

// TestStreamsAreExact checks the central property of streams. A reader may read without a break, or
// reconnect after any event, during the turn or later. At the end it has built the stored messages.
func TestStreamsAreExact(t *testing.T) {
	t.Parallel()
	for seed := range storetest.Rounds(30, 3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			r := rand.New(rand.NewPCG(uint64(seed), 1))
			plays := []play{randomPlay(r, ""), randomPlay(r, []string{"", "fail"}[r.IntN(2)]), randomPlay(r, "")}
			gate := make(chan struct{})
			f := newFixture(t, playTools(), withModel(playModel(plays, func(int, int) { <-gate })))
			turn := f.accept("0")
			for i := 1; i < len(plays); i++ {
				turn = f.accept(fmt.Sprint(i), turn.TaskID)
			}
			readers := make([]*cutReader, 6)
			done := make(chan error, len(readers))
			for i := range readers {
				readers[i] = &cutReader{u: newUIReader(t), r: rand.New(rand.NewPCG(uint64(seed), uint64(i)))}
				go readers[i].send(done, f, turn, []int{0, 1, 2, 5, 10, 30}[i], nil)
			}
			close(gate)
			for range readers {
				is.NoErr(until(t, done, "a reader has read all"))
			}
			want := assistants(f.messages(turn))
			is.Equal(len(want), len(plays))
			for i, c := range readers {
				if c.u.users != len(plays) {
					t.Errorf("reader %d saw %d user messages", i, c.u.users)
				}
				sameMessages(t, fmt.Sprintf("live reader %d, cut %d times", i, c.cuts), c.u.messages(), want)
			}
			for n := range 4 {
				after := &cutReader{u: newUIReader(t), r: r}
				is.NoErr(after.follow(f, turn, n, nil))
				sameMessages(t, fmt.Sprintf("reader afterwards, %d", n), after.u.messages(), want)
			}
		})
	}
}

// TestStreamsAreExactAfterKill checks the same property with a crash of the process. The crash may
// come at any delta of any turn, and the readers may be at any event.
func TestStreamsAreExactAfterKill(t *testing.T) {
	t.Parallel()
	for seed := range storetest.Rounds(30, 4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			r := rand.New(rand.NewPCG(uint64(seed), 2))
			plays := []play{randomPlay(r, ""), randomPlay(r, "")}
			inTurn, atDelta := r.IntN(2), r.IntN(25)
			dead, accepted, forever := make(chan death, 1), make(chan struct{}), make(chan struct{})
			var f *fixture
			f = newFixture(t, playTools(), withModel(playModel(plays, func(turn, delta int) {
				<-accepted
				if turn == inTurn && delta == atDelta {
					dead <- f.die()
					<-forever
				}
			})))
			t.Cleanup(func() { close(forever) }) // before the runner stops
			first := f.accept("0")
			last := f.accept("1", first.TaskID)
			close(accepted)
			readers := make([]*cutReader, 4)
			stop := make(chan struct{})
			done := make(chan error, len(readers))
			for i := range readers {
				readers[i] = &cutReader{u: newUIReader(t), r: rand.New(rand.NewPCG(uint64(seed), uint64(i)))}
				go readers[i].send(done, f, last, []int{0, 1, 3, 10}[i], stop)
			}
			ended := make(chan error, 1)
			go func() { ended <- f.Wait(t.Context(), last.ID) }()
			g := f
			select {
			case d := <-dead:
				g = f.after(d, withModel(playModel(plays, func(int, int) {})))
				g.start()
			case err := <-ended: // the turns had fewer deltas than drawn
				is.NoErr(err)
			}
			close(stop)
			for range readers {
				until(t, done, "a reader has stopped")
			}
			g.wait(last)
			want := assistants(g.messages(last))
			for i, c := range readers {
				is.NoErr(c.follow(g, last, 3, nil))
				sameMessages(t, fmt.Sprintf("reader %d", i), c.u.messages(), want)
			}
		})
	}
}

func assistants(messages []any) (list []any) {
	for _, m := range messages {
		if m.(map[string]any)["role"] == "assistant" {
			list = append(list, m)
		}
	}
	return list
}

func sameMessages(t testing.TB, who string, got, want []any) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		var g, w string
		if i < len(got) {
			g = fmt.Sprintf("%q", got[i])
		}
		if i < len(want) {
			w = fmt.Sprintf("%q", want[i])
		}
		if g != w {
			t.Fatalf("%s: message %d is\n%s, want\n%s", who, i, g, w)
		}
	}
}

// TestStreamsOfBrokenTurns checks that streams of unsuccessful turns build the stored messages.
func TestStreamsOfBrokenTurns(t *testing.T) {
	t.Parallel()
	for seed := range storetest.Rounds(16, 3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			r := rand.New(rand.NewPCG(uint64(seed), 3))
			stuck := make(chan struct{}, 1)
			plays := []play{randomPlay(r, []string{"fail", "stuck"}[seed%2])}
			f := newFixture(t, playTools(), withModel(playModel(plays, func(_, delta int) {
				if delta < 0 {
					stuck <- struct{}{}
				}
			})))
			turn := f.accept("0")
			live := f.reading(f.taskStream(turn, ""))
			if seed%2 == 1 {
				until(t, stuck, "the model stands still")
				f.abort(turn)
			}
			f.wait(turn)
			u := until(t, live, "the stream ends")
			want := assistants(f.messages(turn))
			sameMessages(t, "live", u.messages(), want)
			sameMessages(t, "afterwards", f.read(f.taskStream(turn, "")).messages(), want)
			is.Equal(len(u.errors), int(1-seed%2))
			is.True(u.ended)
		})
	}
}

func TestUnknownIDs(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	other := f.run(script(`say other`))
	first := f.run(script(`say one`))
	turn := f.run(script(`say two`), first.TaskID)
	all := f.events(f.taskStream(turn, ""))
	for _, id := range []string{"", "x", "0", "1.2.3", "1.2.3.4.5.6", "-1.0.0.1.0", "zzzzzzzzzzzzzzzz.0.0.1.0", "1.zzzzzzz.0.1.0",
		string(f.events(f.Streams.Turn(other))[0].ID), "01.0.0.1.0", "+1.0.0.1.0", strings.Repeat("9", 1000)} {
		is.Equal(f.events(f.taskStream(turn, id)), all) // all events again
	}
	is.Equal(len(f.events(f.taskStream(turn, string(all[len(all)-1].ID)))), 0) // done at once
	is.Equal(f.events(f.taskStream(turn, string(all[3].ID))), all[4:])
	is.Equal(f.events(f.taskStream(turn, string(all[3].ID)+"~")), all[4:]) // the id of a replayed event

	// Ids of this task that belong to no event neither hang nor fail.
	for step := range int64(3) {
		for _, rest := range []string{"1.0", "2.0", "2.7ps", "kqyo.0", "hsye80.0", "0.0"} {
			id := fmt.Sprintf("%d.%d.7.%s", turn.Num, step, rest)
			f.events(f.taskStream(turn, id))
		}
	}
	is.Equal(len(f.events(f.taskStream(store.Task{}, ""))), 0)
}

// TestNextUnderDeadlines checks that a reader loses no event when its ctx ends inside a query.
func TestNextUnderDeadlines(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	turn := f.run(script(`say one`))
	for range 5 {
		turn = f.run(script(`say more`), turn.TaskID)
	}
	s := f.taskStream(turn, "")
	u := newUIReader(t)
	for d := time.Microsecond; ; d += d/8 + 1 {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		events, done, err := s.Next(ctx)
		cancel()
		is.True(err == nil || len(events) == 0)
		feed(u, events)
		if done {
			break
		}
		ordertest.Below(is, d, patience) // the reader waited too long
	}
	sameMessages(t, "impatient", u.messages(), assistants(f.messages(turn)))
}

func TestCloseStreams(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m, begun := blocked()
	f := newFixture(t, withModel(m))
	turn := f.accept("go")
	until(t, begun, "the model is asked")
	s := f.Streams.Turn(turn)
	w := f.workerStream(f.worker.ID, "")
	defer w.Close()
	drain := func(s source) error {
		for {
			if _, _, err := s.Next(t.Context()); err != nil {
				return err
			}
		}
	}
	f.Streams.Close()
	is.Equal(drain(s), stream.ErrClosed)
	is.Equal(drain(w), stream.ErrClosed)
	is.Equal(f.abort(turn).Status, store.Aborted) // the turn does not depend on its readers
}
