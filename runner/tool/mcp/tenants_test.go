package mcp

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"journeyman/runner/tool"
)

// keyed serves the good server and counts the new connections by key.
func keyed(t *testing.T) (address string, begun func() map[string]int) {
	t.Helper()
	server := good()
	next := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	var mu sync.Mutex
	keys := map[string]int{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Authorization")
		if !strings.HasPrefix(key, "Bearer key-of-") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Header.Get("Mcp-Session-Id") == "" {
			mu.Lock()
			keys[key]++
			mu.Unlock()
		}
		next.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(srv.CloseClientConnections)
	return srv.URL, func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return keys
	}
}

// TestSecretsOfServers connects to one server with the secrets of two workers and without a
// secret. It also uses a secret that is not valid in a header.
func TestSecretsOfServers(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	address, begun := keyed(t)
	servers, err := parse([]byte(`{"mcpServers":{"web":{"url":"`+address+`","headers":{"Authorization":"Bearer ${secret:KEY}"}}}}`),
		func(string) string { return "" })
	is.NoErr(err)
	f := newPool(t, quick, servers...)
	f.Start()
	names, note := f.offered("web.echo")
	is.Equal(len(names), 0)
	contains(t, note, `web (there is no secret "KEY")`)
	contains(t, f.refused("web", "echo", `{"text":"hi"}`), `there is no secret "KEY"`)
	contains(t, f.Status(t.Context())[0].Err.Error(), "KEY")

	for _, key := range []string{"key-of-ann", "key-of-bob", "key-of-ann"} {
		f.secrets = map[string]string{"KEY": key}
		names, note = f.offered("web.echo")
		is.Equal(note, "")
		is.Equal(names, []string{"web__echo"})
		is.Equal(f.must("web", "echo", `{"text":"hi"}`), `"hi"`)
	}
	is.Equal(begun(), map[string]int{"Bearer key-of-ann": 1, "Bearer key-of-bob": 1}) // each worker has its own connection
	f.secrets = map[string]string{"KEY": "key-of-two\nlines"}
	contains(t, f.refused("web", "echo", `{"text":"hi"}`), "cannot hold")
	f.secrets = map[string]string{"KEY": "a wrong key of eve"}
	refused := f.refused("web", "echo", `{"text":"hi"}`)
	is.True(!strings.Contains(refused+f.log.String(), "key of eve")) // an error or the log shows a value
}

// TestManySecretsOfAServer checks that the number of connections of one server is limited. An
// idle connection makes room for another one, and a connection in use is not ended.
func TestManySecretsOfAServer(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := &server{Server: Server{Name: "web", URL: "http://127.0.0.1:1", secretNames: []string{"KEY"},
		Headers: map[string]string{"Authorization": "${secret:KEY}"}}, pool: New(nil, Config{})}
	t.Cleanup(s.pool.Stop)
	secret := func(n int) tool.SecretSource {
		return func(string, string) (string, error) { return fmt.Sprintf("key number %d", n), nil }
	}
	var leaves []func()
	for n := range maxTenants {
		at, leave, err := s.withSecrets(secret(n))
		is.NoErr(err)
		is.Equal(at.Headers["Authorization"], fmt.Sprintf("key number %d", n))
		leaves = append(leaves, leave)
	}
	_, _, err := s.withSecrets(secret(maxTenants))
	is.True(err != nil) // all are in use
	same, leave, err := s.withSecrets(secret(1))
	is.NoErr(err) // an existing connection needs no room
	leave()
	leaves[0]()
	_, leave, err = s.withSecrets(secret(maxTenants))
	is.NoErr(err) // the idle connection made room
	is.Equal(len(s.tenants.by), maxTenants)
	again, _, err := s.withSecrets(secret(1))
	is.NoErr(err)
	is.True(same == again) // a connection in use was not ended
	leave()
	for _, x := range s.tenants.by {
		x.lastUsed = time.Now().Add(-2 * tenantIdle)
	}
	s.tenants.mu.Lock()
	s.endIdle()
	s.tenants.mu.Unlock()
	is.Equal(len(s.tenants.by), maxTenants-1) // the only idle one has ended
}

// TestSecretsInTheConfiguration checks where a configuration may refer to a secret.
func TestSecretsInTheConfiguration(t *testing.T) {
	t.Parallel()
	for entry, says := range map[string]string{
		`{"command":"x","env":{"A":"${secret:KEY}","B":"x${secret:KEY}y${secret:OTHER}"}}`: "",
		`{"url":"http://x","headers":{"A":"${secret:KEY}${secret:OTHER}"}}`:                "",
		`{"command":"x","args":["${secret:KEY}"]}`:                                         "args[0]: secrets",
		`{"url":"http://x/${secret:KEY}"}`:                                                 "url: secrets",
		`{"command":"x","env":{"A":"${secret:a b}"}}`:                                      "env.A: secrets have names",
		`{"command":"x","env":{"A":"${secret:}"}}`:                                         "env.A: secrets have names",
	} {
		is := is.New(t)
		servers, err := parse([]byte(`{"mcpServers":{"s":`+entry+`}}`), func(string) string { return "" })
		if says != "" {
			contains(t, fmt.Sprint(err), says)
			continue
		}
		is.NoErr(err)
		is.Equal(servers[0].secretNames, []string{"KEY", "OTHER"})
	}
}
