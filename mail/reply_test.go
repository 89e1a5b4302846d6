package mail

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-message/mail"
	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/matryer/is"

	"journeyman/mail/message"
	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// A hub is another mail server: it receives the mails of a relay, after a sign-in.
type hub struct {
	addr   string
	relay  *Relay
	refuse func(to string) error
	most   int // mails of one connection; 0 for no limit

	mu   sync.Mutex
	met  int      // connections
	got  []string // sources
	from []string
	to   []string
	tls  []bool
}

// newHub starts a hub. Without mechanisms it requires no sign-in.
func newHub(t testing.TB, secure bool, mechanisms ...string) *hub {
	t.Helper()
	is := is.New(t)
	h := &hub{refuse: func(string) error { return nil }}
	srv := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		if _, encrypted := c.TLSConnectionState(); encrypted == secure { // not before STARTTLS
			h.mu.Lock()
			h.met++
			h.mu.Unlock()
		}
		return &hubSession{hub: h, conn: c, mechanisms: mechanisms, signedIn: len(mechanisms) == 0}, nil
	}))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	is.NoErr(err)
	h.addr = ln.Addr().String()
	h.relay, err = ParseRelay("smtp://scribe:s%40cret@" + h.addr)
	is.NoErr(err)
	if len(mechanisms) == 0 {
		h.relay.Username = ""
	}
	if secure {
		cfg, err := LoadTLS("", "", "127.0.0.1", time.Now())
		is.NoErr(err)
		cert, err := x509.ParseCertificate(cfg.Certificates[0].Certificate[0])
		is.NoErr(err)
		h.relay.TLS = &tls.Config{RootCAs: x509.NewCertPool(), InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error {
			if !s.PeerCertificates[0].Equal(cert) { // the certificate has no name: the address is no DNS name
				return errors.New("another certificate")
			}
			return nil
		}}
		srv.TLSConfig = cfg
	}
	srv.Domain, srv.AllowInsecureAuth = "hub.example", !secure
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(ln) }()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	return h
}

func (h *hub) count() int { h.mu.Lock(); defer h.mu.Unlock(); return len(h.got) }

type hubSession struct {
	*hub
	conn       *smtp.Conn
	mechanisms []string
	signedIn   bool
	mails      int
	sender     string
	recipient  string
}

func (s *hubSession) AuthMechanisms() []string { return s.mechanisms }

func (s *hubSession) Auth(mechanism string) (sasl.Server, error) {
	check := func(user, password string) error {
		if s.signedIn = user == "scribe" && password == "s@cret"; !s.signedIn {
			return smtp.ErrAuthFailed
		}
		return nil
	}
	if mechanism == sasl.Login {
		return &loginServer{check: check}, nil
	}
	return sasl.NewPlainServer(func(_, user, password string) error { return check(user, password) }), nil
}

// A loginServer asks for the name and then for the password.
type loginServer struct {
	check func(user, password string) error
	said  []string
}

func (l *loginServer) Next(response []byte) ([]byte, bool, error) {
	if response != nil {
		l.said = append(l.said, string(response))
	}
	switch len(l.said) {
	case 0:
		return []byte("Username:"), false, nil
	case 1:
		return []byte("Password:"), false, nil
	}
	return nil, true, l.check(l.said[0], l.said[1])
}

func (s *hubSession) Mail(from string, _ *smtp.MailOptions) error {
	if s.sender = from; !s.signedIn {
		return smtp.ErrAuthRequired
	}
	if s.mails++; s.most > 0 && s.mails > s.most {
		_ = s.conn.Conn().Close() // without an answer
	}
	return nil
}

func (s *hubSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.recipient = to
	return s.refuse(to)
}

func (s *hubSession) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	_, secure := s.conn.TLSConnectionState()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got, s.from, s.to, s.tls = append(s.got, string(b)), append(s.from, s.sender), append(s.to, s.recipient), append(s.tls, secure)
	return nil
}

func (s *hubSession) Reset()        {}
func (s *hubSession) Logout() error { return nil }

const publishing = "```offline\n" + `tool write_file {"path":"out/Straße 1.csv","content":"a,b"}
tool publish_file {"path":"out/Straße 1.csv"}
say # Result
say The **answer** is ![chart](https://evil.example/x.png?secret) <script>alert(1)</script> [link](javascript:alert(1)).
say
say | a | b |
say |---|---|
say | 1 | 2 |` + "\n```"

