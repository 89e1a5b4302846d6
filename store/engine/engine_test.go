package engine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/engine"
)

func TestEffects(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var seen []string
	log := func(s string) func() { return func() { seen = append(seen, s) } }
	var e engine.Effects
	run := func() {
		e.OnUndo(log("undo 1"))
		e.OnCommit(log("after 1"))
		e.OnUndo(log("undo 2"))
		e.OnCommit(log("after 2"))
	}

	run()
	e.Undone()
	is.Equal(seen, []string{"undo 2", "undo 1"}) // the last change is undone first
	e.Undone()
	e.Committed()
	is.Equal(len(seen), 2) // no function of the first run is left

	seen = nil
	run()
	e.Committed()
	is.Equal(seen, []string{"after 1", "after 2"})
}

func TestRecovered(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	fault := errors.New("fault")
	is.NoErr(engine.Recovered(func() error { return nil }))
	is.Equal(engine.Recovered(func() error { return fault }), fault)
	err := engine.Recovered(func() error { panic("lost") })
	is.True(err != nil && strings.Contains(err.Error(), "lost")) // with the stack, for the log
	is.True(strings.Contains(err.Error(), "engine_test.go"))
}
