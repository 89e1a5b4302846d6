package webhook_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner/dial"
	"journeyman/runner/webhook"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

func TestDelivers(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	r := f.receive(answering(204))
	w := f.worker(r.URL + "/hook?a=b")
	f.end(w, 1) // before the dispatcher starts
	f.start()
	f.end(w, 2)
	list := f.executions(w, 3)
	got := r.all()
	is.Equal(len(got), 3)
	h, err := f.Effects.Webhook(t.Context(), f.owner.Caller, w.ID)
	is.NoErr(err)
	ids := map[string]bool{}
	for i, e := range list {
		is.Equal(e.RequestStatus, "success")
		is.Equal(e.ResponseStatus, 204)
		is.Equal(e.ErrorMessage, "")
		is.Equal(e.URL, r.URL+"/hook?a=b")
		ordertest.Below(is, e.Duration, 10*time.Second) // the delivery took no timeout
		header := got[i].header
		is.Equal(header.Get("Content-Type"), "application/json")
		is.Equal(header.Get("User-Agent"), "Journeyman/test")
		is.Equal(header.Get("X-Service-Token"), h.Token)
		id, timestamp := header.Get("webhook-id"), header.Get("webhook-timestamp")
		is.True(strings.Contains(string(got[i].body), `"id":"`+id+`"`)) // the body has the same id
		ids[id] = true
		is.Equal(header.Get("webhook-signature"), signature(t, h.SigningSecret, id, timestamp, got[i].body))
		unix, err := strconv.ParseInt(timestamp, 10, 64)
		is.NoErr(err)
		ordertest.Below(is, time.Since(time.Unix(unix, 0)), time.Minute) // the header has the present time
	}
	is.Equal(len(ids), 3)
	is.Equal([]string{got[0].input, got[1].input, got[2].input}, []string{"0", "0", "1"}) // in order
	f.idle(w)
}

// signature computes the expected signature from the specification, independently of the code under
// test.
func signature(t *testing.T, secret, id, timestamp string, body []byte) string {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	is.New(t).NoErr(err)
	m := hmac.New(sha256.New, key)
	fmt.Fprintf(m, "%s.%s.%s", id, timestamp, body)
	return "v1," + base64.StdEncoding.EncodeToString(m.Sum(nil))
}

