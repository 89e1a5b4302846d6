//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// The layers of confinement that a machine may lack without ruling commands out.
const (
	layerLandlock = "Landlock"
	layerProc     = "private /proc"
)

// Detect finds out how commands are confined on this machine by running one. It
// takes some ten milliseconds. The program must give way to Child as IsChild says.
func Detect(ctx context.Context) Confinement {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := tryChild(ctx)
	if err != nil {
		return Confinement{Err: err, Layers: []Layer{{Name: "namespaces", Detail: err.Error()}}}
	}
	user := fmt.Sprintf("commands run as user %d, which the service is, too", os.Geteuid())
	if os.Geteuid() == 0 {
		user = "each worker's commands run as an unprivileged user of their own"
	}
	has := func(layer string) bool { return !slices.Contains(r.Layers, layer) }
	landlock := "not in this kernel, or not switched on: the root of the namespace alone hides files"
	if has(layerLandlock) {
		landlock = fmt.Sprintf("version %d: nothing but the workspace, /tmp and programs can be opened", r.Landlock)
	}
	proc := "hidden by this container: the memory of each process is bounded, but not of all together"
	if has(layerProc) {
		proc = "commands see their own processes, and their memory together is bounded"
	}
	return Confinement{Possible: true, Layers: []Layer{
		{"namespaces", true, "own root folder, no network, no other processes; all are killed at the end"},
		{"system call filter", true, "no mounts, tracing, sockets other than Unix ones, new namespaces"},
		{"separate user", os.Geteuid() == 0, user},
		{layerLandlock, has(layerLandlock), landlock},
		{layerProc, has(layerProc), proc},
	}}
}

// tryChild runs a command that does next to nothing.
func tryChild(ctx context.Context) (childReport, error) {
	dir, err := os.MkdirTemp("", "journeyman-detect-")
	if err != nil {
		return childReport{}, err
	}
	defer os.RemoveAll(dir)
	w, err := OpenWorkspace(dir, Limits{})
	if err != nil {
		return childReport{}, err
	}
	defer w.Close()
	s := &Shell{confined: true, cfg: ShellConfig{Limits: ShellLimits{}.withDefaults()}}
	var out bytes.Buffer
	r, err := s.runConfined(ctx, w, Command{Script: "echo confined > proof && cat proof", Timeout: time.Minute}, &out)
	switch {
	case err != nil:
		return r, err
	case r.Failed != "":
		return r, fmt.Errorf("%s", r.Failed)
	case r.ExitCode != 0 || strings.TrimSpace(out.String()) != "confined":
		return r, fmt.Errorf("a command that should work gives %d and %q", r.ExitCode, out.String())
	}
	return r, nil
}
