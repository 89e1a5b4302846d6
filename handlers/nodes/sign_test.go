package nodes

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/stream"
	"journeyman/store/db"
	"journeyman/store/ordertest"
)

// TestSignatures checks signed requests that were changed, delayed or sent to another node.
func TestSignatures(t *testing.T) {
	t.Parallel()
	const url = "http://10.0.0.1:8080"
	now := time.Unix(1_800_000_000, 0)
	from := newSigner("secret", "http://10.0.0.2:8080", func() time.Time { return now })
	// signed returns a signed request as a server receives it.
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
			body := cmp.Or(tt.body, "body")
			to := newSigner(cmp.Or(tt.secret, "secret"), cmp.Or(tt.own, url), func() time.Time { return now.Add(tt.later) })
			r := signed(from)
			if tt.change != nil {
				tt.change(r)
			}
			is.Equal(to.check(r, []byte(body)) == fits, tt.right)
			is.True(to.check(r, []byte(body)) != fits) // a signature is valid once
		})
	}
}

// An unread body fails a test if it is read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the message was read")
	return 0, io.EOF
}

// TestMessagesOfStrangers sends messages without a recent signature, or too long ones. They are refused
// before they are read.
func TestMessagesOfStrangers(t *testing.T) {
	t.Parallel()
	const url = "http://10.0.0.1:8080"
	now := time.Now()
	n := &Nodes{signer: newSigner("secret", url, func() time.Time { return now })}
	for name, tt := range map[string]struct {
		age    time.Duration // of the signature; negative for none
		length int64
		status int
	}{
		"no signature":   {-1, 100, http.StatusForbidden},
		"unknown length": {-1, -1, http.StatusForbidden},
		"an old one":     {maxSkew + 2*time.Second, 100, http.StatusForbidden},
		"too much":       {0, maxMessage + 1, http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			r := httptest.NewRequest("POST", url+changesPath, unread{t})
			r.ContentLength = tt.length
			if tt.age >= 0 {
				newSigner("secret", url, func() time.Time { return now.Add(-tt.age) }).sign(r, url, nil)
			}
			w := httptest.NewRecorder()
			n.serveChanges(w, r)
			is.Equal(w.Code, tt.status)
		})
	}
}

// TestLargestMessage encodes the largest changes that one message may contain.
func TestLargestMessage(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var changes runner.Changes
	for i := range 500 {
		id := fmt.Sprintf("%026d", i)
		changes.Add(runner.Changes{Ended: []stream.EndedTurn{{ID: "trn_" + id, WorkerID: "wrk_" + id}},
			Changed: map[string][]db.Change{"org_" + id: db.Changes()}})
	}
	is.True(!changes.All)
	body, err := json.Marshal(changes)
	is.NoErr(err)
	ordertest.Above(is, len(body), maxMessage/4)
	ordertest.Below(is, len(body), maxMessage/2)
}

// TestNoRedirect answers a message with a redirect, which is not followed.
func TestNoRedirect(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the redirect was followed")
	}))
	defer other.Close()
	node := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer node.Close()
	n := &Nodes{cfg: Config{Log: slog.New(slog.DiscardHandler)}, signer: newSigner("secret", "http://a", time.Now),
		client: newClient()}
	err := n.send(&peer{url: node.URL, gone: t.Context()}, runner.Changes{})
	is.True(err != nil && strings.Contains(err.Error(), "307"))
}

// TestSignerForgets checks many signatures. The nonces of old ones are removed.
func TestSignerForgets(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	now := time.Unix(1_800_000_000, 0)
	s := newSigner("secret", "http://a", func() time.Time { return now })
	use := func() {
		r := httptest.NewRequest("GET", "/", nil)
		s.sign(r, "http://a", nil)
		is.Equal(s.check(r, nil), fits)
	}
	for range 100 {
		use()
	}
	is.Equal(len(s.used), 100)
	now = now.Add(2*maxSkew + 1)
	use()
	is.Equal(len(s.used), 1)
}

// TestWarnings checks that warnings of wrong signatures are at least warnPause apart.
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
