package mail

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

func TestConversation(t *testing.T) {
	t.Parallel()
	p := newPost(t, true, func(c *Config) { c.MaxSize = 2000; c.Limits.Recipients = 2 })
	private := p.newWorker(p.owner.Caller, workers.NewWorker{Title: "Private", Visibility: workers.Private})
	gone := p.newWorker(p.owner.Caller, workers.NewWorker{Title: "Gone"})
	is.New(t).NoErr(p.store.DeleteWorker(t.Context(), p.owner.Caller, gone.ID))
	second, third := p.newWorker(p.owner.Caller, workers.NewWorker{}), p.newWorker(p.owner.Caller, workers.NewWorker{})
	mailTo := func(to string) []string { return []string{"MAIL FROM:<bob@example.net>", "RCPT TO:<" + to + ">"} }
	for name, tt := range map[string]struct {
		say  []string
		want string // the beginning of the last answer
	}{
		"announces what it can":      {[]string{"EHLO mx.example.com"}, "250-Hello mx.example.com\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-ENHANCEDSTATUSCODES\r\n250-CHUNKING\r\n250-SMTPUTF8\r\n250-SIZE 2000\r\n"},
		"a worker":                   {mailTo(p.address()), "250 2.0.0"},
		"a worker in capitals":       {mailTo(strings.ToUpper(p.address())), "250 2.0.0"},
		"no such worker":             {mailTo("wrk_01k9zq6v3e8m4t2x7r5d0hcfgj@" + domain), "550 5.1.1"},
		"nobody":                     {mailTo("bob@" + domain), "550 5.1.1"},
		"another domain":             {mailTo("bob@example.org"), "550 5.7.1"},
		"no domain":                  {mailTo(p.worker.ID), "501 5.5.2"},
		"a deleted worker":           {mailTo(WorkerAddress(gone.ID, domain)), "550 5.1.1"},
		"a private worker":           {mailTo(WorkerAddress(private.ID, domain)), "550 5.7.1"},
		"a private worker's creator": {[]string{"MAIL FROM:<Ann@Example.com>", "RCPT TO:<" + WorkerAddress(private.ID, domain) + ">"}, "250 2.0.0"},
		"no such task":               {mailTo(p.worker.ID + "+tsk_01k9zq6v3e8m4t2x7r5d0hcfgj@" + domain), "550 5.1.1"},
		"too many recipients":        {append(mailTo(p.address()), "RCPT TO:<"+WorkerAddress(second.ID, domain)+">", "RCPT TO:<"+WorkerAddress(third.ID, domain)+">"), "452 4.5.3"},
		"a private one and another":  {[]string{"MAIL FROM:<ann@example.com>", "RCPT TO:<" + p.address() + ">", "RCPT TO:<" + WorkerAddress(private.ID, domain) + ">"}, "452 4.5.3"},
		"too large by its own word":  {[]string{"MAIL FROM:<bob@example.net> SIZE=2001"}, "552 5.3.4"},
		"large enough":               {[]string{"MAIL FROM:<bob@example.net> SIZE=2000 BODY=8BITMIME"}, "250 2.0.0"},
		"an address in UTF-8":        {[]string{"MAIL FROM:<jörg@bücher.example> SMTPUTF8"}, "250 2.0.0"},
		"a bounce":                   {[]string{"MAIL FROM:<>", "RCPT TO:<" + p.address() + ">"}, "250 2.0.0"},
		"mail before a greeting":     {nil, "502 5.5.1"},
		"recipient before sender":    {[]string{"RCPT TO:<" + p.address() + ">"}, "502 5.5.1"},
		"data before recipient":      {[]string{"MAIL FROM:<bob@example.net>", "DATA"}, "502 5.5.1"},
		"no sign-in":                 {[]string{"AUTH PLAIN AGEAYg=="}, "523 5.7.10"},
		"a command nobody knows":     {[]string{"MAKE coffee"}, "500 5.5.2"},
		"verify says nothing":        {[]string{"VRFY " + p.worker.ID}, "252"},
		"a sender longer than any":   {[]string{"MAIL FROM:<" + strings.Repeat("a", 400) + "@example.net>"}, "553 5.1.7"},
		"a line longer than any":     {[]string{"NOOP " + strings.Repeat("a", 20_000)}, "500 5.4.0"},
		"starttls without a key":     {[]string{"STARTTLS"}, "502 5.5.1"},
		"the same recipient twice":   {append(mailTo(p.address()), "RCPT TO:<"+p.address()+">", "RCPT TO:<"+WorkerAddress(second.ID, domain)+">"), "452 4.5.3"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			c := p.dial()
			c.must("220 "+domain, c.answer())
			answer := ""
			if tt.say == nil {
				answer = c.say("MAIL FROM:<bob@example.net>")
			} else {
				c.must("250", c.say("EHLO mx.example.com"))
			}
			for _, line := range tt.say {
				answer = c.say("%s", line)
			}
			if !strings.HasPrefix(answer, tt.want) {
				t.Fatalf("answer %q, want %q", answer, tt.want)
			}
			is.Equal(len(p.emails("")), 0) // no mail was stored
		})
	}
}