func TestReply(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, false, nil)
	long := ""
	for i := range 40 {
		long += fmt.Sprintf(" <ref%d@example.net>", i)
	}
	is.Equal(p.send("bob@example.net", p.address(), letter(publishing, "From: bob@example.net", "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=",
		"Message-ID: <1@example.net>", "References:"+long)), "250 2.0.0 OK: queued")
	e := p.replies(1, store.EmailKept)[0]
	is.Equal(e.Subject, "Re: Grüße")
	r, raw := p.source(e)
	h := r.Header
	ids, err := h.MsgIDList("In-Reply-To")
	is.NoErr(err)
	is.Equal(ids, []string{"1@example.net"})
	refs, err := h.MsgIDList("References")
	is.NoErr(err)
	is.Equal(len(refs), 21)
	is.Equal([]string{refs[0], refs[19], refs[20]}, []string{"ref0@example.net", "ref39@example.net", "1@example.net"})
	id, err := h.MessageID()
	is.NoErr(err)
	is.Equal(id, e.ID+"@"+domain)
	is.Equal(h.Get("Auto-Submitted"), "auto-replied")
	for key, want := range map[string]string{"From": p.address(), "To": "bob@example.net", "Reply-To": p.worker.ID + "+" + e.TaskID + "@" + domain} {
		list, err := h.AddressList(key)
		is.NoErr(err)
		is.Equal(list[0].Address, want)
	}
	is.True(!strings.Contains(raw, "\n\n") && !message.HasBareLineEnd([]byte(raw))) // CRLF throughout
	texts, files := parts(t, r)
	is.True(strings.Contains(texts["text/plain"], "The **answer** is"))
	page := texts["text/html"]
	for _, want := range []string{"<h1>Result</h1>", "<strong>answer</strong>", `<a href="https://evil.example/x.png?secret" rel="noreferrer">chart</a>`, "<td>1</td>"} {
		is.True(strings.Contains(page, want)) // what the page must hold
	}
	for _, never := range []string{"<img", "<script", "javascript:", "alert(1)<"} {
		is.True(!strings.Contains(page, never)) // what the page must not hold
	}
	is.Equal(files, map[string]string{"Straße 1.csv": "a,b"})
}

// parts returns the texts of a mail by type, and its files by name.
func parts(t testing.TB, r *mail.Reader) (texts, files map[string]string) {
	t.Helper()
	is := is.New(t)
	texts, files = map[string]string{}, map[string]string{}
	for {
		p, err := r.NextPart()
		if err == io.EOF {
			return texts, files
		}
		is.NoErr(err)
		b, err := io.ReadAll(p.Body)
		is.NoErr(err)
		switch h := p.Header.(type) {
		case *mail.InlineHeader:
			kind, _, err := h.ContentType()
			is.NoErr(err)
			texts[kind] = strings.ReplaceAll(string(b), "\r\n", "\n")
		case *mail.AttachmentHeader:
			name, err := h.Filename()
			is.NoErr(err)
			files[name] = string(b)
		}
	}
}

func TestRepliesOfEveryEnd(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, false, nil)
	for i, tt := range []struct{ input, want string }{
		{"```offline\nfail 400 the model has no head for figures\n```", "Your request could not be completed: "},
		{"```offline\nnonsense\n```", "Your request could not be completed: "},
		{"```offline\nthink only\n```", "the model ended without an answer"},
	} {
		is.Equal(p.send("bob@example.net", p.address(), letter(tt.input, "From: bob@example.net", fmt.Sprintf("Message-ID: <%d@example.net>", i))), "250 2.0.0 OK: queued")
		list := p.replies(i+1, store.EmailKept)
		r, _ := p.source(list[i])
		texts, _ := parts(t, r)
		is.True(strings.Contains(texts["text/plain"], tt.want)) // the text names the reason
	}
	// Cancelled while it runs, with another one queued.
	is.Equal(p.send("bob@example.net", p.address(), letter("```offline\nwait 1m\n```", "From: bob@example.net", "Message-ID: <run@example.net>")), "250 2.0.0 OK: queued")
	list := p.emails(store.Inbound)
	running := list[len(list)-1]
	storetest.Eventually(t, "the turn to run", func() bool { return p.turn(running).Status == store.Running })
	is.Equal(p.send("bob@example.net", p.worker.ID+"+"+running.TaskID+"@"+domain, letter("next", "From: bob@example.net", "Message-ID: <wait@example.net>")), "250 2.0.0 OK: queued")
	_, err := p.runner.AbortTask(t.Context(), p.owner.Caller, running.TaskID)
	is.NoErr(err)
	for _, e := range p.replies(5, store.EmailKept)[3:] {
		r, _ := p.source(e)
		texts, _ := parts(t, r)
		is.Equal(strings.TrimSpace(texts["text/plain"]), "Your request was cancelled before it was finished.")
	}
}

