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

	"journeyman/handlers/serve"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
)

// SessionCookie holds the token of a browser's session.
const SessionCookie = "journeyman_session"

// auth identifies the caller of a request, and counts the request against the limit of the
// caller's key.
type auth struct {
	store   *store.Store
	limiter *limiter
}

// key returns the identity of the API key that a request carries.
func (a auth) key(w http.ResponseWriter, r *http.Request) (people.Identity, error) {
	return a.bearerOf(w, r, a.store.People.Authenticate)
}

// keyOrSession returns the identity of a request's API key or, without one, of its browser session.
func (a auth) keyOrSession(w http.ResponseWriter, r *http.Request) (people.Identity, error) {
	cookie, err := r.Cookie(SessionCookie)
	if err != nil || r.Header.Get("Authorization") != "" {
		return a.key(w, r)
	}
	who, sessionID, err := a.store.People.SessionIdentity(r.Context(), cookie.Value)
	return a.limited(w, r, who, sessionID, err)
}

// limited counts a request whose caller is known, and completes the caller's identity.
func (a auth) limited(w http.ResponseWriter, r *http.Request, who people.Identity, sessionID string, err error) (
	people.Identity, error) {
	if err != nil {
		return who, err
	}
	who.RemoteAddr = serve.ClientAddr(r)
	if a.limiter.peers != nil && a.limiter.peers.Forwarded(r) {
		return who, nil // the node that has forwarded the request has counted it
	}
	return who, a.limiter.take(w, cmp.Or(sessionID, who.KeyID))
}

// mcpKey returns the identity of a request's API key or OAuth access token.
func (a auth) mcpKey(w http.ResponseWriter, r *http.Request) (people.Identity, error) {
	return a.bearerOf(w, r, a.store.People.AuthenticateMCP)
}

// bearerOf returns the identity of a request's bearer token. identify looks it up.
func (a auth) bearerOf(w http.ResponseWriter, r *http.Request,
	identify func(context.Context, string) (people.Identity, error)) (people.Identity, error) {
	secret, err := bearer(r)
	if err != nil {
		return people.Identity{}, err
	}
	who, err := identify(r.Context(), secret)
	return a.limited(w, r, who, "", err)
}

// reidentify returns a function that identifies the caller of a request again, which a long stream
// needs. The function holds only the credentials of the request, not the request.
func (a auth) reidentify(r *http.Request) func(context.Context) (people.Identity, error) {
	secret, err := bearer(r)
	if err == nil {
		return func(ctx context.Context) (people.Identity, error) { return a.store.People.Authenticate(ctx, secret) }
	}
	cookie, missing := r.Cookie(SessionCookie)
	if missing != nil || r.Header.Get("Authorization") != "" {
		return func(context.Context) (people.Identity, error) { return people.Identity{}, err }
	}
	token := cookie.Value
	return func(ctx context.Context) (people.Identity, error) {
		who, _, err := a.store.People.SessionIdentity(ctx, token)
		return who, err
	}
}

// bearer reads the API key of a request (RFC 6750, section 2.1).
func bearer(r *http.Request) (string, error) {
	// Two headers could name two callers: a proxy may have checked one of them, and this server
	// would use the other one.
	values := r.Header.Values("Authorization")
	if len(values) == 0 {
		return "", db.Errorf(db.Unauthorized,
			"the Authorization header is missing: send Authorization: Bearer API_KEY")
	}
	if len(values) > 1 {
		return "", db.Errorf(db.Unauthorized, "there are %d Authorization headers: send one", len(values))
	}
	scheme, secret, ok := strings.Cut(values[0], " ")
	secret = strings.TrimSpace(secret)
	if !ok || !strings.EqualFold(scheme, "Bearer") || secret == "" || strings.ContainsAny(secret, " ,") {
		return "", db.Errorf(db.Unauthorized,
			"the Authorization header is malformed: send Authorization: Bearer API_KEY")
	}
	return secret, nil
}

// A limiter limits the request rate of each key. Each of several nodes allows its part of the rate.
type limiter struct {
	perMinute int // on all nodes together
	now       func() time.Time
	peers     Peers      // nil if there are no other nodes
	mu        sync.Mutex // guards the fields below
	nodes     int        // that share the rate of the limiters in keys
	keys      map[string]*rate.Limiter
	swept     time.Time // when full limiters were last removed from keys
}

func newLimiter(perMinute int, now func() time.Time, peers Peers) *limiter {
	return &limiter{perMinute: perMinute, now: now, peers: peers, nodes: 1, keys: map[string]*rate.Limiter{}, swept: now()}
}

// part returns this node's part of the rate, which is at least 1, and the burst.
func (l *limiter) part() (perMinute, burst int) {
	return max(1, l.perMinute/l.nodes), max(1, max(20, l.perMinute/10)/l.nodes)
}

// share adapts all limiters to the number of live nodes. The caller holds mu.
func (l *limiter) share(now time.Time) {
	if l.peers == nil {
		return
	}
	nodes := l.peers.Live()
	if nodes == l.nodes {
		return
	}
	l.nodes = nodes
	perMinute, burst := l.part()
	for _, lim := range l.keys {
		lim.SetLimitAt(now, rate.Limit(float64(perMinute)/60))
		lim.SetBurstAt(now, burst)
	}
}

// take counts one request and writes the headers about the limit. It refuses a request
// beyond the limit.
func (l *limiter) take(w http.ResponseWriter, keyID string) error {
	if l.perMinute == 0 { // no limit, and no headers about one
		return nil
	}
	now := l.now()
	lim := l.forKey(keyID, now)
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
	return &Problem{Status: http.StatusTooManyRequests, Code: "rate_limited",
		Message:    "this key has made too many requests: " + strconv.Itoa(l.perMinute) + " a minute are allowed",
		RetryAfter: time.Duration((1 - tokens) / perSecond * float64(time.Second))}
}

// maxLimited bounds the keys and sessions that a limiter counts at once.
const maxLimited = 100_000

// forKey returns the limiter of a key. Once a minute it removes the keys that have their full
// allowance again.
func (l *limiter) forKey(keyID string, now time.Time) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.share(now)
	if now.Sub(l.swept) > time.Minute {
		l.swept = now
		for id, lim := range l.keys {
			// A new limiter would allow the same requests as a full one.
			if lim.TokensAt(now) >= float64(lim.Burst()) {
				delete(l.keys, id)
			}
		}
	}
	lim := l.keys[keyID]
	if lim == nil {
		if len(l.keys) >= maxLimited {
			// Remove any entry. Its key starts with a full allowance at its next request.
			for id := range l.keys {
				delete(l.keys, id)
				break
			}
		}
		// The burst lets a client begin with several requests at once.
		perMinute, burst := l.part()
		lim = rate.NewLimiter(rate.Limit(float64(perMinute)/60), burst)
		l.keys[keyID] = lim
	}
	return lim
}
