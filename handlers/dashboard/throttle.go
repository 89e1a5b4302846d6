package dashboard

import (
	"strings"
	"sync"
	"time"

	"journeyman/handlers"
	"journeyman/store"
)

// The limits of wrong passwords within throttleWindow. The limit of a place is wider: a
// proxy or an office has one address for many people.
const (
	throttleWindow = 15 * time.Minute
	wrongByEmail   = 10     // for one email address, whether or not a user has it
	wrongByPlace   = 100    // from one place
	maxThrottled   = 20_000 // email addresses and places that are remembered at once
)

// A throttle counts wrong passwords, so that nobody can guess one with a dictionary. A
// try is counted before the password is checked and forgiven unless the password was
// wrong: otherwise many tries sent at once would all pass.
type throttle struct {
	now   func() time.Time
	mu    sync.Mutex // guards tried
	tried map[string]*tries
	most  int // entries of tried
}

// tries counts the tries of one email address or place.
type tries struct {
	n     int
	until time.Time // end of the window: then the count begins again
}

func newThrottle(now func() time.Time) *throttle {
	return &throttle{now: now, tried: map[string]*tries{}, most: maxThrottled}
}

// A tryLater error refuses a password or a session for now. Its page keeps the status of
// the error in it, such as 429.
type tryLater struct{ error }

// Unwrap returns the store.Error.
func (e *tryLater) Unwrap() error { return e.error }

// later returns err as a tryLater error if it is Limited or Busy, and otherwise as it is.
func later(err error) error {
	if store.IsKind(err, store.Limited) || store.IsKind(err, store.Busy) {
		return &tryLater{err}
	}
	return err
}

// tooMany returns the error for too many wrong passwords.
func tooMany(wait time.Duration) error {
	minutes := int((wait + time.Minute - 1) / time.Minute)
	unit := "minutes"
	if minutes == 1 {
		unit = "minute"
	}
	e := store.Errorf(store.Limited, "There were too many wrong passwords. Try again in %d %s.", minutes, unit)
	e.RetryAfter = wait.Truncate(time.Second) + time.Second
	return &tryLater{e}
}

// placeOf returns the key that counts the tries from an address.
func placeOf(addr string) string { return "@" + store.Place(addr) }

// begin counts a try. It returns a tryLater error, and counts nothing, above a limit.
func (t *throttle) begin(email, addr string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	limits := map[string]int{personOf(email): wrongByEmail, placeOf(addr): wrongByPlace}
	// Both limits are checked before either is counted: a refused try costs nothing.
	var wait time.Duration
	for key, most := range limits {
		if v := t.tried[key]; v != nil && v.n >= most && v.until.After(now) {
			wait = max(wait, v.until.Sub(now))
		}
	}
	if wait > 0 {
		return tooMany(wait)
	}
	for key := range limits {
		v := t.tried[key]
		if v == nil || !v.until.After(now) {
			t.makeRoom(now)
			v = &tries{until: now.Add(throttleWindow)}
			t.tried[key] = v
		}
		v.n++
	}
	return nil
}

// personOf returns the key that counts the tries for an email address. It cuts long
// addresses: no user has one, and they must not fill the memory.
func personOf(email string) string {
	const most = 320
	return strings.ToLower(email[:min(len(email), most)])
}

// makeRoom makes room for a new entry. It removes expired entries first, then any.
func (t *throttle) makeRoom(now time.Time) {
	if len(t.tried) < t.most {
		return
	}
	for key, v := range t.tried {
		if !v.until.After(now) {
			delete(t.tried, key)
		}
	}
	// An attacker with very many addresses gets here. Random entries go, so that the
	// entries of others mostly stay.
	for key := range t.tried {
		if len(t.tried) < t.most {
			return
		}
		delete(t.tried, key)
	}
}

// forgive takes back a try that was no wrong password. After a right password the email
// address has all its tries again.
func (t *throttle) forgive(email, addr string, right bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, key := range []string{personOf(email), placeOf(addr)} {
		if v := t.tried[key]; v != nil && v.n > 0 {
			v.n--
		}
	}
	if right {
		delete(t.tried, personOf(email))
	}
}

// checkPassword returns the user with that email address and password. It returns a
// tryLater error after too many wrong passwords.
func (d *Dashboard) checkPassword(r *request, email, password string) (c store.Caller, err error) {
	addr := handlers.ClientAddr(r.Request)
	if err := d.throttle.begin(email, addr); err != nil {
		d.cfg.Log.WarnContext(r.Context(), "sign-in throttled", "remote", addr)
		return c, err
	}
	err = d.hashing(r, "", func() error {
		c, err = d.store.CheckPassword(r.Context(), email, password)
		return err
	})
	if store.IsKind(err, store.Unauthorized) {
		d.cfg.Log.InfoContext(r.Context(), "sign-in refused", "remote", addr) // no email: people type passwords there
	} else {
		d.throttle.forgive(email, addr, err == nil)
	}
	c.RemoteAddr = addr
	return c, err
}

// hashing runs do, which checks or sets a password. Passwords cost much time to hash, so
// the client's address, the user and the organization may have few under way at once. A
// refusal is a tryLater error.
func (d *Dashboard) hashing(r *request, organizationID string, do func() error) error {
	release, err := d.cfg.API.HoldPassword(handlers.ClientAddr(r.Request), r.who.UserID, organizationID)
	if err == nil {
		defer release()
		err = do()
	}
	return later(err)
}
