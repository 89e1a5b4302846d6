package mcp

import (
	"bytes"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/matryer/is"
)

// TestOwnServer checks which servers get the token of a call.
func TestOwnServer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		base, listen string
		own, other   []string
	}{
		"base URL": {"https://jm.test/work", "http://127.0.0.1:8080",
			[]string{"https://jm.test/work/mcp", "https://JM.test/work/mcp", "HTTPS://jm.test/work/mcp", "https://jm.test:443/work/mcp",
				"https://jm.test/work/mcp/"},
			[]string{"https://jm.test/mcp", "http://jm.test/work/mcp", "http://jm.test:443/work/mcp", "https://jm.test:80/work/mcp",
				"https://jm.test.evil.test/work/mcp", "https://jm.test@evil.test/work/mcp", "https://jm.test/work/mcp/x",
				"https://jm.test/WORK/mcp", "https://jm.test:8443/work/mcp", "https://jm.test/work/../mcp", "://", ""}},
		"base URL with a port and a slash": {"https://jm.test:443/", "",
			[]string{"https://jm.test/mcp", "https://jm.test:443/mcp/"}, []string{"https://jm.test//mcp", "https://jm.test:444/mcp"}},
		"plain base URL":   {"http://jm.test", "", []string{"http://jm.test:80/mcp"}, []string{"http://jm.test:443/mcp", "http://localhost/mcp"}},
		"base URL of IPv6": {"http://[2001:db8::1]:8080", "", []string{"http://[2001:DB8:0:0::1]:8080/mcp"}, []string{"http://[2001:db8::2]:8080/mcp"}},
		"listens on 127.0.0.1": {"https://jm.test", "http://127.0.0.1:8080",
			[]string{"http://127.0.0.1:8080/mcp", "http://localhost:8080/mcp", "http://LOCALHOST:8080/mcp/", "http://[::ffff:127.0.0.1]:8080/mcp"},
			[]string{"http://127.0.0.2:8080/mcp", "http://[::1]:8080/mcp", "http://127.0.0.1:8081/mcp", "http://10.0.0.1:8080/mcp",
				"https://127.0.0.1:8080/mcp", "http://127.0.0.1.evil.test:8080/mcp", "http://0.0.0.0:8080/mcp"}},
		"listens on 127.0.0.2": {"https://jm.test", "http://127.0.0.2:8080", []string{"http://127.0.0.2:8080/mcp"},
			[]string{"http://127.0.0.1:8080/mcp", "http://localhost:8080/mcp"}},
		"listens on ::1": {"https://jm.test", "http://[::1]:8080", []string{"http://[::1]:8080/mcp", "http://[0:0::1]:8080/mcp", "http://localhost:8080/mcp"},
			[]string{"http://127.0.0.1:8080/mcp"}},
		"listens on all": {"https://jm.test", "http://[::]:8080", []string{"http://127.0.0.1:8080/mcp", "http://127.0.0.9:8080/mcp",
			"http://[::1]:8080/mcp", "http://localhost:8080/mcp"}, []string{"http://10.0.0.1:8080/mcp", "http://[::1]/mcp"}},
		"listens on all of IPv4": {"https://jm.test", "http://0.0.0.0:8080", []string{"http://127.0.0.1:8080/mcp", "http://localhost:8080/mcp"},
			[]string{"http://[::1]:8080/mcp"}},
		"listens on a private address": {"https://jm.test", "https://10.0.0.1", []string{"https://10.0.0.1/mcp", "https://10.0.0.1:443/mcp"},
			[]string{"https://localhost/mcp", "https://127.0.0.1/mcp", "https://10.0.0.2/mcp"}},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			c := Config{BaseURL: tt.base, ListenURL: tt.listen}
			for _, own := range tt.own {
				if !c.isOwn(&Server{URL: own}) {
					t.Errorf("%s is not its own", own)
				}
				is.True(!Config{}.isOwn(&Server{URL: own}))
				is.True(!c.isOwn(&Server{Command: "mcp", URL: own})) // a program
			}
			for _, other := range tt.other {
				if c.isOwn(&Server{URL: other}) {
					t.Errorf("%s is its own", other)
				}
			}
		})
	}
}

// TestTokenOfAnotherServer calls a tool of another server. No request holds the token of the call.
func TestTokenOfAnotherServer(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var calls, tokens atomic.Int64
	srv := remoteServer(t, nil, func(_ http.ResponseWriter, r *http.Request) bool {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte(`"tools/call"`)) {
			calls.Add(1)
		}
		if bytes.Contains(body, []byte("token of the call")) {
			tokens.Add(1)
		}
		return true
	})
	f := newPool(t, quick, at(srv.URL))
	is.Equal(f.must("web", "echo", `{"text":"hi"}`), `"hi"`)
	is.Equal(calls.Load(), int64(1))
	is.Equal(tokens.Load(), int64(0)) // the token leaves this program

	own := newPool(t, quick, at(srv.URL+"/mcp"))
	own.cfg.ListenURL = srv.URL
	is.Equal(own.must("web", "echo", `{"text":"hi"}`), `"hi"`)
	is.Equal(tokens.Load(), int64(1)) // its own server gets it
}
