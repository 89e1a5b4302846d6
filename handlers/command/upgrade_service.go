package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// refuseManaged returns an error with the right command if a package manager or an image owns the
// binary: the owner would not know of the change, or would undo it.
func refuseManaged(ctx context.Context, path string) error {
	const ownerMessage = "%s belongs to %s: upgrade it with %q"
	for part, owner := range map[string][2]string{
		"/Cellar/":    {"Homebrew", "brew upgrade journeyman"},
		"/Caskroom/":  {"Homebrew", "brew upgrade --cask journeyman"},
		"/nix/store/": {"Nix", "nix profile upgrade journeyman"},
	} {
		if strings.Contains(path, part) {
			return fmt.Errorf(ownerMessage, path, owner[0], owner[1])
		}
	}
	// The installer of the binary may put the command into a file beside it, as the project's
	// images do.
	if text, err := os.ReadFile(path + managedSuffix); err == nil {
		return fmt.Errorf("%s: %s", path, printable(strings.TrimSpace(string(text))))
	}
	for _, m := range [][3]string{ // a program that finds the owner of a file, and the command that upgrades it
		{"dpkg-query", "--search", "apt-get install --only-upgrade journeyman"},
		{"rpm", "-qf", "dnf upgrade journeyman"},
		{"pacman", "-Qo", "pacman -Syu journeyman"},
		{"apk", "info", "apk upgrade journeyman"},
	} {
		args := []string{m[1], path}
		if m[0] == "apk" {
			args = []string{"info", "--who-owns", path}
		}
		ctx, cancel := context.WithTimeout(ctx, managerPatience)
		out, err := exec.CommandContext(ctx, m[0], args...).Output()
		cancel()
		// A missing manager and an unknown file both return an error.
		if err == nil && len(out) > 0 {
			return fmt.Errorf(ownerMessage, path, "a package ("+printable(firstLine(string(out)))+")", m[2])
		}
	}
	return nil
}

const (
	managedSuffix   = ".managed"
	managerPatience = 20 * time.Second
	servicePatience = 5 * time.Minute // the server may finish turns first
)

// A service is a unit of systemd.
type service struct {
	name string
	user bool // of the manager of a user
}

// service returns the unit to restart, nil if the server is in none.
func (u *upgrade) service(ctx context.Context) *service {
	if u.Service != "" {
		return &service{name: u.Service}
	}
	state, _ := u.controlClient().Ready(ctx) // a server that is not ready has a process, too
	if state.Process == 0 {
		return nil
	}
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(state.Process), "cgroup"))
	if err != nil {
		return nil // not Linux, or it has ended
	}
	s := unitOf(string(text))
	// A server that was started by hand may be in the group of another service, such as ssh.
	if s == nil || s.mainProcess(ctx) != state.Process {
		return nil
	}
	return s
}

// unitOf returns the unit that a process is in, by its control groups. The server may have moved
// into a group below that of the unit.
func unitOf(groups string) *service {
	for line := range strings.Lines(groups) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 || fields[1] != "" && fields[1] != "name=systemd" {
			continue
		}
		parts := strings.Split(fields[2], "/")
		for _, part := range slices.Backward(parts) {
			if strings.HasPrefix(part, "user@") && strings.HasSuffix(part, ".service") {
				break // the manager of a user, not a unit of it
			}
			if strings.HasSuffix(part, ".service") {
				return &service{part, strings.Contains(fields[2], "/user@")}
			}
		}
	}
	return nil
}

func (s *service) command(ctx context.Context, args ...string) *exec.Cmd {
	if s.user {
		args = append([]string{"--user"}, args...)
	}
	return exec.CommandContext(ctx, "systemctl", args...)
}

// mainProcess returns the number of the unit's main process, or 0.
func (s *service) mainProcess(ctx context.Context) int {
	ctx, cancel := context.WithTimeout(ctx, managerPatience)
	defer cancel()
	out, err := s.command(ctx, "show", "--property=MainPID", "--value", s.name).Output()
	if err != nil {
		return 0
	}
	process, _ := strconv.Atoi(strings.TrimSpace(string(out))) // 0 for anything else
	return process
}

// startAgain starts the unit, if there is one.
func (s *service) startAgain(ctx context.Context) error {
	if s == nil {
		return nil
	}
	return s.do(ctx, "start")
}

// do starts, stops or restarts the unit.
func (s *service) do(ctx context.Context, verb string) error {
	ctx, cancel := context.WithTimeout(ctx, servicePatience)
	defer cancel()
	if out, err := s.command(ctx, verb, s.name).CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("systemctl %s %s: %w", verb, s.name, err),
			errors.New(printable(strings.TrimSpace(string(out)))))
	}
	return nil
}
