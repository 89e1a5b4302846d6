package mail

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"
	"unicode"

	"journeyman/store"
)

// Flags holds the command line flags of mail.
type Flags struct {
	Addr          *string  `name:"smtp-addr" help:"Listen address for mail to workers, 127.0.0.1:2525 by default; empty turns it off." placeholder:"ADDR"`
	TLSCert       string   `name:"smtp-tls-cert" help:"Certificate for STARTTLS, a PEM file; generated at the start by default." placeholder:"FILE"`
	TLSKey        string   `name:"smtp-tls-key" help:"Private key of the certificate, a PEM file." placeholder:"FILE"`
	Relay         string   `name:"smtp-relay" help:"Relay for replies: smtp://user:password@host:587, or smtps://. Without it, replies stay in the outbox." placeholder:"URL" secret:"the address of the relay and its password"`
	Domain        string   `name:"mail-domain" default:"localhost" help:"Domain of worker addresses."`
	Accept        string   `name:"mail-accept" help:"Who may mail workers: anyone, members, or addresses and @domains with commas; anyone while the mail domain is localhost and the listener is on a loopback address, else members." placeholder:"WHO"`
	TrustedRelays []string `name:"mail-trusted-relay" help:"Your own mail servers that deliver to this one, with the authserv-id of the Authentication-Results fields to trust; for example 127.0.0.1=mx.example.com." placeholder:"NETWORK=AUTHSERV-ID"`
	Aliases       []string `name:"mail-alias" help:"Addresses whose mail you forward to a worker: a signed mail to one of them is an instruction to that worker; for example help@example.com=wrk_0123." placeholder:"ADDRESS=WORKER"`
	Hold          bool     `name:"mail-hold" help:"Hold mail of senders who may not mail until an Admin releases it, instead of refusing it."`
	MaxSize       int64    `name:"mail-max-size" default:"26214400" help:"Largest mail, in bytes."`
	ThreadLimit   int      `name:"mail-thread-limit" default:"20" help:"Mails of one task in an hour that start turns, against loops; further ones get 450. 0 turns it off."`
	Keep          int64    `name:"mail-keep" default:"90" min:"0" help:"Days until the server deletes mails that started no turn, and the sources of other mails and replies; 0 keeps them forever."`
	SenderLimit   int      `name:"mail-sender-limit" default:"100" help:"Mails of one sender to one worker in an hour that start turns; further ones get 450. 0 turns it off."`
}

// ListenAddr returns the listen address for mail, or "" if mail is off.
func (f *Flags) ListenAddr() string {
	if f.Addr == nil {
		return "127.0.0.1:2525"
	}
	return *f.Addr
}

// Listen opens the listener for mail. It returns nil if mail is off.
func (f *Flags) Listen(ctx context.Context, log *slog.Logger) (net.Listener, error) {
	addr := f.ListenAddr()
	if addr == "" {
		return nil, nil
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil && f.Addr == nil {
		// The operator did not ask for mail. So a second server on this machine still serves if the
		// first one uses the default port.
		log.Warn("mail is off: choose a listen address with --smtp-addr", "err", err)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listen for mail (--smtp-addr): %w", err)
	}
	return ln, nil
}

// CheckRelay connects to the relay and signs in, but sends nothing. It returns the name of the
// relay, "" if there is none.
func (f *Flags) CheckRelay(ctx context.Context) (host string, err error) {
	if f.Relay == "" {
		return "", nil
	}
	relay, err := ParseRelay(f.Relay)
	if err != nil {
		return "", err
	}
	return relay.Host, relay.Check(ctx, f.Domain)
}

// CheckRelay checks the relay that the server uses now, as Flags.CheckRelay does.
func (s *Server) CheckRelay(ctx context.Context) (host string, err error) {
	relay := s.cfg.Relay
	if relay == nil {
		return "", nil
	}
	return relay.Host, relay.Check(ctx, s.cfg.Domain)
}

// Config returns the settings of the flags. ln is the listener for mail, or nil if mail is off.
func (f *Flags) Config(ln net.Listener, log *slog.Logger) (cfg Config, err error) {
	cfg = Config{Log: log, Domain: f.Domain, Accept: f.Accept, Hold: f.Hold, MaxSize: f.MaxSize,
		Loops: store.MailLimits{PerThread: limitOf(f.ThreadLimit), PerSender: limitOf(f.SenderLimit)}}
	if !addressableDomain(f.Domain) && (f.Domain != "" || ln != nil) { // without mail, it may be empty
		return cfg, fmt.Errorf("--mail-domain: %q is not a domain such as agents.example.com", f.Domain)
	}
	if err := ParseAccept(f.Accept); err != nil {
		return cfg, fmt.Errorf("--mail-accept: %w", err)
	}
	if cfg.TrustedRelays, err = ParseTrustedRelays(f.TrustedRelays); err != nil {
		return cfg, fmt.Errorf("--mail-trusted-relay: %w", err)
	}
	if cfg.Aliases, err = ParseAliases(f.Aliases); err != nil {
		return cfg, fmt.Errorf("--mail-alias: %w", err)
	}
	if f.Relay != "" {
		if cfg.Relay, err = ParseRelay(f.Relay); err != nil {
			return cfg, fmt.Errorf("--smtp-relay: %w", err)
		}
	}
	local, localhost := loopback(ln), strings.EqualFold(f.Domain, localDomain)
	if cfg.Accept == "" && !(local && localhost) {
		cfg.Accept = Members // strangers reach this server
	}
	if ln == nil {
		return cfg, nil
	}
	if local && !localhost && len(cfg.TrustedRelays) == 0 {
		log.Info("mail counts as a member's only if DKIM verifies it: " +
			"name the mail server that delivers it with --mail-trusted-relay")
	}
	cfg.TLS, err = LoadTLS(f.TLSCert, f.TLSKey, f.Domain, time.Now())
	return cfg, err
}

// loopback reports whether only this machine reaches the listener. There may be none.
func loopback(ln net.Listener) bool {
	if ln == nil {
		return true
	}
	tcp, ok := ln.Addr().(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// addressableDomain reports whether workers can have addresses in a domain: a name, or the address of a
// host in brackets (RFC 5321, section 4.1.3).
func addressableDomain(domain string) bool {
	if literal, ok := strings.CutPrefix(domain, "["); ok {
		_, err := netip.ParseAddr(strings.TrimPrefix(strings.TrimSuffix(literal, "]"), "IPv6:"))
		return err == nil && strings.HasSuffix(literal, "]")
	}
	for label := range strings.SplitSeq(domain, ".") {
		if label == "" || strings.Trim(label, "-") != label || strings.ContainsFunc(label, notInLabel) {
			return false
		}
	}
	return true
}

// notInLabel reports whether no label of a domain contains r.
func notInLabel(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_", r)
}

// limitOf converts a flag to a field of store.MailLimits. In the flag 0 means no limit,
// in the field a negative number does.
func limitOf(n int) int { return cmp.Or(n, -1) }
