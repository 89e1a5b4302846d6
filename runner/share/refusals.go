package share

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// logEvery is the pause between two lines of Refusals, so that strangers cannot fill the log.
const logEvery = time.Minute

// Refusals counts refused connections and logs them: the first one at once, and the others of a minute in one
// line. A nil Refusals does nothing. It is safe for concurrent use.
type Refusals struct {
	Listener string // such as "http"
	Log      *slog.Logger
	Count    *atomic.Int64
	Now      func() time.Time

	mu     sync.Mutex // guards the fields below
	logged time.Time  // of the last line
	since  int64      // refusals after the last line
}

// Add counts one refused connection. why is for the log, and holds no text of the client.
func (r *Refusals) Add(why string) {
	if r == nil {
		return
	}
	r.Count.Add(1)
	r.mu.Lock()
	r.since++
	n, now := r.since, r.Now()
	if pause := now.Sub(r.logged); pause >= 0 && pause < logEvery { // negative after the clock was set back
		r.mu.Unlock()
		return
	}
	r.logged, r.since = now, 0
	r.mu.Unlock()
	r.Log.Warn("connections are refused", "listener", r.Listener, "refused", n, "why", why)
}
