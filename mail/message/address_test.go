package message

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestNormalAddress checks, for all characters, that an address with one outside of ASCII never
// becomes an address within ASCII, which may be a member's.
func TestNormalAddress(t *testing.T) {
	t.Parallel()
	for r := rune(utf8.RuneSelf); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) || unicode.IsSpace(r) {
			continue
		}
		a := "A" + string(r) + "n@example.com"
		got := NormalAddress(a)
		if strings.IndexFunc(got, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 || got[0] != 'a' {
			t.Errorf("%q became %q", a, got)
		}
	}
	for a, want := range map[string]string{
		" ANN@Example.COM ":             "ann@example.com",
		"\u00dcbel@B\u00dcCHER.example": "\u00fcbel@b\u00fccher.example",
	} {
		if got := NormalAddress(a); got != want {
			t.Errorf("%q became %q", a, got)
		}
	}
	// The dotted capital I is a letter of its own in the DNS, too.
	for _, a := range []string{"ann@\u0130nbox.example", "\u0130nbox.example"} {
		if got := DomainOf("x@" + a); got == "inbox.example" {
			t.Errorf("%q is the domain %q", a, got)
		}
	}
}