func TestMailOverSMTP(t *testing.T) {
	t.Parallel()
	p := newPost(t, true, func(c *Config) { c.MaxSize = 4000; c.Limits.Line = 1500 })
	for name, tt := range map[string]struct{ body, want string }{
		"a mail":                      {"Subject: a\r\n\r\nHello\r\n.\r\n", "250 2.0.0"},
		"a dot alone is doubled":      {"Subject: a\r\n\r\n..\r\nHello\r\n.\r\n", "250 2.0.0"},
		"eight bits":                  {"Subject: a\r\n\r\nGr\xc3\xbc\xc3\x9fe\r\n.\r\n", "250 2.0.0"},
		"no text at all":              {"\r\n.\r\n", "250 2.0.0"},
		"a bare line feed":            {"Subject: a\r\n\r\none\ntwo\r\n.\r\n", "550 5.6.0"},
		"a bare carriage return":      {"Subject: a\r\n\r\none\rtwo\r\n.\r\n", "550 5.6.0"},
		"smuggled with line feeds":    {"Subject: a\r\n\r\none\n.\nMAIL FROM:<eve@example.net>\r\n.\r\n", "550 5.6.0"},
		"smuggled with a lone return": {"Subject: a\r\n\r\none\r.\r\nMAIL FROM:<eve@example.net>\r\n.\r\n", "550 5.6.0"},
		"smuggled the other way":      {"Subject: a\r\n\r\none\r\n.\nMAIL FROM:<eve@example.net>\r\n.\r\n", "550 5.6.0"},
		"too large":                   {"Subject: a\r\n\r\n" + strings.Repeat(strings.Repeat("x", 70)+"\r\n", 60) + ".\r\n", "552 5.3.4"},
		"a line longer than any":      {"Subject: a\r\n\r\n" + strings.Repeat("x", 1600) + "\r\n.\r\n", "500 5.6.0"},
	} {
		t.Run(name, func(t *testing.T) {
			c := p.dial().greet()
			c.begin("ann@example.com", p.address())
			if _, err := fmt.Fprint(c.Conn, tt.body); err != nil {
				t.Fatal(err)
			}
			c.must(tt.want, c.answer())
		})
	}
	is := is.New(t)
	for _, e := range p.emails(store.Inbound) {
		is.True(e.MailFrom != "eve@example.net") // no command in the mail was executed
	}
}

func TestPipeliningAndChunks(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, true, nil)
	c := p.dial().greet()
	one, two := "Subject: in chunks\r\n\r\nHel", "lo\r\n.\r\nworld\r\n"
	_, err := fmt.Fprintf(c.Conn, "MAIL FROM:<ann@example.com>\r\nRCPT TO:<%s>\r\nBDAT %d\r\n%sBDAT %d LAST\r\n%sNOOP\r\n", p.address(), len(one), one, len(two), two)
	is.NoErr(err)
	for range 5 {
		c.must("250", c.answer())
	}
	is.Equal(p.turn(p.emails(store.Inbound)[0]).Input, "Hello\n.\nworld")

	// An incomplete mail in chunks does not count.
	c.must("250", c.say("MAIL FROM:<ann@example.com>"))
	c.must("250", c.say("RCPT TO:<%s>", p.address()))
	c.must("250", c.say("BDAT 14\r\nSubject: b\r\n"))
	c.must("250", c.say("RSET"))
	c.must("221", c.say("QUIT"))
	is.Equal(len(p.emails(store.Inbound)), 1)
}

