package model

import (
	"bytes"
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A looseCount is a whole number in JSON. Servers also send floats, texts and null. What is no number is 0: a
// fault in a count must not throw an answer away.
type looseCount int64

// UnmarshalJSON accepts every value.
func (c *looseCount) UnmarshalJSON(raw []byte) error {
	text := strings.TrimSpace(strings.Trim(string(raw), `"`))
	f, err := strconv.ParseFloat(text, 64)
	if *c = 0; err == nil && math.Abs(f) < 1<<53 { // false for NaN
		*c = looseCount(f)
	}
	return nil
}

// UnmarshalJSON accepts every value, and keeps the fields that it knows.
func (u *chatUsage) UnmarshalJSON(raw []byte) error {
	type plain chatUsage
	_ = json.Unmarshal(raw, (*plain)(u)) // fields of other types stay empty
	return nil
}

// UnmarshalJSON accepts every value, and keeps the fields that it knows.
func (u *responsesUsage) UnmarshalJSON(raw []byte) error {
	type plain responsesUsage
	_ = json.Unmarshal(raw, (*plain)(u)) // fields of other types stay empty
	return nil
}

// UnmarshalJSON accepts every value, and keeps the fields that it knows.
func (u *messagesTokens) UnmarshalJSON(raw []byte) error {
	type plain messagesTokens
	_ = json.Unmarshal(raw, (*plain)(u)) // fields of other types stay empty
	return nil
}

// Servers that cut text by UTF-16 units send the halves of an emoji in two events. encoding/json would replace each
// half. markHalves replaces them by characters of the last private plane, which joinHalves joins.
const firstHalf = 0x10_f000 // stands for the surrogate 0xd800

// escapedUnit matches an escaped character of JSON. An escaped backslash is no beginning of another one.
var escapedUnit = regexp.MustCompile(`\\(u[dD][89a-fA-F][0-9a-fA-F]{2}|[^u]|u)`)

// markHalves returns the data of an event with marks for the halves of characters that stand alone.
func (a *assembler) markHalves(data []byte) []byte {
	if !bytes.Contains(data, []byte(`\ud`)) && !bytes.Contains(data, []byte(`\uD`)) {
		return data
	}
	var out []byte
	from, skip := 0, 0
	for _, at := range escapedUnit.FindAllIndex(data, -1) {
		unit, ok := unitAt(data, at[0])
		if !ok || at[0] < skip {
			continue
		}
		if next, also := unitAt(data, at[1]); also && utf16.DecodeRune(unit, next) != utf8.RuneError {
			skip = at[1] + 1 // a whole character
			continue
		}
		out = append(out, data[from:at[0]]...)
		out = utf8.AppendRune(out, firstHalf+unit-0xd800)
		from, a.halved = at[1], true
	}
	if from == 0 {
		return data
	}
	return append(out, data[from:]...)
}

// unitAt returns the surrogate that is escaped at a position.
func unitAt(data []byte, at int) (rune, bool) {
	if at+6 > len(data) || data[at] != '\\' || data[at+1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(data[at+2:at+6]), 16, 32)
	return rune(n), err == nil && utf16.IsSurrogate(rune(n))
}

// joinHalves joins marked halves to characters. A first half at the end waits for the next text.
func (m *partBuilder) joinHalves(text string) string {
	var b strings.Builder
	for _, r := range text {
		half := r - firstHalf + 0xd800
		if r < firstHalf || !utf16.IsSurrogate(half) {
			m.endHalf(&b)
			b.WriteRune(r)
			continue
		}
		if whole := utf16.DecodeRune(m.half, half); whole != utf8.RuneError {
			m.half = 0
			b.WriteRune(whole)
			continue
		}
		m.endHalf(&b)
		m.half = half
	}
	return b.String()
}

// endHalf writes a replacement for a half that stays alone.
func (m *partBuilder) endHalf(b *strings.Builder) {
	if m.half != 0 {
		b.WriteRune(utf8.RuneError)
	}
	m.half = 0
}
