package sandbox

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// A Client is the party for which untrusted bytes are read.
type Client struct {
	Organization string
	Sender       string // a member's id; of other people what tells them apart, such as their network
	Stranger     bool   // the sender is not a member of the organization
	Mail         bool   // the bytes are a mail, or the answer to one
}

// clientKey is the key of the Client in a context.
type clientKey struct{}

// ForClient returns a context in which filters read for c. Without it, a filter reads for the zero
// Client.
func ForClient(ctx context.Context, c Client) context.Context {
	return context.WithValue(ctx, clientKey{}, c)
}

// ClientOf returns the Client of a context.
func ClientOf(ctx context.Context) Client {
	c, _ := ctx.Value(clientKey{}).(Client)
	return c
}

// A Lane is a resource that clients share fairly, such as memory. When some of it is free, it goes to
// the organization that uses the least of it, and there to the sender that uses the least. Among
// equal ones it goes to the one that has waited longest since its last use. Only one holder may
// exceed a limit: one without anything else of the lane.
//
// One organization has at most half of a lane, so that another one need not wait for it. All strangers
// together have at most a quarter, and those of one organization half of that quarter.
type Lane struct {
	size int64

	mu      sync.Mutex       // guards the fields below
	waiting []*ticket        // in the order of their arrival
	used    map[string]int64 // by share, for shares in use
	served  map[string]int64 // number of the last ticket of each share in use or with a waiting ticket
	number  int64            // of the last ticket that was served
}

// A ticket is a request for n units of a lane.
type ticket struct {
	shares []share
	n      int64
	ready  chan struct{} // closed once the client has the units
}

// A share is a part of a lane with a limit. The shares of a client are: the whole lane, its organization,
// its sender, and for strangers those of all strangers and of the organization's strangers.
type share struct {
	name string
	most int64
}

// NewLane returns a lane of size units.
func NewLane(size int64) *Lane {
	return &Lane{size: size, used: map[string]int64{}, served: map[string]int64{}}
}

// Places of a client's shares in its ticket.
const (
	allShare = iota
	organizationShare
	senderShare
)

// sharesOf returns the shares in which the units of a client count.
func (l *Lane) sharesOf(c Client) []share {
	half, quarter := max(1, l.size/2), max(1, l.size/4)
	// Ids of organizations have no zero byte, so no sender counts as that of another organization.
	sender := c.Organization + "\x00" + c.Sender
	list := []share{{"all", l.size}, {"o" + c.Organization, half}, {"u" + sender, half}}
	if c.Stranger {
		list[senderShare].name = "s" + sender
		list = append(list, share{"strangers", quarter}, share{"n" + c.Organization, max(1, quarter/2)})
	}
	return list
}

// Acquire waits for n units, at most the size of the lane. Unless it returns an error, the caller must
// call release. If ctx ends first, it returns ctx's cause.
func (l *Lane) Acquire(ctx context.Context, c Client, n int64) (release func(), err error) {
	t := &ticket{shares: l.sharesOf(c), n: min(n, l.size), ready: make(chan struct{})}
	l.mu.Lock()
	l.waiting = append(l.waiting, t)
	l.serve()
	l.mu.Unlock()
	select {
	case <-t.ready:
		return sync.OnceFunc(func() { l.release(t) }), nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-t.ready: // meanwhile
		l.give(t)
	default:
		l.waiting = slices.DeleteFunc(l.waiting, func(w *ticket) bool { return w == t })
		l.forget(t)
	}
	l.serve() // t may have been in front of others
	return nil, context.Cause(ctx)
}

// Waiting returns the number of waiting clients.
func (l *Lane) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

func (l *Lane) release(t *ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.give(t)
	l.serve()
}

// serve gives units to waiting clients, as far as the units suffice. The caller holds mu.
func (l *Lane) serve() {
	for {
		t := l.next()
		// A large request that is next waits for the units: smaller ones must not overtake it forever.
		if t == nil || l.used["all"]+t.n > l.size {
			return
		}
		l.number++
		for _, s := range t.shares {
			l.used[s.name] += t.n
			l.served[s.name] = l.number
		}
		l.waiting = slices.DeleteFunc(l.waiting, func(w *ticket) bool { return w == t })
		close(t.ready)
	}
}

// next returns the ticket to serve next, or nil if no waiting client may have more units now. The
// caller holds mu.
func (l *Lane) next() (best *ticket) {
	for _, t := range l.waiting {
		if l.mayHave(t) && (best == nil || l.compare(t, best) < 0) {
			best = t
		}
	}
	return best
}

// mayHave reports whether the limits of the client's shares permit the units. The caller holds mu.
func (l *Lane) mayHave(t *ticket) bool {
	for _, s := range t.shares[organizationShare:] {
		if used := l.used[s.name]; used > 0 && used+t.n > s.most {
			return false
		}
	}
	return true
}

// compare compares two tickets by the order in which they are served. The caller holds mu.
func (l *Lane) compare(a, b *ticket) int {
	for _, i := range []int{organizationShare, senderShare} {
		x, y := a.shares[i].name, b.shares[i].name
		if c := cmp.Or(cmp.Compare(l.used[x], l.used[y]), cmp.Compare(l.served[x], l.served[y])); c != 0 {
			return c
		}
	}
	return 0 // the earlier one stays
}

// give takes the units of a ticket back. The caller holds mu.
func (l *Lane) give(t *ticket) {
	for _, s := range t.shares {
		if l.used[s.name] -= t.n; l.used[s.name] == 0 {
			delete(l.used, s.name)
		}
	}
	l.forget(t)
}

// forget removes what the lane knows of the ticket's shares, unless others use them or wait for
// them. So the maps do not grow. The caller holds mu.
func (l *Lane) forget(t *ticket) {
	for _, s := range t.shares {
		waits := func(w *ticket) bool { return slices.Contains(w.shares, s) }
		if l.used[s.name] == 0 && !slices.ContainsFunc(l.waiting, waits) {
			delete(l.served, s.name)
		}
	}
}
