package text

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// verb matches a verb of a pattern that Message reads.
const verb = `%[dsq]`

// Message returns the translation of a message that another package has made, in English, from one of
// the patterns. The first pattern that fits decides. A value of %s that is itself one of the patterns is
// translated, too. A value of %q is a name, and stays as it is. So does a message that fits no pattern.
func (l *Language) Message(patterns []Key, message string) string {
	if l.catalogue == nil {
		return message
	}
	if slices.Contains(patterns, Key(message)) {
		return l.T(Key(message))
	}
	for _, pattern := range patterns {
		values, ok := valuesOf(string(pattern), message)
		if !ok {
			continue
		}
		for i, v := range values {
			if s, ok := v.(string); ok && slices.Contains(patterns, Key(s)) {
				values[i] = l.T(Key(s))
			}
		}
		return l.T(pattern, values...)
	}
	return message
}

// A name is the value of a verb %q. Somebody has chosen it, so it is never translated.
type name string

// valuesOf returns the values from which a pattern makes the message. It returns false if the pattern
// does not fit, or has no verb.
func valuesOf(pattern, message string) (values []any, ok bool) {
	// Most patterns end here, because an expression takes longer to compile than to match.
	if begin, _, _ := strings.Cut(pattern, "%"); !strings.HasPrefix(message, begin) {
		return nil, false
	}
	verbs := regexp.MustCompile(verb)
	list := verbs.FindAllString(pattern, -1)
	if len(list) == 0 {
		return nil, false
	}
	expression := "^"
	for i, literal := range verbs.Split(pattern, -1) {
		expression += regexp.QuoteMeta(literal)
		if i < len(list) {
			expression += map[string]string{"%d": `(-?\d+)`, "%s": `((?s:.*?))`, "%q": `("(?:[^"\\]|\\.)*")`}[list[i]]
		}
	}
	found := regexp.MustCompile(expression + "$").FindStringSubmatch(message)
	if found == nil {
		return nil, false
	}
	for i, v := range found[1:] {
		value, err := any(v), error(nil)
		switch list[i] {
		case "%d":
			value, err = strconv.ParseInt(v, 10, 64)
		case "%q":
			v, err = strconv.Unquote(v)
			value = name(v)
		}
		if err != nil {
			return nil, false
		}
		values = append(values, value)
	}
	return values, true
}