// TestFailures tests one endpoint for each kind of failure, and some unusual successes.
func TestFailures(t *testing.T) {
	t.Parallel()
	closed := func(f *fixture) string {
		r := f.receive(answering(200))
		r.Close()
		return r.URL
	}
	serving := func(h http.HandlerFunc) func(*fixture) string {
		return func(f *fixture) string { return f.receive(h).URL }
	}
	for name, tt := range map[string]struct {
		url    func(*fixture) string
		status int
		says   string // '' for a success
		tries  bool   // it tries again later
	}{
		"no content":     {serving(answering(204)), 204, "", false},
		"created":        {serving(answering(201)), 201, "", false},
		"endless body":   {serving(endless), 200, "", false},
		"trickling body": {serving(trickling), 200, "", false},
		"server error":   {serving(answering(500)), 500, "answered 500 Internal Server Error", true},
		"endless error": {serving(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(502); endless(w, r) }),
			502, "answered 502", true},
		"not found":      {serving(answering(404)), 404, "answered 404 Not Found", true},
		"odd status":     {serving(answering(599)), 599, "answered 599", true},
		"redirect":       {serving(answering(302, "Location", "https://example.com/")), 302, "redirects are not followed", true},
		"kept redirect":  {serving(answering(307, "Location", "/elsewhere")), 307, "redirects are not followed", true},
		"not modified":   {serving(answering(304)), 304, "answered 304", true},
		"gone":           {serving(answering(410)), 410, "not tried again", false},
		"hang":           {serving(hanging), 0, "did not answer within 500ms", true},
		"reset":          {serving(resetting), 0, "closed the connection without an answer", true},
		"huge header":    {serving(answering(200, "X-Long", strings.Repeat("x", 200_000))), 0, "could not be reached", true},
		"nobody listens": {closed, 0, "refused the connection", true},
		"no such host":   {func(*fixture) string { return "https://no-such-host.invalid/" }, 0, "name of the host was not found", true},
		"expired":        {func(f *fixture) string { return f.certified(time.Now().Add(-time.Hour), true) }, 0, "certificate is not valid: x509: certificate has expired", true},
		"unknown issuer": {func(f *fixture) string { return f.certified(time.Now().Add(time.Hour), false) }, 0, "certificate is not valid: x509: certificate signed by unknown authority", true},
		"another's name": {func(f *fixture) string {
			return strings.Replace(f.receive(answering(200)).URL, "127.0.0.1", "localhost", 1)
		}, 0, "certificate is not valid", true},
		"no TLS there":      {func(f *fixture) string { return strings.Replace(f.receive(nil).URL, "http:", "https:", 1) }, 0, "could not be reached", true},
		"plain and local":   {func(f *fixture) string { return f.receive(nil).URL }, 200, "", false},
		"no HTTP there":     {rambling, 0, "could not be reached", true},
		"password in it":    {func(f *fixture) string { return strings.Replace(closed(f), "https://", "https://ann:secret@", 1) }, 0, "refused the connection", true},
		"no address at all": {func(*fixture) string { return "https://0.0.0.0:1/" }, 0, "not public", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t)
			f.cfg.Timeout = 5 * time.Second
			if name == "hang" { // this attempt ends by its timeout; the others may be slow on a busy machine
				f.cfg.Timeout = 500 * time.Millisecond
			}
			w := f.worker(tt.url(f))
			f.start()
			begun := time.Now()
			f.end(w, 1)
			e := f.executions(w, 1)[0]
			ordertest.Below(is, time.Since(begun), 60*time.Second) // the delivery took no timeout
			is.Equal(e.ResponseStatus, tt.status)
			is.Equal(e.RequestStatus == "success", tt.says == "")
			if !strings.Contains(e.ErrorMessage, tt.says) || (tt.says == "") != (e.ErrorMessage == "") || strings.Contains(e.ErrorMessage, "secret") {
				t.Errorf("says %q, want %q", e.ErrorMessage, tt.says)
			}
			at, again, err := f.Effects.WorkerDelivery(t.Context(), w.ID)
			is.NoErr(err)
			is.Equal(again, tt.tries)
			// The attempt ended somewhere between begun and now.
			if pause := at.Sub(begun); again && (pause < 4*time.Second || pause > 7*time.Second+time.Since(begun)) {
				t.Errorf("tries again after %v", pause)
			}
		})
	}
}

// certified returns the URL of a server whose certificate expires at until. trusted says whether
// the issuer is trusted.
func (f *fixture) certified(until time.Time, trusted bool) string {
	f.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	is.New(f.t).NoErr(err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: until.Add(-24 * time.Hour),
		NotAfter: until, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	is.New(f.t).NoErr(err)
	certificate, err := x509.ParseCertificate(der)
	is.New(f.t).NoErr(err)
	if trusted {
		f.cfg.RootCAs.AddCert(certificate)
	}
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	is.New(f.t).NoErr(err)
	server := &http.Server{Handler: answering(200), ReadHeaderTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	go func() { _ = server.Serve(ln) }() // ends with the test
	f.t.Cleanup(func() { _ = server.Close() })
	return "https://" + ln.Addr().String()
}

// rambling returns the URL of a server whose responses are not HTTP.
func rambling(f *fixture) string {
	f.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	is.New(f.t).NoErr(err)
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("220 mail ready\r\n"))
			_ = conn.Close()
		}
	}()
	f.t.Cleanup(func() { _ = ln.Close() })
	return "http://" + ln.Addr().String()
}

// TestPrivateAddressesAreRefused sends to a private endpoint that would answer.
func TestPrivateAddressesAreRefused(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.cfg.Dialer = dial.Guard{}
	r := f.receive(answering(200))
	w := f.worker(strings.Replace(r.URL, "127.0.0.1", "[::ffff:127.0.0.1]", 1))
	f.start()
	f.end(w, 1)
	e := f.executions(w, 1)[0]
	is.Equal(e.ErrorMessage, dial.ErrAddressRefused.Error())
	is.Equal(len(r.all()), 0)
}

