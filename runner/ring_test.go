package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner/model"
	"journeyman/runner/stream"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// A wideReader reads a worker-wide stream with one uiReader for each turn.
type wideReader struct {
	t        testing.TB
	turns    map[string]*uiReader
	order    []string
	ended    map[string]bool
	restarts int
	last     string // the last event id, with which the reader reconnects
	ids      []string
}

func newWideReader(t testing.TB) *wideReader {
	return &wideReader{t: t, turns: map[string]*uiReader{}, ended: map[string]bool{}}
}

func (w *wideReader) take(e stream.Event) {
	w.last = string(e.ID)
	w.ids = append(w.ids, string(e.ID))
	var c struct {
		Type   string
		TaskID string
		TurnID string
		Data   struct{ StepID string }
	}
	is.New(w.t).NoErr(json.Unmarshal(e.Data, &c))
	if c.TaskID == "" || c.TurnID == "" {
		w.t.Fatalf("%s does not say whose it is", e.Data)
	}
	if c.Type == "data-restart" && c.Data.StepID == "" {
		// The complete messages of all turns that may have changed follow.
		w.restarts++
		for id := range w.turns {
			if !w.ended[id] {
				delete(w.turns, id)
			}
		}
		return
	}
	u := w.turns[c.TurnID]
	if u == nil || w.ended[c.TurnID] && c.Type == "data-user-message" { // replayed after a restart
		u = newUIReader(w.t)
		u.wide = true
		w.turns[c.TurnID] = u
		w.order = append(w.order, c.TurnID)
	}
	if u.users == 0 && c.Type != "data-user-message" {
		w.t.Fatalf("the turn %s begins with %s", c.TurnID, c.Type)
	}
	u.take(e)
	w.ended[c.TurnID] = u.ended
}

// follow reads until n turns have ended. After about one of every cut events it reconnects with its
// last id. If forgets is set, it sometimes uses an unknown id instead.
func (w *wideReader) follow(f *fixture, n, cut int, forgets bool, r *rand.Rand, joined chan<- struct{}) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for err = errCut; errors.Is(err, errCut); {
		err = w.session(ctx, f, n, cut, r, joined)
		joined = nil
		if forgets && r.IntN(3) == 0 {
			w.last = "what was it"
		}
	}
	return err
}

var errCut = errors.New("the reader is cut off")

func (w *wideReader) session(ctx context.Context, f *fixture, n, cut int, r *rand.Rand, joined chan<- struct{}) error {
	s, err := f.Streams.Worker(ctx, f.worker.ID, w.last)
	if err != nil {
		return err
	}
	defer s.Close()
	if joined != nil {
		joined <- struct{}{}
	}
	for w.done() < n {
		events, _, err := s.Next(ctx)
		if err != nil {
			return err
		}
		for _, e := range events {
			w.take(e)
			if cut > 0 && r.IntN(cut) == 0 {
				return errCut
			}
		}
	}
	return nil
}

func (w *wideReader) done() (n int) {
	for _, ended := range w.ended {
		if ended {
			n++
		}
	}
	return n
}

// check compares the built messages with the stored messages.
func (w *wideReader) check(f *fixture, turns []store.Turn) {
	w.t.Helper()
	for _, turn := range turns {
		u := w.turns[turn.ID]
		if u == nil {
			w.t.Errorf("nothing was told of turn %d", turn.Num)
			continue
		}
		conv := f.conversation(turn)
		var want []any
		for _, m := range plain(w.t, f.views().Messages(conv, view.SDK5)).([]any) {
			if m := m.(map[string]any); m["role"] == "assistant" && m["metadata"].(map[string]any)["turnId"] == turn.ID {
				want = append(want, m)
			}
		}
		sameMessages(w.t, fmt.Sprintf("turn %d", turn.Num), u.messages(), want)
	}
}

