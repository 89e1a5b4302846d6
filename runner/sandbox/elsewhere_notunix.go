//go:build !unix

package sandbox

import (
	"context"
	"errors"
	"io"
)

// runUnconfined refuses: models write for a Unix shell, and there is none.
func runUnconfined(context.Context, *Workspace, Command, io.Writer) (Result, error) {
	return Result{}, errors.New("there is no Unix shell on this machine")
}

// StartProgram refuses: processes that the program starts could not be killed with it.
func StartProgram(Program) (*Process, error) {
	return nil, errors.New("programs are not run on this system")
}
