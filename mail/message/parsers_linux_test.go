//go:build !race

// The race detector makes every parser slower by another factor.

package message

import (
	"io"
	"maps"
	"testing"

	"journeyman/store/growthtest"
)

// hostileMails returns the shapes of mails.
func hostileMails() map[string]growthtest.Shape {
	times, numbered, nested := growthtest.Times, growthtest.Numbered, growthtest.Nested
	mail := "From: a@example.com\r\nSubject: x\r\n"
	body := mail + "Content-Type: text/plain\r\n\r\n"
	page := mail + "Content-Type: text/html\r\n\r\n"
	return map[string]growthtest.Shape{
		"many fields": numbered(mail, "X-%d: y\r\n", "\r\ntext"), "one field": times(mail, "X: y\r\n", "\r\ntext"),
		"long field":     times(mail+"References: ", "<a@b> ", "\r\n\r\ntext"),
		"many addresses": numbered(mail+"To: ", "a%d@b,", "\r\n\r\n"),
		"many authors":   times(mail, "From: a@b\r\n", "\r\nx"),
		"Received":       times(mail, "Received: from a (b [1.2.3.4]) by c; Mon, 2 Jan 2006 15:04:05 +0000\r\n", "\r\nx"),
		"long Received":  nested(mail+"Received: from ", "(", "a", ")"),
		"folded":         times(mail+"X: y", "\r\n y", "\r\n\r\ntext"),
		"encoded words":  times("From: a@b\r\nSubject: ", "=?utf-8?q?a?= ", "\r\n\r\n"),
		"comments":       nested(mail+"To: ", "(", "", ")"),
		"quotes":         times(body, "> a\r\n", ""),
		"deep quotes":    times(body, ">", " x"),
		"long line":      times(body, "a", ""), "spaces": times(body, " ", "x"), "blank lines": times(body, "\r\n", ""),
		"On ... wrote":      times(body, "On a wrote b\r\n", ""),
		"long On ... wrote": times(body+"On 1 ", "a wrote ", ""),
		"attributions":      times(body, "On 1 a wrote:\r\n>\r\n", ""),
		"separators":        times(body, "-----Original Message\r\n", ""),
		"header blocks":     times(body, "From: a\r\n", ""),
		"signatures":        times(body, "-- \r\na\r\n", ""),
		"forwards":          times(body, "Begin forwarded message a\r\n", ""),
		"flowed":            times(mail+"Content-Type: text/plain; format=flowed\r\n\r\n", "a \r\n", ""),
		"boundaries":        times(mail+"Content-Type: multipart/mixed; boundary=b\r\n\r\n", "--b\r\n\r\nx\r\n", "--b--"),
		"almost boundaries": times(mail+"Content-Type: multipart/mixed; boundary=bbbbbbbb\r\n\r\n--bbbbbbbb\r\n\r\n",
			"--bbbbbb\r\n", ""),
		"repeated boundary": times(mail+"Content-Type: multipart/mixed; boundary=aaaaaaaaaaaaaaaab\r\n\r\n", "a", ""),
		"named boundaries":  numbered(mail+"Content-Type: multipart/mixed; boundary=b\r\n\r\n", "boundary=b%d\r\n", ""),
		"nested parts":      numbered(mail, "Content-Type: multipart/mixed; boundary=b%[1]d\r\n\r\n--b%[1]d\r\n", "x"),
		"attached mails":    times(mail, "Content-Type: message/rfc822\r\n\r\n", "x"),
		"parameters":        numbered(mail+"Content-Type: text/plain", "; p*%d=x", "\r\n\r\nx"),
		"base64":            times(mail+"Content-Transfer-Encoding: base64\r\n\r\n", "QUFB", ""),
		"quoted printable":  times(mail+"Content-Transfer-Encoding: quoted-printable\r\n\r\n", "=41 ", ""),
		"soft line breaks":  times(mail+"Content-Transfer-Encoding: quoted-printable\r\n\r\n", "=\r\n", ""),
		"tags":              times(page, "<b>x", ""),
		"open tags":         times(page, "<", ""),
		"comments of pages": times(page, "<!--", ""),
		"styles":            times(page, "<style>", "")}
}

