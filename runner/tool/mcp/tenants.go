package mcp

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"

	"journeyman/runner/tool"
)

// A server with ${secret:NAME} in env or headers has a separate connection for each set of
// values. Workers with different secrets never share a connection.

const (
	maxTenants = 64               // connections of one server with different secrets
	tenantIdle = 10 * time.Minute // time without use after which a connection may be ended
)

// tenants are the connections of one server with different secrets.
type tenants struct {
	mu sync.Mutex                    // guards the fields below
	by map[[sha256.Size]byte]*tenant // key: hash of the names and values of the secrets
}

// A tenant is a copy of a server with the values of secrets in it.
type tenant struct {
	server   *server
	lastUsed time.Time // time when the last user called leave
	users    int       // number of turns and calls that use it now
}

// withSecrets returns the server with the secrets of a turn. The caller must call leave when it no
// longer uses the server. If s needs no secrets, withSecrets returns s.
func (s *server) withSecrets(secret tool.SecretSource) (at *server, leave func(), err error) {
	if len(s.secretNames) == 0 {
		return s, func() {}, nil
	}
	values := map[string]string{}
	hash := sha256.New() // the key of the map is a hash, so that the map contains no secret
	for _, name := range s.secretNames {
		if values[name], err = secret(name, ""); err != nil {
			return nil, nil, err
		}
		// Quoted, so that two different sets of values always give different text.
		fmt.Fprintf(hash, "%q %q\n", name, values[name])
	}
	key := [sha256.Size]byte(hash.Sum(nil))

	t := &s.tenants
	t.mu.Lock()
	defer t.mu.Unlock()
	s.endIdle()
	found := t.by[key]
	if found == nil {
		if len(t.by) >= maxTenants {
			return nil, nil, tool.Errorf("the MCP server %q is in use with %d different secrets, the most there may "+
				"be: try again later", s.Name, maxTenants)
		}
		filled, err := s.filled(values)
		if err != nil {
			return nil, nil, err
		}
		if t.by == nil {
			t.by = map[[sha256.Size]byte]*tenant{}
		}
		found = &tenant{server: filled}
		t.by[key] = found
	}
	found.users++
	return found.server, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		found.users--
		found.lastUsed = time.Now()
	}, nil
}

// endIdle ends the connections that were unused for tenantIdle. If there is still no room for
// another one, it ends the connection with the longest time without use. s.tenants.mu is held.
func (s *server) endIdle() {
	var oldest *[sha256.Size]byte
	t := &s.tenants
	for key, x := range t.by {
		switch {
		case x.users > 0: // the connection is in use
		case time.Since(x.lastUsed) > tenantIdle:
			s.forget(key)
		case oldest == nil || x.lastUsed.Before(t.by[*oldest].lastUsed):
			oldest = &key
		}
	}
	if oldest != nil && len(t.by) >= maxTenants {
		s.forget(*oldest)
	}
}

// forget removes a tenant and ends its connection. s.tenants.mu is held.
func (s *server) forget(key [sha256.Size]byte) {
	x := s.tenants.by[key].server
	delete(s.tenants.by, key)
	s.pool.begin(func() { // ending a program takes time, so it runs in a goroutine
		x.mu.Lock()
		live := x.live
		x.mu.Unlock()
		if live != nil {
			live.end()
		}
	})
}

// filled returns a copy of the server with values instead of the references to secrets.
func (s *server) filled(values map[string]string) (*server, error) {
	c := s.Server
	c.secretNames, c.secrets = nil, slices.Clone(s.secrets)
	fill := func(texts map[string]string) map[string]string {
		texts = maps.Clone(texts)
		for name, text := range texts {
			// values contains every name in secretNames, so this source returns no error.
			texts[name], _ = tool.ExpandSecrets(text, "",
				func(name, _ string) (string, error) { return values[name], nil })
		}
		return texts
	}
	c.Env, c.Headers = fill(s.Env), fill(s.Headers)
	for _, value := range values {
		c.addSecret(value)
	}
	// The configuration was checked without the values, which may contain a line break.
	for name, value := range c.Headers {
		if !httpguts.ValidHeaderFieldValue(value) {
			return nil, tool.Errorf("a secret has a character that the header %s of the MCP server %q cannot hold",
				name, s.Name)
		}
	}
	return &server{Server: c, pool: s.pool, log: s.log}, nil
}
