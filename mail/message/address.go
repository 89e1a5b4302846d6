package message

import (
	"net/mail"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"journeyman/runner/tool/mailfile/mailtext"
	"journeyman/store/pattern"
)

// addresses returns the addresses in all fields of a name.
func (h *Header) addresses(key string) []string {
	var all []string
	for _, v := range h.fields.Values(key) {
		list, err := parseAddresses(v)
		if err != nil {
			all = append(all, looseAddresses(v)...)
			continue
		}
		for _, a := range list {
			all = append(all, NormalAddress(a.Address))
		}
	}
	return all[:min(len(all), maxAddresses)]
}

// hiddenWord replaces the beginning of encoded words while addresses are parsed. The parser's own decoder refuses a
// whole list if it does not know one charset.
const hiddenWord = "=\u2060?"

func parseAddresses(value string) ([]*mail.Address, error) {
	value = strings.ReplaceAll(value, "=?", hiddenWord)
	list, err := mail.ParseAddressList(value)
	// The parser accepts comments only in some places.
	if err != nil && strings.Contains(value, "(") {
		list, err = mail.ParseAddressList(withoutComments(value))
	}
	for _, a := range list {
		a.Address = strings.ReplaceAll(a.Address, hiddenWord, "=?")
		if strings.Contains(a.Name, hiddenWord) {
			a.Name = mailtext.Words(strings.ReplaceAll(a.Name, hiddenWord, "=?"))
		}
	}
	return list, err
}

// withoutComments removes comments: text in parentheses outside of quotes (RFC 5322,
// section 3.2.2).
func withoutComments(value string) string {
	var b strings.Builder
	depth, quoted := 0, false
	for i := 0; i < len(value); i++ {
		c := value[i]
		switch {
		case c == '\\' && i+1 < len(value):
			if i++; depth == 0 {
				b.WriteByte(c)
				b.WriteByte(value[i])
			}
			continue
		case c == '"' && depth == 0: // quotes have no meaning inside a comment
			quoted = !quoted
		case c == '(' && !quoted:
			depth++
		}
		if depth == 0 {
			b.WriteByte(c)
		}
		if c == ')' && depth > 0 {
			depth--
		}
	}
	return b.String()
}

// addressLike matches text that looks like an address, in a field that is malformed.
const addressLike pattern.Pattern = `[^\s<>()\[\],;:"@]+@[^\s<>()\[\],;:"@]+`

func looseAddresses(value string) []string {
	var list []string
	for _, a := range addressLike.Compiled().FindAllString(value, 100) {
		list = append(list, NormalAddress(a))
	}
	return list
}

// NormalAddress returns an address in the form in which addresses are compared.
func NormalAddress(a string) string {
	return strings.Map(lower, mailtext.Printable(strings.TrimSpace(a)))
}

// lower returns the lower-case form of r. It never converts another character to ASCII, as
// unicode.ToLower does with the Kelvin sign: then an author could take the address of a member.
func lower(r rune) rune {
	if l := unicode.ToLower(r); r < utf8.RuneSelf || l >= utf8.RuneSelf {
		return l
	}
	return r
}

// DomainOf returns the domain of an address in its ASCII form, or an empty string.
func DomainOf(address string) string {
	at := strings.LastIndexByte(address, '@')
	if at < 0 {
		return ""
	}
	return ASCIIDomain(address[at+1:])
}

// ASCIIDomain returns a domain in the form that the DNS uses.
func ASCIIDomain(domain string) string {
	domain = strings.Map(lower, strings.TrimSuffix(domain, "."))
	if ascii, err := idna.Lookup.ToASCII(domain); err == nil {
		return ascii
	}
	return domain
}
