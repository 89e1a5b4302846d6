package workbook

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxFormat is the length of the longest number format that is used, in bytes. Excel allows 255 characters.
const maxFormat = 1000

// A numberFormat shows numbers and texts as a cell does (ECMA-376 part 1, 18.8.31).
type numberFormat struct {
	code     string
	sections []section
	locale   *locale
}

// A section is the part of a number format for some values.
type section struct {
	tokens []formatToken
	when   condition
	locale *locale // nil for that of the workbook
	date   bool    // it shows a date, a time or a duration
	digits bool    // it has places for digits
	text   bool    // it shows a text with @
}

// A condition compares a value, as in [>=100]. The zero condition is absent.
type condition struct {
	operator string
	limit    float64
}

// Kinds of tokens of a number format.
const (
	literalToken  = iota // text as it is
	digitToken           // 0, # or ?
	pointToken           // the decimal separator
	commaToken           // a separator of groups, or a factor of 1000
	percentToken         // %
	exponentToken        // E+ or E-
	slashToken           // of a fraction
	textToken            // @
	generalToken         // General
	dateToken            // such as yyyy, mm or AM/PM
	elapsedToken         // such as [h]
	fractionToken        // digits of a part of a second
)

// A formatToken is a piece of a number format.
type formatToken struct {
	kind int
	text string
}

// parseFormat parses a number format. It accepts every text: pieces that it does not know are shown as they are.
func parseFormat(code string, l *locale) *numberFormat {
	f := &numberFormat{code: code, locale: l}
	if len(code) > maxFormat {
		code = "General"
	}
	p := formatParser{rest: code}
	// More than four sections have no meaning.
	for len(f.sections) < 4 {
		f.sections = append(f.sections, p.section())
		if p.rest == "" {
			break
		}
		p.rest = p.rest[1:] // the semicolon
	}
	return f
}

// A formatParser splits a number format into its pieces.
type formatParser struct {
	rest string
	s    section
}

// section parses up to the next semicolon.
func (p *formatParser) section() section {
	p.s = section{}
	for p.rest != "" && p.rest[0] != ';' {
		p.next()
	}
	p.s.finish()
	return p.s
}

func (p *formatParser) add(kind, length int) {
	p.s.tokens = append(p.s.tokens, formatToken{kind, p.rest[:length]})
	p.rest = p.rest[length:]
}

func (p *formatParser) addLiteral(text string, length int) {
	p.s.tokens = append(p.s.tokens, formatToken{literalToken, text})
	p.rest = p.rest[length:]
}

// next parses one token.
func (p *formatParser) next() {
	folded := strings.ToLower(p.rest[:min(len(p.rest), 8)])
	c := folded[0]
	switch {
	case strings.HasPrefix(folded, "general"):
		p.add(generalToken, len("general"))
	case strings.HasPrefix(folded, "standard"): // as OpenDocument programs may write it
		p.add(generalToken, len("standard"))
	case strings.HasPrefix(folded, "am/pm"):
		p.add(dateToken, len("am/pm"))
	case strings.HasPrefix(folded, "a/p"):
		p.add(dateToken, len("a/p"))
	case c == '"':
		text, _, _ := strings.Cut(p.rest[1:], `"`)
		p.addLiteral(text, min(len(text)+2, len(p.rest)))
	case c == '\\' || c == '_' || c == '*':
		p.escaped(c)
	case c == '[':
		p.bracket()
	case c == '0' || c == '#' || c == '?':
		p.add(digitToken, 1)
	case c == '.':
		p.add(pointToken, 1)
	case c == ',':
		p.add(commaToken, 1)
	case c == '%':
		p.add(percentToken, 1)
	case c == '/':
		p.add(slashToken, 1)
	case c == '@':
		p.add(textToken, 1)
	case c == 'e' && len(folded) > 1 && (folded[1] == '+' || folded[1] == '-'):
		p.add(exponentToken, 2)
	case strings.IndexByte("ymdhseg", c) >= 0:
		p.add(dateToken, len(folded)-len(strings.TrimLeft(folded, string(c))))
	default:
		_, size := utf8.DecodeRuneInString(p.rest)
		p.add(literalToken, size)
	}
}

// escaped parses a backslash, _ or * with the character that follows.
func (p *formatParser) escaped(mark byte) {
	_, size := utf8.DecodeRuneInString(p.rest[1:])
	text := p.rest[1 : 1+size]
	// _ leaves the room of a character, and * fills the cell with it.
	if mark == '_' || mark == '*' && text == " " {
		text = " "
	} else if mark == '*' {
		text = ""
	}
	p.addLiteral(text, 1+size)
}

// bracket parses [...]: a duration, a currency, a condition, or a color, which is left out.
func (p *formatParser) bracket() {
	inner, _, closed := strings.Cut(p.rest[1:], "]")
	if !closed {
		p.add(literalToken, 1)
		return
	}
	length := len(inner) + 2
	folded := strings.ToLower(inner)
	switch {
	case folded != "" && strings.Trim(folded, folded[:1]) == "" && strings.Contains("hms", folded[:1]):
		p.s.tokens = append(p.s.tokens, formatToken{elapsedToken, folded})
	case strings.HasPrefix(inner, "$"):
		currency, code, _ := strings.Cut(inner[1:], "-")
		if l := localeOfCode(code); l != nil {
			p.s.locale = l
		}
		p.s.tokens = append(p.s.tokens, formatToken{literalToken, currency})
	case strings.IndexAny(inner, "<>=") == 0:
		operator := inner[:len(inner)-len(strings.TrimLeft(inner, "<>="))]
		if limit, err := strconv.ParseFloat(strings.TrimSpace(inner[len(operator):]), 64); err == nil {
			p.s.when = condition{operator, limit}
		}
	}
	p.rest = p.rest[length:]
}

