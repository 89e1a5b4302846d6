// Package mailtext decodes the fields and texts of mails. Many mails have wrong labels: each function does what mail
// programs and browsers do with them, and loses nothing.
//
// It is pure, and imports nothing of this module.
package mailtext

import (
	"bytes"
	"encoding/binary"
	"io"
	"regexp"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/emersion/go-message/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
)

// Decode decodes text with the label of a charset. Labels mean what they mean in browsers: iso-8859-1 is
// Windows-1252. If the label is missing, unknown or wrong, valid UTF-8 counts as UTF-8, and other text as
// Windows-1252, which old programs send without a label.
func Decode(raw []byte, label string) string {
	label = strings.Trim(strings.ToLower(label), " \t\r\n\"'")
	isUTF8 := strings.HasPrefix(plainLabel(label), "utf8")
	if !isUTF8 && !isASCII(label) {
		if text, ok := decodeAs(raw, label); ok {
			return text
		}
	}
	if utf8.Valid(raw) {
		return string(raw)
	}
	if isUTF8 { // such a label is usually right, and the text is only damaged
		return strings.ToValidUTF8(string(raw), "\uFFFD")
	}
	text, _ := decodeWith(charmap.Windows1252, raw)
	return text
}

// decodeAs decodes text with a label. ok is false if the label is unknown, or wrong for UTF-8.
func decodeAs(raw []byte, label string) (text string, ok bool) {
	switch plainLabel(label) {
	case "iso2022kr", "csiso2022kr":
		label, raw = "euc-kr", withoutShifts(raw)
	case "utf7", "unicode11utf7", "xunicode20utf7", "csunicode11utf7":
		return utf7(raw), true
	}
	if e := browserEncoding(label); e != nil {
		text, ok = decodeWith(e, raw)
	} else if r, err := charset.Reader(label, bytes.NewReader(raw)); err == nil {
		b, err := io.ReadAll(r)
		text, ok = strings.ToValidUTF8(string(b), "\uFFFD"), err == nil
	}
	if ok && strings.ContainsRune(text, '\uFFFD') && utf8.Valid(raw) && bytes.IndexFunc(raw, isOutsideASCII) >= 0 {
		return "", false
	}
	return text, ok
}

// utf7 decodes UTF-7 (RFC 2152), which old programs send: "+", UTF-16 in base64, and "-".
func utf7(raw []byte) string {
	var out strings.Builder
	for text := string(raw); ; {
		before, rest, found := strings.Cut(text, "+")
		out.WriteString(strings.ToValidUTF8(before, "\uFFFD"))
		if !found {
			return out.String()
		}
		end := strings.IndexFunc(rest, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '+' && r != '/'
		})
		if end < 0 {
			end = len(rest)
		}
		if text = strings.TrimPrefix(rest[end:], "-"); end == 0 {
			out.WriteByte('+')
		}
		b := lenientBase64(rest[:end])
		units := make([]uint16, len(b)/2)
		for i := range units {
			units[i] = binary.BigEndian.Uint16(b[2*i:])
		}
		out.WriteString(string(utf16.Decode(units)))
	}
}

// withoutShifts returns ISO-2022-KR as EUC-KR, which has the same characters (RFC 1557).
func withoutShifts(raw []byte) []byte {
	out, high := make([]byte, 0, len(raw)), byte(0)
	for _, c := range bytes.ReplaceAll(raw, []byte("\x1b$)C"), nil) {
		switch {
		case c == '\x0e':
			high = 0x80
		case c == '\x0f':
			high = 0
		case c > ' ':
			out = append(out, c|high)
		default:
			out = append(out, c)
		}
	}
	return out
}

func isOutsideASCII(r rune) bool { return r >= utf8.RuneSelf }

func decodeWith(e encoding.Encoding, raw []byte) (string, bool) {
	b, err := e.NewDecoder().Bytes(raw)
	if err != nil {
		return strings.ToValidUTF8(string(raw), "\uFFFD"), false
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), true
}

// plainLabel returns a label without separators.
func plainLabel(label string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "", "=", "").Replace(label)
}

// isASCII reports whether a label says nothing about bytes outside of ASCII.
func isASCII(label string) bool {
	switch label {
	case "", "us-ascii", "ascii", "us", "ansi_x3.4-1968", "ansi_x3.4-1986", "iso-ir-6", "iso646-us",
		"iso_646.irv:1991", "cp367",
		"ibm367", "csascii", "unknown-8bit", "x-unknown", "unknown", "default", "default_charset",
		"none", "8bit", "7bit",
		"binary", "x-user-defined", "user-defined":
		return true
	}
	return false
}

// numberedLabel matches other spellings of labels with a number, without their separators.
var numberedLabel = regexp.MustCompile(`^x?(windows|win|cp|ms|ansi|ibm|iso8859|8859|latin|koi8)(\d{1,5}|r|u)$`)

// browserEncoding returns the encoding that browsers use for a label, nil if they know none.
func browserEncoding(label string) encoding.Encoding {
	plain := plainLabel(label)
	if strings.HasPrefix(plain, "utf16") {
		return nil // the byte order of mails without a mark is another
	}
	labels := []string{label, strings.ReplaceAll(label, "_", "-"), plain}
	if m := numberedLabel.FindStringSubmatch(plain); m != nil {
		switch m[1] {
		case "iso8859", "8859":
			labels = append(labels, "iso-8859-"+m[2])
		case "latin", "koi8":
			labels = append(labels, m[1]+m[2], m[1]+"-"+m[2])
		default:
			labels = append(labels, "windows-"+m[2], "ibm"+m[2], "cp"+m[2])
		}
	}
	for _, l := range labels {
		e, err := htmlindex.Get(l)
		if err != nil {
			continue
		}
		// Browsers replace a text in some encodings, because pages abuse them.
		if name, err := htmlindex.Name(e); err == nil && name != "replacement" && name != "x-user-defined" {
			return e
		}
	}
	return nil
}