// TestBrokenOff closes connections in the middle of a mail. No part of it may count, and the rest
// must not be read as commands.
func TestBrokenOff(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, true, nil)
	c := p.dial().greet()
	c.must("250", c.say("MAIL FROM:<ann@example.com>"))
	c.must("250", c.say("RCPT TO:<%s>", p.address()))
	// The server reads the mail together with the command. An unread part would reset the connection.
	c.must("354", c.say("DATA\r\nSubject: a\r\n\r\nHello"))
	storetest.Eventually(t, "the mail to begin", func() bool { return p.busy() == 1 })
	p.expire()
	c.must("451 4.4.2", c.answer()) // the time is over
	c.must("421", c.answer())       // the connection ends
	is.True(strings.Contains(c.answer(), "EOF"))
	is.Equal(len(p.emails("")), 0)

	c = p.dial().greet()
	p.expire()
	c.must("421 4.4.2", c.answer()) // a silent peer
}

// expire ends the time in which the peers may be silent, until the server has ended all connections.
func (p *post) expire() {
	p.t.Helper()
	storetest.Eventually(p.t, "the connections to end", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		open := 0
		for _, g := range p.listeners {
			g.mu.Lock()
			open += len(g.open)
			for c := range g.open {
				_ = c.SetReadDeadline(time.Now()) // the next Read of the server may renew it
			}
			g.mu.Unlock()
		}
		return open == 0
	})
}

// TestReadDeadline checks how long a peer may be silent.
func TestReadDeadline(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		age  time.Duration // of the connection
		open int           // connections, of at most 3
		want time.Duration // from now
	}{
		"few connections":  {0, 1, time.Minute},
		"many connections": {0, 2, 30 * time.Second},
		"old connection":   {time.Hour - time.Second, 1, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // the clock stands still
				is := is.New(t)
				g := newListener(nil, Limits{Connections: 3, Idle: time.Minute, Total: time.Hour})
				for range tt.open {
					g.open[&conn{}] = func() {}
				}
				got := g.readDeadline(&conn{begun: time.Now().Add(-tt.age)})
				is.Equal(time.Until(got), tt.want)
			})
		})
	}
}

func TestConnectionLimits(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, true, func(c *Config) { c.Limits.PerAddress = 2; c.Limits.Commands = 20 })
	first := p.dial().greet()
	second := p.dial().greet()
	third := p.dial()
	third.must("421 4.7.0 too many connections from your address", third.answer())
	is.True(strings.Contains(third.answer(), "EOF"))
	is.Equal(p.store.Counters().MailConnectionsRefused.Load(), int64(1))
	first.must("221", first.say("QUIT"))
	storetest.Eventually(t, "the share of the connection to be free", func() bool {
		c := p.dial()
		defer c.Close()
		return strings.HasPrefix(c.answer(), "220")
	})
	last := ""
	for range 30 { // a mail resets the count, guesses do not
		if last = second.say("RCPT TO:<x@%s>", domain); strings.HasPrefix(last, "421") {
			break
		}
	}
	second.must("421", last)

	p = newPost(t, true, func(c *Config) { c.Limits.Connections = 1 })
	p.dial().greet()
	other := p.dial()
	other.must("421 4.7.0 too many connections,", other.answer())
}

// newRoom creates a server that only reads mails, with room for four of the largest.
func newRoom() *Server {
	return &Server{cfg: Config{MaxSize: 100_000}, buffer: newBuffer(1, 100_000)}
}

