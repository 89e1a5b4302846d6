//go:build !(linux && (amd64 || arm64))

package sandbox

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"

	"journeyman/runner/workspace"
)

// This file replaces all code that needs Linux on amd64 or arm64. Other systems cannot confine
// commands: the shell needs ShellConfig.Unsafe.

// errSystem explains why nothing is confined on this machine.
var errSystem = errors.New("commands are confined on Linux (amd64 and arm64) alone, not on " +
	runtime.GOOS + "/" + runtime.GOARCH)

// A groups has no content here: control groups exist only on Linux.
type groups struct{}

// Detect reports that commands cannot be confined on this machine.
func Detect(context.Context) Confinement {
	return Confinement{Err: errSystem, Layers: []Layer{{Name: "namespaces", Detail: errSystem.Error()}}}
}

// IsChild returns false: this system starts no confined process.
func IsChild([]string) bool { return false }

// Child exits. It is never called, because IsChild returns false.
func Child() { os.Exit(2) }

// Bounds returns nil: commands are not confined here.
func (s *Shell) Bounds() []Bound { return nil }

// run runs a command that Command.check has accepted, without confinement.
func (s *Shell) run(ctx context.Context, w *workspace.Workspace, _ *os.File, c Command, out *outputs) (Result, error) {
	return runUnconfined(ctx, w, c, out)
}

// command returns the command of the program itself: there is no keeper process here.
func (p *Process) command(prog Program) (cmd *exec.Cmd, theirs []*os.File, err error) {
	return exec.Command(prog.Path, prog.Args...), nil, nil
}

// ownProgram returns the path of this program's file.
func ownProgram() (string, error) { return os.Executable() }

// confineFilter does nothing: this package cannot confine a process on this system. A filter
// still runs in a process of its own, with a time limit.
func confineFilter(int) error { return nil }

// peakMemory returns a function that does not know the memory of this process.
func peakMemory() func() int64 { return func() int64 { return 0 } }

// confineMaker does nothing either.
func confineMaker(int, string) error { return nil }
