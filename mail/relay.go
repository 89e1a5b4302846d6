package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// A Relay is the mail server that delivers the replies.
type Relay struct {
	Host     string // name, which its certificate must have
	Port     string
	Username string // empty without sign-in
	Password string
	Implicit bool        // TLS from the first byte, as with smtps:
	TLS      *tls.Config // nil means the system's roots
}

// ParseRelay parses smtp://user:password@host:port, or smtps: for TLS from the first
// byte. The default port is 587, or 465 for smtps.
func ParseRelay(address string) (*Relay, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "smtp" && u.Scheme != "smtps" || u.Hostname() == "" ||
		strings.Trim(u.Path, "/") != "" {
		// The address may hold a password, so the error does not quote it.
		return nil, errors.New("the relay must be an address such as smtp://user:password@host:587 or smtps://host")
	}
	r := &Relay{Host: u.Hostname(), Port: u.Port(), Username: u.User.Username(), Implicit: u.Scheme == "smtps"}
	r.Password, _ = u.User.Password()
	if r.Port == "" {
		if r.Port = "587"; r.Implicit {
			r.Port = "465"
		}
	}
	return r, nil
}

// sendTime limits how long the relay may take to accept one reply.
const sendTime = 5 * time.Minute

// A rejection is an answer of the relay that a retry does not change.
type rejection struct{ error }

// A relayConn sends mails to a relay, one after the other over one connection. Only one goroutine may
// use it. It is closed when no mail is left.
type relayConn struct {
	relay  *Relay
	helo   string
	client *smtp.Client // nil without a connection
}

// errHungUp means that the relay has ended the connection before the mail was sent.
var errHungUp = errors.New("the relay has ended the connection")

// send sends a mail. After an error that is no rejection, a retry may succeed.
func (c *relayConn) send(ctx context.Context, from, to string, raw []byte) error {
	// An open connection could send the mail before the end of ctx closes it.
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	used := c.client != nil
	err := c.try(ctx, from, to, raw)
	if used && errors.Is(err, errHungUp) {
		err = c.try(ctx, from, to, raw) // relays limit the time and the mails of a connection
	}
	return err
}

func (c *relayConn) try(ctx context.Context, from, to string, raw []byte) (err error) {
	used := c.client != nil
	if !used {
		if c.client, err = c.relay.connect(ctx, c.helo); err != nil {
			return err
		}
	}
	client := c.client
	stop := context.AfterFunc(ctx, func() { _ = client.Close() }) // the library takes no context
	if !used {
		err = c.relay.signIn(client)
	}
	if err == nil {
		err = transfer(client, from, to, raw)
	}
	stop()
	if err != nil || ctx.Err() != nil {
		c.drop()
	}
	return err
}

// Check connects to the relay and signs in. It sends no mail.
func (r *Relay) Check(ctx context.Context, helo string) error {
	client, err := r.connect(ctx, helo)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()                         // the result is known
	stop := context.AfterFunc(ctx, func() { _ = client.Close() }) // the library takes no context
	defer stop()
	if err := r.signIn(client); err != nil {
		return err
	}
	_ = client.Quit() // a relay that answers QUIT slowly has accepted the mail
	return nil
}

// goodbyeTime limits how long a relay may take to end the conversation.
const goodbyeTime = 5 * time.Second

// close ends the connection. It ignores errors, since the relay has accepted the mails.
func (c *relayConn) close(ctx context.Context) {
	if c.client == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, goodbyeTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = c.client.Close() })
	defer stop()
	_ = c.client.Quit()
	_ = c.client.Close()
}

// drop closes the connection at once. The next mail gets a new one.
func (c *relayConn) drop() {
	if c.client != nil {
		_ = c.client.Close()
		c.client = nil
	}
}