func TestRetries(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f, r, w := delivering(t, answering(500))
	f.start()
	f.end(w, 1)
	for n, pause := range []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour} {
		f.executions(w, n+1)
		f.idle(w)
		at, ok, err := f.Effects.WorkerDelivery(t.Context(), w.ID)
		is.NoErr(err)
		is.True(ok)
		wait := at.Sub(f.clock.now())
		if wait < pause*9/10-2*time.Second || wait > pause*11/10 {
			t.Errorf("attempt %d comes after %v, want about %v", n+2, wait, pause)
		}
		f.clock.advance(wait)
		is.NoErr(f.hooks.Poll(t.Context())) // timers do not notice that the test moved the clock
	}
	f.executions(w, 7)
	_, ok, err := f.Effects.WorkerDelivery(t.Context(), w.ID)
	is.NoErr(err)
	is.True(!ok) // it tries no more
	ids, stamps := map[string]bool{}, map[string]bool{}
	for _, got := range r.all() {
		ids[got.header.Get("webhook-id")] = true
		stamps[got.header.Get("webhook-timestamp")] = true
	}
	is.Equal(len(ids), 1)    // the same on every attempt
	is.Equal(len(stamps), 7) // each attempt has its own timestamp
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{
		"":      5 * time.Second,
		"1":     5 * time.Second, // earlier than the usual pause
		"120":   2 * time.Minute,
		"-5":    5 * time.Second,
		"soon":  5 * time.Second,
		"1e9":   5 * time.Second,
		"99999": 24 * time.Hour,
		"date":  time.Hour,
	} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			if value == "date" {
				value = time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
			}
			f := newFixture(t)
			w := f.worker(f.receive(answering(503, "Retry-After", value)).URL)
			f.start()
			f.end(w, 1)
			f.executions(w, 1)
			at, _, err := f.Effects.WorkerDelivery(t.Context(), w.ID)
			is.NoErr(err)
			if wait := at.Sub(f.clock.now()); wait < want*9/10-2*time.Second || wait > want*11/10 {
				t.Errorf("tries again after %v, want about %v", wait, want)
			}
		})
	}
}

// TestFailureDoesNotBlock lets the first delivery fail. The next ones do not wait for its retry,
// and they keep their order.
func TestFailureDoesNotBlock(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var n atomic.Int64
	f, r, w := delivering(t, func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) == 1 {
			w.WriteHeader(500)
		}
	})
	f.end(w, 40) // more than one batch
	f.start()
	list := f.executions(w, 40)
	is.Equal(list[0].RequestStatus, "error")
	for i, e := range list[1:] {
		is.Equal(e.RequestStatus, "success")
		is.Equal(r.all()[i+1].input, strconv.Itoa(i+1))
	}
}

// TestOneAtATime checks that an endpoint gets one attempt at a time.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var now, most atomic.Int64
	f, _, w := delivering(t, func(http.ResponseWriter, *http.Request) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		<-time.After(time.Millisecond)
		now.Add(-1)
	})
	f.start()
	f.end(w, 45)
	f.executions(w, 45)
	is.Equal(most.Load(), int64(1))
}

// TestFailingEndpointsDelayNoOther runs endpoints that fail in every way, each with many deliveries. It
// measures the delays of a working endpoint.
func TestFailingEndpointsDelayNoOther(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	good := f.receive(answering(200))
	worker := f.worker(good.URL)
	for _, h := range []http.HandlerFunc{hanging, resetting, endless, trickling, answering(500), answering(302, "Location", "/")} {
		r := f.receive(h)
		for range 10 {
			f.end(f.worker(r.URL), 3)
		}
	}
	for range 10 {
		f.end(f.worker(f.certified(time.Now().Add(-time.Hour), true)), 3)
	}
	f.start()
	var delays []time.Duration
	for i := range 50 {
		ended := time.Now()
		f.end(worker, 1)
		storetest.Eventually(f.t, "the delivery", func() bool { return len(good.all()) == i+1 })
		delays = append(delays, good.all()[i].at.Sub(ended))
	}
	slices.Sort(delays)
	t.Logf("from before the end of a turn to its arrival: median %v, p90 %v, longest %v", delays[25], delays[45], delays[49])
	// A delivery that waits for a hanging endpoint would take seconds, until the timeout.
	ordertest.Below(is, delays[25], time.Second) // the others do not delay the working endpoint
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f, r, w := delivering(t, answering(200))
	f.start()
	f.end(w, 20)
	f.executions(w, 20)
	connections := map[string]bool{}
	for _, got := range r.all() {
		connections[got.from] = true
	}
	is.Equal(len(connections), 1)
}

