package runner

import (
	"context"
	"sync"

	"journeyman/runner/model"
)

// Limits of a formCache. It is used again at each step of a turn.
const (
	maxForms     = 4096
	maxFormBytes = 32 << 20
)

// A formCache holds what model calls need to know about files: pictures in the form that providers take, and the
// number of pages of PDF files. Confined processes compute them, and equal files give equal forms. The zero value is
// ready to use.
type formCache struct {
	mu    sync.Mutex // guards the fields below
	forms map[string]*form
	bytes int   // of all pictures
	uses  int64 // number of calls of entry
}

// A form is an entry of a formCache.
type form struct {
	used  int64 // value of uses at the last use
	bytes int   // guarded by the cache's lock, as used is

	one     chan struct{} // guards the fields below; full while they are computed, so that it is done only once
	known   bool
	picture model.Picture
	pages   int
	reason  error // why there is no picture
}

// entry returns the form with a key.
func (c *formCache) entry(key string) *form {
	c.mu.Lock()
	defer c.mu.Unlock()
	x, ok := c.forms[key]
	if !ok {
		if c.forms == nil || len(c.forms) >= maxForms {
			c.forms, c.bytes = map[string]*form{}, 0
		}
		x = &form{one: make(chan struct{}, 1)}
		c.forms[key] = x
	}
	c.uses++
	x.used = c.uses
	return x
}

// lock waits until nobody else computes or reads the form, at most until ctx ends: the other one may wait long for
// its confined process.
func (x *form) lock(ctx context.Context) error {
	select {
	case x.one <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (x *form) unlock() { <-x.one }

// grow records the bytes of a new form, and drops the forms that were not used for the longest time.
func (c *formCache) grow(key string, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x, ok := c.forms[key]
	if !ok {
		return // dropped meanwhile
	}
	x.bytes = bytes
	for c.bytes += bytes; c.bytes > maxFormBytes && len(c.forms) > 1; {
		oldest := key
		for k, f := range c.forms {
			if f.bytes > 0 && k != key && (oldest == key || f.used < c.forms[oldest].used) {
				oldest = k
			}
		}
		if oldest == key {
			return
		}
		c.bytes -= c.forms[oldest].bytes
		delete(c.forms, oldest)
	}
}
