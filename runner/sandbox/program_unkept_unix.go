//go:build unix && !(linux && (amd64 || arm64))

package sandbox

import (
	"os"
	"os/exec"
	"time"
)

// waitForStderr is how long the standard error of a program that has ended is
// waited for.
const waitForStderr = time.Second

// command is what starts prog.
func (p *Process) command(prog Program) (cmd *exec.Cmd, theirs []*os.File, err error) {
	return exec.Command(prog.Path, prog.Args...), nil, nil
}
