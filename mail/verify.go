package mail

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"time"

	"blitiri.com.ar/go/spf"
	"github.com/emersion/go-msgauth/dkim"
	"github.com/emersion/go-msgauth/dmarc"
	"golang.org/x/net/publicsuffix"

	"journeyman/mail/message"
	"journeyman/store/db"
)

// A Resolver looks up DNS records, as net.DefaultResolver does.
type Resolver interface {
	LookupTXT(ctx context.Context, name string) ([]string, error)
	LookupMX(ctx context.Context, name string) ([]*net.MX, error)
	LookupIPAddr(ctx context.Context, host string) ([]net.IPAddr, error)
	LookupAddr(ctx context.Context, addr string) ([]string, error)
}

// Verdicts are the results of all checks of a sender. The store keeps them with the mail.
type Verdicts struct {
	SPF           Verdict   `json:"spf"`
	DKIM          []Verdict `json:"dkim"`
	DMARC         Verdict   `json:"dmarc"`
	Authenticated bool      `json:"authenticated"`   // an aligned SPF pass, or one of DKIM without a gap, proves From
	Local         bool      `json:"local"`           // the mail came from this machine, which is trusted; nothing else proves From
	Key           bool      `json:"key,omitempty"`   // the API key that posted the mail proves From
	Relay         string    `json:"relay,omitempty"` // authserv-id of the trusted relay that made the checks
}

// A Verdict is the result of one check, with the names of RFC 8601.
type Verdict struct {
	Result string `json:"result"` // none, neutral, pass, fail, softfail, temperror or permerror
	Domain string `json:"domain,omitempty"`
	Policy string `json:"policy,omitempty"` // of DMARC: none, quarantine or reject
	Reason string `json:"reason,omitempty"` // if it is not pass, or why a valid signature proves no author (see gap)
}

// The results of checks that this package distinguishes.
const (
	resultNone      = "none"
	resultPass      = "pass"
	resultFail      = "fail"
	resultTempError = "temperror"
	resultPermError = "permerror"
)

// dnsTime limits how long all DNS lookups for one mail may take.
const dnsTime = 10 * time.Second

// maxSignatures limits the DKIM signatures that are checked of a mail.
const maxSignatures = 5

// maxFieldLines limits the lines of one header field of a mail whose signatures are checked. The list of recipients
// of a person has fewer.
const maxFieldLines = 2000

// trusted reports whether the author in From is proven.
func (v Verdicts) trusted() bool { return v.Authenticated || v.Local || v.Key }

// temporary reports whether the verdicts may differ if the sender tries again. A relay's report is the
// same in each try.
func (v Verdicts) temporary() bool {
	if v.trusted() || v.Relay != "" {
		return false
	}
	for _, d := range v.DKIM {
		if d.Result == resultTempError {
			return true
		}
	}
	return v.SPF.Result == resultTempError || v.DMARC.Result == resultTempError
}

// words returns the results of the checks in English. The model reads them.
func (v Verdicts) words() string {
	switch {
	case v.Key:
		return "the API key that posted the mail verifies the author"
	case v.Local:
		return "the mail came from this machine, which is trusted while the mail domain is localhost"
	}
	words := v.SPF.words("SPF") + ", "
	for _, d := range v.DKIM {
		words += d.words("DKIM") + ", "
	}
	if len(v.DKIM) == 0 {
		words += "no DKIM signature, "
	}
	return words + v.DMARC.words("DMARC")
}

// unproven returns the reason why the checks do not prove the author.
func (v Verdicts) unproven() string {
	for _, d := range slices.Backward(v.DKIM) { // a relay's results come first, and say less
		if d.Result == resultPass && d.Reason != "" {
			return "the DKIM signature of " + d.Domain + " is valid, but " + d.Reason
		}
	}
	return "neither DKIM nor SPF verifies the domain in From"
}

func (v Verdict) words(check string) string {
	words := check + " " + cmp.Or(v.Result, resultNone)
	if v.Domain != "" {
		words += " for " + v.Domain
	}
	if v.Result == resultPass && v.Reason != "" {
		words += " (but " + v.Reason + ")"
	}
	return words
}

// maxVerdict is how many characters of each text of a verdict are stored. The sender can choose some of them.
const maxVerdict = 300

func (v Verdicts) json() json.RawMessage {
	v.DKIM = slices.Clone(v.DKIM)
	for _, d := range append([]*Verdict{&v.SPF, &v.DMARC}, pointers(v.DKIM)...) {
		d.Domain, d.Reason = db.FirstRunes(d.Domain, maxVerdict), db.FirstRunes(d.Reason, maxVerdict)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("{}")
	}
	return b
}

