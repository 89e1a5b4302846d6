package mail

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/semaphore"
)

// A buffer limits the memory of mails that are being received: in total, and for each network. So
// one peer cannot block the mail of others.
type buffer struct {
	all   *semaphore.Weighted
	share int64 // limit of a network, in bytes

	mu       sync.Mutex // guards networks
	networks map[string]*network
}

// A network counts the mail that is being received from it.
type network struct {
	share *semaphore.Weighted
	users int // calls of acquire without their release
}

var (
	errNoRoom = errors.New("no room for the mail in the buffer now")
	errShare  = errors.New("no room for more mail of this network now")
)

// newBuffer creates a buffer of size bytes, but for at least four of the largest mails. A growing
// mail needs up to three times its size, so each network may use that much.
func newBuffer(size, maxMail int64) *buffer {
	size = max(size, 4*maxMail)
	share := max(size/2, 3*maxMail)
	return &buffer{all: semaphore.NewWeighted(size), share: share, networks: map[string]*network{}}
}

// acquire takes n bytes for a network, and waits for them until ctx ends. It returns errShare if
// the network has reached its limit, and errNoRoom if the buffer is full.
func (b *buffer) acquire(ctx context.Context, from string, n int64) error {
	nw := b.enter(from)
	// The network's limit comes first: a mail that waits for it takes no room from others.
	if nw.share.Acquire(ctx, n) != nil {
		b.leave(from)
		return errShare
	}
	if b.all.Acquire(ctx, n) != nil {
		nw.share.Release(n)
		b.leave(from)
		return errNoRoom
	}
	return nil
}

// release returns the n bytes of one call of acquire. It ignores a call with n = 0.
func (b *buffer) release(from string, n int64) {
	if n == 0 {
		return
	}
	b.all.Release(n)
	b.leave(from).share.Release(n)
}

func (b *buffer) enter(from string) *network {
	b.mu.Lock()
	defer b.mu.Unlock()
	nw := b.networks[from]
	if nw == nil {
		nw = &network{share: semaphore.NewWeighted(b.share)}
		b.networks[from] = nw
	}
	nw.users++
	return nw
}

func (b *buffer) leave(from string) *network {
	b.mu.Lock()
	defer b.mu.Unlock()
	nw := b.networks[from]
	if nw.users--; nw.users == 0 {
		delete(b.networks, from)
	}
	return nw
}
