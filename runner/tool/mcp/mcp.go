// Package mcp is a client of tool servers that use the Model Context Protocol. It starts the
// servers that the operator has configured, or connects to them, and makes tools from their
// descriptions.
//
// It may import tool, dial, workspace, sandbox and schema. A server is never trusted: its names, descriptions,
// schemas and results are limited. Longer ones are cut or omitted. A server's program runs with
// the rights of this process, because the operator chose it, but without this program's
// environment. No failure of a server may delay a turn beyond the time limits, or end this
// program.
package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"journeyman/runner/dial"
	"journeyman/runner/tool"
)

// Config holds the settings of a Pool. Log is required.
type Config struct {
	Log     *slog.Logger
	Version string // version of this program, which is sent to servers
	Timing  Timing

	Logins    LoginStore // nil disables signing in to servers
	BaseURL   string     // address of the dashboard, without a slash at the end
	ListenURL string     // address that this process listens on, such as http://[::]:8080; "" without one
	Dialer    dial.Guard // connects to authorization servers, whose addresses are untrusted
}

// Timing holds the time limits of a Pool. A zero field means its default, which is the last
// value in its comment.
type Timing struct {
	Connect time.Duration // time for starting a server and listing its tools; 1 minute
	Toolset time.Duration // time for the tools of all servers when a turn begins; 15 s
	Fresh   time.Duration // how long a list of tools is used before it is requested again; 1 minute
	Leave   time.Duration // grace period of a program before it is killed; 2 s
	Backoff time.Duration // pause after a failure, doubled after each further failure up to 10 minutes; 1 s
	Stable  time.Duration // age from which a connection resets the count of failures; 1 minute
	Answer  time.Duration // time for the response to a ping after a call timed out; 5 s
	Longest time.Duration // limit of a call, even if it reports progress; 1 hour
}

func (t Timing) withDefaults() Timing {
	return Timing{Connect: cmp.Or(t.Connect, time.Minute), Toolset: cmp.Or(t.Toolset, 15*time.Second),
		Fresh: cmp.Or(t.Fresh, time.Minute), Leave: cmp.Or(t.Leave, 2*time.Second),
		Backoff: cmp.Or(t.Backoff, time.Second), Stable: cmp.Or(t.Stable, time.Minute),
		Answer: cmp.Or(t.Answer, 5*time.Second), Longest: cmp.Or(t.Longest, time.Hour)}
}

// A Pool holds the connections to servers. It is a tool.Source.
type Pool struct {
	cfg     Config
	servers []*server // sorted by name
	ctx     context.Context
	cancel  context.CancelFunc

	mu      sync.Mutex // guards stopped and signIns, and orders running.Go before Wait
	stopped bool
	signIns map[string]*signIn // sign-ins in progress, by server
	running sync.WaitGroup     // all goroutines started by begin
}

// errStopped is the error of an operation after Stop.
var errStopped = errors.New("the service stops")

// New creates a pool of the servers that Load returned. A server is started when it is first
// needed.
func New(servers []Server, cfg Config) *Pool {
	cfg.Timing = cfg.Timing.withDefaults()
	p := &Pool{cfg: cfg, signIns: map[string]*signIn{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	for _, s := range servers {
		p.servers = append(p.servers, p.newServer(s))
	}
	return p
}

// Start begins to connect to all servers, without waiting for them.
func (p *Pool) Start() {
	for _, s := range p.servers {
		if len(s.secretNames) > 0 {
			continue // only turns have the secrets that the connection needs
		}
		p.begin(func() {
			_, _ = s.session(p.ctx) // server.failed logs the error
		})
	}
}

func (p *Pool) newServer(s Server) *server {
	return &server{Server: s, pool: p, log: p.cfg.Log.With("mcp", s.Name)}
}

// Stop ends all connections and programs, and waits until they have ended. Calls in progress
// fail.
func (p *Pool) Stop() {
	p.mu.Lock()
	// From now on begin starts nothing, so Wait waits for all goroutines.
	p.stopped = true
	p.mu.Unlock()
	p.cancel()
	p.running.Wait()
}

// begin runs f in a goroutine that Stop waits for. It returns false after Stop.
func (p *Pool) begin(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return false
	}
	// The lock is held, because the counter of a WaitGroup must not grow from zero during Wait.
	p.running.Go(f)
	return true
}

// await runs f in a goroutine and returns its result, or ctx's cause if ctx ends first. It is
// needed because some calls of the SDK return long after their context has ended.
func await[T any](ctx context.Context, p *Pool, f func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1) // buffered: after the end of ctx nothing receives from it, and f must not block
	var none T
	if !p.begin(func() { v, err := f(); done <- outcome{v, err} }) {
		return none, errStopped
	}
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// find returns the server with that name, nil if there is none.
func (p *Pool) find(name string) *server {
	if i := slices.IndexFunc(p.servers, func(s *server) bool { return s.Name == name }); i >= 0 {
		return p.servers[i]
	}
	return nil
}

// Names returns the names of the servers, sorted.
func (p *Pool) Names() []string {
	names := make([]string, len(p.servers))
	for i, s := range p.servers {
		names[i] = s.Name
	}
	return names
}

// Known returns the names that a worker may use: each server, and SERVER.TOOL for each server
// that has listed its tools. It does not connect to any server.
func (p *Pool) Known() []string {
	var names []string
	for _, s := range p.servers {
		names = append(names, s.Name)
		if tools := s.known.Load(); tools != nil {
			for _, t := range *tools {
				names = append(names, s.Name+"."+t.Tool)
			}
		}
	}
	return names
}

// A Status is the state of a server and its connection.
type Status struct {
	Server  string
	Address string // the program, or the address without possible secrets
	Tools   []tool.RemoteTool
	Err     error // reason why there is no connection; nil if there is one
}

// Status connects to every server and returns their states, sorted by name.
func (p *Pool) Status(ctx context.Context) []Status {
	all := make([]Status, len(p.servers))
	var work sync.WaitGroup // each goroutine writes to its own entry of all
	for i, s := range p.servers {
		work.Go(func() {
			all[i] = Status{Server: s.Name, Address: s.address()}
			if len(s.secretNames) > 0 {
				all[i].Err = fmt.Errorf("it is reached with the secrets of each worker: %s",
					strings.Join(s.secretNames, ", "))
				return
			}
			all[i].Tools, all[i].Err = s.tools(ctx)
		})
	}
	work.Wait()
	return all
}