func pointers(list []Verdict) (all []*Verdict) {
	for i := range list {
		all = append(all, &list[i])
	}
	return all
}

// localDomain is the mail domain of a server that receives no mail from the internet.
// Such a server trusts peers on its own machine.
const localDomain = "localhost"

// verify checks the sender of a mail: SPF (RFC 7208), DKIM (RFC 6376), and whether the
// domain that passes is aligned with From (RFC 7489). SPF checks the address of the
// sending server. So for mail that came through a relay, only the relay can check it.
func (s *Server) verify(ctx context.Context, env Envelope, h message.Header, raw []byte) Verdicts {
	v := Verdicts{SPF: Verdict{Result: resultNone}, DMARC: Verdict{Result: resultNone}, DKIM: []Verdict{}}
	v.Key, v.Local = env.keyVerified, isLoopback(env.RemoteAddr) && s.cfg.Domain == localDomain
	if v.trusted() {
		return v
	}
	if !h.SoleFrom { // the checks could prove one author while users see another
		v.DMARC = Verdict{Result: resultPermError, Reason: "not exactly one author, or the header is malformed"}
		return v
	}
	ctx, cancel := context.WithTimeout(ctx, dnsTime)
	defer cancel()
	c := checker{ctx: ctx, resolver: s.cfg.Resolver, gap: func(signed []string) string { return s.gap(env, h, signed) }}
	if report := s.relayReport(env.RemoteAddr, h); report.ID != "" {
		return c.judgeReport(v, report, h, raw)
	}
	// SPF says nothing about mail over HTTP, from this machine, or from a relay.
	direct := env.Helo != "" && !isLoopback(env.RemoteAddr) && len(s.relaysAt(env.RemoteAddr)) == 0
	if direct {
		v.SPF = c.spf(env)
	}
	v.DKIM = c.dkim(raw)
	v.DMARC, v.Authenticated = c.dmarc(h.From, v.SPF, v.DKIM)
	if !direct && v.DMARC.Result == resultFail {
		// SPF was not checked and might have passed, so the policy does not apply.
		v.DMARC.Result = resultNone
		v.DMARC.Reason = "DKIM verifies no author, and SPF could not be checked: the mail came through another server"
	}
	return v
}

// judgeReport completes the verdicts from the report of a trusted relay. The relay's
// DMARC result counts. Without one, its SPF and DKIM results are compared with From
// here. Unless DMARC passed, DKIM is also checked here: a signature proves itself.
//
// A relay does not report what a signature covers. So if its report shows that only a signature that the
// mail still has proves From, DMARC is not enough, and the signature is checked here.
func (c checker) judgeReport(v Verdicts, report message.AuthReport, h message.Header, raw []byte) Verdicts {
	v.Relay = report.ID
	v.SPF, v.DMARC, v.DKIM = relayVerdicts(report, h.From)
	signed := h.Count("DKIM-Signature") > 0
	if signed {
		for i := range v.DKIM {
			v.DKIM[i].Reason = "the relay does not report what the signature covers"
		}
	}
	said, passed := v.DMARC, v.DMARC.Result == resultPass
	if passed && (!signed || len(report.All("spf")) == 0) {
		v.Authenticated = true
		return v
	}
	spf, signatures := v.SPF, v.DKIM
	failed := v.DMARC.Result != resultNone && !passed
	if failed {
		// The relay has judged these results already.
		spf, signatures = Verdict{Result: resultNone}, nil
	}
	own := c.dkim(raw)
	v.DKIM = append(v.DKIM, own...)
	v.DMARC, v.Authenticated = c.dmarc(h.From, spf, append(signatures, own...))
	if passed {
		v.DMARC = said
	}
	if !failed && len(report.All("spf")) == 0 && v.DMARC.Result == resultFail {
		v.DMARC.Result = resultNone
		v.DMARC.Reason = "DKIM verifies no author, and the relay does not report a check of SPF"
	}
	return v
}

// A checker makes the DNS checks of one mail.
type checker struct {
	ctx      context.Context
	resolver Resolver
	gap      func(signed []string) string // why a signature over these fields makes no instruction
}

func (c checker) spf(env Envelope) Verdict {
	ip := net.ParseIP(env.RemoteAddr)
	if ip == nil {
		return Verdict{Result: resultNone}
	}
	domain := message.DomainOf(env.From)
	if domain == "" { // a bounce: SPF then checks the name of the server
		domain = message.ASCIIDomain(env.Helo)
	}
	// The library follows RFC 7208, section 2.4: for an empty sender it checks the Helo
	// name.
	result, err := spf.CheckHostWithSender(ip, env.Helo, env.From, spf.WithContext(c.ctx), spf.WithResolver(c.resolver))
	v := Verdict{Result: string(result), Domain: domain}
	if err != nil && result != spf.Pass {
		v.Reason = err.Error()
	}
	return v
}

