package budget

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// A Ledger records the maximum cost of each model call in progress, by organization and by team.
// With it, parallel calls cannot exceed an organization's cap or a team's budget together. It is
// not stored, because after a restart no call is in progress. Among nodes, however, the sum of each
// account with a limit is stored. So the calls of all nodes together cannot exceed the limit.
type Ledger struct {
	publish func(key string, held int64) error // stores the sum of an account: see NewLedger

	mu       sync.Mutex          // guards the fields below and the users of accounts; held only briefly
	accounts map[string]*account // by organization or team; only accounts with users
	unstored map[string]bool     // accounts whose sums could not be stored: see StoreAgain
}

// NewLedger returns an empty ledger. publish stores the sum of an account for the other nodes. It is called only if
// verdicts say that an account is shared.
func NewLedger(publish func(key string, held int64) error) *Ledger { return &Ledger{publish: publish} }

// Accounts returns the number of accounts with reservations that wait or hold.
func (l *Ledger) Accounts() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.accounts)
}

// An account is the part of the ledger for one organization or team.
type account struct {
	users int // reservations that wait or hold; guarded by the ledger's mu

	busy    chan struct{} // the lock of the fields below; also held while the database is read or written
	held    int64         // nano-dollars of all reservations
	shared  bool          // the database may contain a sum of this account
	settled chan struct{} // closed when the next reservation is settled, and then replaced
}

// A Reservation holds nano-dollars of an account until it is settled.
type Reservation struct {
	ledger  *Ledger
	key     string
	account *account
	nanos   int64
	also    *Reservation // of the same call in another account, settled together; nil for none
}

// A Verdict is the decision on a reservation.
type Verdict struct {
	Nanos  int64 // the amount to hold
	Wait   bool  // decide again after another reservation is settled
	Shared bool  // other nodes use the account, and the new sum is stored
}

// PollInterval is the pause after which a waiting reservation is decided again, because other nodes may have
// settled reservations.
const PollInterval = 250 * time.Millisecond

// Reserve calls decide to get the amount to hold. held is the sum of all current reservations. If
// decide returns wait, Reserve calls it again after another reservation is settled.
func (l *Ledger) Reserve(ctx context.Context, key string,
	decide func(held int64) (Verdict, error)) (*Reservation, error) {
	rv := &Reservation{ledger: l, key: key, account: l.join(key)}
	for {
		settled, shared, err := rv.hold(ctx, decide)
		if err == nil && settled == nil {
			return rv, nil
		}
		if err == nil {
			err = await(ctx, settled, shared)
		}
		if err != nil {
			rv.Settle() // it holds nothing yet, but counts as a user of the account
			return nil, err
		}
	}
}

// await waits until a reservation is settled. No event reports the settlements of other nodes. So if other
// nodes share the account, await also returns after PollInterval.
func await(ctx context.Context, settled <-chan struct{}, shared bool) error {
	var poll <-chan time.Time
	if shared {
		timer := time.NewTimer(PollInterval)
		defer timer.Stop()
		poll = timer.C
	}
	select {
	case <-settled:
	case <-poll:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// hold calls decide once. It returns the channel to wait for, or nil if the reservation has been
// made. shared reports whether other nodes use the account.
func (rv *Reservation) hold(ctx context.Context, decide func(held int64) (Verdict, error)) (
	settled <-chan struct{}, shared bool, err error) {
	a := rv.account
	select {
	case a.busy <- struct{}{}:
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	}
	defer func() { <-a.busy }()
	// The cost of a call is stored before its reservation is settled, and Settle waits until the account is
	// free. So decide finds each call in the database, in held, or in both.
	v, err := decide(a.held)
	a.shared = a.shared || v.Shared
	if err != nil {
		if v.Shared { // despite the error, the database may contain the new sum
			rv.ledger.store(rv.key, a)
		}
		return nil, false, err
	}
	if v.Wait {
		return a.settled, v.Shared, nil // read before the account is free, so that no settlement is missed
	}
	rv.nanos = v.Nanos
	a.held += v.Nanos
	return nil, v.Shared, nil
}

// SettleWith makes Settle also release another reservation of the same call. also is nil for none.
func (rv *Reservation) SettleWith(also *Reservation) { rv.also = also }

// Settle releases a reservation after the real cost of the call is stored. It does nothing if rv is
// nil.
func (rv *Reservation) Settle() {
	if rv == nil {
		return
	}
	defer rv.also.Settle()
	if a := rv.account; rv.nanos > 0 {
		a.busy <- struct{}{}
		a.held -= rv.nanos
		rv.ledger.store(rv.key, a)
		close(a.settled) // wakes all waiters: their needs are not known here
		a.settled = make(chan struct{})
		<-a.busy
	}
	rv.ledger.leave(rv.key)
}

// store writes the sum of a shared account to the database. The caller holds a.busy. If the write fails,
// the other nodes see a sum that is too high until StoreAgain succeeds. Until then store does nothing:
// during an outage of the database, each settlement would otherwise wait for a time-out.
func (l *Ledger) store(key string, a *account) {
	l.mu.Lock()
	failed := l.unstored[key]
	l.mu.Unlock()
	if a.shared && !failed {
		l.storeNow(key, a)
	}
}

func (l *Ledger) storeNow(key string, a *account) {
	err := l.publish(key, a.held)
	if err == nil {
		a.shared = a.held > 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		delete(l.unstored, key)
		return
	}
	if l.unstored == nil {
		l.unstored = map[string]bool{}
	}
	l.unstored[key] = true
}

// StoreAgain retries the writes of sums that have failed.
func (l *Ledger) StoreAgain() {
	l.mu.Lock()
	keys := slices.Collect(maps.Keys(l.unstored))
	l.mu.Unlock()
	for _, key := range keys {
		a := l.join(key)
		a.busy <- struct{}{}
		l.storeNow(key, a)
		<-a.busy
		l.leave(key)
	}
}

// join returns the account of a key and counts a user. Each join needs one call of leave.
func (l *Ledger) join(key string) *account {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[key]
	if a == nil {
		a = &account{busy: make(chan struct{}, 1), settled: make(chan struct{})}
		if l.accounts == nil {
			l.accounts = map[string]*account{}
		}
		l.accounts[key] = a
	}
	a.users++
	return a
}

// leave removes an account without users, so that the map stays small.
func (l *Ledger) leave(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[key]
	if a.users--; a.users == 0 {
		delete(l.accounts, key)
	}
}
