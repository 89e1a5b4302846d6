// Command bench measures a server from outside, as a client over HTTP and SMTP. It builds the
// program of the current folder and starts it in a temporary folder, or uses the server at a given
// address. It also measures the machine without the server, because only the ratio of the two
// figures can be compared with another machine.
//
// The command imports only the store, to fill the folder of a stopped server, and a client of PostgreSQL, to
// create empty databases. It must not access the data of a running server.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

func main() {
	var o Options
	kong.Parse(&o, kong.Name("bench"), kong.Description("Measures how fast a server is on this machine."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run prints the table. Progress goes to stderr. After an error the table holds the figures that
// were measured before.
func run(ctx context.Context, o Options) (err error) {
	var earlier *Report
	if o.Compare != "" {
		if earlier, err = Load(o.Compare); err != nil {
			return fmt.Errorf("--compare: %w", err)
		}
	}
	dir, err := os.MkdirTemp("", "journeyman-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	version := "at " + o.URL
	if o.URL == "" {
		if o.Program, version, err = program(ctx, o.Program, dir); err != nil {
			return err
		}
	}
	report, err := Run(ctx, dir, version, o)
	if report == nil || len(report.Figures) == 0 {
		return err
	}
	err = errors.Join(err, report.Table(os.Stdout, earlier))
	if o.JSON != "" {
		err = errors.Join(err, report.save(o.JSON))
	}
	return err
}

// program returns the path and the version of the binary to measure. It builds the binary in dir if
// path is empty.
func program(ctx context.Context, path, dir string) (_, version string, err error) {
	if path == "" {
		path = filepath.Join(dir, "journeyman")
		build := exec.CommandContext(ctx, "go", "build", "-o", path, ".")
		build.Env, build.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
		if err := build.Run(); err != nil {
			return "", "", fmt.Errorf("build the program: %w", err)
		}
	}
	out, err := exec.CommandContext(ctx, path, "version").Output()
	if err != nil {
		return "", "", fmt.Errorf("ask %s for its version: %w", path, err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return path, strings.TrimPrefix(line, "journeyman "), nil
}
