package command_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers/command"
	"journeyman/store"
	"journeyman/store/sqlite"
	"journeyman/store/storetest"
)

// programOn returns a program on a data folder.
func programOn(t testing.TB, dir string) *command.Program {
	t.Helper()
	return &command.Program{Settings: command.Settings{Data: dir, Timezone: "UTC",
		Database: storetest.DatabaseOf(dir)}, Context: t.Context(),
		Schema: storetest.Schema(t), Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}, Log: slog.New(slog.DiscardHandler)}
}

// TestOpenWaitsForADeadProcess holds the lock and the socket of a folder, as the forked process of
// a killed server does. The start waits for their release.
func TestOpenWaitsForADeadProcess(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	lock, err := sqlite.Lock(dir)
	is.NoErr(err)
	socket, err := net.Listen("unix", filepath.Join(dir, "control.sock"))
	is.NoErr(err)
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		c, err := socket.Accept() // the start checks whether a server answers
		if err == nil {
			_ = c.Close()
		}
		_ = errors.Join(socket.Close(), lock.Close())
	}()
	st, err := programOn(t, dir).OpenStore()
	is.NoErr(err)
	is.NoErr(st.Close())
	<-asked
}

// TestOpenBesideAServer opens a folder that a server has open.
func TestOpenBesideAServer(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	st := storetest.Open(t, store.Options{})
	control(t, st, st.Dir())
	_, err := programOn(t, st.Dir()).OpenStore()
	is.True(errors.Is(err, store.ErrLocked)) // another process holds the lock
	_, err = os.Stat(filepath.Join(st.Dir(), "control.sock"))
	is.NoErr(err) // the server keeps its socket
}

// TestRunBesideServer runs a task on a folder that another process has open. The error says how to
// give the task to a server.
func TestRunBesideServer(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	for name, tt := range map[string]struct {
		address string // of the server
		says    string
	}{
		"server":                     {"https://jm.example", "a server uses the data folder DIR: give it the task through its API, with curl https://jm.example/api/tasks "},
		"a server without an answer": {"", "curl ADDRESS/api/tasks "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			st := storetest.Open(t, store.Options{})
			ready := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
			serveAt(t, filepath.Join(st.Dir(), "control.sock"), command.WithReadiness(ready, controlOf(st), "1", tt.address))
			p := programOn(t, st.Dir())
			p.Env = command.NewEnvironment(func(string) string { return "" })
			err := (&command.Run{Instruction: "Write a haiku."}).Run(p)
			is.True(err != nil)
			is.True(strings.Contains(err.Error(), strings.ReplaceAll(tt.says, "DIR", st.Dir())))
			is.True(strings.Contains(err.Error(), "another folder with --data"))
		})
	}
}

// TestOpenBesideNodes runs a command that names no node on a folder that nodes have open.
func TestOpenBesideNodes(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	st := storetest.Open(t, store.Options{})
	serveAt(t, filepath.Join(st.Dir(), "control-10.0.0.2_8080.sock"), controlOf(st))
	err := (&command.KeyList{}).Run(programOn(t, st.Dir()))
	is.True(err != nil && strings.Contains(err.Error(), "--node-url"))
}

// TestNoData runs commands on a folder that does not exist. They must not create it: a mistyped
// --data would look like a server without any data, and its backups like good ones.
func TestNoData(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	for name, tt := range map[string]struct {
		run     func(p *command.Program, target string) error
		creates bool
	}{
		"key list":        {func(p *command.Program, _ string) error { return (&command.KeyList{}).Run(p) }, false},
		"key revoke":      {func(p *command.Program, _ string) error { return (&command.KeyRevoke{Key: "key_x"}).Run(p) }, false},
		"user list":       {func(p *command.Program, _ string) error { return command.UserList{}.Run(p) }, false},
		"provider list":   {func(p *command.Program, _ string) error { return (&command.ProviderList{}).Run(p) }, false},
		"provider remove": {func(p *command.Program, _ string) error { return (&command.ProviderRemove{Name: "x"}).Run(p) }, false},
		"backup":          {func(p *command.Program, to string) error { return (&command.Backup{File: to}).Run(p) }, false},
		"vacuum":          {func(p *command.Program, _ string) error { return command.Vacuum{}.Run(p) }, false},
		"key create": {func(p *command.Program, _ string) error {
			return (&command.KeyCreate{Name: "robot", User: "ann@example.com", Role: new("owner")}).Run(p)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			dir, target := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "all.tgz")
			p := programOn(t, dir)
			p.Env = command.NewEnvironment(os.Getenv)
			err := tt.run(p, target)
			_, missing := os.Stat(dir)
			is.Equal(os.IsNotExist(missing), !tt.creates)
			if tt.creates {
				is.NoErr(err)
				return
			}
			is.True(err != nil && strings.Contains(err.Error(), "there is no data in "+dir)) // and says how to name another folder
			_, err = os.Stat(target)
			is.True(os.IsNotExist(err)) // no backup of nothing
		})
	}
}
