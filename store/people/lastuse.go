package people

import "sync"

// uses holds the API keys and sessions that were used in the current minute. They are dropped after
// the minute, so that old ones take no memory.
type uses struct {
	mu     sync.Mutex // held only briefly
	minute int64
	seen   map[string]struct{}
}

// first reports whether this is the first use of id in that minute.
func (u *uses) first(id string, minute int64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.seen == nil || u.minute != minute {
		u.minute, u.seen = minute, map[string]struct{}{}
	}
	if _, known := u.seen[id]; known {
		return false
	}
	u.seen[id] = struct{}{}
	return true
}