func (c checker) dkim(raw []byte) []Verdict {
	if !quicklyRead(raw) {
		return []Verdict{{Result: resultPermError, Reason: "the header is too long, or one of its fields has too many lines"}}
	}
	lookup := func(name string) ([]string, error) { return c.resolver.LookupTXT(c.ctx, name) }
	// Each signature costs a DNS lookup, and the sender chooses how many there are.
	opt := &dkim.VerifyOptions{LookupTXT: lookup, MaxVerifications: maxSignatures}
	list, err := dkim.VerifyWithOptions(bytes.NewReader(raw), opt)
	verdicts := make([]Verdict, 0, len(list))
	for _, d := range list {
		v := Verdict{Result: resultPass, Domain: message.ASCIIDomain(d.Domain)}
		switch {
		case dkim.IsTempFail(d.Err):
			v.Result, v.Reason = resultTempError, d.Err.Error()
		case dkim.IsPermFail(d.Err):
			v.Result, v.Reason = resultPermError, d.Err.Error()
		case d.Err != nil:
			v.Result, v.Reason = resultFail, d.Err.Error()
		default:
			v.Reason = c.gap(d.HeaderKeys)
		}
		verdicts = append(verdicts, v)
	}
	if err != nil && !errors.Is(err, dkim.ErrTooManySignatures) {
		verdicts = append(verdicts, Verdict{Result: resultPermError, Reason: "the header is malformed"})
	}
	return verdicts
}

// quicklyRead reports whether the library for DKIM reads the header of a mail in little time. It copies a field
// again for each of its lines.
func quicklyRead(raw []byte) bool {
	size, folded := 0, 0
	for line := range bytes.Lines(raw) {
		if len(bytes.TrimRight(line, "\r\n")) == 0 {
			return true // the end of the header
		}
		if folded++; line[0] != ' ' && line[0] != '\t' {
			folded = 0
		}
		if size += len(line); size > message.MaxHeader || folded > maxFieldLines {
			return false
		}
	}
	return true
}

// dmarc looks up the DMARC policy for the domain of From. It reports whether a passed
// check is aligned with that domain, and is no signature with a gap.
func (c checker) dmarc(from string, spfVerdict Verdict, signatures []Verdict) (Verdict, bool) {
	domain := message.DomainOf(from)
	if domain == "" {
		return Verdict{Result: resultPermError, Reason: "From has no domain"}, false
	}
	// Without a readable policy both alignments are relaxed, the default of RFC 7489.
	record, sub, err := c.policy(domain)
	strictSPF := record != nil && record.SPFAlignment == dmarc.AlignmentStrict
	strictDKIM := record != nil && record.DKIMAlignment == dmarc.AlignmentStrict
	passed := spfVerdict.Result == resultPass && aligned(spfVerdict.Domain, domain, strictSPF)
	proven := passed
	for _, d := range signatures {
		if d.Result == resultPass && aligned(d.Domain, domain, strictDKIM) {
			passed, proven = true, proven || d.Reason == ""
		}
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
		// The domain has no policy. A check that passed still proves From.
	case dmarc.IsTempFail(err):
		v.Result, v.Reason = resultTempError, err.Error()
	default:
		v.Result, v.Reason = resultPermError, err.Error()
	}
	return v, proven
}

// policy returns the DMARC record of a domain. If it has none, policy returns the record of
// the registered domain, and sub is true.
func (c checker) policy(domain string) (record *dmarc.Record, sub bool, err error) {
	lookup := func(name string) ([]string, error) { return c.resolver.LookupTXT(c.ctx, name) }
	opt := &dmarc.LookupOptions{LookupTXT: lookup}
	record, err = dmarc.LookupWithOptions(domain, opt)
	// RFC 7489, section 6.6.3: the record of the registered domain applies to a subdomain without a
	// record.
	if organization := organizationOf(domain); errors.Is(err, dmarc.ErrNoPolicy) && organization != domain {
		record, err = dmarc.LookupWithOptions(organization, opt)
		sub = true
	}
	return record, sub, err
}

// aligned reports whether a verified domain proves the domain of From.
func aligned(verified, from string, strict bool) bool {
	if strict || verified == "" {
		return verified == from
	}
	return organizationOf(verified) == organizationOf(from)
}

// organizationOf returns the registered domain, such as example.co.uk.
func organizationOf(domain string) string {
	if d, err := publicsuffix.EffectiveTLDPlusOne(domain); err == nil {
		return d
	}
	return domain
}
