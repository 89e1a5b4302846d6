package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers/command"
	"journeyman/runner"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/storetest"
)

// control serves commands for a data folder on a socket in dir. It returns a client.
func control(t testing.TB, st *store.Store, dir string) *command.ControlClient {
	t.Helper()
	return serveAt(t, filepath.Join(dir, "control.sock"), controlOf(st))
}

// serveAt serves a handler on a socket. It returns a client.
func serveAt(t testing.TB, path string, handler http.Handler) *command.ControlClient {
	t.Helper()
	ln, err := command.ListenControl(path)
	is.New(t).NoErr(err)
	web := &http.Server{Handler: handler} //nolint:gosec // a socket that only this user opens
	served := make(chan error, 1)
	go func() { served <- web.Serve(ln) }()
	t.Cleanup(func() {
		if err := web.Close(); err != nil {
			t.Error(err)
		}
		<-served
	})
	return command.NewControlClient(path)
}

func controlOf(st *store.Store) http.Handler {
	return command.Control(command.DataFolder{Store: st, BaseURL: "https://jm.example", Runner: func() (*runner.Runner, error) {
		return nil, errors.New("no test needs a runner")
	}}, slog.New(slog.DiscardHandler))
}

// TestControl creates, lists and revokes keys through a running server, on short paths and on ones
// that are too long for a socket address.
func TestControl(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{"short": "d", "long": strings.Repeat("long/", 40)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			st := storetest.Open(t, store.Options{})
			storetest.Caller(t, st, "Acme", "ann@example.com", people.RoleOwner)
			dir := filepath.Join(t.TempDir(), dir)
			is.NoErr(os.MkdirAll(dir, 0o700))
			client := control(t, st, dir)
			info, err := os.Stat(filepath.Join(dir, "control.sock"))
			is.NoErr(err)
			is.Equal(info.Mode().Perm(), os.FileMode(0o600)) // only for the owner

			reply, err := client.Do(t.Context(), command.Call{Create: &people.NewKey{Name: "ci", Email: "ci@example.com",
				Role: people.RoleMember, OrganizationName: "Acme"}})
			is.NoErr(err)
			secret := reply.Secret
			who, err := st.People.Authenticate(t.Context(), secret)
			is.NoErr(err)
			is.Equal(who.Email, "ci@example.com")
			reply, err = client.Do(t.Context(), command.Call{List: new("Acme")})
			is.NoErr(err)
			is.Equal(len(reply.Keys), 2)
			_, err = client.Do(t.Context(), command.Call{List: new("none")})
			is.True(err != nil && strings.Contains(err.Error(), `no organization is named "none"`))
			reply, err = client.Do(t.Context(), command.Call{Roll: &secret})
			is.NoErr(err)
			next, successor := reply.Keys[0], reply.Secret
			is.Equal(next.Name, "ci")
			who, err = st.People.Authenticate(t.Context(), successor)
			is.NoErr(err)
			is.Equal(who.KeyID, next.ID)
			_, err = st.People.Authenticate(t.Context(), secret)
			is.NoErr(err) // valid for a day
			_, err = client.Do(t.Context(), command.Call{Roll: &secret})
			is.True(err != nil && strings.Contains(err.Error(), "rolled already"))
			reply, err = client.Do(t.Context(), command.Call{Revoke: &secret})
			is.NoErr(err)
			k := reply.Keys[0]
			is.Equal(k.Email, "ci@example.com")
			is.True(k.RevokedAt != nil)
			_, err = st.People.Authenticate(t.Context(), secret)
			is.True(db.IsKind(err, db.Unauthorized))

			reply, err = client.Do(t.Context(), command.Call{Users: true})
			is.NoErr(err)
			users := reply.Users
			is.Equal(len(users), 2)
			is.Equal([]any{users[1].Email, users[1].Role, users[1].OrganizationName, users[1].HasPassword},
				[]any{"ci@example.com", people.RoleMember, "Acme", false})
			reply, err = client.Do(t.Context(), command.Call{Reset: new("ci@example.com")})
			is.NoErr(err)
			l, err := st.People.Link(t.Context(), people.LinkReset, strings.TrimPrefix(reply.Link, "https://jm.example/reset/"))
			is.NoErr(err)
			is.Equal(l.Email, "ci@example.com")
			_, err = client.Do(t.Context(), command.Call{Reset: new("nobody@example.com")})
			is.True(err != nil && strings.Contains(err.Error(), "no user has that email address"))

			_, err = client.Do(t.Context(), command.Call{Revoke: new("none")})
			is.True(err != nil && strings.Contains(err.Error(), "no API key"))
			_, err = client.Do(t.Context(), command.Call{Create: &people.NewKey{Name: "", Role: "king"}})
			is.True(err != nil && strings.Contains(err.Error(), "name"))
		})
	}
}

