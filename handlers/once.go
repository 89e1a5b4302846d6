package handlers

import (
	"context"
	"crypto/sha256"
	"strconv"
	"sync"
	"unicode/utf8"

	"journeyman/store"
)

// once reads how a POST is told from its repetitions: by its Idempotency-Key or,
// for generated clients that retry without one, by its content. content is equal
// for requests that mean the same.
func once(r *request, content []byte) (store.Once, error) {
	h := sha256.New()
	h.Write([]byte(r.Method + " " + r.URL.Path + "\n"))
	h.Write(content)
	o := store.Once{KeyID: r.who.KeyID, Hash: h.Sum(nil)}
	if values := r.Header.Values("Idempotency-Key"); len(values) > 0 {
		o.Key = values[0]
		if n := utf8.RuneCountInString(o.Key); len(values) > 1 || n < 1 || n > 255 {
			return o, invalid("Idempotency-Key", "must be one header of 1 to 255 characters")
		}
	}
	if n, err := strconv.Atoi(r.Header.Get("X-Stainless-Retry-Count")); err == nil && n > 0 {
		o.Retry = true
	}
	return o, nil
}

// flights lets one of several equal requests run at a time, so that the others
// find its result instead of doing the same work. They last as long as requests:
// what must hold across restarts is in the store.
type flights struct {
	mu sync.Mutex
	m  map[string]chan struct{} // closed when the request of that name has ended
}

// enter waits until no other request of that name is under way. leave must be
// called at the end.
func (f *flights) enter(ctx context.Context, name string) (leave func(), err error) {
	for {
		other, done := f.claim(name)
		if other == nil {
			return func() { f.leave(name, done) }, nil
		}
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// claim gives the request of that name that is under way, or makes this one it.
func (f *flights) claim(name string) (other, done chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if other = f.m[name]; other != nil {
		return other, nil
	}
	if f.m == nil {
		f.m = map[string]chan struct{}{}
	}
	done = make(chan struct{})
	f.m[name] = done
	return nil, done
}

func (f *flights) leave(name string, done chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.m, name)
	close(done)
}
