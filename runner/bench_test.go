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
	"journeyman/store"
)

// What a turn costs in memory while it waits for its model.
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

// What a word of an answer costs until all readers of the turn have it.
func BenchmarkTurnStream(b *testing.B) {
	for _, readers := range []int{0, 1, 1000} {
		b.Run(fmt.Sprintf("readers=%d", readers), func(b *testing.B) {
			benchmarkWords(b, readers, func(f *fixture, turn store.Turn) (func(context.Context) ([]runner.Event, bool, error), func()) {
				return f.taskStream(turn.TaskNum, "").Next, func() {}
			})
		})
	}
}

// The same for readers of all of the worker.
func BenchmarkWorkerStream(b *testing.B) {
	for _, readers := range []int{1, 1000} {
		b.Run(fmt.Sprintf("readers=%d", readers), func(b *testing.B) {
			benchmarkWords(b, readers, func(f *fixture, _ store.Turn) (func(context.Context) ([]runner.Event, bool, error), func()) {
				s, err := f.WorkerStream(b.Context(), f.worker.ID, "")
				if err != nil {
					b.Fatal(err)
				}
				return func(ctx context.Context) ([]runner.Event, bool, error) {
					events, err := s.Next(ctx)
					done := len(events) > 0 && strings.Contains(string(events[len(events)-1].Data), `"type":"finish"`)
					return events, done, err
				}, s.Close
			})
		})
	}
}

// benchmarkWords has a model say b.N words after 50 steps, each once all readers have
// the one before.
func benchmarkWords(b *testing.B, readers int, open func(*fixture, store.Turn) (func(context.Context) ([]runner.Event, bool, error), func())) {
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
