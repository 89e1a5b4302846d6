package mcp

import (
	"context"
	"encoding/json"
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

// Limits of messages from and to servers.
const (
	maxReceived = 8 << 20          // bytes in one message, or in one response over HTTP
	writeIn     = 10 * time.Second // time for a program to read a message
	perSecond   = 1000             // average number of messages per second from a program
	burst       = 5000             // maximum number of messages from a program in a burst
)

// transport creates the transport of a session. If the server is a program, transport starts
// it, and the session must stop it.
func (s *server) transport(sess *session) (sdk.Transport, error) {
	if !s.stdio() {
		// No retries by the SDK: a call that was sent may have taken effect.
		return &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: s.httpClient(sess), MaxRetries: -1,
			MaxEventSize: maxReceived, DisableStandaloneSSE: true}, nil
	}
	env := s.environment()
	// The program is searched in the PATH of its own environment, not in the PATH of this
	// program. The operator configures that environment.
	path, err := lookPath(s.Command, s.Dir, env)
	if err != nil {
		return nil, err
	}
	sess.process, err = sandbox.StartProgram(sandbox.Program{Path: path, Args: s.Args, Env: env, Dir: s.Dir,
		Stderr: newStderrLog(s, "stderr")})
	if err != nil {
		return nil, err
	}
	messages := newMessageReader(sess.process.Stdout, newStderrLog(s, "text in stdout"))
	return &guarded{IOTransport: sdk.IOTransport{Reader: messages, Writer: impatient{sess.process.Stdin},
		MaxLineLength: maxReceived}, session: sess}, nil
}

// environment returns the complete environment of a server's program. From this program's own
// environment, which contains keys, it copies only PATH, HOME and the configured variables.
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

// lookPath returns the path of a program, like a shell in dir with this environment.
func lookPath(command, dir string, env []string) (string, error) {
	// A shell searches PATH only for names without a slash.
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
			// Skip a relative folder in PATH: its meaning depends on the working folder of this
			// program.
			if path, err := exec.LookPath(filepath.Join(folder, command)); err == nil && filepath.IsAbs(path) {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("command: there is no program %q in PATH", command)
}

// impatient is a program's standard input with a time limit for each message.
type impatient struct{ *os.File }

// Write writes b. It fails if the program does not read b in time.
func (w impatient) Write(b []byte) (int, error) {
	// Without a deadline, a full pipe would block this call and all that wait for it forever.
	if err := w.SetWriteDeadline(time.Now().Add(writeIn)); err != nil {
		return 0, err
	}
	return w.File.Write(b)
}

// guarded is the transport over a program's input and output. It limits the rate of messages.
type guarded struct {
	sdk.IOTransport
	session *session
}

// Connect returns a connection that limits the rate of messages.
func (t *guarded) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := t.IOTransport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &guardedConnection{Connection: c, limit: rate.NewLimiter(perSecond, burst), session: t.session}, nil
}

type guardedConnection struct {
	sdk.Connection
	limit   *rate.Limiter
	session *session
}

// errFlood is the error of a connection whose server sends too many messages.
var errFlood = errors.New("the server sends more messages than can be of use")

// The notifications that are processed: a change of the list of tools, and the progress of a
// call.
const (
	toolsChanged = "notifications/tools/list_changed"
	progress     = "notifications/progress"
)

// Read returns the next message for the SDK. It handles progress itself, and drops other
// notifications, such as logs: the SDK would queue them without limit.
func (c *guardedConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := c.Connection.Read(ctx)
		if err != nil {
			return nil, err
		}
		// Each message costs memory and time, even a dropped one.
		if !c.limit.Allow() {
			return nil, errFlood
		}
		if res, ok := m.(*jsonrpc.Response); ok {
			c.session.noteTasks(res.Result)
			return m, nil
		}
		req, ok := m.(*jsonrpc.Request)
		// The SDK answers requests of the server. A notification has no id and gets no
		// response.
		if !ok || req.IsCall() {
			return m, nil
		}
		switch req.Method {
		case toolsChanged:
			c.session.changed.Store(true)
			return m, nil
		case progress:
			var params struct{ ProgressToken any }
			if json.Unmarshal(req.Params, &params) == nil {
				c.session.progressed(params.ProgressToken)
			}
		}
	}
}

// errRedirect is the error for a redirect. The configured headers may contain keys, which only
// the configured address may get.
var errRedirect = errors.New("the server redirects, which is not followed: configure the address it redirects to")

// httpClient returns the HTTP client for one server. The operator chose the address, so it may
// be in a private network or behind a proxy.
func (s *server) httpClient(sess *session) *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect },
		Transport: &withHeaders{server: s, session: sess, next: &http.Transport{
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

// withHeaders adds the configured headers and the login to requests. It limits the responses,
// and scans those that list tools.
type withHeaders struct {
	server  *server
	session *session
	next    http.RoundTripper
}

// RoundTrip sends a request with the configured headers and the login.
func (t *withHeaders) RoundTrip(req *http.Request) (*http.Response, error) {
	// By the rules of net/http, a RoundTripper must not modify the caller's request.
	req = req.Clone(req.Context())
	for name, value := range t.server.Headers {
		req.Header.Set(name, value)
	}
	res, err := t.server.authorized(req, t.next)
	if err != nil {
		return nil, err
	}
	res.Body = &bounded{ReadCloser: res.Body, left: maxReceived}
	if lists(req) {
		// Outside of bounded, so that the bytes that it keeps are limited, too.
		res.Body = &taskScan{ReadCloser: res.Body, session: t.session}
	}
	return res, nil
}

// bounded is the body of a response with a size limit.
type bounded struct {
	io.ReadCloser
	left int64
}

// Read reads from the body. At the limit it returns an error, because a cut message would look
// like an error of the server.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the response has more than %d bytes", int64(maxReceived))
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