// finish finds what the section shows, after all its tokens are known.
func (s *section) finish() {
	for _, t := range s.tokens {
		s.date = s.date || t.kind == dateToken || t.kind == elapsedToken
		s.digits = s.digits || t.kind == digitToken
		s.text = s.text || t.kind == textToken
	}
	if s.date {
		s.finishDate()
	}
}

// choose returns the section for a number, and whether the section shows the number without its sign.
func (f *numberFormat) choose(n float64) (s *section, unsigned bool) {
	numbers := f.sections
	// A last section with @ is for texts, if there are others.
	if len(numbers) > 1 && numbers[len(numbers)-1].text && !numbers[len(numbers)-1].digits {
		numbers = numbers[:len(numbers)-1]
	}
	numbers = numbers[:min(len(numbers), 3)]
	if numbers[0].when.operator != "" || len(numbers) > 1 && numbers[1].when.operator != "" {
		return chooseByCondition(numbers, n)
	}
	switch {
	case n < 0 && len(numbers) > 1:
		return &numbers[1], true
	case n == 0 && len(numbers) > 2:
		return &numbers[2], false
	}
	return &numbers[0], false
}

func chooseByCondition(sections []section, n float64) (*section, bool) {
	for i := range sections {
		when := sections[i].when
		if when.holds(n) || when.operator == "" && (i > 0 && i == len(sections)-1 || i == 1 && n < 0) {
			negative := strings.HasPrefix(when.operator, "<") && when.operator != "<>" && when.limit <= 0
			return &sections[i], n < 0 && (negative || when.operator == "" && i == 1)
		}
	}
	return &section{tokens: []formatToken{{generalToken, "General"}}}, false
}

func (c condition) holds(n float64) bool {
	switch c.operator {
	case "<":
		return n < c.limit
	case "<=":
		return n <= c.limit
	case ">":
		return n > c.limit
	case ">=":
		return n >= c.limit
	case "=":
		return n == c.limit
	case "<>":
		return n != c.limit
	}
	return false
}

// number returns a number as its cell shows it. old is true if dates count from 1904.
func (f *numberFormat) number(n float64, old bool) string {
	s, unsigned := f.choose(n)
	l := f.locale
	if s.locale != nil {
		l = s.locale
	}
	shown := ""
	switch {
	case s.date:
		var ok bool
		if shown, ok = s.showDate(n, l, old); !ok {
			return general(n, l)
		}
	case s.digits:
		shown = s.showNumber(n, unsigned, l)
	default:
		shown = s.showGeneral(n, unsigned, l)
	}
	return strings.Join(strings.Fields(shown), " ")
}

// textShown returns a text as its cell shows it.
func (f *numberFormat) textShown(text string) string {
	last := f.sections[len(f.sections)-1]
	if !last.text {
		return text
	}
	var b strings.Builder
	for _, t := range last.tokens {
		switch t.kind {
		case textToken:
			b.WriteString(text)
			// A format may repeat a long text often.
			if b.Len() > maxText {
				return text
			}
		case literalToken:
			b.WriteString(t.text)
		}
	}
	return b.String()
}

// showGeneral shows a number in a section without places for digits.
func (s *section) showGeneral(n float64, unsigned bool, l *locale) string {
	if unsigned {
		n = -n
	}
	var b strings.Builder
	for _, t := range s.tokens {
		switch t.kind {
		case generalToken, textToken:
			b.WriteString(general(n, l))
		default:
			b.WriteString(t.text)
		}
	}
	return b.String()
}

// builtinFormats are the number formats that a workbook uses without their text (ECMA-376 part 1, 18.8.30).
// An empty date is that of the locale.
var builtinFormats = map[int]string{1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00",
	5: `"$"#,##0;("$"#,##0)`, 6: `"$"#,##0;[Red]("$"#,##0)`, 7: `"$"#,##0.00;("$"#,##0.00)`,
	8: `"$"#,##0.00;[Red]("$"#,##0.00)`, 9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "# ?/?", 13: "# ??/??",
	15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss",
	37: "#,##0;(#,##0)", 38: "#,##0;[Red](#,##0)", 39: "#,##0.00;(#,##0.00)", 40: "#,##0.00;[Red](#,##0.00)",
	41: "#,##0;(#,##0);-;@", 42: `"$"#,##0;("$"#,##0);"$"-;@`, 43: "#,##0.00;(#,##0.00);-;@",
	44: `"$"#,##0.00;("$"#,##0.00);"$"-;@`, 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0", 48: "##0.0E+0", 49: "@"}

// builtinFormat returns the text of a built-in number format.
func builtinFormat(id int, l *locale) string {
	switch code := builtinFormats[id]; {
	// Where the comma separates decimals, nobody writes negative numbers in parentheses.
	case id >= 37 && id <= 44 && l.decimal == ",":
		return strings.NewReplacer("(", "-", ")", "").Replace(code)
	case code != "":
		return code
	case id == 14 || id >= 27 && id <= 31 || id == 36 || id >= 50 && id <= 54 || id == 57 || id == 58: // also of East Asia
		return l.date
	case id == 22:
		return l.date + " hh:mm"
	case id >= 32 && id <= 35 || id == 55 || id == 56:
		return "hh:mm:ss"
	}
	return "General"
}
