package schema

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// formatSamples returns a few values of a format, none for an unknown format. They use names
// and networks that are reserved for examples.
func formatSamples(format string) []string {
	switch format {
	case "email", "idn-email":
		return []string{"someone@example.com", "asomeone@example.com", "bsomeone@example.com"}
	case "uri", "iri":
		return []string{"https://example.com/", "https://example.com/a", "https://example.com/b",
			"http://example.com", "urn:x"}
	case "uri-reference", "iri-reference", "uri-template", "json-pointer":
		return []string{"/", "a/", "b/"}
	case "hostname", "idn-hostname":
		return []string{"example.com", "aexample.com", "bexample.com"}
	case "date":
		return []string{"1970-01-01", "2000-01-02", "2000-01-03"}
	case "date-time":
		return []string{"1970-01-01T00:00:00Z", "2000-01-02T03:04:05Z",
			"2000-01-02T03:04:05.678Z", "2000-01-02T03:04:05+01:00"}
	case "time":
		return []string{"00:00:00Z"}
	case "duration":
		return []string{"PT0S"}
	case "uuid":
		return []string{"00000000-0000-4000-8000-000000000000", "00000000-0000-4000-8000-000000000001"}
	case "ipv4":
		return []string{"192.0.2.1"}
	case "ipv6":
		return []string{"2001:db8::1"}
	case "regex":
		return []string{".*"}
	case "relative-json-pointer":
		return []string{"0"}
	}
	return nil
}

// patternSamples returns strings that a pattern may match. If possible, they have at least the
// given number of characters. The caller must check them, because they are guesses.
func patternSamples(pattern string, least int) []string {
	main, ahead := withoutLookarounds(pattern)
	re, err := syntax.Parse(main, syntax.Perl)
	if err != nil {
		return nil
	}
	var list []string
	for variant := range 4 {
		for _, times := range []int{1, least, 3, 0, 8} {
			one := sample(re, times, variant)
			list = append(list, one)
			if len(ahead) == 0 {
				continue
			}
			needed := ""
			for _, a := range ahead {
				needed += sampleOf(a, variant)
			}
			list = append(list, needed+one, one+needed, needed)
		}
	}
	return slices.DeleteFunc(list, func(s string) bool { return !utf8.ValidString(s) })
}

// withoutLookarounds removes the assertions that Go's syntax lacks from a pattern. ahead
// contains the patterns of its positive lookaheads.
func withoutLookarounds(pattern string) (rest string, ahead []string) {
	var out strings.Builder
	for i := 0; i < len(pattern); {
		kind := ""
		for _, k := range []string{"(?=", "(?!", "(?<=", "(?<!"} {
			if strings.HasPrefix(pattern[i:], k) {
				kind = k
			}
		}
		switch {
		case kind != "":
			// Other assertions are dropped. This is safe because the caller checks each sample.
			end := closing(pattern, i)
			if kind == "(?=" {
				body, _ := withoutLookarounds(pattern[i+len(kind) : max(end-1, i+len(kind))])
				ahead = append(ahead, body)
			}
			i = end
		case pattern[i] == '\\' && i+1 < len(pattern):
			if strings.HasPrefix(pattern[i:], `\u`) && i+6 <= len(pattern) && pattern[i+2] != '{' {
				out.WriteString(`\x{` + pattern[i+2:i+6] + `}`) // in Go's syntax
				i += 6
				continue
			}
			if strings.HasPrefix(pattern[i:], `\u{`) {
				out.WriteString(`\x`)
				i += 2
				continue
			}
			out.WriteString(pattern[i : i+2])
			i += 2
		case pattern[i] == '[':
			end := classEnd(pattern, i)
			out.WriteString(pattern[i:end])
			i = end
		default:
			out.WriteByte(pattern[i])
			i++
		}
	}
	return out.String(), ahead
}

// closing returns the index after the parenthesis that closes the one at i.
func closing(pattern string, i int) int {
	depth := 0
	for i < len(pattern) {
		switch pattern[i] {
		case '\\':
			i++
		case '[':
			i = classEnd(pattern, i) - 1
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return len(pattern)
}

// classEnd returns the index after the character class that begins at i.
func classEnd(pattern string, i int) int {
	for i++; i < len(pattern); i++ {
		if pattern[i] == '\\' {
			i++
		} else if pattern[i] == ']' {
			return i + 1
		}
	}
	return len(pattern)
}

// maxSample is the maximum length of a sample, in bytes.
const maxSample = 10_000

// sampleOf returns a short string that a pattern of Go's syntax matches, "" if the pattern has
// another syntax.
func sampleOf(pattern string, variant int) string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return ""
	}
	return sample(re, 0, variant)
}

// sample returns a string that re matches. It uses the given number of repetitions where re
// allows any number. Variants use different characters.
func sample(re *syntax.Regexp, times, variant int) string {
	w := sampler{times: min(times, 1000), variant: variant, left: 10 * maxSample}
	w.write(re)
	return w.String()
}

// A sampler writes a string that a pattern matches.
type sampler struct {
	strings.Builder
	times, variant int
	classes        int // number of character classes written so far
	left           int // how many parts of the pattern may still be visited
}

func (w *sampler) write(re *syntax.Regexp) {
	if w.left--; w.left < 0 {
		return // nested repetitions of empty patterns would take very long and write nothing
	}
	least, most := 1, 1
	switch re.Op {
	case syntax.OpLiteral:
		w.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		w.WriteRune(w.class(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		w.WriteByte('x')
	case syntax.OpAlternate:
		w.write(re.Sub[w.variant%len(re.Sub)])
		return
	case syntax.OpStar:
		least, most = 0, w.times
	case syntax.OpPlus:
		least, most = 1, w.times
	case syntax.OpQuest:
		least, most = 0, min(w.times, 1)
	case syntax.OpRepeat:
		least, most = re.Min, re.Max
		if most < 0 {
			most = max(re.Min, w.times)
		}
		most = min(most, max(least, w.times))
	}
	for range max(least, most) {
		for _, sub := range re.Sub {
			if w.left < 0 || w.Len() >= maxSample {
				return
			}
			w.write(sub)
		}
	}
}

// class returns a character of a class, if possible a common one. Variant 0 uses the first
// common character, other variants use the next ones.
func (w *sampler) class(ranges []rune) rune {
	var plain []rune
	for _, want := range "a0A-_ x1bB9" {
		for i := 0; i+1 < len(ranges); i += 2 {
			if ranges[i] <= want && want <= ranges[i+1] {
				plain = append(plain, want)
			}
		}
	}
	switch {
	case len(plain) > 0 && w.variant == 0:
		return plain[0]
	case len(plain) > 0:
		w.classes++
		return plain[(w.classes+w.variant)%len(plain)]
	case len(ranges) == 0:
		return 'x'
	}
	return ranges[0]
}
