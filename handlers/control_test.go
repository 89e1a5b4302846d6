package handlers_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers"
	"journeyman/store"
)

func controlOf(s *site) http.Handler {
	return handlers.Control(handlers.DataFolder{Store: s.store, BaseURL: "https://jm.example"})
}

// control serves commands on a socket in a folder and gives a client of it.
func (s *site) control(t testing.TB, dir string) (*handlers.ControlClient, string) {
	t.Helper()
	path := filepath.Join(dir, "control.sock")
	ln, err := handlers.ListenControl(path)
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: controlOf(s)} //nolint:gosec // a socket that only this user opens
	served := make(chan error, 1)
	go func() { served <- web.Serve(ln) }()
	t.Cleanup(func() {
		if err := web.Close(); err != nil {
			t.Error(err)
		}
		<-served
	})
	return handlers.NewControlClient(path), path
}

// TestControl makes, lists and revokes keys through a running server, on short
// paths and on ones that an address of a socket has no room for.
func TestControl(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{"short": "d", "long": strings.Repeat("long/", 40)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			s := newServer(t, idle)
			dir := filepath.Join(t.TempDir(), dir)
			is.NoErr(os.MkdirAll(dir, 0o700))
			client, path := s.control(t, dir)
			info, err := os.Stat(path)
			is.NoErr(err)
			is.Equal(info.Mode().Perm(), os.FileMode(0o600)) // nobody else's

			secret, err := client.CreateKey(t.Context(), store.NewKey{Name: "ci", Email: "ci@example.com", Role: store.RoleMember, OrganizationName: "Acme"})
			is.NoErr(err)
			is.Equal(s.as(secret).must(t, "GET", "/api/me", "").text("key.name"), "ci")
			keys, err := client.Keys(t.Context(), "Acme")
			is.NoErr(err)
			is.Equal(len(keys), 2)
			_, err = client.Keys(t.Context(), "none")
			is.True(err != nil && strings.Contains(err.Error(), `no organization is named "none"`))
			next, successor, err := client.RollKey(t.Context(), secret, "")
			is.NoErr(err)
			is.Equal(next.Name, "ci")
			is.Equal(s.as(successor).must(t, "GET", "/api/me", "").text("key.id"), next.ID)
			is.Equal(s.as(secret).do(t, "GET", "/api/me", "").status, 200) // for a day
			_, _, err = client.RollKey(t.Context(), secret, "")
			is.True(err != nil && strings.Contains(err.Error(), "rolled already"))
			k, err := client.RevokeKey(t.Context(), secret, "")
			is.NoErr(err)
			is.Equal(k.Email, "ci@example.com")
			is.True(k.RevokedAt != nil)
			is.Equal(s.as(secret).do(t, "GET", "/api/me", "").status, 401)

			users, err := client.Users(t.Context())
			is.NoErr(err)
			is.Equal(len(users), 2)
			is.Equal([]any{users[1].Email, users[1].Role, users[1].OrganizationName, users[1].HasPassword}, []any{"ci@example.com", store.RoleMember, "Acme", false})
			link, err := client.ResetLink(t.Context(), "ci@example.com")
			is.NoErr(err)
			l, err := s.store.Link(t.Context(), store.LinkReset, strings.TrimPrefix(link, "https://jm.example/reset/"))
			is.NoErr(err)
			is.Equal(l.Email, "ci@example.com")
			_, err = client.ResetLink(t.Context(), "nobody@example.com")
			is.True(err != nil && strings.Contains(err.Error(), "no user has that email address"))

			_, err = client.RevokeKey(t.Context(), "none", "")
			is.True(err != nil && strings.Contains(err.Error(), "no API key"))
			_, err = client.CreateKey(t.Context(), store.NewKey{Name: "", Role: "king"})
			is.True(err != nil && strings.Contains(err.Error(), "name"))
		})
	}
}

// TestControlUnreachable says what is wrong where nobody serves the socket.
func TestControlUnreachable(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	client := handlers.NewControlClient(filepath.Join(t.TempDir(), "none.sock"))
	_, err := client.Keys(t.Context(), "")
	is.True(err != nil && strings.Contains(err.Error(), "cannot be reached"))
	_, err = handlers.NewControlClient(filepath.Join(t.TempDir(), strings.Repeat("x/", 200), "none.sock")).Keys(t.Context(), "")
	is.True(err != nil)
	_, err = handlers.ListenControl(filepath.Join(t.TempDir(), "none", "control.sock"))
	is.True(err != nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = client.CreateKey(ctx, store.NewKey{Name: "k"})
	is.True(err != nil)
}
