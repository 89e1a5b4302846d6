package workbook

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ofText makes a function of one text.
func ofText(f func(string) any) function {
	return function{least: 1, most: 1, one: func(a []any) any { return f(toText(a[0])) }}
}

// count returns the number at index i as a count of characters, or a default. ok is false if it is no number.
func count(a []any, i, otherwise int) (n int, ok bool) {
	if i >= len(a) {
		return otherwise, true
	}
	x, ok := toNumber(a[i])
	return int(math.Max(math.Min(math.Trunc(x), maxCellText+1), -1)), ok
}

func textFunctions() map[string]function {
	return map[string]function{
		"LEN":   ofText(func(s string) any { return float64(utf8.RuneCountInString(s)) }),
		"UPPER": ofText(func(s string) any { return strings.ToUpper(s) }),
		"LOWER": ofText(func(s string) any { return strings.ToLower(s) }),
		"TRIM":  ofText(func(s string) any { return strings.Join(strings.Fields(s), " ") }),
		"CLEAN": ofText(func(s string) any {
			return strings.Map(func(r rune) rune {
				if r < ' ' {
					return -1
				}
				return r
			}, s)
		}),
		"PROPER": ofText(func(s string) any { return proper(s) }),
		"VALUE": ofText(func(s string) any {
			if n, ok := parseNumber(s); ok {
				return n
			}
			return errValue
		}),
		"T": {least: 1, most: 1, one: func(a []any) any {
			s, _ := a[0].(string)
			return s
		}},
		"LEFT": {least: 1, most: 2, one: func(a []any) any { return part(a, 0, 1) }},
		"RIGHT": {least: 1, most: 2, one: func(a []any) any {
			n, ok := count(a, 1, 1)
			if !ok || n < 0 {
				return errValue
			}
			letters := []rune(toText(a[0]))
			return string(letters[max(len(letters)-n, 0):])
		}},
		"MID": {least: 3, most: 3, one: func(a []any) any {
			start, ok := count(a, 1, 1)
			if !ok || start < 1 {
				return errValue
			}
			return part(append(a[:1:1], a[2]), start-1, 1)
		}},
		"CHAR":    ofNumbers(1, 1, func(n []float64) any { return character(n[0], 255) }),
		"UNICHAR": ofNumbers(1, 1, func(n []float64) any { return character(n[0], unicode.MaxRune) }),
		"CODE": ofText(func(s string) any {
			if s == "" {
				return errValue
			}
			r, _ := utf8.DecodeRuneInString(s)
			return float64(r)
		}),
	}
}

// joinFunctions returns the functions that join, find and replace texts.
func joinFunctions() map[string]function {
	join := func(_ *calculator, args []any) any {
		var b strings.Builder
		failed := walk(args, func(v any, _ bool) any { return appendText(&b, v) })
		if failed != nil {
			return failed
		}
		return b.String()
	}
	return map[string]function{
		"CONCATENATE": {least: 1, most: unlimited, all: join}, "CONCAT": {least: 1, most: unlimited, all: join},
		"TEXTJOIN":   {least: 3, most: unlimited, all: textJoin},
		"REPT":       {least: 2, most: 2, one: repeated},
		"EXACT":      {least: 2, most: 2, one: func(a []any) any { return toText(a[0]) == toText(a[1]) }},
		"FIND":       {least: 2, most: 3, one: func(a []any) any { return find(a, strings.Index) }},
		"SEARCH":     {least: 2, most: 3, one: func(a []any) any { return find(a, searchFolded) }},
		"SUBSTITUTE": {least: 3, most: 4, one: substitute},
		"REPLACE":    {least: 4, most: 4, one: replace},
		"TEXT": {least: 2, most: 2, one: func(a []any) any {
			f := parseFormat(toText(a[1]), neutral)
			n, ok := toNumber(a[0])
			if !ok {
				return f.textShown(toText(a[0]))
			}
			return f.number(n, false)
		}},
	}
}

func character(n, most float64) any {
	if n < 1 || n > most {
		return errValue
	}
	return string(rune(n))
}

// appendText adds the text of a value, unless the text gets too long for a cell.
func appendText(b *strings.Builder, v any) any {
	if e, ok := v.(cellError); ok {
		return e
	}
	b.WriteString(toText(v))
	if b.Len() > maxCellText*utf8.UTFMax {
		return errValue
	}
	return nil
}

