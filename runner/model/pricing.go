package model

import (
	"net/netip"
	"net/url"
	"strings"
)

// A pricing says what decides the price of a model besides its name.
type pricing struct {
	names  []string // in the price table, the most precise first; Name of the model is not among them
	local  bool     // the server is on this machine or in its private network, so its calls are free
	billed bool     // the provider states the cost of each call
}

// pricingOf returns what decides the price of a model.
func pricingOf(m Model) pricing {
	if p, ok := m.(interface{ pricing() pricing }); ok {
		return p.pricing()
	}
	return pricing{}
}

// pricing returns that of the recorded model.
func (r *recorder) pricing() pricing { return pricingOf(r.model) }

// pricing returns that of a server with OpenAI's API. The price of a model depends on the host, not on the name
// that a user gave the provider.
func (s *openAIServer) pricing() pricing {
	if isHost(s.base, "openai.com") {
		return pricing{names: []string{"openai:" + s.model}}
	}
	return pricing{names: s.hostNames(), local: isLocal(s.base)}
}

// pricing adds that OpenRouter states its costs.
func (o *openAI) pricing() pricing {
	p := o.openAIServer.pricing()
	p.billed = o.router
	return p
}

// pricing returns that of a server with Anthropic's API. Other hosts offer this API for their own models.
func (c *claude) pricing() pricing {
	own := []string{"anthropic:" + c.model}
	if isHost(c.base, "anthropic.com") {
		return pricing{names: own}
	}
	return pricing{names: append(c.hostNames(), own...), local: isLocal(c.base)}
}

// pricing returns that of an Ollama server. Models with the tag cloud run at ollama.com.
func (o *ollama) pricing() pricing {
	cloud := strings.HasSuffix(o.model, "-cloud") || strings.HasSuffix(o.model, ":cloud")
	return pricing{names: o.hostNames(), local: isLocal(o.base) && !cloud}
}

// hostNames returns the names of a model in the price table by its host and by the domains above it:
// api.groq.com:MODEL and groq.com:MODEL.
func (m *remote) hostNames() (names []string) {
	host := strings.ToLower(strings.TrimSuffix(m.base.Hostname(), "."))
	for {
		names = append(names, priceHost(host)+":"+m.model)
		_, domain, found := strings.Cut(host, ".")
		_, noIP := netip.ParseAddr(host)
		if noIP == nil || !found || !strings.Contains(domain, ".") || len(names) == maxDomains {
			return names
		}
		host = domain
	}
}

// maxDomains limits the domains of a host that are looked up.
const maxDomains = 6

// priceHost returns the host under which the price table has the models of a provider with several.
func priceHost(host string) string {
	if host == "together.ai" {
		return "together.xyz"
	}
	return host
}

// isLocal reports whether an address is on this machine or in a private network by its form. It asks no name
// server. A name without a dot is that of a neighbour, as in a network of containers.
func isLocal(u *url.URL) bool {
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if ip, err := netip.ParseAddr(host); err == nil {
		ip = ip.Unmap().WithZone("")
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || sharedAddresses().Contains(ip)
	}
	if !strings.Contains(host, ".") {
		return host != ""
	}
	for _, domain := range []string{"localhost", "local", "internal", "lan", "home.arpa"} {
		if isHost(&url.URL{Host: host}, domain) {
			return true
		}
	}
	return false
}

// sharedAddresses are those of RFC 6598, which private overlay networks use.
func sharedAddresses() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64, 0, 0}), 10)
}
