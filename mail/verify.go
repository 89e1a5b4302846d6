package mail

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"time"

	"blitiri.com.ar/go/spf"
	"github.com/emersion/go-msgauth/dkim"
	"github.com/emersion/go-msgauth/dmarc"
	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// A Resolver asks the DNS. net.DefaultResolver is one.
type Resolver interface {
	LookupTXT(ctx context.Context, name string) ([]string, error)
	LookupMX(ctx context.Context, name string) ([]*net.MX, error)
	LookupIPAddr(ctx context.Context, host string) ([]net.IPAddr, error)
	LookupAddr(ctx context.Context, addr string) ([]string, error)
}

// Verdicts are what is known of who sent a mail. They are kept with it.
type Verdicts struct {
	SPF           Verdict   `json:"spf"`
	DKIM          []Verdict `json:"dkim"`
	DMARC         Verdict   `json:"dmarc"`
	Authenticated bool      `json:"authenticated"` // an aligned DKIM or SPF pass vouches for From
	Local         bool      `json:"local"`         // it came from this machine: nothing was checked
}

// A Verdict is the result of one check, in the words of RFC 8601.
type Verdict struct {
	Result string `json:"result"` // none, neutral, pass, fail, softfail, temperror or permerror
	Domain string `json:"domain,omitempty"`
	Policy string `json:"policy,omitempty"` // of DMARC: none, quarantine or reject
	Reason string `json:"reason,omitempty"`
}

// The results of checks that decisions rest on.
const (
	resultNone      = "none"
	resultPass      = "pass"
	resultFail      = "fail"
	resultTempError = "temperror"
	resultPermError = "permerror"
)

// dnsTime is how long all the questions about one mail may take.
const dnsTime = 10 * time.Second

// maxSignatures is how many DKIM signatures of a mail are looked at.
const maxSignatures = 5

// trusted reports whether From is who the mail says.
func (v Verdicts) trusted() bool { return v.Authenticated || v.Local }

// unsure reports whether a later try may say more.
func (v Verdicts) unsure() bool {
	if v.trusted() {
		return false
	}
	for _, d := range v.DKIM {
		if d.Result == resultTempError {
			return true
		}
	}
	return v.SPF.Result == resultTempError || v.DMARC.Result == resultTempError
}

func (v Verdicts) json() json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("{}")
	}
	return b
}

// verify checks who sent a mail: SPF (RFC 7208), DKIM (RFC 6376), and whether what
// passes is aligned with From (RFC 7489).
func (s *Server) verify(ctx context.Context, env Envelope, h Header, raw []byte) Verdicts {
	v := Verdicts{SPF: Verdict{Result: resultNone}, DMARC: Verdict{Result: resultNone}, DKIM: []Verdict{}}
	if v.Local = isLoopback(env.RemoteAddr); v.Local {
		return v
	}
	ctx, cancel := context.WithTimeout(ctx, dnsTime)
	defer cancel()
	c := checker{ctx: ctx, resolver: s.cfg.Resolver}
	if env.Helo != "" { // over HTTP, the peer is no mail server
		v.SPF = c.spf(env)
	}
	v.DKIM = c.dkim(raw)
	if !h.SoleFrom {
		v.DMARC = Verdict{Result: resultPermError, Reason: "not exactly one author"}
		return v
	}
	v.DMARC, v.Authenticated = c.dmarc(h.From, v.SPF, v.DKIM)
	return v
}

// A checker asks the questions about one mail.
type checker struct {
	ctx      context.Context
	resolver Resolver
}

func (c checker) spf(env Envelope) Verdict {
	ip := net.ParseIP(env.RemoteAddr)
	if ip == nil {
		return Verdict{Result: resultNone}
	}
	domain := domainOf(env.From)
	if domain == "" {
		domain = asciiDomain(env.Helo)
	}
	result, err := spf.CheckHostWithSender(ip, env.Helo, env.From, spf.WithContext(c.ctx), spf.WithResolver(c.resolver))
	v := Verdict{Result: string(result), Domain: domain}
	if err != nil && result != spf.Pass {
		v.Reason = err.Error()
	}
	return v
}

