package mail

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
)

// errPanic is in the chain of errors that recovering sets.
var errPanic = errors.New("panic")

// recovering turns a panic of its caller into an error that names the line of the panic, so that
// only the mail that caused it fails. It must be deferred.
func recovering(what string, err *error) {
	if recover() != nil {
		*err = fmt.Errorf("%s: %w at %s", what, errPanic, panicOrigin())
	}
}

// panicOrigin returns the function and line of the panic. It leaves out the value of the
// panic, which may hold a part of a mail.
func panicOrigin() string {
	pcs := make([]uintptr, 50)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)]) // skips recovering
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "runtime.") {
			return fmt.Sprintf("%s:%d", f.Function, f.Line)
		}
		if !more {
			return "an unknown place"
		}
	}
}
