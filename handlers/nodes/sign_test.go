package nodes

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
)

// TestSignatures sends signed requests that somebody has changed, kept or sent elsewhere.
func TestSignatures(t *testing.T) {
	t.Parallel()
	const url = "http://10.0.0.1:8080"
	now := time.Unix(1_800_000_000, 0)
	from := newSigner("secret", "http://10.0.0.2:8080", func() time.Time { return now })
	// signed returns a request as it arrives.
	signed := func(s *signer) *http.Request {
		r := httptest.NewRequest("GET", url+"/api/workers/wrk_a?stream=true", nil)
		r.Header.Set(clientHeader, "192.0.2.7")
		s.sign(r, url, []byte("body"))
		r.RequestURI = r.URL.RequestURI()
		return r
	}
	for name, tt := range map[string]struct {
		change func(r *http.Request)
		later  time.Duration
		own    string
		secret string
		body   string
		right  bool
	}{
		"right":            {right: true},
		"a slow clock":     {right: true, later: maxSkew},
		"a fast clock":     {right: true, later: -maxSkew},
		"old":              {later: maxSkew + time.Second},
		"of the future":    {later: -maxSkew - time.Second},
		"another secret":   {secret: "other"},
		"for another node": {own: "http://10.0.0.3:8080"},
		"another body":     {body: "other"},
		"another path":     {change: func(r *http.Request) { r.RequestURI = "/api/workers/wrk_b?stream=true" }},
		"another method":   {change: func(r *http.Request) { r.Method = "POST" }},
		"another client":   {change: func(r *http.Request) { r.Header.Set(clientHeader, "192.0.2.8") }},
		"two clients":      {change: func(r *http.Request) { r.Header.Add(clientHeader, "192.0.2.8") }},
		"no client":        {change: func(r *http.Request) { r.Header.Del(clientHeader) }},
		"two signatures":   {change: func(r *http.Request) { r.Header.Add(signatureHeader, r.Header.Get(signatureHeader)) }},
		"none":             {change: func(r *http.Request) { r.Header.Del(signatureHeader) }},
		"no numbers":       {change: func(r *http.Request) { r.Header.Set(signatureHeader, "a b c") }},
		"too short":        {change: func(r *http.Request) { r.Header.Set(signatureHeader, "1800000000 b") }},
		"another time": {change: func(r *http.Request) {
			r.Header.Set(signatureHeader, strings.Replace(r.Header.Get(signatureHeader), "1800000000", "1800000001", 1))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			own, secret, body := url, "secret", "body"
			if tt.own != "" {
				own = tt.own
			}
			if tt.secret != "" {
				secret = tt.secret
			}
			if tt.body != "" {
				body = tt.body
			}
			to := newSigner(secret, own, func() time.Time { return now.Add(tt.later) })
			r := signed(from)
			if tt.change != nil {
				tt.change(r)
			}
			is.Equal(to.signed(r, []byte(body)), tt.right)
			is.Equal(to.signed(r, []byte(body)), false) // a signature counts once
		})
	}
}

// TestSignerForgets signs many requests. The numbers of old ones take no memory.
func TestSignerForgets(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	now := time.Unix(1_800_000_000, 0)
	s := newSigner("secret", "http://a", func() time.Time { return now })
	use := func() {
		r := httptest.NewRequest("GET", "/", nil)
		s.sign(r, "http://a", nil)
		is.True(s.signed(r, nil))
	}
	for range 100 {
		use()
	}
	is.Equal(len(s.used), 100)
	now = now.Add(2*maxSkew + 1)
	use()
	is.Equal(len(s.used), 1)
}

// TestWarnings warns of wrong signatures, but not often.
func TestWarnings(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	now := time.Now()
	n := &Nodes{cfg: Config{Now: func() time.Time { return now }}}
	is.True(n.mayWarn())
	is.True(!n.mayWarn())
	now = now.Add(warnPause)
	is.True(n.mayWarn())
}