// TestOneNetworkLeavesRoom receives as much mail from one network as it may send at once.
func TestOneNetworkLeavesRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // the wait for room takes no time
		is := is.New(t)
		s := newRoom()
		mail := strings.Repeat("x", 100_000)
		_, first, err := s.readMessage(t.Context(), "a", strings.NewReader(mail))
		is.NoErr(err)
		_, second, err := s.readMessage(t.Context(), "a", strings.NewReader(mail))
		is.Equal(err, errShare)
		second()
		_, other, err := s.readMessage(t.Context(), "b", strings.NewReader(strings.Repeat("x", 20_000)))
		is.NoErr(err) // another network is not limited
		other()
		first()
		is.Equal(len(s.buffer.networks), 0) // no network is left
		is.Equal(s.buffer.all.TryAcquire(400_000), true)
	})
}

func TestRoomForMails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // the wait for room takes no time
		is := is.New(t)
		s := newRoom()
		is.Equal(s.buffer.all.TryAcquire(400_000), true) // all of it
		_, release, err := s.readMessage(t.Context(), "a", strings.NewReader(strings.Repeat("x", 20_000)))
		release()
		is.Equal(err, errNoRoom)
		s.buffer.all.Release(400_000)
		raw, release, err := s.readMessage(t.Context(), "a", strings.NewReader(strings.Repeat("x", 100_000)))
		is.NoErr(err)
		is.Equal(len(raw), 100_000)
		is.Equal(s.buffer.all.TryAcquire(400_000), false) // held as long as the mail
		release()
		is.Equal(s.buffer.all.TryAcquire(400_000), true)
		s.buffer.all.Release(400_000)
	})
}

// A slowReader sends 1000 bytes a second.
type slowReader struct{ io.Reader }

func (r slowReader) Read(b []byte) (int, error) {
	time.Sleep(time.Second)
	return r.Reader.Read(b[:min(len(b), 1000)])
}

// TestSlowMail receives a mail over a slow line, while the buffer has room: the time in which the peer
// sends is no wait for room.
func TestSlowMail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		s := newRoom()
		raw, release, err := s.readMessage(t.Context(), "a", slowReader{strings.NewReader(strings.Repeat("x", 100_000))})
		is.NoErr(err)
		is.Equal(len(raw), 100_000)
		release()

		is.True(s.buffer.all.TryAcquire(400_000)) // all of it
		begun := time.Now()
		_, release, err = s.readMessage(t.Context(), "a", slowReader{strings.NewReader(strings.Repeat("x", 20_000))})
		is.Equal(err, errNoRoom)
		is.Equal(time.Since(begun), 9*time.Second+roomTime) // it waits for room after 8192 bytes
		release()
	})
}

func TestStartTLS(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	cfg, err := LoadTLS("", "", domain, time.Now())
	is.NoErr(err)
	p := newPost(t, true, func(c *Config) { c.TLS = cfg })
	c := p.dial().greet()
	// Bytes in the clear after the command must not be read as if they were encrypted.
	_, err = fmt.Fprint(c.Conn, "STARTTLS\r\nMAIL FROM:<eve@example.net>\r\n")
	is.NoErr(err)
	c.must("220", c.answer())
	secure := tls.Client(c.Conn, &tls.Config{ServerName: domain, InsecureSkipVerify: true})
	if err := secure.Handshake(); err == nil {
		enc := &peer{t: t, Conn: secure, r: bufio.NewReader(secure)}
		enc.must("502", enc.say("RCPT TO:<%s>", p.address()))
	}

	c = p.dial().greet()
	c.must("220", c.say("STARTTLS"))
	secure = tls.Client(c.Conn, &tls.Config{ServerName: domain, InsecureSkipVerify: true})
	is.NoErr(secure.Handshake())
	enc := &peer{t: t, Conn: secure, r: bufio.NewReader(secure)}
	hello := enc.say("EHLO mx.example.com")
	is.True(!strings.Contains(hello, "STARTTLS")) // not twice
	enc.begin("ann@example.com", p.address())
	enc.must("250", enc.say("Subject: a\r\n\r\nHello\r\n."))
	is.Equal(len(p.emails(store.Inbound)), 1)

	_, err = LoadTLS("no.pem", "no.key", domain, time.Now())
	is.True(err != nil)
}

