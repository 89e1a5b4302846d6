package handlers

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the addresses of proxies whose word on where a request comes from is
// taken.
type Proxies []netip.Prefix

// ParseProxies reads addresses and networks such as 10.0.0.0/8.
func ParseProxies(texts []string) (Proxies, error) {
	var list Proxies
	for _, text := range texts {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			ip, err := netip.ParseAddr(text)
			if err != nil {
				return nil, fmt.Errorf("%q is neither an address nor a network", text)
			}
			network = netip.PrefixFrom(ip, ip.BitLen())
		}
		list = append(list, network.Masked())
	}
	return list, nil
}

func (p Proxies) trusted(ip netip.Addr) bool {
	return slices.ContainsFunc(p, func(n netip.Prefix) bool { return n.Contains(ip.Unmap()) })
}

// Behind gives h the address of the client in the place of the proxy's, as the proxy
// tells it in X-Forwarded-For. Each proxy appends whom it hears, so the list is true
// from its end up to the first address that is no proxy of ours; what stands before
// that is the client's own word.
func (p Proxies) Behind(h http.Handler) http.Handler {
	if len(p) == 0 {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if client := p.client(r); client != "" {
			r2 := *r
			r2.RemoteAddr = net.JoinHostPort(client, "0")
			r = &r2
		}
		h.ServeHTTP(w, r)
	})
}

// client is where a request comes from, ” where no proxy of ours says more than the
// connection does.
func (p Proxies) client(r *http.Request) string {
	peer, err := netip.ParseAddr(clientAddr(r))
	if err != nil || !p.trusted(peer) {
		return ""
	}
	client := ""
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		ip, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			break
		}
		client = ip.Unmap().String()
		if !p.trusted(ip) {
			break
		}
	}
	return client
}