func TestRemovedAndRenewedMeanwhile(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	arrived, answer := make(chan struct{}, 10), make(chan struct{})
	f, r, w := delivering(t, func(http.ResponseWriter, *http.Request) { arrived <- struct{}{}; <-answer })
	f.end(w, 3)
	f.start()
	<-arrived
	renewed, _, err := f.Effects.RenewWebhook(t.Context(), f.owner.Caller, w.ID, db.IdempotencyKey{})
	is.NoErr(err)
	answer <- struct{}{}
	<-arrived // the second delivery of the same batch
	is.Equal(r.all()[1].header.Get("X-Service-Token"), renewed.Token)
	_, err = f.Effects.RemoveWebhook(t.Context(), f.owner.Caller, w.ID)
	is.NoErr(err)
	close(answer)
	f.executions(w, 2)
	f.idle(w)
	is.Equal(len(r.all()), 2) // the third was not sent
}

// TestStopRepeatsInterrupted checks that an attempt that Stop interrupts is repeated after the next
// start.
func TestStopRepeatsInterrupted(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	arrived := make(chan struct{}, 1)
	var first atomic.Bool
	f, r, w := delivering(t, func(w http.ResponseWriter, req *http.Request) {
		if first.CompareAndSwap(false, true) {
			arrived <- struct{}{}
			hanging(w, req)
		}
	})
	f.start()
	f.end(w, 1)
	<-arrived
	f.stop()
	is.Equal(len(f.page(w)), 0) // the interruption is no failure
	f.start()
	is.Equal(f.executions(w, 1)[0].RequestStatus, "success")
	is.Equal(r.all()[0].header.Get("webhook-id"), r.all()[1].header.Get("webhook-id"))
}

func TestBodyThatCannotBeMade(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	w := f.worker(f.receive(answering(200)).URL)
	f.end(w, 1)
	storetest.Exec(t, f.Store, `PRAGMA ignore_check_constraints = 1;
		UPDATE turns SET structured_output = '{'`) // as damage does: this cannot be part of a body
	f.end(w, 1)
	f.start()
	list := f.executions(w, 2)
	is.Equal(list[0].ErrorMessage, "the body could not be made")
	is.Equal(list[1].RequestStatus, "success") // the next delivery was not blocked
}

func TestSend(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	status := atomic.Int64{}
	status.Store(500)
	f, r, w := delivering(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) })
	f.start()
	f.end(w, 1)
	first := f.executions(w, 1)[0]
	d, err := f.Effects.ExecutedDelivery(t.Context(), f.owner.Caller, w.ID, first.ID)
	is.NoErr(err)
	e, err := f.hooks.Send(t.Context(), d)
	is.NoErr(err)
	is.Equal(e.ResponseStatus, 500)
	_, waits, err := f.Effects.WorkerDelivery(t.Context(), w.ID)
	is.NoErr(err)
	is.True(waits) // the automatic retries go on
	status.Store(200)
	e, err = f.hooks.Send(t.Context(), d)
	is.NoErr(err)
	is.Equal(e.RequestStatus, "success")
	_, waits, err = f.Effects.WorkerDelivery(t.Context(), w.ID)
	is.NoErr(err)
	is.True(!waits)
	is.Equal(r.all()[0].header.Get("webhook-id"), r.all()[2].header.Get("webhook-id"))
	sample, err := f.Effects.CreateTestDelivery(t.Context(), f.owner.Caller, w.ID)
	is.NoErr(err)
	e, err = f.hooks.Send(t.Context(), sample)
	is.NoErr(err)
	is.Equal(e.RequestStatus, "success")
}

// TestMaintenanceBeginsDuringAnAttempt checks that a user's attempt is recorded although
// maintenance has begun.
func TestMaintenanceBeginsDuringAnAttempt(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	r := f.receive(func(http.ResponseWriter, *http.Request) { f.Gate.BeginMaintenance() })
	w := f.worker(r.URL)
	f.start()
	m := webhook.Manual{Store: f.Store, Sender: f.hooks}
	key := db.IdempotencyKey{KeyID: f.owner.KeyID, Key: "k", Hash: []byte("test")}
	first, _, err := m.Test(t.Context(), f.owner.Caller, w.ID, key)
	is.NoErr(err)
	is.Equal(first.RequestStatus, "success")
	again, replayed, err := m.Test(t.Context(), f.owner.Caller, w.ID, key)
	is.NoErr(err)
	is.True(replayed) // the repeated request sends nothing
	is.Equal(again.ID, first.ID)
	is.Equal(len(r.all()), 1)
}

