package runner_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/runner/stream"
	"journeyman/store"
)

// BenchmarkWaitingTurns measures the memory of a turn that waits for its model.
func BenchmarkWaitingTurns(b *testing.B) {
	const turns = 500
	for b.Loop() {
		var waiting sync.WaitGroup
		waiting.Add(turns)
		m := &fakeModel{fn: func(ctx context.Context, _ model.Request, emit func(model.Delta)) (model.Response, error) {
			emit(model.Delta{Type: model.PartText, Text: "so"})
			waiting.Done()
			<-ctx.Done()
			return model.Response{}, ctx.Err()
		}}
		f := newFixture(b, withModel(m), func(c *runner.Config) { c.Concurrency = turns })
		before := memory()
		for range turns {
			f.accept("Wait for a while.")
		}
		waiting.Wait()
		b.ReportMetric(float64(memory()-before)/turns, "B/turn")
		f.stop()
	}
}

func memory() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// BenchmarkTurnStream measures the cost of sending one word to all readers of a turn.
func BenchmarkTurnStream(b *testing.B) {
	for _, readers := range []int{0, 1, 1000} {
		b.Run(fmt.Sprintf("readers=%d", readers), func(b *testing.B) {
			benchmarkWords(b, readers, func(f *fixture, turn store.Turn) (func(context.Context) ([]stream.Event, bool, error), func()) {
				return f.taskStream(turn, "").Next, func() {}
			})
		})
	}
}

// BenchmarkWorkerStream is BenchmarkTurnStream for readers of the worker-wide stream.
func BenchmarkWorkerStream(b *testing.B) {
	for _, readers := range []int{1, 1000} {
		b.Run(fmt.Sprintf("readers=%d", readers), func(b *testing.B) {
			benchmarkWords(b, readers, func(f *fixture, _ store.Turn) (func(context.Context) ([]stream.Event, bool, error), func()) {
				s, err := f.Streams.Worker(b.Context(), f.worker.ID, "")
				if err != nil {
					b.Fatal(err)
				}
				return func(ctx context.Context) ([]stream.Event, bool, error) {
					events, _, err := s.Next(ctx)
					done := len(events) > 0 && strings.Contains(string(events[len(events)-1].Data), `"type":"finish"`)
					return events, done, err
				}, s.Close
			})
		})
	}
}

// benchmarkWords runs a model that writes b.N words after 50 steps. The model writes a word when
// all readers have received the previous word.
func benchmarkWords(b *testing.B, readers int, open func(*fixture, store.Turn) (func(context.Context) ([]stream.Event, bool, error), func())) {
	var f *fixture
	var got atomic.Int64
	round := make(chan struct{}, 1)
	const steps = 50
	begun, goOn := make(chan struct{}), make(chan struct{})
	m := &fakeModel{fn: func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		if stepOf(req) < steps {
			return calls(emit, stepOf(req), "it", `{"some":"arguments"}`), nil
		}
		emit(model.Delta{Type: model.PartText, Text: "Begin. "})
		close(begun)
		<-goOn
		for b.Loop() {
			got.Store(0)
			emit(model.Delta{Type: model.PartText, Text: "word "})
			if readers > 0 {
				<-round
			}
		}
		return answer(nil, ""), nil
	}}
	f = newFixture(b, withModel(m), withTools(gives("it", `"a result"`)))
	turn := f.accept("go")
	<-begun
	var ready, done sync.WaitGroup
	for range readers {
		next, end := open(f, turn)
		ready.Add(1)
		done.Go(func() {
			defer end()
			caughtUp := false
			for {
				events, over, err := next(context.Background())
				if err != nil || over {
					return
				}
				if caughtUp && got.Add(1) == int64(readers) {
					round <- struct{}{}
				}
				if last := events[len(events)-1]; !caughtUp && strings.Contains(string(last.Data), "Begin.") {
					caughtUp = true
					ready.Done()
				}
			}
		})
	}
	ready.Wait()
	close(goOn)
	f.wait(turn)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(max(readers, 1)), "ns/delivery")
	done.Wait()
}

// BenchmarkSteps measures the overhead of a step: the time from one model call to the next, with an
// instant tool call in between.
func BenchmarkSteps(b *testing.B) {
	for _, steps := range []int{10, 50, 200} {
		b.Run(fmt.Sprintf("steps=%d", steps), func(b *testing.B) { benchmarkSteps(b, steps) })
	}
}

func benchmarkSteps(b *testing.B, steps int) {
	m := &fakeModel{name: "openai:m", fn: func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		n := stepOf(req)
		if n == steps {
			return answer(emit, "done"), nil
		}
		return calls(emit, n, "it", fmt.Sprintf(`{"n":%d}`, n)), nil
	}}
	f := newFixture(b, withModel(m), withTools(gives("it", `"ok"`)), withBudget(runner.Limits{}),
		withPrices(b, `{"openai:m":{"input":0.01,"output":0.01,"contextWindow":1000000,"maxOutput":8000}}`))
	for b.Loop() {
		if turn := f.run("go"); turn.OutputText != "done" {
			b.Fatal(turn.Failure)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*steps)/1000, "ms/step")
}
