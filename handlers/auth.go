package handlers

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"journeyman/store"
)

// authenticate gives whose key a request carries, and counts the request against
// its limit.
func (a *API) authenticate(w http.ResponseWriter, r *request) (store.Identity, error) {
	who, err := a.identify(r.Context(), r.Request)
	if err != nil {
		return who, err
	}
	who.RemoteAddr = clientAddr(r.Request)
	return who, a.limiter.take(w, who.KeyID)
}

// identify gives whose key a request carries (RFC 6750, section 2.1).
func (a *API) identify(ctx context.Context, r *http.Request) (store.Identity, error) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return store.Identity{}, store.Errorf(store.Unauthorized, "the Authorization header is missing: send Authorization: Bearer API_KEY")
	}
	scheme, secret, ok := strings.Cut(values[0], " ")
	secret = strings.TrimSpace(secret)
	if !ok || !strings.EqualFold(scheme, "Bearer") || secret == "" || strings.ContainsAny(secret, " ,") {
		return store.Identity{}, store.Errorf(store.Unauthorized, "the Authorization header is malformed: send Authorization: Bearer API_KEY")
	}
	return a.store.Authenticate(ctx, secret)
}

// SessionCookie holds the token of a browser's session.
const SessionCookie = "journeyman_session"

// signedIn gives whose browser a request without an API key comes from.
func (a *API) signedIn(w http.ResponseWriter, r *request) (store.Identity, error) {
	who, sessionID, err := a.identifyReader(r.Context(), r.Request)
	if err != nil {
		return who, err
	}
	who.RemoteAddr = clientAddr(r.Request)
	return who, a.limiter.take(w, cmp.Or(sessionID, who.KeyID))
}

// identifyReader gives who reads what pages may read, too: by a key, or without one
// by the session of a browser.
func (a *API) identifyReader(ctx context.Context, r *http.Request) (who store.Identity, sessionID string, err error) {
	cookie, err := r.Cookie(SessionCookie)
	if err != nil || r.Header.Get("Authorization") != "" {
		who, err = a.identify(ctx, r)
		return who, "", err
	}
	return a.store.SessionIdentity(ctx, cookie.Value)
}

// A limiter counts the requests of each key.
type limiter struct {
	perMinute int
	now       func() time.Time
	mu        sync.Mutex
	keys      map[string]*rate.Limiter
	swept     time.Time
}

func newLimiter(perMinute int, now func() time.Time) *limiter {
	return &limiter{perMinute: perMinute, now: now, keys: map[string]*rate.Limiter{}, swept: now()}
}

// take counts one request and tells the client what is left, or refuses it.
func (l *limiter) take(w http.ResponseWriter, keyID string) error {
	if l.perMinute == 0 {
		return nil
	}
	now := l.now()
	lim := l.of(keyID, now)
	allowed := lim.AllowN(now, 1)
	tokens := max(0, lim.TokensAt(now))
	perSecond, burst := float64(lim.Limit()), float64(lim.Burst())
	h := w.Header()
	h.Set("RateLimit-Limit", strconv.Itoa(l.perMinute))
	h.Set("RateLimit-Remaining", strconv.Itoa(int(tokens)))
	h.Set("RateLimit-Reset", strconv.Itoa(int(math.Ceil((burst-tokens)/perSecond))))
	if allowed {
		return nil
	}
	return &problem{Status: http.StatusTooManyRequests, Code: "rate_limited",
		Message:    "this key has made too many requests: " + strconv.Itoa(l.perMinute) + " a minute are allowed",
		RetryAfter: time.Duration((1 - tokens) / perSecond * float64(time.Second))}
}

func (l *limiter) of(keyID string, now time.Time) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.swept) > time.Minute {
		l.swept = now
		for id, lim := range l.keys {
			if lim.TokensAt(now) >= float64(lim.Burst()) {
				delete(l.keys, id) // as good as new
			}
		}
	}
	lim := l.keys[keyID]
	if lim == nil {
		lim = rate.NewLimiter(rate.Limit(float64(l.perMinute)/60), max(20, l.perMinute/10))
		l.keys[keyID] = lim
	}
	return lim
}
