package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"

	"journeyman/runner/sandbox"
)

// The bounds of what a server sends.
const (
	maxReceived = 8 << 20          // bytes in one message, or in one response over HTTP
	writeIn     = 10 * time.Second // for a program to take a message
	perSecond   = 1000             // messages of a program
	burst       = 5000
)

// transport makes what a session speaks over. A program is started, and is the
// session's then.
func (s *server) transport(sess *session) (sdk.Transport, error) {
	if !s.stdio() {
		return &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: s.httpClient(), MaxRetries: -1,
			MaxEventSize: maxReceived, DisableStandaloneSSE: true}, nil
	}
	env := s.environment()
	path, err := lookPath(s.Command, s.Dir, env)
	if err != nil {
		return nil, err
	}
	sess.process, err = sandbox.StartProgram(sandbox.Program{Path: path, Args: s.Args, Env: env, Dir: s.Dir,
		Stderr: newStderrLog(s)})
	if err != nil {
		return nil, err
	}
	return &guarded{IOTransport: sdk.IOTransport{Reader: sess.process.Stdout, Writer: impatient{sess.process.Stdin},
		MaxLineLength: maxReceived}, changed: func() { sess.changed.Store(true) }}, nil
}

// environment is all that a program finds in its environment: nothing of this
// program's that is not named.
func (s *server) environment() []string {
	var env []string
	for _, name := range []string{"PATH", "HOME"} {
		if _, set := s.Env[name]; !set {
			env = append(env, name+"="+os.Getenv(name))
		}
	}
	for name, value := range s.Env {
		env = append(env, name+"="+value)
	}
	return env
}

// lookPath finds a program as a shell would that has env, in dir.
func lookPath(command, dir string, env []string) (string, error) {
	if strings.ContainsRune(command, filepath.Separator) {
		if !filepath.IsAbs(command) {
			command = filepath.Join(dir, command)
		}
		path, err := exec.LookPath(command)
		if err != nil {
			return "", fmt.Errorf("command: %w", err)
		}
		return filepath.Abs(path)
	}
	for _, variable := range env {
		list, is := strings.CutPrefix(variable, "PATH=")
		if !is {
			continue
		}
		for _, folder := range filepath.SplitList(list) {
			if path, err := exec.LookPath(filepath.Join(folder, command)); err == nil && filepath.IsAbs(path) {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("command: there is no program %q in PATH", command)
}

// impatient gives a program a limited time to take each message.
type impatient struct{ *os.File }

// Write writes b, or fails when the program does not read it in time.
func (w impatient) Write(b []byte) (int, error) {
	if err := w.SetWriteDeadline(time.Now().Add(writeIn)); err != nil {
		return 0, err
	}
	return w.File.Write(b)
}

// guarded is a program's input and output, with a limit to how fast it may talk.
type guarded struct {
	sdk.IOTransport
	changed func() // called when the server says that its tools have changed
}

// Connect begins to read.
func (t *guarded) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := t.IOTransport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &guardedConnection{Connection: c, limit: rate.NewLimiter(perSecond, burst), changed: t.changed}, nil
}

type guardedConnection struct {
	sdk.Connection
	limit   *rate.Limiter
	changed func()
}

// errFlood ends a connection whose server talks without end.
var errFlood = errors.New("the server sends more messages than can be of use")

// toolsChanged is a server's word that its list of tools is another.
const toolsChanged = "notifications/tools/list_changed"

// Read gives the next message that matters: what a server merely mentions, such as
// progress and logs, is not passed on, since what is not read is queued.
func (c *guardedConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := c.Connection.Read(ctx)
		if err != nil {
			return nil, err
		}
		if !c.limit.Allow() {
			return nil, errFlood
		}
		req, ok := m.(*jsonrpc.Request)
		if !ok || req.IsCall() {
			return m, nil
		}
		if req.Method == toolsChanged {
			c.changed()
			return m, nil
		}
	}
}

// errRedirect ends a request that a server sends elsewhere: the headers may hold
// keys that are meant for it alone.
var errRedirect = errors.New("the server redirects, which is not followed: configure the address it redirects to")

// httpClient makes the client for one server. The address is the operator's, so
// that it may lie in a private network.
func (s *server) httpClient() *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect },
		Transport: &withHeaders{headers: s.Headers, next: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout:    10 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
			MaxIdleConnsPerHost:    8,
			IdleConnTimeout:        90 * time.Second,
			ForceAttemptHTTP2:      true,
		}},
	}
}

// withHeaders adds the configured headers, and limits what is read.
type withHeaders struct {
	headers map[string]string
	next    http.RoundTripper
}

// RoundTrip sends a request.
func (t *withHeaders) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	for name, value := range t.headers {
		req.Header.Set(name, value)
	}
	res, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	res.Body = &bounded{ReadCloser: res.Body, left: maxReceived}
	return res, nil
}

// bounded is a body of which a limited number of bytes can be read.
type bounded struct {
	io.ReadCloser
	left int64
}

// Read reads on, up to the limit.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the response has more than %d bytes", int64(maxReceived))
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
