package serve

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the addresses of trusted proxies, which name the clients of their requests.
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

// Behind returns a handler that replaces a proxy's address with its client's, from X-Forwarded-For.
// Each proxy appends the address of its peer. So only the end of the list, up to the first address
// that is no trusted proxy, is reliable. The client may have written the rest.
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

// client returns the address of a request's client, or "" if no trusted proxy names it.
func (p Proxies) client(r *http.Request) string {
	peer, err := netip.ParseAddr(ClientAddr(r))
	if err != nil || !p.trusted(peer) {
		return ""
	}
	client := ""
	for _, hop := range slices.Backward(ListHeader(r, "X-Forwarded-For")) {
		ip, err := netip.ParseAddr(hop)
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

// ListHeader returns the trimmed items of a header that holds a list (RFC 9110, section 5.6.1).
// A list may be in one field or in several.
func ListHeader(r *http.Request, name string) []string {
	items := strings.Split(strings.Join(r.Header.Values(name), ","), ",")
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
	}
	return items
}

// ClientAddr returns the address that a request comes from, without the port.
func ClientAddr(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
