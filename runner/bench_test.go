package runner_test

import (
	"context"
	"fmt"
	"testing"

	"journeyman/runner"
	"journeyman/runner/model"
)

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
