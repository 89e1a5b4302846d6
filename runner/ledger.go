package runner

import (
	"context"
	"sync"
)

// A ledger records the maximum cost of each model call in progress, by organization and by team.
// With it, parallel calls cannot exceed an organization's cap or a team's budget together. It is
// not stored, because after a restart no call is in progress.
type ledger struct {
	mu       sync.Mutex          // guards accounts and their users; held only for map accesses
	accounts map[string]*account // by organization or team; only accounts with users
}

// An account is the part of the ledger for one organization or team.
type account struct {
	users int // reservations that wait or hold; guarded by the ledger's mu

	mu      sync.Mutex    // held during the database read, for which other accounts need not wait
	held    int64         // nano-dollars of all reservations
	settled chan struct{} // closed when the next reservation is settled, and then replaced
}

// A reservation holds nano-dollars of an account until it is settled.
type reservation struct {
	ledger  *ledger
	key     string
	account *account
	nanos   int64
	also    *reservation // of the same call in another account, settled together; nil for none
}

// reserve calls decide to get the amount to hold. held is the sum of all current reservations. If
// decide returns wait, reserve calls it again after another reservation is settled.
func (l *ledger) reserve(ctx context.Context, key string,
	decide func(held int64) (nanos int64, wait bool, err error)) (*reservation, error) {
	rv := &reservation{ledger: l, key: key, account: l.join(key)}
	for {
		settled, err := rv.hold(decide)
		if err == nil && settled == nil {
			return rv, nil
		}
		if err == nil {
			select {
			case <-settled:
				continue
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
		rv.settle() // it holds nothing yet, but counts as a user of the account
		return nil, err
	}
}

// hold calls decide once. It returns the channel to wait for, or nil if the reservation has been
// made.
func (rv *reservation) hold(decide func(held int64) (nanos int64, wait bool, err error)) (<-chan struct{}, error) {
	a := rv.account
	// The cost of a call is stored before its reservation is settled, and settle needs this lock.
	// So decide finds each call in the database, in held, or in both.
	a.mu.Lock()
	defer a.mu.Unlock()
	nanos, wait, err := decide(a.held)
	if err != nil {
		return nil, err
	}
	if wait {
		return a.settled, nil // read under the lock, so that no settlement is missed
	}
	rv.nanos = nanos
	a.held += nanos
	return nil, nil
}

// settle releases a reservation after the real cost of the call is stored. It does nothing if rv is
// nil.
func (rv *reservation) settle() {
	if rv == nil {
		return
	}
	defer rv.also.settle()
	if a := rv.account; rv.nanos > 0 {
		a.mu.Lock()
		a.held -= rv.nanos
		close(a.settled) // wakes all waiters: their needs are not known here
		a.settled = make(chan struct{})
		a.mu.Unlock()
	}
	rv.ledger.leave(rv.key)
}

// join returns the account of a key and counts a user. Each join needs one call of leave.
func (l *ledger) join(key string) *account {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[key]
	if a == nil {
		a = &account{settled: make(chan struct{})}
		if l.accounts == nil {
			l.accounts = map[string]*account{}
		}
		l.accounts[key] = a
	}
	a.users++
	return a
}

// leave removes an account without users, so that the map stays small.
func (l *ledger) leave(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[key]
	if a.users--; a.users == 0 {
		delete(l.accounts, key)
	}
}