func (c checker) dkim(raw []byte) []Verdict {
	lookup := func(name string) ([]string, error) { return c.resolver.LookupTXT(c.ctx, name) }
	list, err := dkim.VerifyWithOptions(bytes.NewReader(raw), &dkim.VerifyOptions{LookupTXT: lookup, MaxVerifications: maxSignatures})
	verdicts := make([]Verdict, 0, len(list))
	for _, d := range list {
		v := Verdict{Result: resultPass, Domain: asciiDomain(d.Domain)}
		switch {
		case dkim.IsTempFail(d.Err):
			v.Result, v.Reason = resultTempError, d.Err.Error()
		case dkim.IsPermFail(d.Err):
			v.Result, v.Reason = resultPermError, d.Err.Error()
		case d.Err != nil:
			v.Result, v.Reason = resultFail, d.Err.Error()
		}
		verdicts = append(verdicts, v)
	}
	if err != nil && !errors.Is(err, dkim.ErrTooManySignatures) {
		verdicts = append(verdicts, Verdict{Result: resultPermError, Reason: "the header is malformed"})
	}
	return verdicts
}

// dmarc finds the policy of From's domain and whether a check that passed is
// aligned with it.
func (c checker) dmarc(from string, spfVerdict Verdict, signatures []Verdict) (Verdict, bool) {
	domain := domainOf(from)
	if domain == "" {
		return Verdict{Result: resultPermError, Reason: "From has no domain"}, false
	}
	record, sub, err := c.policy(domain)
	strictSPF := record != nil && record.SPFAlignment == dmarc.AlignmentStrict
	strictDKIM := record != nil && record.DKIMAlignment == dmarc.AlignmentStrict
	passed := spfVerdict.Result == resultPass && aligned(spfVerdict.Domain, domain, strictSPF)
	for _, d := range signatures {
		passed = passed || d.Result == resultPass && aligned(d.Domain, domain, strictDKIM)
	}
	v := Verdict{Result: resultNone, Domain: domain}
	switch {
	case record != nil:
		if v.Result = resultFail; passed {
			v.Result = resultPass
		}
		policy := record.Policy
		if sub && record.SubdomainPolicy != "" {
			policy = record.SubdomainPolicy
		}
		v.Policy = string(policy)
	case errors.Is(err, dmarc.ErrNoPolicy):
	case dmarc.IsTempFail(err):
		v.Result, v.Reason = resultTempError, err.Error()
	default:
		v.Result, v.Reason = resultPermError, err.Error()
	}
	return v, passed
}

// policy looks a domain's record up, else that of the organization's domain.
func (c checker) policy(domain string) (record *dmarc.Record, sub bool, err error) {
	opt := &dmarc.LookupOptions{LookupTXT: func(name string) ([]string, error) { return c.resolver.LookupTXT(c.ctx, name) }}
	record, err = dmarc.LookupWithOptions(domain, opt)
	if organization := organizationOf(domain); errors.Is(err, dmarc.ErrNoPolicy) && organization != domain {
		record, err = dmarc.LookupWithOptions(organization, opt)
		sub = true
	}
	return record, sub, err
}

// aligned reports whether a domain that was verified vouches for From's.
func aligned(verified, from string, strict bool) bool {
	if strict || verified == "" {
		return verified == from
	}
	return organizationOf(verified) == organizationOf(from)
}

// organizationOf is the domain that was registered, such as example.co.uk.
func organizationOf(domain string) string {
	if d, err := publicsuffix.EffectiveTLDPlusOne(domain); err == nil {
		return d
	}
	return domain
}

// domainOf is the domain of an address as the DNS knows it; ” without one.
func domainOf(address string) string {
	at := strings.LastIndexByte(address, '@')
	if at < 0 {
		return ""
	}
	return asciiDomain(address[at+1:])
}

func asciiDomain(domain string) string {
	domain = strings.ToLower(strings.TrimSuffix(domain, "."))
	if ascii, err := idna.Lookup.ToASCII(domain); err == nil {
		return ascii
	}
	return domain
}
