package engine

import (
	"fmt"
	"runtime/debug"
	"slices"
)

// Effects are the effects of a write in memory: the functions that it registers with OnCommit and
// OnUndo.
type Effects struct {
	undo  []func() // run if the changes are undone, last first
	after []func() // run once the changes are committed, in order
}

// OnUndo registers fn, which Undone runs.
func (e *Effects) OnUndo(fn func()) { e.undo = append(e.undo, fn) }

// OnCommit registers fn, which Committed runs.
func (e *Effects) OnCommit(fn func()) { e.after = append(e.after, fn) }

// Committed runs the functions of OnCommit.
func (e *Effects) Committed() {
	for _, fn := range e.after {
		fn()
	}
}

// Undone runs the functions of OnUndo and drops those of OnCommit, so that the write can run again.
func (e *Effects) Undone() {
	for _, fn := range slices.Backward(e.undo) {
		fn()
	}
	e.undo, e.after = nil, nil
}

// Recovered runs fn and returns a panic as an error, because a panic in one write must not end the
// engine, which serves all callers.
func Recovered(fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in a write: %v\n%s", r, debug.Stack())
		}
	}()
	return fn()
}