// ruleOf returns the words that the error for an invalid URL must contain.
func ruleOf(url string) string {
	switch {
	case strings.Contains(url, "@") && !strings.Contains(url, "\\"):
		return "no user name or password"
	case regexp.MustCompile(`^https://[^/]*(:0+|:-1|:port|:65536|:9{9,}|[m\]]:)(/|$)`).MatchString(url):
		return "port must be a number from 1 to 65535"
	}
	return ""
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	long := "https://example.com/" + strings.Repeat("é", 2048-20)
	for url, want := range map[string][2]bool{ // allowed with public addresses only; allowed with private addresses
		"https://example.com":              {true, true},
		"https://example.com:8443/a?b=c#d": {true, true},
		"https://bücher.example/":          {true, true},
		"https://1.1.1.1/":                 {true, true},
		"https://[2606:4700::1111]/":       {true, true},
		"HTTPS://EXAMPLE.COM":              {true, true},
		"https://ann:pass@example.com/":    {false, false},
		"https://ann@example.com/":         {false, false},
		"https://@example.com/":            {false, false},
		"https://example.com:1/":           {true, true},
		"https://example.com:65535/":       {true, true},
		"https://example.com:0/":           {false, false},
		"https://example.com:00/":          {false, false},
		"https://example.com:65536/":       {false, false},
		"https://example.com:99999999999/": {false, false},
		"https://example.com:-1/":          {false, false},
		"https://example.com:/":            {false, false},
		"https://example.com:":             {false, false},
		"https://[2606:4700::1111]:/":      {false, false},
		"https://[2606:4700::1111]:0/":     {false, false},
		"https://168.63.129.16/":           {false, false},
		long:                               {true, true},
		long + "x":                         {false, false},
		"":                                 {false, false},
		"example.com":                      {false, false},
		"/hook":                            {false, false},
		"https:":                           {false, false},
		"https://":                         {false, false},
		"https:///hook":                    {false, false},
		"https:example.com":                {false, false},
		"https://:443/":                    {false, false},
		"https://exa mple.com/":            {false, false},
		"https://example.com/\n":           {false, false},
		"https://example.com:port/":        {false, false},
		"https://[::1/":                    {false, false},
		"ftp://example.com/":               {false, false},
		"file:///etc/passwd":               {false, false},
		"javascript:alert(1)":              {false, false},
		"http://example.com/":              {false, false},
		"http://10.0.0.1/":                 {false, false},
		"http://127.0.0.1:9000/":           {false, true},
		"http://localhost:9000/":           {false, true},
		"http://[::1]:9000/":               {false, true},
		"https://127.0.0.1/":               {false, true},
		"https://localhost/":               {false, true},
		"https://10.1.2.3/":                {false, true},
		"https://[::ffff:192.168.1.1]/":    {false, true},
		"https://169.254.169.254/latest/":  {false, false},
		"https://[fe80::1%25eth0]/":        {false, true},
		"https://2130706433/":              {false, false},
		"https://0x7f.1/":                  {false, false},
		"https://0/":                       {false, false},
		"https://0.0.0.0/":                 {false, false},
		"https://[::]/":                    {false, false},
		"https://[64:ff9b::7f00:1]/":       {false, true},
		"https://１２７.０.０.１/":               {false, true},
		"https://127.0.0.1.:443/":          {false, true},
		"https://256.256.256.256/":         {false, false},
		"https://example.com@127.0.0.1/":   {false, false},
		"https://127.0.0.1\\@example.com/": {false, false},
	} {
		t.Run(url, func(t *testing.T) {
			is := is.New(t)
			err := webhook.CheckURL(dial.Guard{}, url)
			is.Equal(err == nil, want[0])
			if rule := ruleOf(url); rule != "" {
				is.True(strings.Contains(err.Error(), rule)) // the error names the rule
			}
			err = webhook.CheckURL(dial.Guard{AllowPrivate: true}, url)
			is.Equal(err == nil, want[1])
		})
	}
}
