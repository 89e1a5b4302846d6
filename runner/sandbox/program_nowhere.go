//go:build !unix

package sandbox

import "errors"

// StartProgram starts no program: what it starts could not be stopped whole.
func StartProgram(Program) (*Process, error) {
	return nil, errors.New("programs are not run on this system")
}
