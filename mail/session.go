package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/emersion/go-smtp"

	"journeyman/mail/message"
	"journeyman/store/db"
)

// newSMTP creates the server of the SMTP library.
func (s *Server) newSMTP() *smtp.Server {
	srv := smtp.NewServer(smtp.BackendFunc(s.newSession))
	srv.Domain = s.cfg.Domain
	srv.MaxMessageBytes = s.cfg.MaxSize
	srv.MaxRecipients = s.cfg.Limits.Recipients
	srv.MaxLineLength = s.cfg.Limits.Line
	srv.EnableSMTPUTF8 = true
	srv.TLSConfig = s.cfg.TLS
	srv.ErrorLog = slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug) // mistakes of peers
	return srv
}

func (s *Server) newSession(c *smtp.Conn) (smtp.Session, error) {
	return &session{s: s, conn: limitedConn(c.Conn()), helo: c.Hostname()}, nil
}

// limitedConn returns the listener's connection, which may be below TLS.
func limitedConn(c net.Conn) *conn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	own, _ := c.(*conn) // every connection comes from a listener
	return own
}

// A session is an SMTP session with one peer. For a mail in chunks, the library calls Data in
// another goroutine, and may call Reset at the same time.
type session struct {
	s    *Server
	conn *conn
	helo string

	mu   sync.Mutex // guards from and to
	from string
	to   []Recipient // never changed in place, so that readers need no lock
}

// Reset removes the sender and recipients of the current mail.
func (c *session) Reset() { c.setEnvelope("", nil) }

func (c *session) setEnvelope(from string, to []Recipient) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.from, c.to = from, to
}

// envelope returns the sender and recipients of the current mail.
func (c *session) envelope() (from string, to []Recipient) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.from, c.to
}

// Logout does nothing, because a session holds no resources.
func (c *session) Logout() error { return nil }

// Mail sets the sender. It does not check the sender, because the check needs the recipients.
func (c *session) Mail(from string, _ *smtp.MailOptions) error {
	if len(from) > maxAddress {
		err := refusal(553, 5, 1, 7, "the sender's address is too long")
		c.logRefusal(err, "")
		return err
	}
	// Before the mail arrives, so that the sender keeps it and tries again later.
	if err := c.smtpError(c.s.cfg.Store.Gate.Room()); err != nil {
		c.logRefusal(err, "")
		return err
	}
	_, to := c.envelope()
	c.setEnvelope(from, to)
	return nil
}

// Rcpt adds a recipient.
func (c *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	err := c.smtpError(c.rcpt(to))
	workerID, _, _ := splitAddress(to, c.s.cfg.Domain)
	c.logRefusal(err, workerID)
	return err
}

func (c *session) rcpt(address string) (err error) {
	defer recovering("receive a mail", &err)
	if len(address) > maxAddress {
		return refusal(553, 5, 1, 3, "the recipient's address is too long")
	}
	r, err := c.s.recipient(c.s.ctx, address)
	if err != nil {
		return err
	}
	from, to := c.envelope()
	if err := c.s.admitSender(c.s.ctx, r, from); err != nil {
		return err
	}
	if !r.postmaster {
		if err := c.s.cfg.Store.DiskOf(r.worker.OrganizationID).Room(); err != nil {
			return err
		}
	}
	// All recipients of a mail get the same answer, so one decision must be right for all of them.
	// The peer sends another mail to the others.
	if len(to) > 0 && !to[0].decidedWith(r) {
		return refusal(452, 4, 5, 3, "this recipient has other rules for senders: send it a separate mail")
	}
	if !slices.ContainsFunc(to, r.equals) {
		c.setEnvelope(from, append(slices.Clone(to), r))
	}
	return nil
}

// Data receives a mail. If it returns nil, the mail is stored durably.
func (c *session) Data(r io.Reader) error {
	from, to := c.envelope()
	env := Envelope{From: from, To: to, RemoteAddr: c.conn.addr, Helo: c.helo}
	err := c.smtpError(c.data(env, r))
	workerID := ""
	if len(to) > 0 {
		workerID = to[0].worker.ID
	}
	c.logRefusal(err, workerID)
	return err
}

func (c *session) data(env Envelope, r io.Reader) (err error) {
	defer recovering("receive a mail", &err)
	c.conn.busy.Store(true)
	defer c.conn.busy.Store(false)
	ctx := context.WithValue(c.s.ctx, passKey{}, c.conn.pass)
	raw, release, err := c.s.readMessage(ctx, c.conn.network, r)
	defer release()
	if err != nil {
		return c.readError(err)
	}
	if message.HasBareLineEnd(raw) {
		// Servers that disagree about line ends may disagree about the end of a mail, so that one
		// accepts a second, hidden mail.
		return refusal(550, 5, 6, 0, "line ends must be CRLF: a mail must not contain CR or LF alone")
	}
	if _, err := c.s.Deliver(ctx, env, raw); err != nil {
		return err
	}
	c.conn.commands.Store(0)
	return nil
}

