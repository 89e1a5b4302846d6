package pgtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// A Cluster is a PostgreSQL server of one test, which the test may stop and start. Its commits are in
// files when a client gets their result, as usual, but files are not synced. So they survive the end
// of the server in every way, but not the end of the machine.
type Cluster struct {
	t      testing.TB
	bin    string // folder of the programs
	folder string
	port   int
	as     *syscall.Credential // nil for the user of the test
	server *exec.Cmd
	ended  chan struct{} // closed when server has ended
}

// NewCluster starts a server, which ends with the test. It skips the test if this machine has no
// programs of PostgreSQL: .ci/postgres installs them. PGBIN names their folder; by default it is the
// newest one of Debian.
func NewCluster(t testing.TB) *Cluster {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the pattern is correct
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	c := &Cluster{t: t, bin: os.Getenv("PGBIN")}
	if c.bin == "" && len(found) > 0 {
		c.bin = found[len(found)-1]
	}
	if c.bin == "" {
		t.Skip("no PostgreSQL: .ci/postgres installs it")
	}
	var err error
	// Not t.TempDir: the user of the server may be unable to enter the folder for temporary files.
	if c.folder, err = os.MkdirTemp("/tmp", "pgtest"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(c.folder) }) // an error leaves a folder in /tmp
	if os.Getuid() == 0 {
		c.as = c.serverUser()
	}
	init := c.command("initdb", "-D", c.data(), "-U", "journeyman", "--auth=trust", "--no-sync", "--encoding=UTF8",
		"--locale=C.UTF-8")
	if out, err := init.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.port = ln.Addr().(*net.TCPAddr).Port
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	c.Start()
	t.Cleanup(func() { c.Stop(syscall.SIGQUIT) })
	return c
}

// serverUser returns the user of the server, which refuses to run as root, and gives it the folder.
func (c *Cluster) serverUser() *syscall.Credential {
	c.t.Helper()
	u, err := user.Lookup("postgres")
	if err != nil {
		c.t.Skip("the server does not run as root, and there is no user postgres:", err)
	}
	uid, _ := strconv.Atoi(u.Uid) // numbers on Linux
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(c.folder, uid, gid); err != nil {
		c.t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func (c *Cluster) data() string { return filepath.Join(c.folder, "data") }

func (c *Cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir = c.folder
	// Its own process group: an interrupt from the keyboard must not stop the server before the test.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.as, Setpgid: true}
	return cmd
}

// URL returns the address of the database postgres.
func (c *Cluster) URL() string {
	return fmt.Sprintf("postgres://journeyman@127.0.0.1:%d/postgres?sslmode=disable", c.port)
}

// Script runs statements in that database.
func (c *Cluster) Script(statements string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // a cleanup may be the caller
	defer cancel()
	conn, err := pgx.Connect(ctx, c.URL())
	if err == nil {
		_, err = conn.Exec(ctx, statements)
		err = errors.Join(err, conn.Close(ctx))
	}
	if err != nil {
		c.t.Fatalf("%s: %v", statements, err)
	}
}

// Start starts the server, and returns when it accepts connections.
func (c *Cluster) Start() {
	c.t.Helper()
	cmd := c.command("postgres", "-D", c.data(), "-h", "127.0.0.1", "-p", strconv.Itoa(c.port), "-k", c.folder,
		"-c", "fsync=off", "-c", "max_connections=200", "-c", "log_min_messages=fatal")
	log, err := os.OpenFile(filepath.Join(c.folder, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		c.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }() // Start and Stop report how it ends
	c.server, c.ended = cmd, ended
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // a cleanup may be the caller
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, c.URL())
		if err == nil {
			_ = conn.Close(ctx) // it was only a test
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ended:
			c.t.Fatalf("the server has ended: %v\n%s", err, c.log())
		case <-ctx.Done():
			c.t.Fatalf("the server does not start: %v\n%s", err, c.log())
		}
	}
}

// Stop stops the server. SIGINT undoes the transactions under way first, SIGQUIT ends the server at
// once, so that the next start repairs the database.
func (c *Cluster) Stop(with syscall.Signal) {
	c.t.Helper()
	if err := c.server.Process.Signal(with); err != nil {
		return // it has ended
	}
	select {
	case <-c.ended:
	case <-time.After(time.Minute):
		_ = c.server.Process.Kill() // so that it does not outlive the test
		c.t.Errorf("the server does not stop\n%s", c.log())
	}
}

func (c *Cluster) log() string {
	text, err := os.ReadFile(filepath.Join(c.folder, "log"))
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}
