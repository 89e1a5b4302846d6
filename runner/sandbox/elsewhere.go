//go:build !(linux && (amd64 || arm64))

package sandbox

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
)

// This file stands for everything that needs Linux on amd64 or arm64. Elsewhere
// nothing can be confined: the shell needs ShellConfig.Unsafe.

// errSystem explains why nothing is confined on this machine.
var errSystem = errors.New("commands are confined on Linux (amd64 and arm64) alone, not on " +
	runtime.GOOS + "/" + runtime.GOARCH)

// A groups would hold control groups, which only Linux has.
type groups struct{}

// Detect reports that commands cannot be confined on this machine.
func Detect(context.Context) Confinement {
	return Confinement{Err: errSystem, Layers: []Layer{{Name: "namespaces", Detail: errSystem.Error()}}}
}

// IsChild returns false: this system starts no confined process.
func IsChild([]string) bool { return false }

// Child exits, because IsChild never asks for it.
func Child() { os.Exit(2) }

// Bounds returns nothing: no command is confined here.
func (s *Shell) Bounds() []Bound { return nil }

// run runs a command that Command.check has accepted, without confinement.
func (s *Shell) run(ctx context.Context, w *Workspace, _ *os.File, c Command, out io.Writer) (Result, error) {
	return runUnconfined(ctx, w, c, out)
}

// command returns the program itself: no keeper process watches over it here.
func (p *Process) command(prog Program) (cmd *exec.Cmd, theirs []*os.File, err error) {
	return exec.Command(prog.Path, prog.Args...), nil, nil
}

// ownProgram returns the path of this program's file.
func ownProgram() (string, error) { return os.Executable() }

// confineFilter does nothing: this package cannot confine a process on this system.
// A filter still runs in a process of its own, which is watched and killed.
func confineFilter(int) error { return nil }
