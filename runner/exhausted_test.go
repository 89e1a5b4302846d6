package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
	"journeyman/store"
)

// TestExhaustedMachine lets calls fail for lack of file descriptors or processes. The turn waits
// and continues. A call that may have taken effect is not repeated.
func TestExhaustedMachine(t *testing.T) {
	t.Parallel()
	noFile := &os.PathError{Op: "open", Path: "/secret/path", Err: syscall.EMFILE}
	noProcess := &sandbox.StartError{Err: fmt.Errorf("fork/exec: %w", syscall.EAGAIN)}
	for name, tt := range map[string]struct {
		err        error
		repeatable bool
		calls      int64
		state      store.CallState
	}{
		"a call that may be repeated":   {noFile, true, 4, store.CallCompleted},
		"a command that has not begun":  {noProcess, false, 4, store.CallCompleted},
		"a call that may have acted":    {noFile, false, 1, store.CallFailed},
		"no memory for another process": {&sandbox.StartError{Err: syscall.ENOMEM}, false, 4, store.CallCompleted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			var made atomic.Int64
			work := fakeTool{name: "work", repeatable: tt.repeatable,
				fn: func(context.Context, tool.Host, json.RawMessage) (json.RawMessage, error) {
					if made.Add(1) < 4 {
						return nil, tt.err
					}
					return json.RawMessage(`"ok"`), nil
				}}
			f := newFixture(t, withTools(work))
			turn := f.wait(f.accept(script(`tool work {}`, `say {{last}}`)))
			is.Equal(turn.Status, store.Completed)
			is.Equal(made.Load(), tt.calls)
			call := f.journal(turn)[0].Calls[0]
			is.Equal(call.State, tt.state)
		})
	}
}

// TestExhaustedTurnIsPutBack lets the model fail with such an error. The turn goes back to the
// queue, and its next claim completes it. A cancellation still ends it.
func TestExhaustedTurnIsPutBack(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var asked atomic.Int64
	m := &fakeModel{fn: func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		if asked.Add(1) <= 2 {
			return model.Response{}, fmt.Errorf("read a file of the turn: %w", syscall.ENFILE)
		}
		return answer(emit, "done"), nil
	}}
	f := newFixture(t, withModel(m), func(c *runner.Config) { c.Tools = nil })
	turn := f.wait(f.accept("go"))
	is.Equal(turn.Status, store.Completed)
	is.Equal(turn.OutputText, "done")
	is.Equal(asked.Load(), int64(3))
	is.Equal(turn.Usage.Steps, int64(1))
}