func TestLargeFilesAreLinked(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	attached, linked := splitFiles([]store.File{{Path: "a", Size: 6 << 20}, {Path: "b", Size: 5 << 20}, {Path: "c", Size: 4 << 20}})
	is.Equal(len(attached), 2)
	is.Equal(linked[0].Path, "b")
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for want, turn := range map[string]store.Turn{
		"Done.":                          {Status: store.Completed, OutputText: " Done.\n"},
		"```json\n{\n  \"a\": 1\n}\n```": {Status: store.Completed, OutputText: `{"a":1}`, StructuredOutput: []byte(`{"a":1}`)},
		"Half.\n\n---\n\nThis answer is not complete: the limit of steps for one request was reached.": {Status: store.Completed, OutputText: "Half.",
			IncompleteReason: store.ReasonBudget, IncompleteLimit: "steps"},
		"Your request could not be completed: no luck.":                    {Status: store.Failed, Failure: &store.Failure{Message: "no\nluck."}},
		"Your request could not be completed: an internal error happened.": {Status: store.Failed},
	} {
		is.New(t).Equal(answer(turn), want)
	}
	for task, fits := range map[string]bool{"tsk_01k9zq6v3e8m4t2x7r5d0hcfgj": true, "a-b": true, "a:b": false, ".a": false, "a.": false, "a..b": false, strings.Repeat("a", 60): false} {
		is.New(t).Equal(taskAddress("wrk_01k9zq6v3e8m4t2x7r5d0hcfgj", task, domain) != WorkerAddress("wrk_01k9zq6v3e8m4t2x7r5d0hcfgj", domain), fits)
	}
}

func TestRelay(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		secure     bool
		mechanisms []string
	}{
		"starttls and plain": {true, []string{sasl.Plain}},
		"starttls and login": {true, []string{sasl.Login}},
		"no sign-in":         {false, nil},
		"loopback in clear":  {false, []string{sasl.Plain}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			h := newHub(t, tt.secure, tt.mechanisms...)
			p := newPost(t, false, func(c *Config) { c.Relay = h.relay })
			is.Equal(p.send("bob@example.net", p.address(), letter("```offline\nsay Hello\n```", "From: bob@example.net", "Message-ID: <1@example.net>")), "250 2.0.0 OK: queued")
			e := p.replies(1, store.EmailSent)[0]
			is.True(e.SentAt != nil && e.Attempts == 1)
			is.Equal(h.from, []string{p.address()})
			is.Equal(h.to, []string{"bob@example.net"})
			is.Equal(h.tls, []bool{tt.secure})
			_, raw := p.source(e)
			is.Equal(h.got[0], raw) // the stored source equals the sent mail
			r, err := mail.CreateReader(bytes.NewReader([]byte(h.got[0])))
			is.NoErr(err)
			ids, err := r.Header.MsgIDList("In-Reply-To")
			is.NoErr(err)
			is.Equal(ids, []string{"1@example.net"})
		})
	}
}

// TestCarrier sends mails one after the other to relays that close connections at any time. Each
// mail arrives once.
func TestCarrier(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ most, connections int }{
		"one connection":     {0, 1},
		"two mails for each": {2, 3},
		"one mail for each":  {1, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			h := newHub(t, true, sasl.Plain)
			h.most = tt.most
			h.refuse = func(to string) error {
				if strings.HasPrefix(to, "no") {
					return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
				}
				return nil
			}
			c := &relayConn{relay: h.relay, helo: domain}
			for i := range 5 {
				is.NoErr(c.send(t.Context(), "w@"+domain, fmt.Sprintf("%d@example.net", i), []byte("Subject: x\r\n\r\nx\r\n")))
			}
			h.mu.Lock()
			is.Equal(h.to, []string{"0@example.net", "1@example.net", "2@example.net", "3@example.net", "4@example.net"})
			is.Equal(h.met, tt.connections)
			h.mu.Unlock()
			var no rejection
			is.True(errors.As(c.send(t.Context(), "w@"+domain, "no@example.net", []byte("x")), &no))
			is.NoErr(c.send(t.Context(), "w@"+domain, "yes@example.net", []byte("x\r\n"))) // the next mail is not affected
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			is.True(c.send(gone, "w@"+domain, "late@example.net", []byte("x\r\n")) != nil)
			c.close(t.Context())
			is.Equal(h.count(), 6)
		})
	}
}

