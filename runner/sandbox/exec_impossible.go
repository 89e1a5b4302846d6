//go:build !(linux && (amd64 || arm64))

package sandbox

import (
	"context"
	"errors"
	"os"
	"runtime"
)

// errSystem is why nothing is confined on this machine.
var errSystem = errors.New("commands are confined on Linux (amd64 and arm64) alone, not on " + runtime.GOOS + "/" + runtime.GOARCH)

// Detect says that commands cannot be confined on this machine.
func Detect(context.Context) Confinement {
	return Confinement{Err: errSystem, Layers: []Layer{{Name: "namespaces", Detail: errSystem.Error()}}}
}

// IsChild is false: there are no children where nothing is confined.
func IsChild([]string) bool { return false }

// Child ends the process: it is nobody's child.
func Child() { os.Exit(2) }
