// Package share limits how much of a resource clients use at once, such as connections, so that
// none of them can use all of it. It knows nothing of the resource: its owner takes a share before
// the use, and releases it afterwards.
package share

import (
	"slices"
	"strings"
	"sync"
	"time"

	"journeyman/store"
	"journeyman/store/db"
)

// Shares limits how much of a resource is in use at once: in total, and by one key, one address and
// one organization, so that none of them can use all of it.
type Shares struct {
	what string // such as "open streams"
	code string // of the refusal of a holder at its limit
	most Limits

	mu    sync.Mutex // held for moments
	total int
	taken map[string]int // shares by holder; a holder without shares is not in it
}

// Limits are the limits of Shares.
type Limits struct{ All, Organization, Address, Key int }

// LimitsOf returns the usual limits: half of all for an organization and for an address, a quarter
// for a key.
func LimitsOf(all int) Limits {
	half := max(1, all/2)
	return Limits{All: all, Organization: half, Address: half, Key: max(1, all/4)}
}

// New creates the shares of a resource. A holder at its limit is refused with code.
func New(what, code string, most Limits) *Shares {
	return &Shares{what: what, code: code, most: most, taken: map[string]int{}}
}

// A Holder is a client that takes a share. Empty fields are not counted. Key is the id
// of an API key, or of a user who is signed in.
type Holder struct{ Key, Address, Organization string }

// A count is one of the names under which the shares of a holder are counted.
type count struct {
	key  string // in Shares.taken
	who  string // in messages
	most int
}

// counts returns the counts of h. The first letter of a key is the kind of the name.
func (s *Shares) counts(h Holder) []count {
	who := "this key"
	if strings.HasPrefix(h.Key, "usr_") {
		who = "this user"
	}
	list := []count{{"k" + h.Key, who, s.most.Key}, {"a" + store.NetworkOf(h.Address), "your address", s.most.Address},
		{"o" + h.Organization, "the organization", s.most.Organization}}
	return slices.DeleteFunc(list, func(c count) bool { return len(c.key) == 1 })
}

// retryAfter is the time after which a refused client should try again.
const retryAfter = 5 * time.Second

// Take takes one share until release is called. It returns a Busy error if all shares are taken,
// and a Limited error if the holder is at its limit.
func (s *Shares) Take(h Holder) (release func(), err error) {
	list := s.counts(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	// The check and the count share the lock, so two requests cannot take the last share.
	if err := s.refusal(list); err != nil {
		return nil, err
	}
	s.total++
	for _, c := range list {
		s.taken[c.key]++
	}
	return func() { s.give(list) }, nil
}

// Check returns the error that Take would return now.
func (s *Shares) Check(h Holder) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refusal(s.counts(h))
}

// refusal returns the error for one more share, or nil. The caller holds mu.
func (s *Shares) refusal(list []count) error {
	if s.total >= s.most.All {
		return db.Errorf(db.Busy, "the server has %d %s, the most there may be: try again later", s.total, s.what)
	}
	for _, c := range list {
		if s.taken[c.key] >= c.most {
			e := db.Errorf(db.Limited, "%s has %d %s, the most it may have: end some, or try again later",
				c.who, c.most, s.what)
			e.Code, e.RetryAfter = s.code, retryAfter
			return e
		}
	}
	return nil
}

// give returns one share. It removes holders without shares, so that taken does not grow.
func (s *Shares) give(list []count) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total--
	for _, c := range list {
		if s.taken[c.key]--; s.taken[c.key] == 0 {
			delete(s.taken, c.key)
		}
	}
}

// Total returns the number of shares that are taken.
func (s *Shares) Total() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(s.total)
}

// Limits returns the limits of the shares.
func (s *Shares) Limits() Limits { return s.most }
