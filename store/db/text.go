package db

import (
	"net/mail"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsBlank reports whether a text has only spaces and invisible characters.
func IsBlank(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) }) < 0
}

// FirstRunes returns the first n characters of a text: all of a shorter one.
func FirstRunes(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

// CheckName adds an error to f if a name is blank, is too long or has a NUL character.
func CheckName(f *Fields, path, name string, most int) {
	f.Check(name != "" && utf8.RuneCountInString(name) <= most, path, "must have 1 to %d characters", most)
	f.Check(name == "" || !IsBlank(name), path, "must not be blank")
	CheckNUL(f, path, name)
}

// CheckLine adds an error to f if a text is too long or has a NUL character.
func CheckLine(f *Fields, path, text string, most int) {
	f.Check(utf8.RuneCountInString(text) <= most, path, "must have at most %d characters", most)
	CheckNUL(f, path, text)
}

// CheckNUL adds an error to f if a text has a NUL character, which many programs take for the end
// of the text.
func CheckNUL(f *Fields, path, text string) {
	f.Check(!strings.Contains(text, "\x00"), path, "must not have a NUL character")
}

// MaxName is how many characters the name of a key, user or organization may have.
const MaxName = 200

// ValidEmail reports whether text is an email address and nothing else.
func ValidEmail(text string) bool {
	a, err := mail.ParseAddress(text)
	return err == nil && a.Address == text && len(text) <= 320
}

// Clip returns the start of text: at most n bytes of valid UTF-8.
func Clip(text string, n int) string {
	if len(text) > n {
		text = text[:n]
	}
	return strings.ToValidUTF8(text, "")
}
