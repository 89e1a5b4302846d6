package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// serverKey is the API key of the server that this process starts.
	serverKey = "jm_live_key_of_a_measured_server_0000000000"

	startPatience = time.Minute
	stopPatience  = 30 * time.Second
)

// A server is a process of the program that serves on a folder.
type server struct {
	cmd       *exec.Cmd
	program   string
	dir       string
	url, mail string        // addresses
	listening time.Duration // from exec to the printed address
	ready     time.Duration // from exec to /readyz
}

var (
	webAddress  = regexp.MustCompile(`serves on (http://\S+)`)
	mailAddress = regexp.MustCompile(`smtp://(\S+)`)
)

// startServer starts the program with the offline model and more flags, and waits until it is ready.
func startServer(ctx context.Context, program, dir string, flags ...string) (*server, error) {
	s := &server{program: program, dir: dir, cmd: exec.Command(program, append([]string{"--data", dir,
		"--addr", "127.0.0.1:0", "--smtp-addr", "127.0.0.1:0", "--model", "offline", "--rate-limit", "0", "--queue-limit", "100000",
		"--allow-private-network", "--log-level", "error",
		// All readers of a fan-out have one address, which gets at most half of the streams.
		"--max-streams", "1000000"}, flags...)...)}
	// The operator's own settings would change the figures.
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "JOURNEYMAN_") {
			s.cmd.Env = append(s.cmd.Env, v)
		}
	}
	s.cmd.Env = append(s.cmd.Env, "JOURNEYMAN_API_KEY="+serverKey, "JOURNEYMAN_ADMIN_PASSWORD="+serverKey)
	s.cmd.Stderr, s.cmd.SysProcAttr = os.Stderr, ownChild()
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for s.url == "" && lines.Scan() {
		if m := webAddress.FindStringSubmatch(lines.Text()); m != nil {
			s.url, s.listening = m[1], time.Since(begun)
		}
	}
	for s.mail == "" && lines.Scan() {
		if m := mailAddress.FindStringSubmatch(lines.Text()); m != nil {
			s.mail = m[1]
		}
	}
	if s.mail == "" {
		return nil, errors.Join(errors.New("the server printed no addresses"), s.stop())
	}
	if err := s.await(ctx, begun); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// await waits for /readyz.
func (s *server) await(ctx context.Context, begun time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	c := newClient(s.url, serverKey)
	defer c.http.CloseIdleConnections()
	for {
		if _, err := c.do(ctx, "GET", "/readyz", ""); err == nil {
			s.ready = time.Since(begun)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server is not ready: %w", ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

// createKey creates an API key of the first owner.
func (s *server) createKey(ctx context.Context, name string) (string, error) {
	cmd := exec.CommandContext(ctx, s.program, "key", "create", "--data", s.dir, "--name", name)
	cmd.Env, cmd.Stderr = s.cmd.Env, os.Stderr
	key, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("create a key: %w", err)
	}
	return string(bytes.TrimSpace(key)), nil
}

// stop ends the server by SIGTERM, and by SIGKILL if that takes too long.
func (s *server) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	late := time.AfterFunc(stopPatience, func() { _ = s.cmd.Process.Kill() }) // Wait reports how it ended
	defer late.Stop()
	return s.cmd.Wait()
}

// memory returns the resident memory of the server's process, in bytes. The kernel counts in KiB
// (proc_pid_status(5)). Without /proc, the error is errors.ErrUnsupported.
func (s *server) memory() (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if errors.Is(err, os.ErrNotExist) {
		return 0, errors.ErrUnsupported
	}
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0, errors.ErrUnsupported
	}
	kib, err := strconv.ParseFloat(fields[0], 64)
	return kib * 1024, err
}

// cpu returns the CPU time that the server's process has used. Without /proc, the error is
// errors.ErrUnsupported.
func (s *server) cpu() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if errors.Is(err, os.ErrNotExist) {
		return 0, errors.ErrUnsupported
	}
	if err != nil {
		return 0, err
	}
	// The name of the program, which ends at the last parenthesis, may contain spaces.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0, errors.ErrUnsupported
	}
	user, err := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	return time.Duration(user+system) * time.Second / ticks, errors.Join(err, err2)
}

// ticks is the number of units in a second of CPU time in /proc, on all architectures.
const ticks = 100
