package rtf

import (
	"strconv"
	"strings"
)

// control reads a control word or a control symbol.
func (r *reader) control() {
	if r.at >= len(r.data) {
		return
	}
	c := r.data[r.at]
	if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
		r.word()
		return
	}
	r.at++
	switch c {
	case '\'':
		r.hexCharacter()
		return
	case '\\', '{', '}':
		r.character(c)
		return
	}
	r.flush()
	if r.skip > 0 {
		r.skip--
		return
	}
	switch c {
	case '*':
		r.now().star = true
	case '~':
		r.add("\u00a0")
	case '_':
		r.add("-")
	case '\r', '\n':
		r.endParagraph()
	case '\t':
		r.add("\t")
	}
}

// hexCharacter reads a character that is written as two digits.
func (r *reader) hexCharacter() {
	if r.at+2 > len(r.data) {
		return
	}
	n, err := strconv.ParseUint(string(r.data[r.at:r.at+2]), 16, 8)
	if err != nil {
		return
	}
	r.at += 2
	r.character(byte(n))
}

// maxWord is the maximum number of letters in a control word, and of digits after it.
const maxWord = 32

// word reads a control word with its number and its final space.
func (r *reader) word() {
	r.flush()
	from := r.at
	for r.at < len(r.data) && r.at < from+maxWord && isLetter(r.data[r.at]) {
		r.at++
	}
	name := string(r.data[from:r.at])
	from = r.at
	if r.at < len(r.data) && r.data[r.at] == '-' {
		r.at++
	}
	for r.at < len(r.data) && r.at < from+maxWord && r.data[r.at] >= '0' && r.data[r.at] <= '9' {
		r.at++
	}
	number, err := strconv.Atoi(string(r.data[from:r.at]))
	hasNumber := r.at > from && (err == nil || number != 0)
	if r.at < len(r.data) && r.data[r.at] == ' ' {
		r.at++
	}
	if name == "bin" { // raw bytes follow, which are no text
		r.at += min(max(number, 0), len(r.data)-r.at)
		return
	}
	if r.skip > 0 {
		r.skip--
		return
	}
	if !hasNumber {
		number = noNumber
	}
	r.run(name, number)
}

// noNumber is the number of a control word without one.
const noNumber = -1 << 40

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// characters are the texts of control words that stand for them.
var characters = map[string]string{"tab": "\t", "line": "\n", "lbr": "\n", "softline": "\n", "column": "\n",
	"emdash": "—", "endash": "–", "lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”", "bullet": "•",
	"emspace": " ", "enspace": " ", "qmspace": " ", "zwj": "\u200d", "zwnj": "\u200c"}

// run carries out a control word.
func (r *reader) run(name string, number int) {
	g := r.now()
	first := g.first
	g.first = false
	if g.target == nothing && !(name == "ud" && g.star) {
		return
	}
	if first && r.beginTarget(name) {
		return
	}
	if text := characters[name]; text != "" {
		r.add(text)
		return
	}
	switch g.target {
	case fontTable:
		r.fontWord(name, number)
		return
	case styleTable:
		r.styleWord(name, number)
		return
	}
	if do := words[name]; do != nil {
		do(r, number)
	}
}

