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

// send hands a mail over. What is not a rejection may go better later.
func (r *Relay) send(ctx context.Context, helo, from, to string, raw []byte) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	c, err := r.connect(ctx, helo)
	if err != nil {
		return err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() }) // the library knows no context
	defer stop()
	if err := r.signIn(c); err != nil {
		return err
	}
	opt := &smtp.MailOptions{UTF8: !isASCII(from + to)}
	if ok, _ := c.Extension("SIZE"); ok {
		opt.Size = int64(len(raw))
	}
	if err := c.Mail(from, opt); err != nil {
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
	_ = c.Quit() // it has the mail: how it says goodbye changes nothing
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