func TestWideStreamsAreExact(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	for seed := range storetest.Rounds(30, 3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			r := rand.New(rand.NewPCG(uint64(seed), 4))
			var plays []play
			for range 8 {
				plays = append(plays, randomPlay(r, []string{"", "", "fail"}[r.IntN(3)]))
			}
			f := newFixture(t, playTools(), withModel(playModel(plays, func(int, int) {})))
			readers := make([]*wideReader, 8)
			done, joined := make(chan error, len(readers)), make(chan struct{}, len(readers))
			for i := range readers {
				readers[i] = newWideReader(t)
				go func() {
					err := errOutside
					defer func() { done <- err }()
					err = readers[i].follow(f, len(plays), []int{0, 0, 1, 3, 10, 30, 150, 300}[i], i > 5, rand.New(rand.NewPCG(uint64(seed), uint64(i))), joined)
				}()
			}
			for range readers {
				until(t, joined, "a reader has joined")
			}
			var turns []store.Turn
			for i := range plays {
				if i < 4 {
					turns = append(turns, f.accept(fmt.Sprint(i)))
				} else {
					turns = append(turns, f.accept(fmt.Sprint(i), turns[i-4].TaskID))
				}
			}
			for range readers {
				is.NoErr(until(t, done, "a reader has read all"))
			}
			for i, w := range readers {
				w.check(f, turns)
				if i < 6 {
					is.Equal(w.restarts, 0)
					is.Equal(w.ids, readers[0].ids) // the same events in the same order
				}
			}
		})
	}
}

// TestJoinMidTurn checks that a late reader gets running turns from their beginning.
func TestJoinMidTurn(t *testing.T) {
	t.Parallel()
	for seed := range storetest.Rounds(20, 3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(seed), 5))
			plays := []play{randomPlay(r, ""), randomPlay(r, ""), randomPlay(r, "")}
			joins := make(chan struct{}, 1000)
			f := newFixture(t, playTools(), withModel(playModel(plays, func(_, delta int) {
				if delta%7 == 3 {
					joins <- struct{}{}
				}
			})))
			done := make(chan *wideReader, 100)
			n := 0
			join := func() {
				n++
				s := f.workerStream(f.worker.ID, "")
				w := newWideReader(t)
				go func() {
					defer func() { done <- w }()
					defer s.Close()
					for i := 0; ; i++ {
						ctx, cancel := context.WithTimeout(context.Background(), patience)
						events, _, err := s.Next(ctx)
						cancel()
						if err != nil {
							return // the runner has stopped
						}
						feed(w, events)
					}
				}()
			}
			var turns []store.Turn
			for i := range plays {
				turns = append(turns, f.accept(fmt.Sprint(i)))
			}
			ended := make(chan struct{})
			go func() {
				for _, turn := range turns {
					_ = f.Wait(context.Background(), turn.ID)
				}
				close(ended)
			}()
			for running := true; running; {
				select {
				case <-joins:
					join()
				case <-ended:
					running = false
				}
			}
			f.Streams.Close()
			for range n {
				w := until(t, done, "a reader has stopped")
				for id, u := range w.turns {
					if u.ended {
						w.check(f, []store.Turn{f.reload(id)})
					}
				}
			}
		})
	}
}

// A clock stands still until a test advances it.
type clock struct{ ms atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ms.Store(time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC).UnixMilli())
	return c
}

func (c *clock) now() time.Time          { return time.UnixMilli(c.ms.Load()) }
func (c *clock) advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }

// watching reads a new worker-wide stream until n turns have ended. It returns when the stream is open.
func (f *fixture) watching(n int) (*wideReader, <-chan error) {
	f.t.Helper()
	w, joined, followed := newWideReader(f.t), make(chan struct{}), make(chan error, 1)
	go func() { followed <- w.follow(f, n, 0, false, nil, joined) }()
	until(f.t, joined, "the stream is open")
	return w, followed
}

// readWide reads a new worker-wide stream until n turns have ended.
func (f *fixture) readWide(lastEventID string, n int) *wideReader {
	f.t.Helper()
	w := newWideReader(f.t)
	w.last = lastEventID
	is.New(f.t).NoErr(w.follow(f, n, 0, false, nil, nil))
	return w
}

func TestRingAge(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	c := newClock()
	f := newFixture(t, withClock(c.now))
	keeps := f.workerStream(f.worker.ID, "")
	defer keeps.Close()
	first := f.run(script(`say one`))
	is.Equal(f.readWide("", 0).last, "")
	got, _, err := keeps.Next(t.Context())
	is.NoErr(err)
	id := string(got[len(got)-1].ID)

	c.advance(stream.RingAge)
	second := f.run(script(`say two`))
	w := f.readWide(id, 1) // within RingAge
	is.Equal(w.restarts, 0)
	w.check(f, []store.Turn{second})

	c.advance(time.Second)
	f.Streams.Prune()
	w = f.readWide(id, 2)
	is.Equal(w.restarts, 1)
	w.check(f, []store.Turn{first, second})
	// The id of a replayed event is not a position in the ring.
	is.Equal(f.readWide(w.last, 1).restarts, 1)
}

