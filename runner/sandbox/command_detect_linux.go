//go:build amd64 || arm64

package sandbox

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"journeyman/runner/workspace"
)

// Detect runs a command to determine how this machine can confine commands. This takes about
// ten milliseconds. If this process is alone in a control group that it may divide, it moves
// into a group below. The program's main must call Child if IsChild reports true.
func Detect(ctx context.Context) Confinement {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	g, noGroups := findGroups()
	r, err := tryChild(ctx, g)
	// This process may be able to create control groups, but not to use them. All other layers
	// may still work without groups.
	if err != nil && g != nil {
		noGroups = err
		g = nil
		r, err = tryChild(ctx, nil)
	}
	return found(g, noGroups, r, err)
}

// found converts the result of tryChild to a Confinement. noGroups is the reason why g is nil.
func found(g *groups, noGroups error, r childReport, err error) Confinement {
	if err != nil {
		return Confinement{Err: err, Layers: []Layer{{Name: "namespaces", Detail: err.Error()}}}
	}
	user := fmt.Sprintf("commands run as user %d, which the service is, too", os.Geteuid())
	if os.Geteuid() == 0 {
		user = "each worker's commands run as an unprivileged user of their own"
	}
	// The child reports the layers that this machine lacks.
	optional := func(name, with, without string) Layer {
		if slices.Contains(r.Layers, name) {
			return Layer{name, false, without}
		}
		return Layer{name, true, with}
	}
	calls := len(callProfile{network: true, counted: g != nil}.calls())
	groups := Layer{Name: layerGroups, Active: g != nil}
	if g != nil {
		groups.Detail = "cgroup v2 below " + g.dir + ": the kernel bounds memory and processes"
	} else if noGroups != nil {
		groups.Detail = noGroups.Error()
	}
	return Confinement{Possible: true, groups: g, report: r, Layers: []Layer{
		{"namespaces", true,
			"own root folder, own network without a way out, no other processes; all end with the command"},
		{"system call filter", true, fmt.Sprintf("%d calls are allowed; no mounts, tracing, new namespaces", calls)},
		{"separate user", os.Geteuid() == 0, user},
		optional(layerLandlock,
			fmt.Sprintf("version %d: nothing but the workspace, /tmp and programs can be opened", r.Landlock),
			"not in this kernel, or not switched on: the root of the namespace alone hides files"),
		optional(layerProc, "commands see their own processes and no others",
			"this container hides /proc: commands see none"),
		optional(layerLoopback, "commands can talk to servers that they start themselves",
			"this container forbids the settings that bound TCP: commands can use Unix sockets only"),
		groups,
	}}
}

// tryChild runs a short command with full confinement. If g is not nil, the command runs in a
// control group. The error describes the confinement that failed.
func tryChild(ctx context.Context, g *groups) (childReport, error) {
	dir, err := os.MkdirTemp("", "journeyman-detect-")
	if err != nil {
		return childReport{}, err
	}
	defer os.RemoveAll(dir)
	w, err := workspace.Open(dir, workspace.Limits{})
	if err != nil {
		return childReport{}, err
	}
	defer w.Close()
	s := &Shell{confined: true, groups: g, cfg: ShellConfig{Limits: ShellLimits{}.withDefaults()}}
	// The command starts a program, writes a file and reads it, because every command needs
	// this.
	r, err := s.Run(ctx, w, Command{Script: "echo confined > proof && cat proof"})
	if err == nil && (r.ExitCode != 0 || strings.TrimSpace(r.Output) != "confined") {
		err = fmt.Errorf("a command that should work ended with %d and %q", r.ExitCode, r.Output+r.Errors)
	}
	return r.report, err
}

// Bounds describes the limits of the Shell's commands on this machine to the operator.
// It returns nil if commands are not confined.
func (s *Shell) Bounds() []Bound {
	if !s.confined {
		return nil
	}
	of := workspace.Limits{}.WithDefaults() // of an empty workspace
	l := s.limitsIn(of, workspace.Holding{})
	return append(s.memoryBounds(l),
		Bound{"processor time", fmt.Sprintf("each process has its command's time-out times the processors; "+
			"all run at nice %d, behind the service", niceness)},
		Bound{"open files", fmt.Sprintf("%d a process", l.OpenFiles)},
		Bound{"one file", fmt.Sprintf("%s, or what the workspace has room for if that is less",
			workspace.Mebibytes(l.FileSize))},
		Bound{"workspace", fmt.Sprintf("%s and %d files: counted before and after each command, and while it runs "+
			"whenever the disk fills; a command that is faster than the count is stopped late, and the next one can "+
			"write nothing", workspace.Mebibytes(of.TotalSize), of.Files) + s.newFiles()},
		Bound{"disk", "a command is stopped before it takes the last 5 % (at most 1 GiB) of the disk; " +
			"deleted files that it holds open are bounded by this alone"},
		Bound{"network", "its own loopback interface, where there is one; nothing leads outside"},
		Bound{"time", fmt.Sprintf("%s unless the call asks for another, at most %s; then everything is killed",
			DefaultTimeout, MaxTimeout)},
	)
}

// newFiles returns a remark on the limit of files, "" with Landlock. report.Layers holds the
// layers that this machine lacks.
func (s *Shell) newFiles() string {
	if slices.Contains(s.report.Layers, layerLandlock) {
		return "; without Landlock, though, each command can add some files to a workspace that has too many"
	}
	return ""
}

// memoryBounds describes the limits of memory and processes, which depend on the layers of this
// machine.
func (s *Shell) memoryBounds(l ShellLimits) []Bound {
	memory := workspace.Mebibytes(l.Memory)
	if s.groups != nil {
		return []Bound{
			{"memory", memory + " for all of a command's processes, its /tmp, and what the kernel holds for them: " +
				"by the control group"},
			{"processes", fmt.Sprintf("%d with their threads: by the control group", l.Processes)},
		}
	}
	processes := Bound{"processes",
		fmt.Sprintf("%d with their threads: by the limit of a user in the command's namespace", l.Processes)}
	const machine = "a command is stopped when less than 10 % (at most 1 GiB) of the machine's memory is available"
	// Without /proc the memory of all processes cannot be summed, so each process has its own
	// limit.
	if slices.Contains(s.report.Layers, layerProc) {
		return []Bound{
			{"memory", memory + " for each process, not for all together; " + workspace.Mebibytes(l.Memory/4) + " for /tmp"},
			{"kernel's memory", "what the kernel holds for a command (sockets, pipes) is not counted: " + machine},
			processes,
		}
	}
	return []Bound{
		{"memory", fmt.Sprintf("%s for all of a command's processes and its /tmp: counted every %s, "+
			"so a command that is faster is stopped late; shared memory that no count shows cannot be had",
			memory, memoryIdle)},
		{"sockets, pipes", fmt.Sprintf(
			"count as memory: %d KiB a socket, %d KiB an open file beyond a process's first %d",
			s.report.Socket>>10, openFile>>10, leastTable)},
		{"kernel's memory", "what the kernel holds besides (file locks, mappings) is not counted: " + machine},
		processes,
	}
}
