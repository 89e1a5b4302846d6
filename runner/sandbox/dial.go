package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/net/idna"
)

// ErrAddressRefused is why a Dialer does not connect: the address is not on the
// public internet. It names no address, so that it tells nothing of the network.
var ErrAddressRefused = errors.New("the host has an address that is not public, which is not allowed")

// A Dialer connects to hosts that others have named. It looks at the address that
// is really dialled, after names were resolved, so that no name, no other way of
// writing an address and no change of the name's records in between gets around
// it. The zero value reaches public addresses alone.
type Dialer struct {
	AllowPrivate bool          // also private, loopback and link-local addresses
	Resolver     *net.Resolver // the system's where nil
}

// DialContext connects as net.Dialer's does, over TCP.
func (d Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "tcp" && network != "tcp4" && network != "tcp6" {
		return nil, fmt.Errorf("dial %s: %w", network, net.UnknownNetworkError(network))
	}
	guarded := net.Dialer{Resolver: d.Resolver, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("dial %s: %w", address, err)
		}
		return d.CheckAddr(to.Addr())
	}}
	return guarded.DialContext(ctx, network, address)
}

// CheckHost refuses the host of a URL that would be refused when dialled, as far
// as its text tells: an address, however it is written, or a name of this machine.
// What a name stands for is looked at when it is dialled.
func (d Dialer) CheckHost(host string) error {
	name, err := idna.Lookup.ToASCII(host) // as the HTTP client does: digits may be written in many scripts
	if err != nil {
		name = host
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if ip, err := netip.ParseAddr(name); err == nil {
		return d.CheckAddr(ip)
	}
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return d.CheckAddr(netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	}
	if ip, numeric := looseIPv4(name); numeric {
		if !ip.IsValid() {
			return fmt.Errorf("%q is neither a name nor an address", host)
		}
		if err := d.CheckAddr(ip); err != nil {
			return err
		}
		return fmt.Errorf("%q must be written as %s", host, ip)
	}
	return nil
}

// looseIPv4 reads an address as old programs do: one to four numbers, decimal,
// octal (0177) or hexadecimal (0x7f), the last of which fills the rest. numeric
// says that the last part is a number, so that the text is no name.
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
		left := 4 - i // bytes that are not set yet
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

func looseNumber(text string) (uint64, bool) {
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
		return 1 << 40, true // too large for anything
	}
	if err == nil {
		return n, true
	}
	_, decimal := strconv.ParseUint(text, 10, 64) // 08 is a number still
	return 1 << 40, base == 8 && decimal == nil
}

// CheckAddr refuses an address that is not public, or that stands for one.
func (d Dialer) CheckAddr(ip netip.Addr) error {
	ip = ip.WithZone("").Unmap()
	if v4, ok := embedded(ip); ok {
		return d.CheckAddr(v4)
	}
	if contains(private, ip) {
		if d.AllowPrivate {
			return nil
		}
		return ErrAddressRefused
	}
	if contains(special, ip) || ip.Is6() && !globalIPv6.Contains(ip) {
		return ErrAddressRefused
	}
	return nil
}

// embedded gives the IPv4 address that traffic to an IPv6 address ends at: through
// a NAT64 gateway (RFC 6052) or 6to4 (RFC 3056).
func embedded(ip netip.Addr) (netip.Addr, bool) {
	if !ip.Is6() {
		return netip.Addr{}, false
	}
	b := ip.As16()
	switch {
	case nat64.Contains(ip):
		return netip.AddrFrom4([4]byte(b[12:16])), true
	case sixToFour.Contains(ip):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return netip.Addr{}, false
}

func contains(list []netip.Prefix, ip netip.Addr) bool {
	for _, p := range list {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour  = netip.MustParsePrefix("2002::/16")
	globalIPv6 = netip.MustParsePrefix("2000::/3") // all that is given out

	// private are the addresses of one's own machine and network.
	private = prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", // RFC 1918, RFC 6598
		"127.0.0.0/8", "169.254.0.0/16", // loopback and link-local
		"::1/128", "fc00::/7", "fe80::/10", "fec0::/10", "64:ff9b:1::/48") // their likes in IPv6, RFC 8215

	// special are addresses that no server has (RFC 6890 and its registries), or that
	// are more than one.
	special = prefixes("0.0.0.0/8", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
		"224.0.0.0/4", "240.0.0.0/4", "2001::/23", "2001:db8::/32", "3fff::/20")
)

func prefixes(list ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, p := range list {
		all = append(all, netip.MustParsePrefix(p))
	}
	return all
}

// IsLoopback reports whether the host of a URL is this machine by its text: a
// loopback address or localhost.
func IsLoopback(host string) bool {
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Unmap().IsLoopback()
}
