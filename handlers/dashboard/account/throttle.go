package account

import (
	"strings"
	"sync"
	"time"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/serve"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
)

// The limits of wrong passwords within throttleWindow. The limit of a network is higher: a proxy or
// an office has one address for many people.
const (
	throttleWindow = 15 * time.Minute
	wrongByEmail   = 10     // for one email address, whether or not a user has it
	wrongByNetwork = 100    // from one network
	maxThrottled   = 20_000 // email addresses and networks in memory
)

// A throttle counts wrong passwords, so that an attacker cannot try many. It counts a try before
// the check of the password, and takes it back unless the password was wrong: otherwise many
// concurrent tries would all pass.
type throttle struct {
	now   func() time.Time
	nodes func() int // that share the limits, at least 1
	mu    sync.Mutex // guards tried
	tried map[string]*tries
	most  int // entries of tried
}

// tries counts the tries of one email address or network.
type tries struct {
	n     int
	until time.Time // end of the window, after which the count is 0
}

func newThrottle(now func() time.Time, nodes func() int) *throttle {
	return &throttle{now: now, nodes: nodes, tried: map[string]*tries{}, most: maxThrottled}
}

// tooMany returns the error for too many wrong passwords.
func tooMany(wait time.Duration) error {
	minutes := int((wait + time.Minute - 1) / time.Minute)
	unit := "minutes"
	if minutes == 1 {
		unit = "minute"
	}
	e := db.Errorf(db.Limited, "There were too many wrong passwords. Try again in %d %s.", minutes, unit)
	e.RetryAfter = wait.Truncate(time.Second) + time.Second
	return frame.Later(e)
}

// networkKey returns the key that counts the tries from an address.
func networkKey(addr string) string { return "@" + store.NetworkOf(addr) }

// begin counts a try. Above a limit it returns a TryLater error, and counts nothing.
func (t *throttle) begin(email, addr string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	nodes := t.nodes() // each allows its part
	limits := map[string]int{emailKey(email): max(1, wrongByEmail/nodes), networkKey(addr): max(1, wrongByNetwork/nodes)}
	// Both limits are checked before either is counted, so that a refused try does not count.
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

// emailKey returns the key that counts the tries for an email address. It truncates long addresses:
// no user has one, and they must not fill the memory.
func emailKey(email string) string {
	const most = 320
	return strings.ToLower(email[:min(len(email), most)])
}

// makeRoom makes room for a new entry. It removes expired entries first, and then any.
func (t *throttle) makeRoom(now time.Time) {
	if len(t.tried) < t.most {
		return
	}
	for key, v := range t.tried {
		if !v.until.After(now) {
			delete(t.tried, key)
		}
	}
	// An attacker with very many addresses causes this. Random entries are removed, so that most
	// entries of others stay.
	for key := range t.tried {
		if len(t.tried) < t.most {
			return
		}
		delete(t.tried, key)
	}
}

// forgive takes back a try without a wrong password. After a right password, the count of the email
// address is 0 again.
func (t *throttle) forgive(email, addr string, right bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, key := range []string{emailKey(email), networkKey(addr)} {
		if v := t.tried[key]; v != nil && v.n > 0 {
			v.n--
		}
	}
	if right {
		delete(t.tried, emailKey(email))
	}
}

// checkPassword returns the user with that email address and password. It returns a
// TryLater error after too many wrong passwords.
func (d *Pages) checkPassword(r *frame.Request, email, password string) (c people.Caller, err error) {
	addr := serve.ClientAddr(r.Request)
	if err := d.throttle.begin(email, addr); err != nil {
		d.Log.WarnContext(r.Context(), "sign-in throttled", "remote", addr)
		return c, err
	}
	err = d.hashing(r, "", func() error {
		c, err = d.Store.People.CheckPassword(r.Context(), email, password)
		return err
	})
	if db.IsKind(err, db.Unauthorized) {
		d.Log.InfoContext(r.Context(), "sign-in refused", "remote", addr) // no email: people type passwords there
	} else {
		d.throttle.forgive(email, addr, err == nil)
	}
	c.RemoteAddr = addr
	return c, err
}

// hashing runs do, which checks or sets a password. Hashing needs much CPU time, so it is limited
// for the client's address, the user and the organization. A refusal is a TryLater error.
func (d *Pages) hashing(r *frame.Request, organizationID string, do func() error) error {
	release, err := d.API.HoldPassword(serve.ClientAddr(r.Request), r.Who.UserID, organizationID)
	if err == nil {
		defer release()
		err = do()
	}
	return frame.Later(err)
}
