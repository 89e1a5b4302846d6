//go:build !race

// The race detector makes every parser slower by another factor.

package mailfile

import (
	"strings"
	"testing"

	"journeyman/store/growthtest"
)

// parsers returns the readers of envelopes and of mails that are files. They run in a confined process.
func parsers() []growthtest.Parser {
	times, numbered, nested := growthtest.Times, growthtest.Numbered, growthtest.Nested
	const head = "Subject: x\r\n"
	mixed := head + "Content-Type: multipart/mixed; boundary=b\r\n\r\n"
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
		{
			Name: "mail as a file", Fuzz: []string{"FuzzEML"},
			Read: func(in []byte) { _, _ = EML(strings.ToUpper)(in, never); _, _ = Members(in, never) },
			Shapes: map[string]growthtest.Shape{
				"fields": numbered(head, "X-%d: y\r\n", "\r\ntext"), "one field": times(head, "X: y\r\n", "\r\ntext"),
				"folded": times(head+"X: y", "\r\n y", "\r\n\r\ntext"), "words": times("Subject: ", "=?utf-8?q?a?= ", "\r\n\r\n"),
				"parts": times(mixed, "--b\r\n\r\nx\r\n", "--b--"), "almost boundaries": times(mixed+"--b\r\n\r\n", "--bb\r\n", ""),
				"files":          times(mixed, "--b\r\nContent-Type: a/b; name=a.txt\r\n\r\nx\r\n", "--b--"),
				"nested parts":   numbered(head, "Content-Type: multipart/mixed; boundary=b%[1]d\r\n\r\n--b%[1]d\r\n", "x"),
				"mails in mails": times(head, "Content-Type: message/rfc822\r\n\r\nSubject: x\r\n", "x"),
				"base64":         times(head+"Content-Transfer-Encoding: base64\r\n\r\n", "QUFB", ""),
				"quoted":         times(head+"Content-Transfer-Encoding: quoted-printable\r\n\r\n", "=41 ", ""),
				"soft breaks":    times(head+"Content-Transfer-Encoding: quoted-printable\r\n\r\n", "=\r\n", ""),
				"lines":          times(head+"\r\n", "a\r\n", ""), "blank lines": times(head+"\r\n", "\r\n", "")}},
	}
}

func TestParsersGrowSlowly(t *testing.T) { growthtest.Check(t, parsers()) }