// transfer sends a mail over a connection.
func transfer(c *smtp.Client, from, to string, raw []byte) error {
	// SMTPUTF8 is requested only if an address needs it, because many relays lack it (RFC 6531).
	opt := &smtp.MailOptions{UTF8: !isASCII(from + to)}
	// With the size, the relay can refuse a mail before it is sent (RFC 1870).
	if ok, _ := c.Extension("SIZE"); ok {
		opt.Size = int64(len(raw))
	}
	if err := c.Mail(from, opt); err != nil {
		// Without an answer, or with 421, the connection has ended before this mail.
		var answer *smtp.SMTPError
		if !errors.As(err, &answer) || answer.Code == 421 {
			return fmt.Errorf("relay: %w: %w", errHungUp, err)
		}
		return final("sender", err)
	}
	if err := c.Rcpt(to, nil); err != nil {
		return final("recipient", err)
	}
	w, err := c.Data()
	if err != nil {
		return final("mail", err)
	}
	if _, err := w.Write(raw); err != nil {
		return fmt.Errorf("send mail: %w", err)
	}
	if err := w.Close(); err != nil {
		return final("mail", err)
	}
	return nil
}

// connect opens a connection, with encryption if the relay offers it.
func (r *Relay) connect(ctx context.Context, helo string) (*smtp.Client, error) {
	c, err := r.dial(ctx)
	if err != nil {
		return nil, err
	}
	if r.Implicit {
		return hello(smtp.NewClient(tls.Client(c, r.tls())), helo)
	}
	client, err := smtp.NewClientStartTLS(c, r.tls())
	if err == nil {
		return hello(client, helo)
	}
	if !strings.Contains(err.Error(), "support STARTTLS") {
		return nil, fmt.Errorf("relay: %w", err)
	}
	if r.Username != "" && !isLoopback(r.Host) && r.Host != "localhost" {
		return nil, errors.New("relay: it offers no STARTTLS, and a password is not sent in the clear")
	}
	// The failed attempt has closed the connection.
	if c, err = r.dial(ctx); err != nil {
		return nil, err
	}
	return hello(smtp.NewClient(c), helo)
}

func hello(c *smtp.Client, name string) (*smtp.Client, error) {
	if err := c.Hello(name); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("relay: %w", err)
	}
	return c, nil
}

func (r *Relay) dial(ctx context.Context) (net.Conn, error) {
	d := net.Dialer{Timeout: 30 * time.Second}
	c, err := d.DialContext(ctx, "tcp", net.JoinHostPort(r.Host, r.Port))
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	return c, nil
}

func (r *Relay) tls() *tls.Config {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if r.TLS != nil {
		cfg = r.TLS.Clone()
	}
	cfg.ServerName = r.Host
	return cfg
}

// signIn authenticates. A refusal is not final: the replies wait until the operator has corrected
// the password.
func (r *Relay) signIn(c *smtp.Client) error {
	if r.Username == "" {
		return nil
	}
	var mechanism sasl.Client
	switch {
	case c.SupportsAuth(sasl.Plain):
		// PLAIN is a standard (RFC 4616). LOGIN is for servers that have nothing else.
		mechanism = sasl.NewPlainClient("", r.Username, r.Password)
	case c.SupportsAuth(sasl.Login):
		mechanism = sasl.NewLoginClient(r.Username, r.Password)
	default:
		return errors.New("relay: it offers neither AUTH PLAIN nor AUTH LOGIN")
	}
	if err := c.Auth(mechanism); err != nil {
		return fmt.Errorf("relay: sign in: %w", err)
	}
	return nil
}

// final wraps an answer of the relay: as a rejection, unless the answer is temporary.
func final(what string, err error) error {
	var e *smtp.SMTPError
	wrapped := fmt.Errorf("relay refuses the %s: %w", what, err)
	if errors.As(err, &e) && !e.Temporary() {
		return rejection{wrapped}
	}
	return wrapped
}

func isASCII(s string) bool { return strings.IndexFunc(s, func(r rune) bool { return r > '~' }) < 0 }
