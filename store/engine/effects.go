package engine

import (
	"fmt"
	"runtime/debug"
	"slices"
)

// Effects collects the functions that a write registers with OnCommit and OnUndo.
type Effects struct {
	undo  []func() // run in reverse order if the changes are undone
	after []func() // run in order after the changes are committed
}

// OnUndo registers a function that Undone will call.
func (e *Effects) OnUndo(fn func()) { e.undo = append(e.undo, fn) }

// OnCommit registers a function that Committed will call.
func (e *Effects) OnCommit(fn func()) { e.after = append(e.after, fn) }

// Committed calls the functions of OnCommit in their order.
func (e *Effects) Committed() {
	for _, fn := range e.after {
		fn()
	}
}

// Undone calls the functions of OnUndo in reverse order. It then removes all functions, so that the write
// can run again.
func (e *Effects) Undone() {
	for _, fn := range slices.Backward(e.undo) {
		fn()
	}
	e.undo, e.after = nil, nil
}

// Recovered calls fn and returns its error. It returns a panic as an error with the stack, because a
// panic in one write must not end the program.
func Recovered(fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in a write: %v\n%s", r, debug.Stack())
		}
	}()
	return fn()
}
