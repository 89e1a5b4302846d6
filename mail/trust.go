package mail

import (
	"fmt"
	"net/netip"
	"strings"

	"journeyman/mail/message"
)

// A TrustedRelay is a mail server of the operator that delivers mail to this one. Its
// Authentication-Results fields are trusted.
type TrustedRelay struct {
	Network netip.Prefix // of its addresses
	ID      string       // its authserv-id, in lower case
}

// ParseTrustedRelays parses entries of the form NETWORK=AUTHSERV-ID, such as
// 127.0.0.1=mx.example.com or 10.0.0.0/8=mx.example.com.
func ParseTrustedRelays(entries []string) ([]TrustedRelay, error) {
	var list []TrustedRelay
	for _, entry := range entries {
		network, id, _ := strings.Cut(strings.TrimSpace(entry), "=")
		prefix, err := parseNetwork(strings.TrimSpace(network))
		if err != nil {
			return nil, fmt.Errorf("%q: %w", entry, err)
		}
		id = strings.ToLower(strings.TrimSpace(id))
		if report, err := message.ParseAuthResults(id); err != nil || report.ID != id || len(report.Results) > 0 {
			return nil, fmt.Errorf("%q must be NETWORK=AUTHSERV-ID, such as 127.0.0.1=mx.example.com", entry)
		}
		list = append(list, TrustedRelay{prefix, id})
	}
	return list, nil
}

// parseNetwork parses an address or a network.
func parseNetwork(text string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		ip, err := netip.ParseAddr(text)
		if err != nil || ip.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%q is neither an address nor a network", text)
		}
		ip = ip.Unmap()
		prefix = netip.PrefixFrom(ip, ip.BitLen())
	}
	if prefix.Bits() == 0 { // certainly a mistake, and a dangerous one
		return netip.Prefix{}, fmt.Errorf("%q is every address: every sender would count as verified", text)
	}
	return prefix.Masked(), nil
}

// relaysAt returns the relays that may connect from an address.
func (s *Server) relaysAt(addr string) (list []TrustedRelay) {
	ip, err := netip.ParseAddr(addr)
	if err != nil {
		return nil
	}
	ip = ip.WithZone("").Unmap() // as the networks are written
	for _, relay := range s.cfg.TrustedRelays {
		if relay.Network.Contains(ip) {
			list = append(list, relay)
		}
	}
	return list
}

// relayReport returns the report of the trusted relay that delivered the mail. It returns an empty
// one if the peer is no trusted relay, or has added no report.
func (s *Server) relayReport(addr string, h message.Header) message.AuthReport {
	relays := s.relaysAt(addr)
	if len(relays) == 0 || !h.SoleFrom {
		return message.AuthReport{}
	}
	ids := make([]string, len(relays))
	for i, relay := range relays {
		ids[i] = relay.ID
	}
	return h.AuthReport(ids)
}

// relayVerdicts returns the results of a relay's checks for the domain of an author.
func relayVerdicts(r message.AuthReport, from string) (spf, dmarc Verdict, signatures []Verdict) {
	s := r.Sole("spf", "smtp.mailfrom") // some relays report SPF of the greeting, too
	spf = Verdict{Result: s.Value, Domain: s.Domain("smtp.mailfrom")}
	d := r.Sole("dmarc", "")
	dmarc = Verdict{Result: resultNone, Domain: message.DomainOf(from)}
	// The relay may have checked another From than the one that is read here.
	if domain := d.Domain("header.from"); domain == dmarc.Domain {
		dmarc.Result = d.Value
	}
	for _, k := range r.All("dkim") {
		signatures = append(signatures, Verdict{Result: k.Value, Domain: k.Domain("header.d", "header.i")})
	}
	return spf, dmarc, signatures
}
