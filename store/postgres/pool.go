package postgres

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"journeyman/store/engine"
)

// closeTimeout limits the time of a regular disconnect.
const closeTimeout = 2 * time.Second

// A pool contains the connections that run queries. Writes may wait for each other, so they never
// use all connections: some are reserved for reads.
type pool struct {
	cfg     *config
	prepare []string       // texts that each new connection prepares
	slots   chan struct{}  // holds a token for each connection in use
	writers chan struct{}  // holds a token for each write that has a connection
	waiting atomic.Int64   // writes that wait for a connection
	closing sync.WaitGroup // the disconnects of expired connections, each within closeTimeout

	mu     sync.Mutex
	idle   []*conn // guarded by mu; the most recently used connection is last
	closed bool    // guarded by mu
}

// forReads is the number of connections that are reserved for reads.
const forReads = 2

func newPool(cfg *config, prepare []string) *pool {
	return &pool{
		cfg: cfg, prepare: prepare, slots: make(chan struct{}, cfg.conns),
		writers: make(chan struct{}, max(1, cfg.conns-forReads)),
	}
}

// get returns a connection for one caller, who must return it with put.
func (p *pool) get(ctx context.Context) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c, err := p.take()
	if c == nil && err == nil {
		lasting, cancel := lingering(ctx)
		defer cancel()
		c, err = p.connect(lasting)
	}
	if err != nil {
		<-p.slots
	}
	return c, err
}

// getForWrite is get for a write. The caller must use putFromWrite.
func (p *pool) getForWrite(ctx context.Context) (*conn, error) {
	p.waiting.Add(1)
	defer p.waiting.Add(-1)
	select {
	case p.writers <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c, err := p.get(ctx)
	if err != nil {
		<-p.writers
	}
	return c, err
}

// take returns an idle connection, or nil if there is none. It closes the connections that have
// expired while they were idle.
func (p *pool) take() (*conn, error) {
	for _, old := range p.removeExpired() {
		p.closing.Go(old.close) // a server that is gone must not delay the caller
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, engine.ErrClosed
	}
	n := len(p.idle)
	if n == 0 {
		return nil, nil
	}
	c := p.idle[n-1]
	p.idle = p.idle[:n-1]
	return c, nil
}

// removeExpired removes the idle connections that have reached their lifetime, and returns them.
func (p *pool) removeExpired() (old []*conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = slices.DeleteFunc(p.idle, func(c *conn) bool {
		expired := c.expired()
		if expired {
			old = append(old, c)
		}
		return expired
	})
	return old
}

// connect opens a connection and prepares the pool's texts on it.
func (p *pool) connect(ctx context.Context) (*conn, error) {
	c, err := connect(ctx, p.cfg)
	if err != nil {
		return nil, err
	}
	c.ends = time.Now().Add(p.cfg.lifetime + rand.N(max(1, p.cfg.jitter)))
	if err := p.ready(ctx, c); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (p *pool) ready(ctx context.Context, c *conn) (err error) {
	if _, c.since, err = c.readSince(ctx); err != nil || c.unnamed {
		return err
	}
	for _, text := range p.prepare {
		if _, err := c.prepare(ctx, text); err != nil {
			return failed(ctx, c, err)
		}
	}
	return nil
}

// renew replaces a connection that broke while it was idle. It also drops the other idle
// connections, because they have probably broken too.
func (p *pool) renew(ctx context.Context, c *conn) (*conn, error) {
	c.close()
	for _, other := range p.drop(false) {
		other.close()
	}
	return p.connect(ctx)
}

// drop removes the idle connections and returns them.
func (p *pool) drop(closed bool) []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	idle := p.idle
	p.idle, p.closed = nil, p.closed || closed
	return idle
}

// put returns a connection to the pool. c is nil if it could not be renewed.
func (p *pool) put(c *conn) {
	if c != nil && !p.keep(c) {
		c.close()
	}
	<-p.slots
}

// putFromWrite is put for a connection of a write.
func (p *pool) putFromWrite(c *conn) {
	p.put(c)
	<-p.writers
}

// keep adds a connection to the idle ones if it is reusable.
func (p *pool) keep(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || !c.usable() {
		return false
	}
	c.reused = true
	p.idle = append(p.idle, c)
	return true
}

// close closes the connections. It waits for connections in use.
func (p *pool) close() {
	for _, c := range p.drop(true) {
		c.close()
	}
	for range cap(p.slots) {
		p.slots <- struct{}{}
	}
	for range cap(p.slots) {
		<-p.slots // later calls of get must find that the pool is closed
	}
	p.closing.Wait()
}
