// Package visible shows the characters that people cannot see. Such characters can make a text look
// like another one: they reverse the direction of writing, join or split words, hide a message
// between letters, or control a terminal.
//
// Text and Line are for texts on which somebody decides: they show every hidden character. Running
// is for all other texts: it leaves the few hidden characters that emoji and some scripts need.
//
// The package is pure: it only reads and writes text.
package visible

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Hidden reports whether a character has no shape of its own: a control or format character, a
// separator of lines, a variation selector, a tag, or a filler. Spaces are not hidden.
func Hidden(r rune) bool {
	if r < 0x7f {
		return r < ' '
	}
	return r <= 0x9f || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector,
		unicode.Other_Default_Ignorable_Code_Point) || r >= 0xe0000 && r <= 0xe0fff // tags, and what Unicode reserves beside them
}

// Text returns a text with its hidden characters as escapes, such as \u202e. Line breaks and tabs
// stay.
func Text(s string) string { return show(s, isLayout) }

// Line is like Text, but it also shows line breaks and tabs, so that the text is one line.
func Line(s string) string { return show(s, func(_, _, _ rune) bool { return false }) }

// Running is like Text, but a hidden character stays where emoji and some scripts need it: one
// variation selector after a symbol, a joiner between symbols, and a joiner after a letter of a
// script that has joiners, such as Persian and Hindi, a mark of the direction beside a letter of Hebrew or
// Arabic, and a selector after a Chinese or Mongolian character. No two hidden characters can follow each
// other, except in an emoji.
func Running(s string) string {
	return show(s, func(before, r, after rune) bool { return isLayout(before, r, after) || belongs(before, r, after) })
}

// Name is for names of files in texts for a model. It is like Running, but it also shows line breaks
// and tabs, with which a name could imitate other lines of a text. Named reverses it.
func Name(s string) string { return show(s, belongs) }

// escapePattern matches the escapes of characters that names of files can have, as Name and Go's quotes write them.
var escapePattern = regexp.MustCompile(`\\(?:u[0-9a-f]{4}|u\{[0-9a-f]{5,6}\}|U[0-9a-f]{8}|")`)

// Named returns the name of a file that Name, or a text in Go's quotes, shows as s. A model names a file as
// it was shown. Names with control characters are not restored, because no tool opens such files.
func Named(s string) string {
	return escapePattern.ReplaceAllStringFunc(s, func(escape string) string {
		if escape == `\"` {
			return `"`
		}
		n, err := strconv.ParseInt(strings.Trim(escape, `\uU{}`), 16, 32)
		r := rune(n)
		if err == nil && utf8.ValidRune(r) && (Hidden(r) || !unicode.IsPrint(r)) && !unicode.IsControl(r) {
			return string(r)
		}
		return escape
	})
}

// show returns a text with escapes for the hidden characters, except those that stay reports. stays
// gets the characters before and after, which are 0 at the ends.
func show(s string, stays func(before, r, after rune) bool) string {
	if !needsEscape(s) {
		return s
	}
	var b strings.Builder
	before := rune(0)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		after := rune(0)
		if next := i + size; next < len(s) {
			after, _ = utf8.DecodeRuneInString(s[next:])
		}
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case Hidden(r) && !stays(before, r, after):
			b.WriteString(escape(r))
		default:
			b.WriteString(s[i : i+size])
		}
		before, i = r, i+size
	}
	return b.String()
}

// needsEscape reports whether a text has hidden characters or invalid bytes. Most texts have neither.
func needsEscape(s string) bool {
	return !utf8.ValidString(s) || strings.ContainsFunc(s, Hidden)
}

// Plain reports whether Text leaves a text as it is because it has nothing hidden but line breaks and tabs.
func Plain(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return Hidden(r) && r != '\n' && r != '\t'
	})
}

// escape returns the escape of a hidden character.
func escape(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r > 0xffff:
		return fmt.Sprintf(`\u{%x}`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// isLayout reports whether a character is a line break or a tab.
func isLayout(_, r, after rune) bool { return r == '\n' || r == '\t' || r == '\r' && after == '\n' }

// joining are the scripts whose words need a joiner or a non-joiner.
var joining = []*unicode.RangeTable{unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Devanagari,
	unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu,
	unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar, unicode.Tibetan}

// fromTheRight are the scripts whose texts need marks of the direction.
var fromTheRight = []*unicode.RangeTable{unicode.Arabic, unicode.Hebrew, unicode.Syriac, unicode.Thaana}

// belongs reports whether the hidden character r is a part of an emoji or of a word.
func belongs(before, r, after rune) bool {
	const (
		nonJoiner, joiner = '\u200c', '\u200d'
		asText, asEmoji   = '\ufe0e', '\ufe0f'
		keycap            = '\u20e3'

		leftToRight, rightToLeft = '\u200e', '\u200f' // marks beside a word, which reverse nothing
	)
	switch r {
	case asText, asEmoji:
		return isSymbol(before) || after == keycap && strings.ContainsRune("0123456789#*", before)
	case joiner:
		return (isSymbol(before) || before == asEmoji) && isSymbol(after) || isLetter(before)
	case nonJoiner:
		return isLetter(before)
	case leftToRight, rightToLeft:
		return unicode.In(before, fromTheRight...) || unicode.In(after, fromTheRight...) && !Hidden(before)
	}
	// Variants of Chinese characters, as in Japanese names, and of Mongolian letters.
	return unicode.Is(unicode.Han, before) && r >= 0xe0100 && r <= 0xe01ef ||
		unicode.Is(unicode.Mongolian, before) && !Hidden(before) && unicode.Is(unicode.Variation_Selector, r)
}

// isSymbol reports whether a character can begin an emoji.
func isSymbol(r rune) bool {
	return r >= 0xa9 && unicode.IsSymbol(r) || strings.ContainsRune("‼⁉ℹ〰〽", r)
}

// isLetter reports whether a character is a visible one of a script that has joiners.
func isLetter(r rune) bool { return unicode.In(r, joining...) && !Hidden(r) }
