package store

import "net/netip"

// NetworkOf returns the network to which limits for a client's address apply, for an address without a
// port. A client with one IPv6 address usually has a network of 2^64 addresses, so the whole
// network counts as one client.
func NetworkOf(addr string) string {
	ip, err := netip.ParseAddr(addr)
	if err != nil {
		return addr
	}
	if ip = ip.Unmap().WithZone(""); ip.Is6() {
		if network, err := ip.Prefix(64); err == nil {
			return network.String()
		}
	}
	return ip.String()
}
