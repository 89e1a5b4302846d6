package store_test

import (
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
)

func TestNetworkOf(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"192.0.2.1":            "192.0.2.1",
		"::ffff:192.0.2.1":     "192.0.2.1",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
		"2001:db8:1:2::9":      "2001:db8:1:2::/64",
		"2001:db8:1:3::9":      "2001:db8:1:3::/64",
		"fe80::1%eth0":         "fe80::/64",
		"::1":                  "::/64",
		"@":                    "@", // a Unix socket
		"":                     "",
	} {
		is.New(t).Equal(store.NetworkOf(addr), want)
	}
}
