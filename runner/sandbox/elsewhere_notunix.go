//go:build !unix

package sandbox

import (
	"context"
	"errors"
	"io"
)

// runUnconfined returns an error: models write commands for a Unix shell, and there is none.
func runUnconfined(context.Context, *Workspace, Command, io.Writer) (Result, error) {
	return Result{}, errors.New("there is no Unix shell on this machine")
}

// StartProgram returns an error: the processes of a program could not be killed with it.
func StartProgram(Program) (*Process, error) {
	return nil, errors.New("programs are not run on this system")
}