func TestRelayTrouble(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		refuse   error
		password string
		closed   bool
		status   store.EmailStatus
		says     string
	}{
		"no such user":     {refuse: &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}, status: store.EmailFailed, says: "no such user"},
		"come back later":  {refuse: &smtp.SMTPError{Code: 450, EnhancedCode: smtp.EnhancedCode{4, 2, 0}, Message: "greylisted"}, status: store.EmailQueued, says: "greylisted"},
		"a wrong password": {password: "wrong", status: store.EmailQueued, says: "sign in"},
		"nobody there":     {closed: true, status: store.EmailQueued, says: "connect"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			h := newHub(t, true, sasl.Plain)
			h.refuse = func(string) error { return tt.refuse }
			if tt.password != "" {
				h.relay.Password = tt.password
			}
			if tt.closed {
				h.relay.Port = "1"
			}
			p := newPost(t, false, func(c *Config) { c.Relay = h.relay })
			is.Equal(p.send("bob@example.net", p.address(), letter("Hello", "From: bob@example.net")), "250 2.0.0 OK: queued")
			var e store.Email
			storetest.Eventually(t, "the first attempt", func() bool {
				for _, e = range p.emails(store.Outbound) {
					return e.Reason != ""
				}
				return false
			})
			is.Equal(e.Status, tt.status)
			is.True(strings.Contains(e.Reason, tt.says)) // the reason
			is.True(!strings.Contains(e.Reason, "s@cret"))
			is.Equal(h.count(), 0)
			if tt.status == store.EmailQueued {
				pause := time.Until(*e.NextAttempt)
				ordertest.Above(is, pause, 30*time.Second)
				ordertest.Below(is, pause, 2*time.Minute)
			}
		})
	}
}

// TestRetries advances the clock: after the pauses the reply is sent, or fails permanently.
func TestRetries(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var passed atomic.Int64
	begun := time.Now()
	clock := func() time.Time { return begun.Add(time.Duration(passed.Load())) }
	h := newHub(t, true, sasl.Plain)
	tries := 0
	h.refuse = func(string) error {
		if tries++; tries <= 3 {
			return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "later"}
		}
		return nil
	}
	p := newPostWith(t, false, store.Options{Now: clock}, func(c *Config) { c.Relay, c.Now = h.relay, clock })
	is.Equal(p.send("bob@example.net", p.address(), letter("Hello", "From: bob@example.net")), "250 2.0.0 OK: queued")
	for i := range 3 {
		storetest.Eventually(t, fmt.Sprintf("attempt %d", i+1), func() bool {
			list := p.emails(store.Outbound)
			if len(list) != 1 || list[0].Attempts != int64(i+1) {
				return false
			}
			pause := list[0].NextAttempt.Sub(clock()) // not that of the lease
			return pause >= retryDelays()[i] && pause < retryDelays()[i]*5/4
		})
		passed.Add(int64(2 * retryDelays()[i]))
	}
	e := p.replies(1, store.EmailSent)[0]
	is.Equal(e.Attempts, int64(4))
	is.Equal(h.count(), 1)

	r := store.Reply{Email: e}
	r.Attempts = int64(len(retryDelays())) + 1
	is.NoErr(p.retry(t.Context(), r, "x")) // the last one: it is not queued again
}

func TestBounce(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newHub(t, false)
	p := newPost(t, false, func(c *Config) { c.Relay = h.relay })
	is.Equal(p.send("bob@example.net", p.address(), letter("Hello", "From: bob@example.net")), "250 2.0.0 OK: queued")
	e := p.replies(1, store.EmailSent)[0]
	report := func(action, status string) string {
		return letter("--b\nContent-Type: message/delivery-status\n\nFinal-Recipient: rfc822; bob@example.net\nAction: "+action+
			"\nStatus: "+status+"\nDiagnostic-Code: smtp; 550 "+status+" no such user here\n\n--b\n"+
			"Content-Type: text/rfc822-headers\n\nMessage-ID: <"+e.ID+"@"+domain+">\n--b--", "From: MAILER-DAEMON@example.net",
			"MIME-Version: 1.0", "Message-ID: <"+action+"@example.net>", `Content-Type: multipart/report; report-type=delivery-status; boundary=b`)
	}
	// These say that the mail arrives, now or later. An automatic reply without a sender says nothing about it.
	for _, action := range []string{"delayed", "delivered", "relayed", "expanded"} {
		is.Equal(p.send("", p.address(), report(action, "4.4.7")), "250 2.0.0 OK: queued")
	}
	is.Equal(p.send("", p.address(), letter("I am away", "In-Reply-To: <"+e.ID+"@"+domain+">")), "250 2.0.0 OK: queued")
	is.Equal(p.replies(1, store.EmailSent)[0].ID, e.ID) // nothing has changed
	is.Equal(p.send("", p.address(), report("failed", "5.1.1")), "250 2.0.0 OK: queued")
	e = p.replies(1, store.EmailBounced)[0]
	is.Equal(e.Reason, "550 5.1.1 no such user here")
	for _, ignored := range p.emails(store.Inbound)[1:] {
		is.Equal(ignored.Status, store.EmailIgnored)
	}
}

