package mcp

import (
	"net/netip"
	"net/url"
	"strings"
)

// isOwn reports whether s is this program's own /mcp: at the address of the dashboard, or at an
// address on which this process listens. Only then may a call hold the token that names the call:
// another server could send the token back and act inside the caller's turn.
func (c Config) isOwn(s *Server) bool {
	if s.stdio() {
		return false
	}
	at, err := url.Parse(s.URL)
	if err != nil || at.Host == "" {
		return false
	}
	for _, own := range []string{c.BaseURL, c.ListenURL} {
		u, err := url.Parse(own)
		if err != nil || own == "" || at.Scheme != u.Scheme || portOf(at) != portOf(u) ||
			strings.TrimSuffix(at.Path, "/") != strings.TrimSuffix(u.Path, "/")+"/mcp" {
			continue
		}
		if sameHost(at.Hostname(), u.Hostname()) || own == c.ListenURL && listensOn(u.Hostname(), at.Hostname()) {
			return true
		}
	}
	return false
}

// portOf returns the port of an address, which may be the default of its scheme.
func portOf(u *url.URL) string {
	switch port := u.Port(); {
	case port != "":
		return port
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// sameHost reports whether two hosts are the same name or address, in any notation.
func sameHost(a, b string) bool {
	x, errX := netip.ParseAddr(a)
	y, errY := netip.ParseAddr(b)
	return strings.EqualFold(a, b) || errX == nil && errY == nil && x.Unmap() == y.Unmap()
}

// listensOn reports whether a listener that is bound to an address gets the connections to host, which
// is a name or an address of this machine. Another program may listen at the other addresses.
func listensOn(bound, host string) bool {
	b, err := netip.ParseAddr(bound)
	if err != nil {
		return false
	}
	b = b.Unmap()
	if strings.EqualFold(host, "localhost") {
		return b.IsUnspecified() || b.IsLoopback() && (!b.Is4() || b == netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	}
	h, err := netip.ParseAddr(host)
	h = h.Unmap()
	// A listener at [::] gets the connections of both families, one at 0.0.0.0 only those of IPv4.
	return err == nil && h.IsLoopback() && b.IsUnspecified() && (b.Is6() || h.Is4())
}
