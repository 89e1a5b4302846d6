package people

import (
	"sync"
	"sync/atomic"

	"journeyman/store/db"
)

// A callerCache holds data about callers and organizations that the store has read, so that no
// request reads it again. A write that changes such data clears the cache: see Store.ForgetKnown.
type callerCache struct {
	ended      atomic.Int64 // writes that changed the rows
	underWay   atomic.Int64 // writes that change the rows now
	identities memo[knownIdentity]
	caps       memo[*float64] // credits a month, by organization; nil: no cap
}

// noMoment is the moment of a read at the same time as a write that changes the rows. The result of
// such a read is not cached.
const noMoment = -1

// moment returns the count of changes before a read. What was read is current while moment returns the
// same number.
func (c *callerCache) moment() int64 {
	if c.underWay.Load() > 0 {
		return noMoment
	}
	return c.ended.Load()
}

// begin counts a write as a change. The write calls begin before it changes a row. Everybody sees the
// change before the write returns. A write that fails counts, too: a server may have committed it
// all the same.
func (c *callerCache) begin(tx db.Tx) {
	c.underWay.Add(1)
	end := func() {
		c.ended.Add(1)
		c.underWay.Add(-1)
	}
	tx.OnCommit(end)
	tx.OnUndo(end)
}

// A knownIdentity is an identity as its API key has proved it.
type knownIdentity struct {
	Identity
	used    int64  // the use of the key that was stored last
	expires *int64 // when the key expires; nil: never
}

const (
	// maxKnown bounds the entries of a memo.
	maxKnown = 10_000
	// knownFor is how long an entry of a memo is used, in milliseconds. So a change
	// that a person makes directly in the database takes effect without a restart.
	knownFor = 10_000
)

// ForgetKnown makes all callers read their identities and caps again. A write calls it before it
// changes a column that authenticate or KnownCap reads.
func (s *Store) ForgetKnown(tx db.Tx) { s.known.begin(tx) }

// Forget makes all callers read their identities and caps again, because another node may have changed them.
func (s *Store) Forget() { s.known.ended.Add(1) }

// A memo holds values by the keys of their rows.
type memo[V any] struct {
	mu      sync.RWMutex // held for moments
	entries map[string]remembered[V]
}

type remembered[V any] struct {
	value  V
	moment int64 // of the read
	at     int64 // time of the read
}

// get returns the value of a key. ok is false if it is not known, or not any more.
func (m *memo[V]) get(key []byte, moment, now int64) (v V, ok bool) {
	m.mu.RLock()
	e, ok := m.entries[string(key)]
	m.mu.RUnlock()
	age := now - e.at // negative after the clock was set back
	if !ok || e.moment != moment || age < 0 || age >= knownFor {
		return v, false
	}
	return e.value, true
}

// put stores the value of a row. moment is the one before the row was read: if a write has changed
// the row since, get does not return the value.
func (m *memo[V]) put(key []byte, v V, moment, now int64) {
	if moment == noMoment {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries == nil || len(m.entries) >= maxKnown {
		m.entries = map[string]remembered[V]{}
	}
	m.entries[string(key)] = remembered[V]{v, moment, now}
}