// TestLoopOfTwoWorkers has two workers mail each other through a relay that removes the marks of
// automatic mail.
func TestLoopOfTwoWorkers(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newHub(t, false)
	p := newPost(t, false, func(c *Config) { c.Relay = h.relay; c.Loops = store.MailLimits{PerThread: 4, PerSender: -1} })
	other := p.newWorker(p.owner.Caller, workers.NewWorker{Title: "Other"})
	passed, answer := 0, "250 2.0.0 OK: queued"
	pass := func() bool { // the hub delivers its mails
		h.mu.Lock()
		got, from, to := h.got[passed:], h.from[passed:], h.to[passed:]
		h.mu.Unlock()
		for i, raw := range got {
			is.Equal(answer, "250 2.0.0 OK: queued")
			raw = strings.Replace(raw, "Auto-Submitted: auto-replied\r\n", "", 1)
			raw = strings.Replace(raw, "X-Auto-Response-Suppress: All\r\n", "", 1)
			answer = p.send(from[i], to[i], raw)
		}
		passed += len(got)
		return answer != "250 2.0.0 OK: queued"
	}
	is.Equal(p.send(WorkerAddress(other.ID, domain), p.address(), letter("Ping", "From: "+WorkerAddress(other.ID, domain))), "250 2.0.0 OK: queued")
	storetest.Eventually(t, "the loop to end", pass)
	list := p.emails(store.Inbound)
	ordertest.AtMost(is, len(list), 8)                                              // four for each worker
	is.True(strings.HasPrefix(answer, "450 4.7.1 too many mails in this thread: ")) // the mail above the limit
	storetest.Eventually(t, "the last turns to end", func() bool { return p.runner.Running() == 0 && p.store.Queued() == 0 })
	is.Equal(len(p.emails(store.Inbound)), len(list))

	// With the mark, the loop ends at once.
	marked := letter("Ping", "From: "+WorkerAddress(other.ID, domain), "Message-ID: <marked@x>", "Auto-Submitted: auto-replied")
	is.Equal(p.send(WorkerAddress(other.ID, domain), p.address(), marked), "250 2.0.0 OK: queued")
	list = p.emails(store.Inbound)
	is.Equal(list[len(list)-1].Reason, message.AutoReply)
}

func TestParseRelay(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	r, err := ParseRelay("smtp://me%40x:p%3Aw@mail.example")
	is.NoErr(err)
	is.Equal([]string{r.Host, r.Port, r.Username, r.Password}, []string{"mail.example", "587", "me@x", "p:w"})
	r, err = ParseRelay("smtps://[::1]:4465/")
	is.NoErr(err)
	is.True(r.Implicit && r.Host == "::1" && r.Port == "4465")
	for _, bad := range []string{"", "mail.example", "http://mail.example", "smtp://", "smtp://secret@:25", "smtp://u:secret@h/path", "smtp://u:secret@h:port"} {
		_, err := ParseRelay(bad)
		is.True(err != nil)
		is.True(!strings.Contains(err.Error(), "secret")) // no password in an error
	}
}

// TestReplyToAForgottenMail ends a turn after the source of its mail was deleted. The answer is
// still in the thread.
func TestReplyToAForgottenMail(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, true, nil)
	is.True(strings.HasPrefix(p.send("ann@example.com", p.address(), letter("Take your time.", "Message-ID: <old@example.com>")), "250"))
	asked := p.emails(store.Inbound)[0]
	n, err := p.store.Effects.PruneEmails(t.Context(), -time.Hour, 10)
	is.NoErr(err)
	is.Equal(n, int64(1))
	_, _, err = p.store.AbortTask(t.Context(), p.owner.Caller, asked.TaskID)
	is.NoErr(err)
	r, _ := p.source(p.replies(1, store.EmailKept)[0])
	is.Equal(r.Header.Get("In-Reply-To"), "<old@example.com>")
	is.Equal(r.Header.Get("References"), "<old@example.com>")
	is.Equal(r.Header.Get("Subject"), "Re: Question")
}
