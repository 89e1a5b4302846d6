package mailtext

import (
	"bytes"
	"encoding/hex"
	"strings"
)

// Transfer reverses a transfer encoding (RFC 2045, section 6). It decodes damaged text as far as possible, and leaves
// text in an unknown encoding as it is.
func Transfer(encoding string, raw []byte) []byte {
	encoding, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(encoding)), ";")
	switch strings.TrimSpace(encoding) {
	case "base64":
		return lenientBase64(string(raw))
	case "quoted-printable":
		return quotedPrintable(raw)
	}
	return raw
}

// quotedPrintable decodes the encoding quoted-printable. A line that ends with "=" continues in the next one.
func quotedPrintable(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for line := range bytes.Lines(raw) {
		text := bytes.TrimRight(line, " \t\r\n")
		end := line[len(bytes.TrimRight(line, "\r\n")):]
		if continues, is := bytes.CutSuffix(text, []byte("=")); is {
			text, end = continues, nil
		}
		out = appendEscaped(out, text)
		out = append(out, end...)
	}
	return out
}

// appendEscaped appends a text to out, with the bytes that its escapes such as =C3 stand for.
func appendEscaped(out, text []byte) []byte {
	for i := 0; i < len(text); i++ {
		if text[i] == '=' && i+2 < len(text) {
			if b, err := hex.DecodeString(string(text[i+1 : i+3])); err == nil {
				out = append(out, b[0])
				i += 2
				continue
			}
		}
		out = append(out, text[i])
	}
	return out
}
