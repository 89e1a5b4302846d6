package mail

import (
	"context"
	"net"
	"runtime"
	"slices"
	"sync"
	"time"

	"journeyman/store"
)

// Slots limit how many processors work on the mail of strangers at once, so that their mail never makes the
// mail of members wait. A connection works only with a slot, and has none while it waits: for its peer, the DNS,
// room or another process. If all slots are taken, the networks that wait for one take turns. A
// connection needs no slot if a mail with a proven member as its author has come from its network lately.
//
// The number of connections bounds those that wait.
type slots struct {
	mu      sync.Mutex // guards the fields below and those of each worker; held for moments
	free    int
	waiting map[string][]waiter  // by network, longest first; no entry is empty
	next    []string             // the networks in waiting, in the order of their turns
	members map[string]time.Time // the last mail of a member from a network
}

// A waiter is a connection that waits for a slot.
type waiter struct {
	*pass
	ready chan struct{} // closed when it may continue
}

// A pass is the use of slots by one connection. Its methods do nothing for nil.
type pass struct {
	slots   *slots
	network string
	now     func() time.Time
	pauses  int // calls of pause without their resume
	held    bool
	closed  bool
}

const (
	membersTime = 7 * 24 * time.Hour // how long a network stays one of members after their last mail
	maxNetworks = 10_000             // networks of members that are remembered
)

// newSlots creates slots for half of the processors, so that the other half is for everything else.
func newSlots() *slots {
	return &slots{free: max(1, runtime.GOMAXPROCS(0)/2), waiting: map[string][]waiter{},
		members: map[string]time.Time{}}
}

// ofMember records that the mail of a proven member has come from a network.
func (s *slots) ofMember(network string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.members[network]; !known && len(s.members) >= maxNetworks {
		clear(s.members) // the next mail of each member names the network again
	}
	s.members[network] = now
}

// pause gives the slot back while the connection waits. resume waits for a slot again.
func (p *pass) pause() (resume func()) {
	if p == nil {
		return func() {}
	}
	p.slots.mu.Lock()
	defer p.slots.mu.Unlock()
	p.pauses++
	p.give()
	return p.resume
}

func (p *pass) resume() {
	p.slots.mu.Lock()
	p.pauses--
	ready := p.enter()
	p.slots.mu.Unlock()
	if ready != nil {
		<-ready
	}
}

// enter takes a slot if the connection needs one. If none is free, enter returns a channel that is closed when
// the connection may continue. The caller holds mu.
func (p *pass) enter() <-chan struct{} {
	switch {
	case p.held || !p.needs():
		return nil
	case p.slots.free > 0:
		p.slots.free--
		p.held = true
		return nil
	}
	w := waiter{p, make(chan struct{})}
	p.slots.add(w)
	return w.ready
}

// close gives the slot back for good.
func (p *pass) close() {
	if p == nil {
		return
	}
	p.slots.mu.Lock()
	defer p.slots.mu.Unlock()
	p.closed = true
	p.give()
}

// needs reports whether the connection works, and may do so only with a slot. The caller holds mu.
func (p *pass) needs() bool {
	at, known := p.slots.members[p.network]
	return p.pauses == 0 && !p.closed && (!known || p.now().Sub(at) > membersTime)
}

// give returns the slot, if there is one, to the next network that waits. The caller holds mu.
func (p *pass) give() {
	if !p.held {
		return
	}
	p.held = false
	s := p.slots
	for len(s.next) > 0 {
		w := s.take()
		gets := w.needs() && !w.held // another goroutine of the connection may have changed that
		close(w.ready)
		if gets {
			w.held = true
			return
		}
	}
	s.free++
}

// add adds a waiter. The caller holds mu.
func (s *slots) add(w waiter) {
	if len(s.waiting[w.network]) == 0 {
		s.next = append(s.next, w.network)
	}
	s.waiting[w.network] = append(s.waiting[w.network], w)
}

// take removes the first waiter of the next network. The caller holds mu.
func (s *slots) take() waiter {
	network := s.next[0]
	s.next = slices.Delete(s.next, 0, 1)
	w := s.waiting[network][0]
	if rest := slices.Delete(s.waiting[network], 0, 1); len(rest) > 0 {
		s.waiting[network] = rest
		s.next = append(s.next, network)
	} else {
		delete(s.waiting, network)
	}
	return w
}

// passOf returns the pass of a connection. Connections of this machine and of the operator's relays
// bring the mail of everybody, so they need no slots.
func (s *Server) passOf(addr string) *pass {
	if isLoopback(addr) || len(s.relaysAt(addr)) > 0 {
		return nil
	}
	return &pass{slots: s.slots, network: store.NetworkOf(addr), now: s.cfg.Now}
}

// passKey is the key of the pass of a connection in the context of its mails.
type passKey struct{}

// pause pauses the connection whose mail is processed in ctx, if there is one, until resume is called.
func pause(ctx context.Context) (resume func()) {
	p, _ := ctx.Value(passKey{}).(*pass)
	return p.pause()
}

// A pausingResolver is a Resolver whose callers have no slot while they wait for it.
type pausingResolver struct{ Resolver }

func (r pausingResolver) LookupTXT(ctx context.Context, name string) ([]string, error) {
	defer pause(ctx)()
	return r.Resolver.LookupTXT(ctx, name)
}

func (r pausingResolver) LookupMX(ctx context.Context, name string) ([]*net.MX, error) {
	defer pause(ctx)()
	return r.Resolver.LookupMX(ctx, name)
}

func (r pausingResolver) LookupIPAddr(ctx context.Context, host string) ([]net.IPAddr, error) {
	defer pause(ctx)()
	return r.Resolver.LookupIPAddr(ctx, host)
}

func (r pausingResolver) LookupAddr(ctx context.Context, addr string) ([]string, error) {
	defer pause(ctx)()
	return r.Resolver.LookupAddr(ctx, addr)
}
