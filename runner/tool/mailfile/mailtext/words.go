package mailtext

import (
	"encoding/base64"
	"strings"
)

// Words decodes encoded words (RFC 2047) in the value of a field, and bytes outside of ASCII as Decode does. Labels
// of words are handled as Decode does, too. A malformed word stays as it is.
func Words(s string) string {
	var out strings.Builder
	var open []byte // bytes of the words so far, which may end inside a character
	label := ""
	flush := func() {
		if open != nil {
			out.WriteString(Decode(open, label))
			open = nil
		}
	}
	for s != "" {
		before, w, rest, found := nextWord(s)
		if !found {
			break
		}
		if strings.TrimSpace(before) != "" || open == nil {
			flush()
			out.WriteString(Decode([]byte(before), ""))
		} else if !strings.EqualFold(w.label, label) {
			flush() // the space between two words belongs to no text
		}
		label = w.label
		open = append(open, w.text...)
		if open == nil {
			open = []byte{}
		}
		s = rest
	}
	flush()
	out.WriteString(Decode([]byte(s), ""))
	return Printable(out.String())
}

// An encodedWord is a decoded word, still in its charset.
type encodedWord struct {
	label string
	text  []byte
}

// nextWord finds the first encoded word of s.
func nextWord(s string) (before string, w encodedWord, rest string, found bool) {
	for at := 0; ; {
		next := strings.Index(s[at:], "=?")
		if next < 0 {
			return "", w, "", false
		}
		at += next
		if w, length := wordAt(s[at:]); length > 0 {
			return s[:at], w, s[at+length:], true
		}
		at += 2
	}
}

const maxLabel = 60 // bytes of the label of a word

// wordAt decodes the encoded word at the beginning of s. length is 0 if there is none.
func wordAt(s string) (w encodedWord, length int) {
	head := s[2:min(len(s), 2+maxLabel)]
	label, _, found := strings.Cut(head, "?")
	begin := 2 + len(label) + 3 // the first byte of the text
	if !found || label == "" || strings.ContainsAny(label, " \t\r\n=") || begin > len(s) || s[begin-1] != '?' {
		return w, 0
	}
	end := strings.IndexByte(s[begin:], '?')
	if end < 0 || begin+end+1 >= len(s) || s[begin+end+1] != '=' {
		return w, 0
	}
	text := s[begin : begin+end]
	w.label, _, _ = strings.Cut(label, "*") // of a language: RFC 2231, section 5
	switch s[begin-2] {
	case 'b', 'B':
		w.text = lenientBase64(text)
	case 'q', 'Q':
		w.text = quotedWord(text)
	default:
		return w, 0
	}
	return w, begin + end + 2
}

// lenientBase64 decodes base64 without other characters and without its padding.
func lenientBase64(text string) []byte {
	text = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '+' || r == '/' {
			return r
		}
		return -1
	}, text)
	if len(text)%4 == 1 {
		text = text[:len(text)-1]
	}
	b, _ := base64.RawStdEncoding.DecodeString(text) // it has only valid characters
	return b
}

// quotedWord decodes the encoding Q.
func quotedWord(text string) []byte {
	return appendEscaped(nil, []byte(strings.ReplaceAll(text, "_", " ")))
}

// Printable returns s as valid UTF-8, without control characters other than tabs and line ends.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
