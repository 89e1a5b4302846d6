package dial_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"golang.org/x/net/dns/dnsmessage"

	"journeyman/runner/dial"
)

func TestCheckAddr(t *testing.T) {
	t.Parallel()
	for list, allowed := range map[string][2]bool{ // allowed without and with AllowPrivate
		"1.1.1.1 8.8.8.8 93.184.216.34 172.15.255.255 172.32.0.0 100.63.255.255 100.128.0.0 192.167.0.1 223.255.255.255 11.0.0.0": {true, true},
		"2606:4700::1111 2a00:1450:4001::1 2001:4860:4860::8888 ::ffff:8.8.8.8 64:ff9b::808:808":                                  {true, true},
		"127.0.0.1 127.255.255.255 10.0.0.1 172.16.0.1 172.31.255.255 192.168.0.1 100.64.0.1 100.127.255.255 169.254.169.252":     {false, true},
		"::1 fc00::1 fdff::1 fe80::1 fe80::1%eth0 fec0::1 64:ff9b:1::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.1":     {false, true},
		"64:ff9b::7f00:1 64:ff9b::a9fe:1 64:ff9b::10.0.0.1 fd00:ec3::254":                                                         {false, true},
		"2002:808:808::1 2002:7f00:1:: 2002:a00:1::1 2002:c0a8:101:: 2001:0:808:808:: 2620:4f:8000::1 192.31.196.1 192.52.193.1":  {false, false},
		"0.0.0.0 0.1.2.3 192.0.0.1 192.0.2.1 192.88.99.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.1.1.1":  {false, false},
		"240.0.0.1 255.255.255.255 :: ::7f00:1 ::8.8.8.8 100::1 2001::1 2001:10::1 2001:db8::1 3fff::1 5f00::1 ff02::1 ff0e::1":   {false, false},
		"::ffff:0.0.0.0 ::ffff:224.0.0.1 64:ff9b::0.0.0.0 64:ff9b::ffff:ffff 2002:e000:1:: ::ffff:0:127.0.0.1 4000::1":            {false, false},
	} {
		for text := range strings.FieldsSeq(list) {
			t.Run(text, func(t *testing.T) {
				is := is.New(t)
				ip := netip.MustParseAddr(text)
				is.Equal(dial.Guard{}.CheckAddr(ip) == nil, allowed[0])
				is.Equal(dial.Guard{AllowPrivate: true}.CheckAddr(ip) == nil, allowed[1])
			})
		}
	}
}

// registry holds the blocks of IANA's special-purpose address registries (RFC 6890), and the
// multicast and reserved blocks. The value shows whether AllowPrivate permits a block. An
// "embedded" block is permitted if the IPv4 address in its last four bytes is.
var registry = map[string]string{
	"0.0.0.0/8": "special", "10.0.0.0/8": "private", "100.64.0.0/10": "private", "127.0.0.0/8": "private", "169.254.0.0/16": "private",
	"172.16.0.0/12": "private", "192.0.0.0/24": "special", "192.0.0.0/29": "special", "192.0.0.8/32": "special", "192.0.0.9/32": "special",
	"192.0.0.10/32": "special", "192.0.0.170/31": "special", "192.0.2.0/24": "special", "192.31.196.0/24": "special",
	"192.52.193.0/24": "special", "192.88.99.0/24": "special", "192.88.99.2/32": "special", "192.168.0.0/16": "private",
	"192.175.48.0/24": "special", "198.18.0.0/15": "special", "198.51.100.0/24": "special", "203.0.113.0/24": "special",
	"224.0.0.0/4": "special", "240.0.0.0/4": "special", "255.255.255.255/32": "special",

	"::1/128": "private", "::/128": "special", "::ffff:0:0/96": "embedded", "64:ff9b::/96": "embedded", "64:ff9b:1::/48": "private",
	"100::/64": "special", "100:0:0:1::/64": "special", "2001::/23": "special", "2001::/32": "special", "2001:1::1/128": "special",
	"2001:1::2/128": "special", "2001:1::3/128": "special", "2001:2::/48": "special", "2001:3::/32": "special", "2001:4:112::/48": "special",
	"2001:10::/28": "special", "2001:20::/28": "special", "2001:30::/28": "special", "2001:db8::/32": "special", "2002::/16": "special",
	"2620:4f:8000::/48": "special", "3fff::/20": "special", "5f00::/16": "special", "fc00::/7": "private", "fe80::/10": "private",
	"fec0::/10": "private", "ff00::/8": "special", "::/96": "special", "::ffff:0:0:0/96": "special",

	"169.254.169.254/32": "metadata", "169.254.169.253/32": "metadata", "169.254.170.2/32": "metadata", "169.254.170.23/32": "metadata",
	"169.254.0.23/32": "metadata", "169.254.42.42/32": "metadata", "168.63.129.16/32": "metadata", "100.100.100.200/32": "metadata",
	"192.0.0.192/32": "metadata", "fd00:ec2::/32": "metadata", "fd20:ce::254/128": "metadata",
	"fd00:c1::a9fe:a9fe/128": "metadata", "fd00:42::42/128": "metadata", "fd00:a9fe:a9fe::1/128": "metadata", "fd00:100::100:200/128": "metadata",
}

