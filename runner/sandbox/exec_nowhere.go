//go:build !unix

package sandbox

import (
	"context"
	"errors"
	"io"
)

// run runs no command: there is no shell of the kind that models write for.
func (s *Shell) run(context.Context, *Workspace, Command, io.Writer) (Result, error) {
	return Result{}, errors.New("there is no Unix shell on this machine")
}
