package runner_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/tool"
	"journeyman/store/storetest"
)

// A slowShell is a tool whose search for programs waits.
type slowShell struct {
	tool.Tool
	asked *atomic.Int64
	found chan []string
}

func (s slowShell) Spec() tool.Spec {
	return tool.Spec{Name: "shell", InputSchema: []byte(`{"type":"object"}`)}
}

func (s slowShell) Programs(ctx context.Context) ([]string, error) {
	s.asked.Add(1)
	select {
	case list := <-s.found:
		if list == nil {
			return nil, errors.New("no place")
		}
		return list, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestProgramsInTheBackground checks that no turn waits for the programs, that they are started once, and
// that a stop does not wait for them either.
func TestProgramsInTheBackground(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m := says("done")
	m.name = "openai:m"
	shell := slowShell{asked: new(atomic.Int64), found: make(chan []string)}
	withShell := func(cfg *runner.Config) { cfg.Shell = func() tool.Tool { return shell } }
	f := newFixture(t, withModel(m), withShell)
	f.run("go")
	is.True(!strings.Contains(m.last().Preamble, "Programs in the shell"))
	shell.found <- []string{"python3 (with pandas)", "git"}
	storetest.Eventually(t, "the programs", func() bool {
		f.run("go")
		return strings.Contains(m.last().Preamble, "Programs in the shell, among others: python3 (with pandas), git.")
	})
	is.Equal(shell.asked.Load(), int64(1))
	f.stop()

	g := f.successor(withModel(m), withShell)
	storetest.Eventually(t, "the second search", func() bool { return shell.asked.Load() == 2 })
	g.stop() // the search has not ended
}