// parsers returns the readers of mails. The server reads the header and the MIME structure itself: both are
// linear, and have limits of fields, parts and depth. The confined reader parses the HTML of mails.
func parsers() []growthtest.Parser {
	times, numbered, nested := growthtest.Times, growthtest.Numbered, growthtest.Nested
	mails := hostileMails()
	statuses := maps.Clone(mails)
	report := "From: a@b\r\nContent-Type: multipart/report; boundary=b\r\n\r\n" +
		"--b\r\nContent-Type: message/delivery-status\r\n\r\n"
	statuses["statuses"] = times(report, "Final-Recipient: rfc822; a@b\r\nStatus: 5.1.1\r\n\r\n", "--b--")
	statuses["recipients"] = times(report, "Action: delayed\r\nStatus: 4.0.0\r\n\r\n", "\r\n--b--")
	statuses["reports in reports"] = numbered(report[:len(report)-44], "Content-Type: multipart/mixed; boundary=b%[1]d\r\n\r\n--b%[1]d\r\n", "")
	statuses["ids"] = numbered(report, "Message-ID: <%d@b>\r\n", "--b--")
	return []growthtest.Parser{
		{
			Name: "mail header",
			Read: func(in []byte) {
				h := ReadHeader(in)
				_, _ = h.Date()
				h.AuthReport([]string{"mx"})
			}, Shapes: mails},
		{
			Name: "mail body", Fuzz: []string{"FuzzMessage"},
			Read: func(in []byte) {
				_, _ = ReadBody(ReadHeader(in), in, func([]string) ([]string, error) { return nil, nil },
					func(a Attachment) error { _, err := io.Copy(io.Discard, a); return err })
			}, Shapes: mails},
		{
			Name: "parts of a text", Fuzz: []string{"FuzzSplit"},
			Read: func(in []byte) {
				h := Header{Subject: "Re: x", From: "a@b", FromName: "Ann", To: []string{"w@b"}, InReplyTo: []string{"1@b"}}
				b := splitBody(string(in), h)
				b.Beyond([]string{"known"})
				Body{History: string(in)}.Beyond([]string{string(in)})
			}, Shapes: map[string]growthtest.Shape{
				"fields":     times("", "From: A <a@b>\n", ""),
				"forms":      numbered("", "A: 1%d\n\nB: 2026, 9:30\n", ""),
				"blocks":     numbered("", "From: A <a@b>\nSent: 2026 9:30\nTo: b\nSubject: x%d\n", ""),
				"rules":      times("", "--------\n", "a: b"),
				"dashes":     times("", "-", ""),
				"marks":      times("", "-----a-----\n", ""),
				"sentences":  numbered("", "On 1.1.2026 9:30 <a@b> wrote %d:\n", ""),
				"wrapped":    times("", "On 1.1.2026 9:30 <a@b>\n", ""),
				"quotes":     numbered("", "> a%d\nb\n", ""),
				"forwards":   times("", "> Forwarded message\n", ""),
				"signatures": times("", "-- \nSent from my iPhone\n", ""),
				"devices":    times("", "iPhone\n", ""),
				"links":      times("", "<https://a ", ""),
				"words":      times("Sent from ", "my ", "iPhone")}},
		{
			Name: "hash of a mail", Fuzz: []string{"FuzzContentHash"},
			Read: func(in []byte) { ReadHeader(in).ContentHash() }, Shapes: mails},
		{
			Name: "bounce",
			Read: func(in []byte) { ReplyIDs(in); BounceReason(ReadHeader(in), in) }, Shapes: statuses},
		{
			Name: "Markdown of an answer", Most: 32 << 10, // the limit of runner.CheapMarkdown, which also limits links
			Read: func(in []byte) { _, _ = RenderMarkdown(in) }, Shapes: map[string]growthtest.Shape{
				"stars":       times("", "*a **b ", ""),
				"brackets":    times("", "[", ""),
				"backquotes":  numbered("", "`%d``", ""),
				"tables":      times("|a|\n|-|\n", "|", "\n"),
				"references":  numbered("", "[%[1]d]: /x\n[%[1]d]\n", ""),
				"less":        times("", "<", ""),
				"underscores": times("", "a_", "")}},
		{
			Name: "Authentication-Results", Fuzz: []string{"FuzzParseAuthResults"},
			Read: func(in []byte) { _, _ = ParseAuthResults(string(in)) }, Shapes: map[string]growthtest.Shape{
				"results":  times("mx", "; spf=pass smtp.mailfrom=a@b", ""),
				"comments": nested("mx; spf=pass ", "(", "", ")"), "spaces": times("mx; spf", " ", "=pass"),
				"quotes": times(`mx; spf="`, `\"`, `"`), "properties": numbered("mx; spf=pass", " a.b%d=c", "")}},
		{
			Name: "address",
			Read: func(in []byte) { NormalAddress(string(in)); DomainOf(string(in)); OneLine(string(in)) },
			Shapes: map[string]growthtest.Shape{
				"at signs": times("a", "@", "b"), "dots": times("a@", "b.", "c"), "marks": times("a@", "é.", "c"),
				"punycode": times("a@xn--", "a", ".c"), "comments": nested("a", "(", "", ")@b")}},
	}
}

func TestParsersGrowSlowly(t *testing.T) { growthtest.Check(t, parsers()) }
