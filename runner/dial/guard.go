// Package dial connects to hosts that workers, users and pages name. A Guard refuses the addresses of the
// operator's private network, whatever the host's name resolves to. The package also checks hosts and ports of
// URLs before a connection.
//
// It imports no other package of this program. No other package may connect to a host with an untrusted name
// except through a Guard. An error contains no address, so it reveals nothing about the network.
package dial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/net/idna"
)

// ErrAddressRefused is the error of a Guard for an address outside the public internet. It
// does not contain the address, so it reveals nothing about the network.
var ErrAddressRefused = errors.New("the host has an address that is not public, which is not allowed")

// A Guard connects to hosts with untrusted names. Such a name could resolve to an address in
// the operator's private network (server-side request forgery). So the Guard checks the
// address that the operating system is about to dial. Neither another notation nor a DNS record
// that changes in between avoids the check. The zero value only reaches public addresses.
type Guard struct {
	AllowPrivate bool          // permits private, loopback and link-local addresses, except cloud metadata
	Resolver     *net.Resolver // nil for the system's
}

// DialContext connects as net.Dialer.DialContext does, over TCP only.
func (d Guard) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "tcp" && network != "tcp4" && network != "tcp6" {
		return nil, fmt.Errorf("dial %s: %w", network, net.UnknownNetworkError(network))
	}
	// net.Dialer calls check for each resolved address, right before it connects.
	check := func(_ context.Context, _, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("dial %s: %w", address, err)
		}
		return d.CheckAddr(to.Addr())
	}
	guarded := net.Dialer{Resolver: d.Resolver, ControlContext: check}
	return guarded.DialContext(ctx, network, address)
}

// CheckHost returns an error for a host of a URL that DialContext would refuse. It checks only
// the text: an address in any notation, or a name of this machine. DialContext checks the
// addresses of other names.
func (d Guard) CheckHost(host string) error {
	name, err := idna.Lookup.ToASCII(host) // like net/http: many scripts have their own digits
	if err != nil {
		name = host
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if ip, err := netip.ParseAddr(name); err == nil {
		return d.CheckAddr(ip)
	}
	// A colon cannot be in a name: "::%." without its dot is an address without the name of its zone.
	if strings.Contains(name, ":") {
		return fmt.Errorf("%q is neither a name nor an address", host)
	}
	if isLocalName(name) {
		return d.CheckAddr(netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	}
	if ip, numeric := looseIPv4(name); numeric {
		if !ip.IsValid() {
			return fmt.Errorf("%q is neither a name nor an address", host)
		}
		if err := d.CheckAddr(ip); err != nil {
			return err
		}
		// Programs interpret such notations differently: 010.0.0.1 is 8.0.0.1 or 10.0.0.1. So
		// reject all.
		return fmt.Errorf("%q must be written as %s", host, ip)
	}
	return nil
}

// ErrPort is the error of a URL whose port is not valid.
var ErrPort = errors.New("the port must be a number from 1 to 65535")

// CheckPort returns ErrPort for a URL whose port is not valid. A URL without a colon after its
// host has the port of its scheme.
func CheckPort(u *url.URL) error {
	port := u.Port()
	if port == "" && !strings.HasSuffix(u.Host, ":") {
		return nil
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return ErrPort
	}
	return nil
}

// looseIPv4 parses an IPv4 address in the notations of inet_aton(3), so that they do not avoid
// CheckHost. They have one to four numbers: decimal, octal (0177) or hexadecimal (0x7f). The
// last number fills the remaining bytes. numeric reports whether the last part is a number:
// then the text cannot be a name (WHATWG URL standard).
func looseIPv4(text string) (ip netip.Addr, numeric bool) {
	parts := strings.Split(text, ".")
	if _, ok := looseNumber(parts[len(parts)-1]); !ok {
		return netip.Addr{}, false
	}
	if len(parts) > 4 {
		return netip.Addr{}, true
	}
	var v uint64
	for i, part := range parts {
		n, ok := looseNumber(part)
		left := 4 - i // bytes of the address that are not set yet
		if i < len(parts)-1 {
			v, ok = v|n<<(8*(left-1)), ok && n < 256
		} else {
			v, ok = v|n, ok && n < 1<<(8*left)
		}
		if !ok {
			return netip.Addr{}, true
		}
	}
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}), true
}

