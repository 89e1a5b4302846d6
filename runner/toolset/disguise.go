package toolset

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"journeyman/store/workers"
)

// This file finds secrets that a result holds in disguise: spaced out, split by lines or punctuation,
// reversed, or as hexadecimal digits or Base64. It compares letters and digits only, so that every
// way to separate them looks the same.

// disguiseLen is the shortest form that is searched, in bytes of letters and digits. Shorter ones occur in
// harmless texts.
const disguiseLen = workers.MinSecretValue

// A disguise is a form of a secret's value without anything but letters and digits.
type disguise struct{ form, name string }

// disguises are forms by their first disguiseLen bytes, the longest first. One look-up for each
// position of a text finds them all, so the time is linear in the length of the text.
type disguises map[string][]disguise

// add adds the forms of a value. name replaces them.
func (d disguises) add(value, name string) {
	digits := hex.EncodeToString([]byte(value))
	// The form of a longer Base64 text holds the value at one of three positions in its groups.
	forms := append(base64Forms(value), value, reversed(value), digits, strings.ToUpper(digits))
	for _, form := range forms {
		if form, _ = squeeze(form); len(form) < disguiseLen {
			continue
		}
		first := form[:disguiseLen]
		d[first] = append(d[first], disguise{form, name})
		slices.SortStableFunc(d[first], func(a, b disguise) int { return len(b.form) - len(a.form) })
	}
}

// hide replaces the forms in a text by the names of their secrets.
func (d disguises) hide(text string) string {
	if len(d) == 0 {
		return text
	}
	squeezed, at := squeeze(text)
	var b strings.Builder
	shown := 0 // bytes of text that b already covers
	for i := 0; i+disguiseLen <= len(squeezed); {
		found := d.at(squeezed[i:])
		if found == nil {
			i++
			continue
		}
		last := i + len(found.form) - 1
		b.WriteString(text[shown:at[i]] + found.name)
		shown, i = at[last]+1, last+1
	}
	if shown == 0 {
		return text
	}
	b.WriteString(text[shown:])
	return b.String()
}

// at returns the longest form with which a squeezed text begins, or nil.
func (d disguises) at(squeezed string) *disguise {
	list := d[squeezed[:disguiseLen]]
	i := slices.IndexFunc(list, func(x disguise) bool { return strings.HasPrefix(squeezed, x.form) })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// squeeze returns the letters and digits of a text, and for each of their bytes its place in the
// text.
func squeeze(text string) (squeezed string, at []int) {
	var b strings.Builder
	for i := 0; i < len(text); {
		c, size := utf8.DecodeRuneInString(text[i:])
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			b.WriteString(text[i : i+size])
			for k := range size {
				at = append(at, i+k)
			}
		}
		i += size
	}
	return b.String(), at
}

// reversed returns a text with its characters in the other order.
func reversed(text string) string {
	runes := []rune(text)
	slices.Reverse(runes)
	return string(runes)
}

// base64Forms returns a value in Base64, and the parts of longer Base64 texts that depend on the value
// alone: it may begin at any position in a group of three bytes, such as in user:password.
func base64Forms(value string) (forms []string) {
	for _, base := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		forms = append(forms, base.EncodeToString([]byte(value)))
		for before := range 3 {
			whole := (before + len(value)) / 3 * 3 // bytes in complete groups
			encoded := base.EncodeToString(append(make([]byte, before), value...))
			forms = append(forms, encoded[(before*8+5)/6:whole/3*4])
		}
	}
	return forms
}
