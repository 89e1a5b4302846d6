package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"journeyman/store"
)

// How often a wrong password may be given within throttleWindow, for one email
// address, whether anybody has it or not, and from one place. A place is wider: a
// proxy or an office has one address for many people.
const (
	throttleWindow = 15 * time.Minute
	wrongByEmail   = 10
	wrongByPlace   = 100
	// maxThrottled is how many email addresses and places are remembered at once.
	maxThrottled = 20_000
)

// A throttle counts wrong passwords, so that nobody tries out a dictionary. It counts
// a try before the password is looked at and forgives it afterwards: tries that are
// made all at once get no further.
type throttle struct {
	now   func() time.Time
	mu    sync.Mutex // held for moments
	tried map[string]*tries
	most  int
}

type tries struct {
	n     int
	until time.Time // the end of its window
}

func newThrottle(now func() time.Time) *throttle {
	return &throttle{now: now, tried: map[string]*tries{}, most: maxThrottled}
}

// A tooMany is the refusal of a try.
type tooMany struct{ wait time.Duration }

// Error is the refusal for a person.
func (e *tooMany) Error() string {
	minutes := int((e.wait + time.Minute - 1) / time.Minute)
	return fmt.Sprintf("There were too many wrong passwords. Try again in %s.", plural(minutes, "minute"))
}

// placeOf is what is counted for where a request comes from: whoever has one IPv6
// address has a network of them.
func placeOf(addr string) string {
	ip, err := netip.ParseAddr(addr)
	if err == nil && ip.Is6() && !ip.Is4In6() {
		if network, err := ip.WithZone("").Prefix(64); err == nil {
			return "@" + network.String()
		}
	}
	return "@" + addr
}

// begin counts a try, or refuses it with a tooMany error.
func (t *throttle) begin(email, addr string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	limits := map[string]int{personOf(email): wrongByEmail, placeOf(addr): wrongByPlace}
	var wait time.Duration
	for key, most := range limits {
		if v := t.tried[key]; v != nil && v.n >= most && v.until.After(now) {
			wait = max(wait, v.until.Sub(now))
		}
	}
	if wait > 0 {
		return &tooMany{wait}
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

// personOf is what is counted for an email address. Long ones are nobody's, and are
// counted as one.
func personOf(email string) string {
	const most = 320
	return strings.ToLower(email[:min(len(email), most)])
}

// makeRoom forgets what is over, and where that does not help something else.
func (t *throttle) makeRoom(now time.Time) {
	if len(t.tried) < t.most {
		return
	}
	for key, v := range t.tried {
		if !v.until.After(now) {
			delete(t.tried, key)
		}
	}
	for key := range t.tried {
		if len(t.tried) < t.most {
			return
		}
		delete(t.tried, key)
	}
}

// forgive takes a try back that was no wrong password. Who knew it has earned their
// other tries back, too.
func (t *throttle) forgive(email, addr string, knewIt bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, key := range []string{personOf(email), placeOf(addr)} {
		if v := t.tried[key]; v != nil && v.n > 0 {
			v.n--
		}
	}
	if knewIt {
		delete(t.tried, personOf(email))
	}
}

// checkPassword gives whose password it is, unless too many wrong ones were given.
func (d *Dashboard) checkPassword(r *request, email, password string) (userID string, err error) {
	addr := remoteAddr(r.Request)
	if err := d.throttle.begin(email, addr); err != nil {
		d.cfg.Log.WarnContext(r.Context(), "sign-in throttled", "remote", addr)
		return "", err
	}
	userID, err = d.store.CheckPassword(r.Context(), email, password)
	if store.IsKind(err, store.Unauthorized) {
		d.cfg.Log.InfoContext(r.Context(), "sign-in refused", "remote", addr) // without the address: people type passwords there
	} else {
		d.throttle.forgive(email, addr, err == nil)
	}
	return userID, err
}

// refusedForm notes in f what err says, and gives the status to show the form again
// with. Ok is false for an error that is nothing to be corrected.
func refusedForm(w http.ResponseWriter, f *form, err error) (status int, ok bool) {
	var slow *tooMany
	if errors.As(err, &slow) {
		w.Header().Set("Retry-After", strconv.Itoa(int(slow.wait.Seconds())+1))
		f.Error = slow.Error()
		return http.StatusTooManyRequests, true
	}
	return http.StatusUnprocessableEntity, f.refused(err)
}