func TestShutdown(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, true, nil)
	idle := p.dial().greet()
	busy := p.dial().greet()
	busy.begin("ann@example.com", p.address())
	_, err := fmt.Fprint(busy.Conn, "Subject: a\r\n\r\n")
	is.NoErr(err)
	done := make(chan error, 1)
	storetest.Eventually(t, "the mail to begin", func() bool { return p.busy() == 1 })
	go func() { done <- p.Shutdown(context.Background()) }()
	idle.must("421 4.3.2 The server stops", idle.answer()) // not the answer for silence
	busy.must("250", busy.say("Hello\r\n."))
	is.NoErr(<-done)
	is.Equal(len(p.emails(store.Inbound)), 1) // the mail being received was finished
}

// busy returns the number of mails being received.
func (p *post) busy() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, g := range p.listeners {
		g.mu.Lock()
		for c := range g.open {
			if c.busy.Load() {
				n++
			}
		}
		g.mu.Unlock()
	}
	return n
}

// TestStorageTrouble checks that temporary failures are answered with 4xx.
func TestStorageTrouble(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPostWith(t, true, store.Options{QueueLimit: 1}, nil)
	is.Equal(p.send("ann@example.com", p.address(), letter("one", "Message-ID: <1@example.com>")), "250 2.0.0 OK: queued")
	is.True(strings.HasPrefix(p.send("ann@example.com", p.address(), letter("two", "Message-ID: <2@example.com>")), "451 4.3.2")) // the queue is full
	is.True(strings.HasPrefix(p.send("ann@example.com", p.address(), letter("one", "Message-ID: <1@example.com>")), "250"))       // a known mail is still accepted
	is.NoErr(p.store.Close())
	c := p.dial().greet()
	c.must("250", c.say("MAIL FROM:<ann@example.com>"))
	answer := c.say("RCPT TO:<%s>", p.address())
	is.Equal(answer, "451 4.3.0 an internal error happened, try again later") // without the reason
}

// TestAnswersToErrors checks the answer to every kind of failure: 4xx for temporary ones, so that
// the sender's server keeps the mail.
func TestAnswersToErrors(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, true, nil)
	c := &session{s: p.Server, conn: &conn{addr: "192.0.2.7"}}
	for err, want := range map[error]string{
		db.Unavailable(fmt.Errorf("write: %w", syscall.ENOSPC)): "452 4.3.1", // the disk is full
		db.Unavailable(fmt.Errorf("write: %w", syscall.EDQUOT)): "452 4.3.1",
		db.Unavailable(fmt.Errorf("write: %w", syscall.EIO)):    "452 4.3.1",
		db.Unavailable(fmt.Errorf("open: %w", syscall.EMFILE)):  "452 4.3.1", // no descriptor is left
		errors.New("unknown"):                                  "451 4.3.0",
		context.DeadlineExceeded:                               "451 4.3.0",
		db.Errorf(db.Busy, "the queue is full"):                "451 4.3.2",
		db.Errorf(db.Limited, "too many"):                      "450 4.7.1",
		db.Errorf(db.PaymentRequired, "no credit"):             "452 4.2.2",
		db.Errorf(db.Unauthorized, "who"):                      "550 5.6.0",
		db.Errorf(db.Invalid, "wrong"):                         "550 5.6.0",
		db.Errorf(db.Forbidden, "not you"):                     "550 5.7.1",
		db.Errorf(db.NotFound, "nobody"):                       "550 5.1.1",
		db.Errorf(db.Conflict, "archived"):                     "550 5.2.1",
		db.Errorf(db.TooLarge, "too large"):                    "552 5.2.2",
		c.readError(errNoRoom):                                 "452 4.3.1",
		c.readError(io.ErrUnexpectedEOF):                       "451 4.4.2",
		c.readError(fmt.Errorf("x: %w", smtp.ErrDataTooLarge)): "552 5.3.4",
	} {
		var got *smtp.SMTPError
		is.True(errors.As(c.smtpError(err), &got))
		is.Equal(fmt.Sprintf("%d %d.%d.%d", got.Code, got.EnhancedCode[0], got.EnhancedCode[1], got.EnhancedCode[2]), want)
		is.True(!strings.Contains(got.Message, "unknown")) // the text of an internal error is not sent
	}
}
