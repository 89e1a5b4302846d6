package mail

import (
	"bytes"
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

// A Relay is the mail server that takes replies on their way.
type Relay struct {
	Host     string // name, which its certificate must bear
	Port     string
	Username string // '' without sign-in
	Password string
	Implicit bool        // TLS from the first byte, as smtps: has it
	TLS      *tls.Config // nil: the system's roots
}

// ParseRelay reads smtp://user:password@host:port, or smtps: for TLS from the first
// byte. Without a port it is 587 or 465.
func ParseRelay(address string) (*Relay, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "smtp" && u.Scheme != "smtps" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" {
		// The address holds a password: it is not repeated.
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

// sendTime is how long one reply may take to be handed over.
const sendTime = 5 * time.Minute

// A rejection is the relay's final word on a reply.
type rejection struct{ error }

// A carrier hands mails to a relay, one after the other over one connection. It is
// used by one goroutine, and closed before it rests.
type carrier struct {
	relay  *Relay
	helo   string
	client *smtp.Client // nil without a connection
}

// errHungUp means that a connection was of no use any more: nothing was sent.
var errHungUp = errors.New("the relay has ended the connection")

// send hands a mail over. What is not a rejection may go better later.
func (c *carrier) send(ctx context.Context, from, to string, raw []byte) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	used := c.client != nil
	err := c.try(ctx, from, to, raw)
	if used && errors.Is(err, errHungUp) {
		err = c.try(ctx, from, to, raw) // relays bound how long they keep one, and for how many mails
	}
	return err
}

func (c *carrier) try(ctx context.Context, from, to string, raw []byte) (err error) {
	if c.client == nil {
		if c.client, err = c.relay.connect(ctx, c.helo); err != nil {
			return err
		}
		err = c.signIn(ctx)
	}
	if err == nil {
		client := c.client
		stop := context.AfterFunc(ctx, func() { _ = client.Close() }) // the library knows no context
		err = transfer(client, from, to, raw)
		stop()
	}
	if err != nil || ctx.Err() != nil {
		_ = c.client.Close() // the next mail begins anew
		c.client = nil
	}
	return err
}

// goodbyeTime is how long a relay may take to say goodbye.
const goodbyeTime = 5 * time.Second

// close ends the connection. The relay has the mails: what it says changes nothing.
func (c *carrier) close(ctx context.Context) {
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

// transfer sends a mail over a connection.
func transfer(c *smtp.Client, from, to string, raw []byte) error {
	opt := &smtp.MailOptions{UTF8: !isASCII(from + to)}
	if ok, _ := c.Extension("SIZE"); ok {
		opt.Size = int64(len(raw))
	}
	if err := c.Mail(from, opt); err != nil {
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
	if _, err := bytes.NewReader(raw).WriteTo(w); err != nil {
		return fmt.Errorf("send mail: %w", err)
	}
	if err := w.Close(); err != nil {
		return final("mail", err)
	}
	return nil
}

// connect opens a connection, encrypted if the relay can.
func (r *Relay) connect(ctx context.Context, helo string) (*smtp.Client, error) {
	cfg := r.tls()
	c, err := r.dial(ctx)
	if err != nil {
		return nil, err
	}
	if r.Implicit {
		client := smtp.NewClient(tls.Client(c, cfg))
		return client, r.hello(client, helo)
	}
	client, err := smtp.NewClientStartTLS(c, cfg)
	if err == nil {
		return client, r.hello(client, helo)
	}
	if !strings.Contains(err.Error(), "support STARTTLS") {
		return nil, fmt.Errorf("relay: %w", err)
	}
	if r.Username != "" && !isLoopback(r.Host) && r.Host != "localhost" {
		return nil, errors.New("relay: it offers no STARTTLS, and a password is not sent in the clear")
	}
	if c, err = r.dial(ctx); err != nil {
		return nil, err
	}
	client = smtp.NewClient(c)
	return client, r.hello(client, helo)
}

func (r *Relay) hello(c *smtp.Client, helo string) error {
	if err := c.Hello(helo); err != nil {
		_ = c.Close()
		return fmt.Errorf("relay: %w", err)
	}
	return nil
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

func (c *carrier) signIn(ctx context.Context) error {
	client := c.client
	stop := context.AfterFunc(ctx, func() { _ = client.Close() })
	defer stop()
	return c.relay.signIn(client)
}

// signIn authenticates. A refusal is not final: an operator can mend it, and the
// replies wait.
func (r *Relay) signIn(c *smtp.Client) error {
	if r.Username == "" {
		return nil
	}
	var mechanism sasl.Client
	switch {
	case c.SupportsAuth(sasl.Plain):
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

// final tells a rejection from what may go better later.
func final(what string, err error) error {
	var e *smtp.SMTPError
	wrapped := fmt.Errorf("relay refuses the %s: %w", what, err)
	if errors.As(err, &e) && !e.Temporary() {
		return rejection{wrapped}
	}
	return wrapped
}

func isASCII(s string) bool { return strings.IndexFunc(s, func(r rune) bool { return r > '~' }) < 0 }
