package mail

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/emersion/go-smtp"

	"journeyman/store"
)

// newSMTP sets the SMTP library up.
func (s *Server) newSMTP() *smtp.Server {
	srv := smtp.NewServer(smtp.BackendFunc(s.newSession))
	srv.Domain = s.cfg.Domain
	srv.MaxMessageBytes = s.cfg.MaxSize
	srv.MaxRecipients = s.cfg.Limits.Recipients
	srv.MaxLineLength = s.cfg.Limits.Line
	srv.EnableSMTPUTF8 = true
	srv.TLSConfig = s.cfg.TLS
	srv.ErrorLog = slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug) // what peers do wrong
	return srv
}

func (s *Server) newSession(c *smtp.Conn) (smtp.Session, error) {
	return &session{s: s, smtp: c, conn: underlying(c.Conn()), helo: c.Hostname()}, nil
}

// underlying is the gate's connection, below TLS or not.
func underlying(c net.Conn) *conn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	own, _ := c.(*conn) // every connection comes from a gate
	return own
}

// A session is one peer's conversation. The library calls it from one goroutine
// at a time.
type session struct {
	s    *Server
	smtp *smtp.Conn
	conn *conn
	helo string

	from string
	to   []Recipient
}

// Reset forgets the mail being announced.
func (c *session) Reset() { c.from, c.to = "", nil }

// Logout has nothing to free.
func (c *session) Logout() error { return nil }

// Mail notes the sender. Who it is decides nothing yet.
func (c *session) Mail(from string, _ *smtp.MailOptions) error {
	if len(from) > 320 {
		return refusal(553, 5, 1, 7, "the sender's address is too long")
	}
	c.from = from
	return nil
}

// Rcpt looks the recipient up. A mail's recipients share one answer, so they must
// share whoever decides about it: the rest is asked for in a mail of its own.
func (c *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	r, err := c.s.recipient(c.s.ctx, to)
	if err != nil {
		return c.smtpError(err)
	}
	if err := c.s.admitSender(c.s.ctx, r, c.from); err != nil {
		return c.smtpError(err)
	}
	if len(c.to) > 0 && !c.to[0].decidedWith(r) {
		return refusal(452, 4, 5, 3, "this recipient decides about mail by itself: send it in a mail of its own")
	}
	if !slices.ContainsFunc(c.to, r.equals) {
		c.to = append(c.to, r)
	}
	return nil
}

// Data receives a mail. It is durably taken in when Data returns nil.
func (c *session) Data(r io.Reader) error {
	c.conn.busy.Store(true)
	defer c.conn.busy.Store(false)
	raw, release, err := c.s.readMessage(c.s.ctx, r)
	defer release()
	if err != nil {
		return c.readError(err)
	}
	if hasBareLineEnd(raw) {
		// Two servers that disagree about line ends can be made to disagree about
		// where a mail ends.
		return refusal(550, 5, 6, 0, "line ends must be CRLF, and CR and LF never stand alone")
	}
	env := Envelope{From: c.from, To: c.to, RemoteAddr: c.conn.addr, Helo: c.helo}
	if _, err := c.s.Deliver(c.s.ctx, env, raw); err != nil {
		return c.smtpError(err)
	}
	c.conn.commands.Store(0)
	return nil
}

// errNoRoom means that too much mail is being received at once.
var errNoRoom = errors.New("no room for the mail now")

// roomTime is how long a mail waits for room.
const roomTime = 20 * time.Second

// smallMail is how large a mail may be, in bytes, to need no memory of its own.
const smallMail = 8 << 10

// readMessage reads a mail into memory, of which it takes no more than there is.
// release gives it back: nothing may hold raw from then on.
func (s *Server) readMessage(ctx context.Context, r io.Reader) (raw []byte, release func(), err error) {
	taken := int64(0)
	small, ok := s.small.Get().(*[smallMail]byte)
	if !ok {
		small = new([smallMail]byte)
	}
	release = func() { s.buffer.Release(taken); s.small.Put(small) }
	ctx, cancel := context.WithTimeout(ctx, roomTime)
	defer cancel()
	buf := small[:0]
	for {
		if len(buf) == cap(buf) {
			// While it grows both the old and the new are held.
			if s.buffer.Acquire(ctx, int64(2*cap(buf))) != nil {
				return nil, release, errNoRoom
			}
			before := taken
			taken = int64(2 * cap(buf))
			buf = append(make([]byte, 0, taken), buf...)
			s.buffer.Release(before)
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

// hasBareLineEnd reports whether CR and LF stand anywhere but together.
func hasBareLineEnd(raw []byte) bool {
	pairs := bytes.Count(raw, []byte("\r\n"))
	return bytes.Count(raw, []byte("\n")) != pairs || bytes.Count(raw, []byte("\r")) != pairs
}

// readError answers a mail that could not be read to its end.
func (c *session) readError(err error) error {
	var known *smtp.SMTPError
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, errNoRoom):
		return refusal(452, 4, 3, 1, "too much mail is being received, try again later")
	case errors.Is(err, smtp.ErrTooLongLine):
		return refusal(500, 5, 6, 0, fmt.Sprintf("a line has at most %d bytes", c.s.cfg.Limits.Line))
	}
	return refusal(451, 4, 4, 2, "the mail broke off")
}

func refusal(code, class, subject, detail int, message string) *smtp.SMTPError {
	return &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{class, subject, detail}, Message: message}
}

// smtpError is the only place where an error becomes an answer to a peer. The
// library honours nothing but a bare SMTPError, and shows what others say.
func (c *session) smtpError(err error) error {
	var known *smtp.SMTPError
	if errors.As(err, &known) {
		return known
	}
	var e *store.Error
	if !errors.As(err, &e) {
		c.s.cfg.Log.Error("receive mail", "peer", c.conn.addr, "err", err)
		return refusal(451, 4, 3, 0, "an internal error happened, try again later")
	}
	switch {
	case e.Kind == store.Busy && e.Code == "storage":
		c.s.cfg.Log.Error("receive mail", "peer", c.conn.addr, "err", err)
		return refusal(452, 4, 3, 1, e.Message)
	case e.Kind == store.Busy:
		return refusal(451, 4, 3, 2, e.Message)
	case e.Kind == store.PaymentRequired:
		return refusal(452, 4, 2, 2, e.Message)
	case e.Kind == store.TooLarge:
		return refusal(552, 5, 2, 2, e.Message)
	case e.Kind == store.NotFound:
		return refusal(550, 5, 1, 1, e.Message)
	case e.Kind == store.Conflict:
		return refusal(550, 5, 2, 1, e.Message)
	case e.Kind == store.Forbidden:
		return refusal(550, 5, 7, 1, e.Message)
	}
	return refusal(550, 5, 6, 0, e.Message)
}
