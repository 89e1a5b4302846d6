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
	is := is.New(t)
	c := Config{BaseURL: "https://jm.test/work", LocalURL: "http://127.0.0.1:8080"}
	for _, own := range []string{"https://jm.test/work/mcp", "https://JM.test/work/mcp", "http://127.0.0.1:8080/mcp",
		"http://localhost:8080/mcp", "http://[::1]:8080/mcp"} {
		is.True(c.isOwn(&Server{URL: own})) // its own address
		is.True(!Config{}.isOwn(&Server{URL: own}))
	}
	for _, other := range []string{"https://jm.test/mcp", "http://jm.test/work/mcp", "https://jm.test.evil.test/work/mcp",
		"https://jm.test@evil.test/work/mcp", "https://jm.test/work/mcp/x", "http://127.0.0.1:8081/mcp", "http://10.0.0.1:8080/mcp",
		"https://127.0.0.1:8080/mcp", "http://127.0.0.1.evil.test:8080/mcp", "https://jm.test:8443/work/mcp", "://", ""} {
		is.True(!c.isOwn(&Server{URL: other})) // another server
	}
	is.True(!c.isOwn(&Server{Command: "mcp", URL: "https://jm.test/work/mcp"})) // a program
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
	own.cfg.LocalURL = srv.URL
	is.Equal(own.must("web", "echo", `{"text":"hi"}`), `"hi"`)
	is.Equal(tokens.Load(), int64(1)) // its own server gets it
}
