package tool

import (
	"errors"
	"regexp"
	"strings"
	"unicode/utf8"
)

// errGlob is the error for an incomplete pattern.
var errGlob = errors.New("it ends in the middle of [...], {...} or an escape")

// compileGlob compiles a path pattern to a regular expression, which matches in linear time. In
// a pattern, * and ? match within a name, and ** matches any number of folders. If braces is
// true, {a,b} matches a or b.
func compileGlob(pattern string, braces bool) (*regexp.Regexp, error) {
	g := globber{rest: pattern, start: true, braces: braces}
	// A pattern matches complete paths. Names may contain line breaks, which "." only matches
	// with (?s).
	g.out.WriteString(`(?s)\A`)
	for g.rest != "" {
		if err := g.next(); err != nil {
			return nil, err
		}
	}
	// A regular expression must be UTF-8.
	if len(g.braceAt) > 0 || !utf8.ValidString(pattern) {
		return nil, errGlob
	}
	g.out.WriteString(`\z`)
	return regexp.Compile(g.out.String())
}

// A globber translates a pattern piece by piece.
type globber struct {
	rest    string // part of the pattern that is not translated yet
	start   bool   // rest is at the beginning of a name: before it is nothing or "/"
	braces  bool
	braceAt []bool // whether each open brace is at the beginning of a name
	out     strings.Builder
}

// next translates the next piece of the pattern.
func (g *globber) next() error {
	r, size := utf8.DecodeRuneInString(g.rest)
	start := g.start
	g.start = r == '/'
	switch {
	case r == '*':
		g.stars(start)
		return nil
	case r == '[':
		return g.class()
	// A backslash escapes the next character, as in gitignore(5).
	case r == '\\':
		if len(g.rest) == 1 {
			return errGlob
		}
		_, n := utf8.DecodeRuneInString(g.rest[1:])
		g.literal(g.rest[1 : 1+n])
		g.start = g.rest[1] == '/'
		g.rest = g.rest[1+n:]
		return nil
	case r == '?':
		g.out.WriteString(`[^/]`)
	case g.braces && r == '{':
		// Each alternative begins at the position of the brace.
		g.braceAt = append(g.braceAt, start)
		g.start = start
		g.out.WriteString(`(?:`)
	case len(g.braceAt) > 0 && r == '}':
		g.braceAt = g.braceAt[:len(g.braceAt)-1]
		g.out.WriteString(`)`)
	case len(g.braceAt) > 0 && r == ',':
		g.start = g.braceAt[len(g.braceAt)-1]
		g.out.WriteString(`|`)
	default:
		g.literal(g.rest[:size])
	}
	g.rest = g.rest[size:]
	return nil
}

func (g *globber) literal(text string) { g.out.WriteString(regexp.QuoteMeta(text)) }

// stars translates a sequence of stars. Two or more stars that form a complete name match any
// number of folders, as in gitignore(5). Other stars match within a name.
func (g *globber) stars(start bool) {
	rest := strings.TrimLeft(g.rest, "*")
	many := len(g.rest)-len(rest) > 1
	g.rest = rest
	switch {
	case many && start && strings.HasPrefix(rest, "/"):
		// The slash is optional, too: **/a also matches a at the top.
		g.out.WriteString(`(?:.*/)?`)
		g.rest, g.start = rest[1:], true
	case many && start && rest == "":
		g.out.WriteString(`.*`)
	default:
		g.out.WriteString(`[^/]*`)
	}
}

// class translates a set of characters such as [a-z]. A set never matches "/", even if it
// contains one.
func (g *globber) class() error {
	rest := g.rest[1:]
	negated := strings.HasPrefix(rest, "!") || strings.HasPrefix(rest, "^")
	if negated {
		rest = rest[1:]
	}
	var set strings.Builder
	// A "]" at the beginning is a character of the set, not its end.
	for first := true; first || !strings.HasPrefix(rest, "]"); first = false {
		if name, after, ok := namedClass(rest); ok {
			set.WriteString(name)
			rest = after
			continue
		}
		low, after, err := classRune(rest)
		if err != nil {
			return err
		}
		high := low
		if strings.HasPrefix(after, "-") && !strings.HasPrefix(after, "-]") {
			if high, after, err = classRune(after[1:]); err != nil {
				return err
			}
			high = max(low, high) // git matches only the first character of a reversed range
		}
		addRange(&set, low, high)
		rest = after
	}
	g.rest = rest[1:]
	switch {
	case negated:
		g.out.WriteString(`[^/` + set.String() + `]`)
	case set.Len() == 0: // the set contained only "/": the expression matches no character
		g.out.WriteString(`[^\x00-\x{10FFFF}]`)
	default:
		g.out.WriteString(`[` + set.String() + `]`)
	}
	return nil
}

// namedClasses returns the POSIX character classes as parts of a regular expression. They
// exclude "/", which no set matches.
func namedClasses() map[string]string {
	return map[string]string{"alnum": `0-9A-Za-z`, "alpha": `A-Za-z`, "blank": ` \t`, "digit": `0-9`,
		"lower": `a-z`, "space": ` \t\n\v\f\r`, "upper": `A-Z`, "xdigit": `0-9A-Fa-f`, "cntrl": `\x00-\x1f\x7f`,
		"graph": `!-.0-~`, "print": ` -.0-~`, "punct": "!-.:-@\\[-`{-~"}
}

// namedClass parses a class such as [:alpha:] at the beginning of rest.
func namedClass(rest string) (set, after string, ok bool) {
	inner, found := strings.CutPrefix(rest, "[:")
	name, after, closed := strings.Cut(inner, ":]")
	set, known := namedClasses()[name]
	return set, after, found && closed && known
}

// classRune parses one character of a set, which may follow a backslash. It returns errGlob at
// the end of the pattern and for an unknown named class.
func classRune(rest string) (r rune, after string, err error) {
	rest, escaped := strings.CutPrefix(rest, `\`)
	r, size := utf8.DecodeRuneInString(rest)
	if size == 0 || r == '[' && !escaped && strings.HasPrefix(rest, "[:") {
		return 0, "", errGlob
	}
	return r, rest[size:], nil
}

// addRange adds the characters from low to high to set, without "/".
func addRange(set *strings.Builder, low, high rune) {
	if low <= '/' && '/' <= high {
		addRange(set, low, '/'-1)
		addRange(set, '/'+1, high)
		return
	}
	if low <= high {
		set.WriteString(quoteInClass(low))
		if low < high {
			set.WriteString("-" + quoteInClass(high))
		}
	}
}

// quoteInClass escapes a character for a class in a regular expression. QuoteMeta does not
// escape "-", which would make a range.
func quoteInClass(r rune) string {
	if r == '-' {
		return `\-`
	}
	return regexp.QuoteMeta(string(r))
}
