//go:build !race

// The race detector makes every parser slower by another factor.

package mailfile

import (
	"testing"

	"journeyman/store/growthtest"
)

// parsers returns the readers of envelopes and of mails that are files. They run in a confined process.
func parsers() []growthtest.Parser {
	times, nested := growthtest.Times, growthtest.Nested
	return []growthtest.Parser{
		{
			Name: "S/MIME", Fuzz: []string{"FuzzOpen"},
			Read: func(in []byte) { IsEnvelope(in); _, _ = Open(in, never) },
			Shapes: map[string]growthtest.Shape{
				"a long text": func(n int) string { return string(signed(der, der(tagOctets, []byte(times("", "a", "")(n))))) },
				"pieces": func(n int) string {
					return string(signed(ber, ber(tagOctets|constructed, []byte(times("", "\x04\x01a", "")(n)))))
				},
				"empty pieces": func(n int) string {
					return string(signed(ber, ber(tagOctets|constructed, []byte(times("", "\x24\x80\x00\x00", "")(n)))))
				},
				"nested":        times("", "\x30\x80", ""),
				"nested octets": func(n int) string { return string(signed(ber, []byte(nested("", "\x24\x80", "", "\x00\x00")(n)))) },
				"signed, signed": func(n int) string {
					document := []byte(times("", "a", "")(n))
					for range 10 {
						document = signed(der, der(tagOctets, document))
					}
					return string(document)
				},
				"base64": times("", "MIAG", ""), "zeros": times("\x30\x80", "\x00", "")}},
	}
}

func TestParsersGrowSlowly(t *testing.T) { growthtest.Check(t, parsers()) }