// registered returns the value of the most specific block that contains an address, "" if there
// is none.
func registered(ip netip.Addr) (says string) {
	bits := -1
	for text, kind := range registry {
		block := netip.MustParsePrefix(text)
		if block.Contains(ip) && block.Bits() > bits {
			bits, says = block.Bits(), kind
		}
	}
	return says
}

// within returns an address of a block.
func within(r *rand.Rand, block netip.Prefix) netip.Addr {
	b := block.Addr().AsSlice()
	for i := block.Bits(); i < len(b)*8; i++ {
		b[i/8] |= byte(r.IntN(2)) << (7 - i%8)
	}
	ip, _ := netip.AddrFromSlice(b)
	return ip
}

// last returns the last address of a block.
func last(block netip.Prefix) netip.Addr {
	b := block.Addr().AsSlice()
	for i := block.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	ip, _ := netip.AddrFromSlice(b)
	return ip
}

// TestRegistries checks each registered block at both ends, at many addresses between, and just
// outside. It checks every way of writing these addresses in IPv6.
func TestRegistries(t *testing.T) {
	t.Parallel()
	for text, kind := range registry {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(1, 2))
			block := netip.MustParsePrefix(text)
			inside := []netip.Addr{block.Addr(), last(block)}
			for range 50 {
				inside = append(inside, within(r, block))
			}
			for _, ip := range inside {
				if kind == "special" {
					check(t, ip, false, false)
				}
				checkAsRegistered(t, ip)
			}
			for _, ip := range []netip.Addr{block.Addr().Prev(), last(block).Next()} {
				if ip.IsValid() {
					checkAsRegistered(t, ip)
				}
			}
		})
	}
	t.Run("anywhere", func(t *testing.T) {
		t.Parallel()
		r := rand.New(rand.NewPCG(3, 4))
		for range 4000 {
			checkAsRegistered(t, within(r, netip.MustParsePrefix("0.0.0.0/0")))
			checkAsRegistered(t, within(r, netip.MustParsePrefix("2000::/3")))
			checkAsRegistered(t, within(r, netip.MustParsePrefix("::/0")))
		}
	})
}

// checkAsRegistered compares the check of an address with the registry. It also checks the
// forms that embed an IPv4 address.
func checkAsRegistered(t *testing.T, ip netip.Addr) {
	t.Helper()
	public, reachable := allowed(ip)
	check(t, ip, public, reachable)
	if !ip.Is4() {
		return
	}
	v4 := ip.As4()
	embed := func(prefix string, at int) netip.Addr {
		b := netip.MustParseAddr(prefix).As16()
		copy(b[at:], v4[:])
		return netip.AddrFrom16(b)
	}
	check(t, embed("::ffff:0:0", 12), public, reachable)       // IPv4-mapped
	check(t, embed("64:ff9b::", 12), public, reachable)        // NAT64
	check(t, embed("::", 12), false, ip.String() == "0.0.0.1") // IPv4-compatible; ::1 is this machine
	check(t, embed("::ffff:0:0:0", 12), false, false)          // IPv4-translated
	check(t, embed("2002::", 2), false, false)                 // 6to4
	check(t, embed("2001::", 4), false, false)                 // Teredo, its server
	check(t, embed("2001::", 12), false, false)                // Teredo, its client
}

// allowed returns the expected results without and with AllowPrivate.
func allowed(ip netip.Addr) (public, reachable bool) {
	switch registered(ip) {
	case "private":
		return false, true
	case "special", "metadata":
		return false, false
	case "embedded":
		b := ip.As16()
		return allowed(netip.AddrFrom4([4]byte(b[12:])))
	}
	open := ip.Is4() || netip.MustParsePrefix("2000::/3").Contains(ip)
	return open, open
}

func check(t *testing.T, ip netip.Addr, public, reachable bool) {
	t.Helper()
	if got := (dial.Guard{}).CheckAddr(ip) == nil; got != public {
		t.Errorf("%s: allowed %v, want %v", ip, got, public)
	}
	if got := (dial.Guard{AllowPrivate: true}).CheckAddr(ip) == nil; got != reachable {
		t.Errorf("%s with private addresses: allowed %v, want %v", ip, got, reachable)
	}
}