// roomTime limits how long a mail waits for room in the buffer, in total. The time in which the
// peer sends does not count, because a slow connection is no lack of room.
const roomTime = 20 * time.Second

// smallMail is the size of mails that fit into pooled memory, in bytes.
const smallMail = 8 << 10

// readMessage reads a mail into memory, as far as the buffer has room for its network. The caller
// must call release, also after an error, and must not use raw afterwards.
func (s *Server) readMessage(ctx context.Context, network string, r io.Reader) (raw []byte, release func(), err error) {
	taken := int64(0) // bytes of the buffer
	small, ok := s.small.Get().(*[smallMail]byte)
	if !ok {
		small = new([smallMail]byte)
	}
	release = func() { s.buffer.release(network, taken); s.small.Put(small) }
	left := roomTime
	buf := small[:0]
	for {
		if len(buf) == cap(buf) {
			// Both slices exist during the copy, so release the old room after it.
			grown := int64(2 * cap(buf))
			if left, err = s.awaitRoom(ctx, network, grown, left); err != nil {
				return nil, release, err
			}
			before := taken
			taken = grown
			buf = append(make([]byte, 0, grown), buf...)
			s.buffer.release(network, before)
		}
		n, err := r.Read(buf[len(buf):min(cap(buf), len(buf)+64<<10)])
		buf = buf[:len(buf)+n]
		if int64(len(buf)) > s.cfg.MaxSize {
			return nil, release, smtp.ErrDataTooLarge
		}
		if err == io.EOF {
			return buf, release, nil
		}
		if err != nil {
			return nil, release, err
		}
	}
}

// awaitRoom takes n bytes of the buffer. It waits for them for at most the duration most, and
// returns the rest of it.
func (s *Server) awaitRoom(ctx context.Context, network string, n int64,
	most time.Duration) (left time.Duration, err error) {
	defer pause(ctx)()
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	begun := time.Now()
	err = s.buffer.acquire(ctx, network, n)
	return most - time.Since(begun), err
}

// readError returns the answer to a mail that could not be read to its end.
func (c *session) readError(err error) error {
	var known *smtp.SMTPError
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, errShare):
		return refusal(452, 4, 3, 1, "too much mail is being received from your address, try again later")
	case errors.Is(err, errNoRoom):
		return refusal(452, 4, 3, 1, "too much mail is being received, try again later")
	case errors.Is(err, smtp.ErrTooLongLine):
		return refusal(500, 5, 6, 0, fmt.Sprintf("a line has at most %d bytes", c.s.cfg.Limits.Line))
	}
	return refusal(451, 4, 4, 2, "the connection ended before the end of the mail")
}

func refusal(code, class, subject, detail int, message string) *smtp.SMTPError {
	return &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{class, subject, detail}, Message: message}
}

// smtpError is the only place where an error becomes an answer to a peer. The library needs an
// unwrapped SMTPError, and shows peers the text of any other error.
func (c *session) smtpError(err error) error {
	if err == nil {
		return nil
	}
	c.s.cfg.Store.Counters().EmailsRefused.Add(1)
	var known *smtp.SMTPError
	if errors.As(err, &known) {
		return known
	}
	var e *db.Error
	internal := !errors.As(db.Unavailable(err), &e)
	if internal || e.Kind == db.Busy && e.Code == db.CodeStorage {
		c.s.cfg.Log.Error("mail not accepted", "peer", c.conn.addr, "err", err)
	}
	switch {
	case internal:
		return refusal(451, 4, 3, 0, "an internal error happened, try again later")
	case e.Kind == db.Busy && e.Code == db.CodeStorage:
		return refusal(452, 4, 3, 1, e.Message)
	case e.Kind == db.Busy:
		return refusal(451, 4, 3, 2, e.Message)
	case e.Kind == db.Limited:
		return refusal(450, 4, 7, 1, e.Message)
	case e.Kind == db.Full:
		// The sender keeps the mail for some days. How much an organization may store is not for strangers.
		return refusal(452, 4, 2, 2, "the mailbox is full: try again later")
	case e.Kind == db.PaymentRequired:
		return refusal(452, 4, 2, 2, e.Message)
	case e.Kind == db.TooLarge:
		return refusal(552, 5, 2, 2, e.Message)
	case e.Kind == db.NotFound:
		return refusal(550, 5, 1, 1, e.Message)
	case e.Kind == db.Conflict:
		return refusal(550, 5, 2, 1, e.Message)
	case e.Kind == db.Forbidden:
		return refusal(550, 5, 7, 1, e.Message)
	}
	return refusal(550, 5, 6, 0, e.Message)
}
