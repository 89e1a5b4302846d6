package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"
)

// dnsTime limits each question to the DNS.
const dnsTime = 8 * time.Second

// checkMail reports whether the DNS leads mail to this server, and whether the relay accepts a
// sign-in.
func (x *examination) checkMail(ctx context.Context) []check {
	return append(x.checkMailDomain(ctx), x.checkRelay(ctx))
}

// checkMailDomain checks the DNS records that other mail servers look up.
func (x *examination) checkMailDomain(ctx context.Context) []check {
	domain := strings.TrimSuffix(x.MailDomain, ".")
	if x.SMTPAddr == "" {
		return []check{{"domain", statusSkipped, "mail is off", ""}}
	}
	if domain == "localhost" || !strings.Contains(domain, ".") {
		return []check{{"domain", statusSkipped, fmt.Sprintf("nobody outside this machine can mail to %s", domain), ""}}
	}
	r := x.Resolver
	if r == nil {
		r = net.DefaultResolver
	}
	list, hosts := checkExchangers(ctx, r, domain)
	for _, host := range hosts {
		list = append(list, checkHost(ctx, r, host)...)
	}
	return append(list,
		checkText(ctx, r, "SPF", domain, "v=spf1", statusWarning,
			"add a TXT record such as \"v=spf1 mx -all\" that names the relay too, or replies may count as spam"),
		checkText(ctx, r, "DMARC", "_dmarc."+domain, "v=DMARC1", statusWarning,
			"add a TXT record such as \"v=DMARC1; p=quarantine\" at _dmarc."+domain))
}

// checkExchangers returns the mail hosts of a domain.
func checkExchangers(ctx context.Context, r *net.Resolver, domain string) ([]check, []string) {
	mx, err := ask(ctx, dnsTime, func(ctx context.Context) ([]*net.MX, error) { return r.LookupMX(ctx, domain) })
	if len(mx) > 0 {
		var hosts []string
		for _, one := range mx[:min(len(mx), 5)] {
			hosts = append(hosts, strings.TrimSuffix(one.Host, "."))
		}
		return []check{{"MX", statusOK, strings.Join(hosts, ", "), ""}}, hosts
	}
	if err != nil && !isNotFound(err) {
		return []check{noDNS("MX", err)}, nil
	}
	return []check{{"MX", statusFailed, domain + " has no MX record",
		"add an MX record for " + domain + " that names this server, or the mail server that hands mail to it"}}, nil
}

// checkHost checks the addresses of a mail host, and whether they lead back to its name.
func checkHost(ctx context.Context, r *net.Resolver, host string) []check {
	addrs, err := ask(ctx, dnsTime, func(ctx context.Context) ([]netip.Addr, error) {
		return r.LookupNetIP(ctx, "ip", host)
	})
	if err != nil && !isNotFound(err) {
		return []check{noDNS("address", err)}
	}
	if len(addrs) == 0 {
		return []check{{"address", statusFailed, host + " has no address",
			"add an A or AAAA record for " + host}}
	}
	list := []check{{"address", statusOK, fmt.Sprintf("%s is %s", host, addrs[0].Unmap()), ""}}
	names, err := ask(ctx, dnsTime, func(ctx context.Context) ([]string, error) {
		return r.LookupAddr(ctx, addrs[0].Unmap().String())
	})
	switch {
	case len(names) > 0:
		return append(list, check{"PTR", statusOK, strings.TrimSuffix(names[0], "."), ""})
	case err != nil && !isNotFound(err):
		return append(list, noDNS("PTR", err))
	}
	return append(list, check{"PTR", statusWarning, addrs[0].Unmap().String() + " has no name",
		"have your provider set the reverse name of the address to " + host + ", or send replies by a relay"})
}

// checkText looks for a TXT record that begins with a word.
func checkText(ctx context.Context, r *net.Resolver, name, domain, begin string, missing status, advice string) check {
	texts, err := ask(ctx, dnsTime, func(ctx context.Context) ([]string, error) { return r.LookupTXT(ctx, domain) })
	if err != nil && !isNotFound(err) {
		return noDNS(name, err)
	}
	for _, text := range texts {
		if strings.HasPrefix(strings.ToLower(text), strings.ToLower(begin)) {
			return check{name, statusOK, text, ""}
		}
	}
	return check{name, missing, domain + " has no such record", advice}
}

// isNotFound reports whether the DNS has answered that there is no such record.
func isNotFound(err error) bool {
	e, ok := errors.AsType[*net.DNSError](err)
	return ok && e.IsNotFound
}

// noDNS returns the result of a query without an answer: this machine may be offline.
func noDNS(name string, err error) check {
	return check{name, statusSkipped, "the DNS does not answer: " + reason(err), ""}
}

// checkRelay signs in to the relay and sends nothing.
func (x *examination) checkRelay(ctx context.Context) check {
	if x.CheckRelay == nil {
		return check{"relay", statusSkipped, "this program sends no mail", ""}
	}
	host, err := ask(ctx, 20*time.Second, x.CheckRelay)
	switch {
	case err != nil:
		return check{"relay", statusFailed, reason(err), "correct --smtp-relay: its host, port, user and password"}
	case host == "":
		return check{"relay", statusSkipped, "none is set: replies stay in the outbox", ""}
	}
	return check{"relay", statusOK, host + " accepts the sign-in", ""}
}