func TestRingBytes(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	slow := f.workerStream(f.worker.ID, "")
	defer slow.Close()
	first := f.run(script(`say one`))
	events, _, err := slow.Next(t.Context())
	is.NoErr(err)
	var turns []store.Turn
	for range 6 {
		turns = append(turns, f.run(script(`say `+strings.Repeat("long ", 1000), `usage 1 1`)+strings.Repeat("x", stream.RingBytes/5)))
	}
	for err == nil {
		_, _, err = slow.Next(t.Context())
	}
	// The slow reader is disconnected and does not delay the others.
	is.True(db.IsKind(err, db.Busy))
	w := f.readWide(string(events[0].ID), 7)
	is.Equal(w.restarts, 1)
	w.check(f, append(turns, first))
}

func TestForeignIDs(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	first := f.run(script(`say one`))
	other := f.worker
	f.worker = f.newWorker(workers.NewWorker{Title: "Other", Instructions: "Help."})
	theirs := f.run(script(`say theirs`))
	foreign := string(f.events(f.Streams.Turn(theirs))[0].ID)
	f.worker = other
	for _, id := range []string{"x", foreign, "zzzzzz.0.0.1.0", "~", "1", strings.Repeat("a", 10000)} {
		w := f.readWide(id, 1)
		is.Equal(w.restarts, 1)
		is.Equal(len(w.turns), 1) // only the turns of this worker
		w.check(f, []store.Turn{first})
	}
	own := f.events(f.Streams.Turn(first))
	w := f.readWide(string(own[1].ID), 1) // the id is from another stream of the same worker
	is.Equal(w.restarts, 1)
	w.check(f, []store.Turn{first})
}

// TestRestartAnnouncesOlderTurns checks that a restart replays each turn that ended meanwhile. One of
// them began before the turn of the reader's last event.
func TestRestartAnnouncesOlderTurns(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	goOn := make(chan struct{})
	f := newFixture(t, withModel(&fakeModel{fn: func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		if textOf(req.Messages[0]) == "slow" {
			<-goOn
		}
		return answer(emit, "done"), nil
	}}))
	before := f.run("before")
	slow := f.accept("slow")
	fast := f.run("fast")
	events := f.events(f.Streams.Turn(fast))
	close(goOn)
	slow = f.wait(slow)
	rendered := []store.Turn{slow, fast}
	// It ended in the same millisecond, so a replay may include it.
	if !before.CompletedAt.Before(fast.CreatedAt) {
		rendered = append(rendered, before)
	}
	w := f.readWide(string(events[len(events)-1].ID), len(rendered))
	is.Equal(len(w.turns), len(rendered))
	w.check(f, rendered)
}

func TestAbortedInQueueIsDeliveredOnce(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m, begun := blocked()
	f := newFixture(t, withModel(m))
	s := f.workerStream(f.worker.ID, "")
	defer s.Close()
	first := f.accept("one")
	until(t, begun, "the model is asked")
	queued := f.accept("two", first.TaskID)
	f.abort(first)
	third := f.accept("three", first.TaskID)
	until(t, begun, "the model is asked")
	f.abort(third)
	w := newWideReader(t)
	is.NoErr(w.follow(f, 0, 0, false, nil, nil))
	for w.done() < 3 {
		feed(w, f.next(s))
	}
	is.Equal(w.turns[queued.ID].status, []string{"aborted"})
	w.check(f, []store.Turn{first, queued, third})
	is.Equal(len(w.order), 3)
}

func TestNothingIsLeft(t *testing.T) {
	is := is.New(t)
	c := newClock()
	f := newFixture(t, withClock(c.now), withPrices(t, `{"offline":{"input":1,"output":1}}`))
	before := runtime.NumGoroutine()
	for i := range 20 {
		s := f.workerStream(f.worker.ID, []string{"", "x"}[i%2])
		turn := f.accept(script(`say a b c`, `tool update_plan {"items":[]}`, `say d`))
		task := f.taskStream(turn, "")
		f.next(s)
		f.next(task)
		f.wait(turn)
		s.Close()
	}
	f.stop()
	rings, running, watched, reserved := f.Kept()
	is.Equal([]int{rings, running, watched, reserved}, []int{1, 0, 0, 0})
	f.Streams.Prune()
	rings, _, _, _ = f.Kept()
	is.Equal(rings, 1) // the ring remains, because a reader may reconnect
	c.advance(stream.RingAge + time.Second)
	f.Streams.Prune()
	rings, _, _, _ = f.Kept()
	is.Equal(rings, 0)
	storetest.Eventually(t, "the goroutines end", func() bool { return runtime.NumGoroutine() <= before })
}
