package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/model"
	"journeyman/runner/tool"
	"journeyman/store"
	"journeyman/store/workers"
)

// TestReplayWithOtherToolOutput records two workers in parallel. Their tool returns a different
// result each time, and their provider sometimes fails. The recordings are replayed with new ids,
// other tool output and a restart in the middle.
func TestReplayWithOtherToolOutput(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var ticks, fails atomic.Int64
	clock := fakeTool{name: "clock", repeatable: true, fn: func(context.Context, tool.Host, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(fmt.Sprintf(`"tick %d"`, ticks.Add(1))), nil
	}}
	w := newWire(t, func(a asked) said {
		if fails.Add(1)%3 == 0 {
			// A failed try is not recorded.
			return said{status: 503, body: `{"error":{"message":"busy"}}`}
		}
		if a.last().role != "tool" || len(a.messages) < 4 {
			return said{calls: []saidCall{{fmt.Sprintf("call_%d", a.number), "clock", `{}`}}, in: 10, out: 5}
		}
		return said{text: a.system[strings.LastIndex(a.system, "You are"):] + " It is " + a.last().text, in: 10, out: 5}
	})
	dir := t.TempDir()
	play := func(m model.Model, restart bool) (outputs []string) {
		f := newFixture(t, withModel(m), withTools(clock))
		var turns []store.Turn
		for _, name := range []string{"Ada", "Bob"} {
			worker := f.newWorker(workers.NewWorker{Title: name, Instructions: "You are " + name + " and look at the clock."})
			turns = append(turns, f.acceptTurn(store.NewTurn{Caller: f.owner, WorkerID: worker.ID, Input: "What time is it?", Budget: store.BudgetStandard}))
		}
		if restart {
			f = f.crash()
			f.start()
		}
		for _, turn := range turns {
			turn = f.wait(turn)
			is.Equal(turn.Failure, nil)
			is.Equal(turn.Usage.Steps, int64(3))
			outputs = append(outputs, turn.OutputText)
		}
		return outputs
	}
	want := play(model.NewRecorder(w.openModel(t, "responses:m"), dir), false)
	is.True(strings.Contains(want[0], "You are Ada") && strings.Contains(want[1], "You are Bob"))
	for _, restart := range []bool{false, true} {
		replay, err := model.Open(model.Config{Model: "replay:" + dir})
		is.NoErr(err)
		is.Equal(play(replay, restart), want)
	}
}
