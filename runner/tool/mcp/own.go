package mcp

import (
	"net/netip"
	"net/url"
	"strings"
)

// isOwn reports whether s is this program's own /mcp: at the address of the dashboard, or at the
// listener of this process on this machine. Only then may a call hold the token that names the call:
// another server could send the token back and act inside the caller's turn.
func (c Config) isOwn(s *Server) bool {
	if s.stdio() {
		return false
	}
	at, err := url.Parse(s.URL)
	if err != nil {
		return false
	}
	for _, own := range []string{c.BaseURL, c.LocalURL} {
		u, err := url.Parse(own)
		if err != nil || own == "" {
			continue
		}
		samePlace := strings.EqualFold(at.Host, u.Host) || own == c.LocalURL && at.Port() == u.Port() &&
			isLoopback(at.Hostname()) && isLoopback(u.Hostname())
		if samePlace && at.Scheme == u.Scheme && at.Path == strings.TrimSuffix(u.Path, "/")+"/mcp" {
			return true
		}
	}
	return false
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}