// words has what control words do outside of tables of fonts and styles.
var words = map[string]func(r *reader, number int){
	"ansicpg": func(r *reader, n int) { r.codePage = n },
	"mac":     func(r *reader, _ int) { r.codePage = 10000 },
	"pc":      func(r *reader, _ int) { r.codePage = 437 },
	"pca":     func(r *reader, _ int) { r.codePage = 850 },
	"deff":    func(r *reader, n int) { r.mainFont, r.now().font = n, n },
	"u":       func(r *reader, n int) { r.unicode(n) },
	"uc":      func(r *reader, n int) { r.now().skipped = min(max(n, 0), 8) },
	"f":       func(r *reader, n int) { r.now().font = n },
	"plain": func(r *reader, _ int) {
		g := r.now()
		g.font, g.hidden, g.verb = r.mainFont, false, ""
	},
	"v":            func(r *reader, n int) { r.now().hidden = n != 0 },
	"revised":      func(r *reader, n int) { r.now().setVerb("inserted", n) },
	"deleted":      func(r *reader, n int) { r.now().setVerb("deleted", n) },
	"revauth":      func(r *reader, n int) { r.now().author = n },
	"revauthdel":   func(r *reader, n int) { r.now().author = n },
	"par":          func(r *reader, _ int) { r.endParagraph() },
	"sect":         func(r *reader, _ int) { r.endParagraph() },
	"page":         func(r *reader, _ int) { r.pageBreak() },
	"pard":         func(r *reader, _ int) { r.resetParagraph() },
	"s":            func(r *reader, n int) { r.top().para.style = n },
	"outlinelevel": func(r *reader, n int) { r.top().para.heading = headingOf(n) },
	"ilvl":         func(r *reader, n int) { r.top().para.level = min(max(n, 0), 8) },
	"intbl":        func(r *reader, _ int) { r.top().para.inTable = true },
	"itap":         func(r *reader, n int) { r.top().para.nested = n > 1; r.top().para.inTable = n > 0 },
	"trowd":        func(r *reader, _ int) { r.top().above, r.top().merged = nil, false },
	"clvmrg":       func(r *reader, _ int) { r.top().merged = true },
	"cellx":        func(r *reader, _ int) { r.endCellDefinition() },
	"cell":         func(r *reader, _ int) { r.endCell() },
	"row":          func(r *reader, _ int) { r.endRow() },
	"nestcell":     func(r *reader, _ int) { r.endInnerCell() },
	"nestrow":      func(r *reader, _ int) { r.endInnerRow() },
	"ftnalt":       func(r *reader, _ int) { r.top().endnote = true },
	"titlepg":      func(r *reader, _ int) { r.titlePage = true },
	"ffres":        func(r *reader, n int) { r.box(func(f *field) { f.checked = n }) },
	"ffdefres":     func(r *reader, n int) { r.box(func(f *field) { f.usual = n }) },
}

// setVerb begins or ends a tracked change.
func (g *group) setVerb(verb string, number int) {
	g.verb = verb
	if number == 0 {
		g.verb = ""
	}
}

// headingOf returns the heading level of an outline level, which counts from 0. Level 9 is text.
func headingOf(level int) int {
	if level < 0 || level > 8 {
		return 0
	}
	return level + 1
}

// fontWord reads a property of a font.
func (r *reader) fontWord(name string, number int) {
	g := r.now()
	switch name {
	case "f":
		if g.font = number; len(r.fonts) < maxFonts {
			r.fonts[number] = &font{}
		}
	case "fcharset":
		if f := r.fonts[g.font]; f != nil && charsets[number] != 0 {
			f.codePage = charsets[number]
		}
	case "cpg":
		if f := r.fonts[g.font]; f != nil && number > 0 {
			f.codePage = number
		}
	}
}

// styleWord reads a property of a style.
func (r *reader) styleWord(name string, number int) {
	switch name {
	case "s":
		r.now().font = number // the table has no characters, so the font is not needed
		if len(r.styles) < maxFonts {
			r.styles[number] = &style{}
		}
	case "outlinelevel":
		if s := r.styles[r.now().font]; s != nil {
			s.heading = headingOf(number)
		}
	}
}

// tableText reads the names of fonts, styles and authors.
func (r *reader) tableText(text string) {
	g := r.now()
	name := strings.TrimSuffix(strings.TrimSpace(text), ";")
	switch g.target {
	case fontTable:
		if f := r.fonts[g.font]; f != nil && len(f.name) < maxWord {
			f.name += name
		}
	case styleTable:
		s := r.styles[g.font]
		if s == nil {
			return
		}
		if level, ok := strings.CutPrefix(strings.ToLower(name), "heading "); ok && len(level) == 1 {
			s.heading = headingOf(int(level[0]) - '1')
		}
		if strings.EqualFold(name, "title") {
			s.heading = 1
		}
	case authorTable:
		if len(r.authors) < maxFonts && strings.HasSuffix(text, ";") {
			r.authors = append(r.authors, name)
		}
	}
}