// TestControlUnreachable checks the errors if no server answers on the socket.
func TestControlUnreachable(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	client := command.NewControlClient(filepath.Join(t.TempDir(), "control.sock"))
	_, err := client.Do(t.Context(), command.Call{List: new("")})
	is.True(err != nil && strings.Contains(err.Error(), "cannot be reached"))
	_, err = command.NewControlClient(filepath.Join(t.TempDir(), strings.Repeat("x/", 200), "control.sock")).Do(t.Context(), command.Call{List: new("")})
	is.True(err != nil)
	_, err = command.ListenControl(filepath.Join(t.TempDir(), "none", "control.sock"))
	is.True(err != nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = client.Do(ctx, command.Call{Create: &people.NewKey{Name: "k"}})
	is.True(err != nil)
}

// TestControlBackup makes a backup of a running server, and reads its report.
func TestControlBackup(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	storetest.Embedded(t)
	st := storetest.Open(t, store.Options{})
	client := control(t, st, t.TempDir())
	report, err := client.Backup(t.Context(), io.Discard)
	is.NoErr(err)
	is.Equal(len(report.Database), 64) // the SHA-256 of the database
	is.Equal(report, store.BackupReport{Database: report.Database})
	deep := filepath.Join(st.Dir(), "workspaces", "wrk_ü", strings.Repeat("d/", 250))
	is.NoErr(os.MkdirAll(deep, 0o700))
	var archive bytes.Buffer
	report, err = client.Backup(t.Context(), &archive)
	is.NoErr(err)
	is.Equal(report.Unread, 1)
	is.True(strings.HasPrefix(report.Names[0], `"workspaces/wrk_\u00fc/d/`))
	is.NoErr(store.Restore(t.Context(), filepath.Join(t.TempDir(), "new"), &archive))

	// Names that become much longer when they are quoted.
	top, err := os.OpenRoot(filepath.Join(st.Dir(), "workspaces"))
	is.NoErr(err)
	defer top.Close()
	for i := range 10 {
		dir := top
		for range 30 {
			name := fmt.Sprintf("%d%s", i, strings.Repeat("\\\"<\n\U0010ffff", 28))
			is.NoErr(dir.Mkdir(name, 0o700))
			next, err := dir.OpenRoot(name)
			is.NoErr(err)
			t.Cleanup(func() { _ = next.Close() })
			dir = next
		}
	}
	report, err = client.Backup(t.Context(), io.Discard)
	is.NoErr(err)
	is.Equal(report.Unread, 11)
	is.Equal(len(report.Names), 5)
	is.True(strings.Contains(report.String(), "and 6 more"))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = client.Backup(ctx, io.Discard)
	is.True(err != nil)
}

// TestControlBackupOfADamagedFolder checks that the operator gets the reason of a failed backup.
func TestControlBackupOfADamagedFolder(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	storetest.Embedded(t)
	st := storetest.Open(t, store.Options{})
	client := control(t, st, t.TempDir())
	f, err := os.OpenFile(filepath.Join(st.Dir(), "journeyman.db"), os.O_RDWR, 0)
	is.NoErr(err)
	_, err = f.WriteAt(bytes.Repeat([]byte{0xee}, 20*4096), 40*4096)
	is.NoErr(errors.Join(err, f.Close()))
	var archive bytes.Buffer
	_, err = client.Backup(t.Context(), &archive)
	is.True(err != nil && strings.Contains(err.Error(), "the server made no backup: "))
	is.True(strings.Contains(err.Error(), "damaged")) // the message does not say why
	is.Equal(archive.Len(), 0)
}

// A backupAdmin is an Admin that makes the backup of a test.
type backupAdmin func(w io.Writer) error

func (b backupAdmin) Do(context.Context, command.Call) (command.Reply, error) {
	return command.Reply{}, nil
}

func (b backupAdmin) Backup(_ context.Context, w io.Writer) (store.BackupReport, error) {
	return store.BackupReport{}, b(w)
}

// TestBackupCommandFails fails a backup before, during and after its archive, on both sides. The
// command names the reason, and leaves no file behind.
func TestBackupCommandFails(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	full := errors.New("no space left\non device")
	for name, tt := range map[string]struct {
		backup backupAdmin
		says   string
		logged string
	}{
		"before the first byte": {func(io.Writer) error { return full }, "the server made no backup: no space left", "no space left"},
		"in the archive": {func(w io.Writer) error {
			_, err := io.WriteString(w, "the first part")
			return errors.Join(err, full)
		}, "the server stopped the backup: no space left\non device", "no space left"},
		"as the server ends": {func(w io.Writer) error {
			_, _ = io.WriteString(w, strings.Repeat("the first part", 1000))
			panic(http.ErrAbortHandler)
		}, "the server ended before the backup was complete", ""},
		"without an answer": {func(io.Writer) error { panic(http.ErrAbortHandler) }, "before it answered", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			st := storetest.Open(t, store.Options{}) // holds the lock, so that the command asks the server
			ln, err := command.ListenControl(filepath.Join(st.Dir(), "control.sock"))
			is.NoErr(err)
			var log bytes.Buffer
			web := &http.Server{Handler: command.Control(tt.backup, slog.New(slog.NewTextHandler(&log, nil)))} //nolint:gosec // a socket that only this user opens
			served := make(chan error, 1)
			go func() { served <- web.Serve(ln) }()
			out := t.TempDir()
			file := filepath.Join(out, "b.tgz")
			is.NoErr(os.WriteFile(file, []byte("the backup before"), 0o600))
			err = (&command.Backup{File: file}).Run(programOn(t, st.Dir()))
			is.True(err != nil)
			is.True(strings.Contains(err.Error(), tt.says)) // the error does not say why
			is.NoErr(web.Shutdown(t.Context()))
			<-served
			is.True(strings.Contains(log.String(), tt.logged)) // the server's log does not say why
			left, err := os.ReadDir(out)
			is.NoErr(err)
			is.Equal(len(left), 1)
			kept, err := os.ReadFile(file)
			is.NoErr(err)
			is.Equal(string(kept), "the backup before")
		})
	}
}

// FuzzControl sends random bodies to the socket for commands.
func FuzzControl(f *testing.F) {
	for _, body := range []string{"", "{}", `{"create":{}}`, `{"create":{"Name":"k","Email":"a@b.c","Role":"owner"}}`, `{"list":""}`, `{"revoke":"x"}`, `{"list":1}`, "null", "[", `{"provider":{}}`, `{"provider":{"test":"x"}}`, strings.Repeat("[", 20000)} {
		f.Add([]byte(body))
	}
	h := controlOf(storetest.Open(f, store.Options{}))
	f.Fuzz(func(t *testing.T, body []byte) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "/", bytes.NewReader(body)))
		var got struct{ Error string }
		raw, _ := io.ReadAll(w.Body)
		if w.Code != 200 || json.Unmarshal(raw, &got) != nil {
			t.Fatalf("%d %s", w.Code, raw)
		}
	})
}