func TestCheckHost(t *testing.T) {
	t.Parallel()
	for list, says := range map[string]string{
		"example.com example.com. EXAMPLE.com bücher.example xn--bcher-kva.example 1.1.1.1 2606:4700::1111 a.1e2 10.0.0.1.example.com":  "",
		"0x7f.example 127.0.0.1.nip.io localhost.example under_score.example":                                                           "", // names: checked when dialled
		"127.0.0.1 127.0.0.1. 127.1 127.0.1 2130706433 017700000001 0177.0.0.1 0x7f000001 0x7F.0.0.1 0x7f.1 0xa.0.0.1 012.0.0.1":        "not public",
		"::1 ::ffff:7f00:1 fe80::1%25eth0 fe80::1%eth0 ::1%25. localhost LOCALHOST localhost. a.localhost 0 0x 0.0.0.0 169.254.169.254": "not public",
		"１２７.０.０.１ 127。0。0。1 ⑩.0.0.1 ｌｏｃａｌｈｏｓｔ 2852039166 0xA9FEA9FE 3232235521 255.255.255.255 4294967295":                             "not public",
		"134744072 0x08080808 8.8 8.8.8 010.8.8.8": "must be written as",
		"256.0.0.1 1.2.3.4.5 4294967296 0x1ffffffff 1.2.3.256 08.1.1.1 1..1 1.2.3.08 99999999999999999999999 1.0x1ffffff ::%. [::1] a:b": "neither a name nor an address",
	} {
		for host := range strings.FieldsSeq(list) {
			t.Run(host, func(t *testing.T) {
				is := is.New(t)
				err := dial.Guard{}.CheckHost(host)
				if says == "" {
					is.NoErr(err)
					return
				}
				is.True(err != nil)
				is.True(strings.Contains(err.Error(), says)) // the reason
			})
		}
	}
	is := is.New(t)
	is.NoErr(dial.Guard{AllowPrivate: true}.CheckHost("127.0.0.1"))
	is.NoErr(dial.Guard{AllowPrivate: true}.CheckHost("localhost"))
	is.True(dial.Guard{AllowPrivate: true}.CheckHost("0.0.0.0") != nil)
}

func FuzzCheckHost(f *testing.F) {
	for _, host := range []string{"example.com", "127.1", "0x7f.1", "１２７.1", "[::1]", "::ffff:7f00:1", "fe80::1%eth0", "1..1", "", ".", "::%."} {
		f.Add(host)
	}
	f.Fuzz(func(t *testing.T, host string) {
		// An address that CheckHost accepts must be one that may be dialled.
		if (dial.Guard{}).CheckHost(host) != nil {
			return
		}
		if ip, err := netip.ParseAddr(host); err == nil && (dial.Guard{}).CheckAddr(ip) != nil {
			t.Fatalf("%q passes", host)
		}
	})
}

// TestDialChecksResolvedAddress dials names that resolve to forbidden addresses, where a
// listener would answer.
func TestDialChecksResolvedAddress(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	is.New(t).NoErr(err)
	defer ln.Close()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	is.New(t).NoErr(err)
	resolver := nameServer(t, map[string]string{
		"loopback.test.": "127.0.0.1", "mapped.test.": "::ffff:127.0.0.1", "nat64.test.": "64:ff9b::7f00:1", "metadata.test.": "169.254.169.254",
		"unspecified.test.": "0.0.0.0", "six.test.": "::1",
	})
	for _, host := range []string{"127.0.0.1", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::", "loopback.test", "mapped.test", "nat64.test",
		"metadata.test", "unspecified.test", "six.test", "localhost"} {
		t.Run(host, func(t *testing.T) {
			is := is.New(t)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			_, err := dial.Guard{Resolver: resolver}.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
			is.True(errors.Is(err, dial.ErrAddressRefused))
		})
	}
	is := is.New(t)
	conn, err := dial.Guard{Resolver: resolver, AllowPrivate: true}.DialContext(t.Context(), "tcp", "loopback.test:"+port)
	is.NoErr(err) // the listener responds
	is.NoErr(conn.Close())
	_, err = dial.Guard{AllowPrivate: true}.DialContext(t.Context(), "udp", "127.0.0.1:53")
	is.True(err != nil)
	_, err = dial.Guard{AllowPrivate: true}.DialContext(t.Context(), "unix", "/var/run/docker.sock")
	is.True(err != nil)
}

// nameServer resolves the names of a test, over a pipe instead of a network.
func nameServer(t *testing.T, names map[string]string) *net.Resolver {
	t.Helper()
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			for {
				length := make([]byte, 2) // over a stream connection, a message begins with its length
				if _, err := io.ReadFull(server, length); err != nil {
					return
				}
				query := make([]byte, int(length[0])<<8|int(length[1]))
				if _, err := io.ReadFull(server, query); err != nil {
					return
				}
				reply := answer(query, names)
				if _, err := server.Write(append([]byte{byte(len(reply) >> 8), byte(len(reply))}, reply...)); err != nil {
					return
				}
			}
		}()
		return client, nil
	}}
}

func answer(query []byte, names map[string]string) []byte {
	var m dnsmessage.Message
	if m.Unpack(query) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	m.Response, m.Additionals = true, nil
	ip, err := netip.ParseAddr(names[q.Name.String()])
	header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1}
	switch {
	case err != nil:
		m.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA && ip.Is4():
		m.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AResource{A: ip.As4()}}}
	case q.Type == dnsmessage.TypeAAAA && ip.Is6():
		m.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AAAAResource{AAAA: ip.As16()}}}
	}
	reply, err := m.Pack()
	if err != nil {
		return nil
	}
	return reply
}