// looseNumber parses one number of such an address. For an invalid number it returns a number
// that is too large for any address.
func looseNumber(text string) (n uint64, numeric bool) {
	base := 10
	switch {
	case strings.HasPrefix(text, "0x"):
		text, base = text[2:], 16
		if text == "" {
			text = "0"
		}
	case len(text) > 1 && text[0] == '0':
		text, base = text[1:], 8
	}
	n, err := strconv.ParseUint(text, base, 64)
	if errors.Is(err, strconv.ErrRange) {
		return 1 << 40, true
	}
	if err == nil {
		return n, true
	}
	_, decimal := strconv.ParseUint(text, 10, 64) // "08" looks like a number, but is not octal
	return 1 << 40, base == 8 && decimal == nil
}

// CheckAddr returns ErrAddressRefused for an address that is not public.
func (d Guard) CheckAddr(ip netip.Addr) error {
	// An address with a zone matches no block, and ::ffff:10.0.0.1 is 10.0.0.1.
	ip = ip.WithZone("").Unmap()
	// The traffic goes to the embedded IPv4 address, so check that address.
	if within(ip, nat64) {
		b := ip.As16()
		return d.CheckAddr(netip.AddrFrom4([4]byte(b[12:16])))
	}
	switch {
	// Before isPrivate: most of these addresses are private, but AllowPrivate must not permit
	// them.
	case isMetadata(ip):
		return ErrAddressRefused
	case isPrivate(ip):
		if d.AllowPrivate {
			return nil
		}
		return ErrAddressRefused
	case isSpecial(ip):
		return ErrAddressRefused
	}
	return nil
}

// Blocks of addresses that CheckAddr treats specially.
const (
	// nat64 holds the addresses by which a network without IPv4 reaches IPv4 servers
	// (RFC 6052). In such a network, each IPv4 server has one of them. Its last four bytes
	// are the IPv4 address.
	nat64 = "64:ff9b::/96"

	// globalIPv6 holds all IPv6 addresses that IANA has assigned for public use. It excludes
	// the IPv4-compatible (::/96) and translated (::ffff:0:0:0/96) addresses,
	// multicast, and the blocks 100::/64, 100:0:0:1::/64 and 5f00::/16 of the registry.
	globalIPv6 = "2000::/3"
)

// isMetadata reports whether an address serves cloud metadata, which contains secrets. No
// worker and no webhook needs it, so AllowPrivate does not permit it.
func isMetadata(ip netip.Addr) bool {
	return within(ip, "169.254.169.254/32", // nearly all clouds
		"168.63.129.16/32",                                            // Azure, a public address
		"169.254.169.253/32", "169.254.170.2/32", "169.254.170.23/32", // AWS: name server, ECS, EKS
		"169.254.0.23/32", "169.254.42.42/32", // Tencent, Scaleway
		"100.100.100.200/32", "192.0.0.192/32", // Alibaba, Oracle
		"fd00:ec2::/32", "fd20:ce::254/128", "fd00:c1::a9fe:a9fe/128", // AWS, Google, Oracle
		"fd00:42::42/128", "fd00:a9fe:a9fe::1/128", "fd00:100::100:200/128") // Scaleway, Akamai, Alibaba
}

// isPrivate reports whether an address belongs to this machine or to a private network.
func isPrivate(ip netip.Addr) bool {
	return within(ip, "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", // RFC 1918, RFC 6598
		"127.0.0.0/8", "169.254.0.0/16", // loopback and link-local
		"::1/128", "fc00::/7", "fe80::/10", "fec0::/10", "64:ff9b:1::/48") // the same for IPv6, RFC 8215
}

// isSpecial reports whether an address is multicast, in the reserved class E, or in another
// block of IANA's special-purpose registries. Some blocks are reachable, such as those of
// AS112, but serve no web pages.
func isSpecial(ip netip.Addr) bool {
	// 6to4 (2002::/16) and Teredo (2001::/32) tunnel to an IPv4 address inside their own
	// address, which could be a private one. Both are out of use.
	return ip.Is6() && !within(ip, globalIPv6) ||
		within(ip, "0.0.0.0/8", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24",
			"192.88.99.0/24", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
			"224.0.0.0/4", "240.0.0.0/4",
			"2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")
}

// within reports whether one of the blocks contains an address.
func within(ip netip.Addr, blocks ...string) bool {
	return slices.ContainsFunc(blocks, func(b string) bool { return netip.MustParsePrefix(b).Contains(ip) })
}

// isLocalName reports whether a lower-case name always means this machine (RFC 6761).
func isLocalName(name string) bool {
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// IsLoopback reports whether the host of a URL is this machine. It checks only the text.
func IsLoopback(host string) bool {
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if isLocalName(name) {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Unmap().IsLoopback()
}
