package sandbox

import (
	"errors"
	"syscall"
)

// A StartError means that a command could not be started. It had no effect, so the call may be
// repeated.
type StartError struct{ Err error }

// Error returns the text of the cause.
func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// Exhausted reports whether this process or the machine has run out of open files, processes or
// memory. The same call may succeed later.
func Exhausted(err error) bool {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}
