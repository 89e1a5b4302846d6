// Package mcp talks to other people's tool servers over the Model Context
// Protocol: it starts or reaches those that the operator has configured, and makes
// tools of theirs.
//
// It may import tool and sandbox. What a server says is never trusted: names,
// descriptions, schemas and results have bounds, and what does not fit them is
// left out or cut. A server's program is the operator's choice and runs with this
// user's rights, without this program's environment. No failure of a server may
// hold up a turn for longer than the bounds here, or bring this program down.
package mcp

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"journeyman/runner/tool"
)

// Config is what a Pool works with. Log is needed.
type Config struct {
	Log     *slog.Logger
	Version string // of this program, told to servers
	Timing  Timing
}

// Timing says how long things may take. Zero fields have the defaults, which are
// right for a service.
type Timing struct {
	Connect time.Duration // for a server to start and to tell its tools; 1 minute
	Offer   time.Duration // that a turn's beginning waits for servers; 15 s
	Fresh   time.Duration // that a list of tools is believed; 1 minute
	Leave   time.Duration // for a program to end by itself; 2 s
	Backoff time.Duration // after a failure, doubled after each further one up to 10 minutes; 1 s
	Stable  time.Duration // that a server must live for its earlier failures to be forgotten; 1 minute
	Answer  time.Duration // for a server that let a call time out to show that it lives; 5 s
}

func (t Timing) withDefaults() Timing {
	for _, d := range []struct {
		v         *time.Duration
		otherwise time.Duration
	}{{&t.Connect, time.Minute}, {&t.Offer, 15 * time.Second}, {&t.Fresh, time.Minute}, {&t.Leave, 2 * time.Second},
		{&t.Backoff, time.Second}, {&t.Stable, time.Minute}, {&t.Answer, 5 * time.Second}} {
		if *d.v == 0 {
			*d.v = d.otherwise
		}
	}
	return t
}

// A Pool holds the connections to servers. It is a tool.Source.
type Pool struct {
	cfg     Config
	servers []*server // in the order of their names
	ctx     context.Context
	cancel  context.CancelFunc

	mu      sync.Mutex
	stopped bool
	work    sync.WaitGroup
}

// errStopped is why nothing is begun any more.
var errStopped = errors.New("the service stops")

// New makes a pool of servers, which Load gave. A server is started when it is
// first needed.
func New(servers []Server, cfg Config) *Pool {
	cfg.Timing = cfg.Timing.withDefaults()
	p := &Pool{cfg: cfg}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	for _, s := range servers {
		p.servers = append(p.servers, &server{Server: s, pool: p, log: cfg.Log.With("mcp", s.Name)})
	}
	return p
}

// Start begins to connect to every server, without waiting for any.
func (p *Pool) Start() {
	for _, s := range p.servers {
		p.begin(func() {
			_, _ = s.session(p.ctx) // what goes wrong is logged there
		})
	}
}

// Stop ends all connections and programs. Calls under way fail.
func (p *Pool) Stop() {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.cancel()
	p.work.Wait()
}

// begin runs f in a goroutine that Stop waits for; false where the pool has stopped.
func (p *Pool) begin(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return false
	}
	p.work.Go(f)
	return true
}

// find is the server of that name, nil if there is none.
func (p *Pool) find(name string) *server {
	for _, s := range p.servers {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// A Status is what is known of a server.
type Status struct {
	Server  string
	Address string // its program, or its address without what may be secret
	Tools   []tool.Offered
	Err     error // why it is not there
}

// Status connects to every server, and tells of each in the order of their names.
func (p *Pool) Status(ctx context.Context) []Status {
	all := make([]Status, len(p.servers))
	var work sync.WaitGroup
	for i, s := range p.servers {
		work.Go(func() {
			all[i] = Status{Server: s.Name, Address: s.address()}
			all[i].Tools, all[i].Err = s.tools(ctx)
		})
	}
	work.Wait()
	return all
}