// part returns some characters of the text a[0]: a[1] of them, after the first skipped ones.
func part(a []any, skipped, otherwise int) any {
	n, ok := count(a, 1, otherwise)
	if !ok || n < 0 {
		return errValue
	}
	letters := []rune(toText(a[0]))
	letters = letters[min(skipped, len(letters)):]
	return string(letters[:min(n, len(letters))])
}

// proper makes the first letter of each word a capital letter.
func proper(text string) string {
	last := ' '
	return strings.Map(func(r rune) rune {
		before := last
		last = r
		if unicode.IsLetter(before) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, text)
}

func textJoin(c *calculator, args []any) any {
	separator := toText(c.single(args[0]))
	skip, _ := truth(c.single(args[1]))
	var b strings.Builder
	first := true
	failed := walk(args[2:], func(v any, _ bool) any {
		if skip && (v == nil || v == "") {
			return nil
		}
		if !first {
			b.WriteString(separator)
		}
		first = false
		return appendText(&b, v)
	})
	if failed != nil {
		return failed
	}
	return b.String()
}

func repeated(a []any) any {
	text := toText(a[0])
	n, ok := count(a, 1, 0)
	if !ok || n < 0 || n*len(text) > maxCellText {
		return errValue
	}
	return strings.Repeat(text, n)
}

// find returns where the text a[0] is in a[1], from 1. a[2] is where to begin.
func find(a []any, index func(text, part string) int) any {
	start, ok := count(a, 2, 1)
	letters := []rune(toText(a[1]))
	if !ok || start < 1 || start > len(letters)+1 {
		return errValue
	}
	rest := string(letters[start-1:])
	i := index(rest, toText(a[0]))
	if i < 0 {
		return errValue
	}
	return float64(start + utf8.RuneCountInString(rest[:i]))
}

// searchFolded returns the index of a pattern with * and ? in text. The case of letters does not matter.
func searchFolded(text, pattern string) int {
	// Folding may change the length of a letter, but seldom does.
	folded := strings.ToLower(text)
	if len(folded) != len(text) {
		folded = text
	}
	pattern = strings.ToLower(pattern)
	if !strings.ContainsAny(pattern, "*?~") {
		return strings.Index(folded, pattern)
	}
	if utf8.RuneCountInString(pattern) > maxPattern {
		return -1
	}
	// The leftmost place of the part before the first star leaves most room for the others.
	first, rest, starred := cutStar(pattern)
	for i := range folded + " " {
		length, ok := wildcardPrefix(first, folded[i:])
		switch {
		case !ok:
		case !starred || wildcard("*"+rest+"*", folded[i+length:]):
			return i
		default:
			return -1
		}
	}
	return -1
}

// cutStar returns the parts of a pattern before and after its first star that is not escaped.
func cutStar(pattern string) (before, after string, found bool) {
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '~':
			i++
		case '*':
			return pattern[:i], pattern[i+1:], true
		}
	}
	return pattern, "", false
}

// wildcardPrefix reports whether text begins with a pattern without stars, and returns the length of that beginning.
func wildcardPrefix(pattern, text string) (length int, ok bool) {
	letters := []rune(pattern)
	for i := 0; i < len(letters); i++ {
		r, size := utf8.DecodeRuneInString(text[length:])
		any := letters[i] == '?'
		if letters[i] == '~' && i+1 < len(letters) {
			i++
		}
		if size == 0 || !any && letters[i] != r {
			return 0, false
		}
		length += size
	}
	return length, true
}

func substitute(a []any) any {
	text, old, replacement := toText(a[0]), toText(a[1]), toText(a[2])
	if old == "" {
		return text
	}
	if strings.Count(text, old)*len(replacement)+len(text) > maxCellText*utf8.UTFMax {
		return errValue
	}
	if len(a) < 4 {
		return strings.ReplaceAll(text, old, replacement)
	}
	which, ok := count(a, 3, 1)
	if !ok || which < 1 {
		return errValue
	}
	pieces := strings.SplitN(text, old, which+1)
	if len(pieces) <= which {
		return text
	}
	return strings.Join(pieces[:which], old) + replacement + pieces[which]
}

func replace(a []any) any {
	letters := []rune(toText(a[0]))
	start, ok := count(a, 1, 1)
	n, alsoOK := count(a, 2, 0)
	if !ok || !alsoOK || start < 1 || n < 0 {
		return errValue
	}
	start = min(start-1, len(letters))
	return string(letters[:start]) + toText(a[3]) + string(letters[min(start+n, len(letters)):])
}
