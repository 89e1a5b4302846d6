package pdfwriter

import (
	"strings"
	"unicode"
)

// A style is the look of a piece of text.
type style struct {
	bold, italic, code, strike bool
	shaded                     bool   // has a background of its own
	link                       string // address, "" for none
}

// font returns the font of a style.
func (s style) font() int {
	switch {
	case s.code:
		return codeFont
	case s.bold:
		return boldFont
	}
	return regularFont
}

// A span is a part of a paragraph: a text, a line break or a picture.
type span struct {
	text    string
	style   style
	breaks  bool
	picture string // address, "" for none
}

// A piece is a text in one font and style.
type piece struct {
	text  []byte // grows without copies
	font  int
	style style
	width float64
}

// A line is a line of pieces.
type line struct{ pieces []piece }

func (l *line) wide() (width float64) {
	for _, p := range l.pieces {
		width += p.width
	}
	return width
}

// add appends pieces. It joins equal neighbours, so that the document contains whole phrases.
func (l *line) add(pieces ...piece) {
	for _, p := range pieces {
		last := len(l.pieces) - 1
		if last >= 0 && l.pieces[last].font == p.font && l.pieces[last].style == p.style {
			l.pieces[last].text = append(l.pieces[last].text, p.text...)
			l.pieces[last].width += p.width
			continue
		}
		l.pieces = append(l.pieces, p)
	}
}

// A breaker breaks spans into lines.
type breaker struct {
	fonts *fonts
	size  float64
	width float64 // of a line

	lines []line
	line  line
	space []piece // white space before the next word, which is not drawn at an end of a line
	word  []piece
	used  float64 // width of line
	wide  float64 // width of word
	empty bool    // the line was begun by a line break, and is kept although it is empty
}

// breakLines returns spans as lines of at most that width. A word that is longer is split.
func (f *fonts) breakLines(spans []span, size, width float64) []line {
	b := breaker{fonts: f, size: size, width: width}
	for _, s := range spans {
		if s.breaks {
			b.endWord()
			b.endLine()
			b.empty = true
			continue
		}
		for _, r := range clean(s.text) {
			b.add(r, s.style)
		}
	}
	b.endWord()
	if len(b.line.pieces) > 0 || b.empty || len(b.lines) == 0 {
		b.endLine()
	}
	return b.lines
}

// add adds a character.
func (b *breaker) add(r rune, s style) {
	if r == ' ' {
		b.endWord()
		if len(b.space) == 0 {
			b.space = b.fonts.pieces(" ", s, b.size)
		}
		return
	}
	// These scripts have no spaces: a line can end at each character.
	single := unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
	if single {
		b.endWord()
	}
	for _, p := range b.fonts.pieces(string(r), s, b.size) {
		if b.wide > 0 && b.wide+p.width > b.width { // the word does not fit on any line
			b.endWord()
		}
		b.wide += p.width
		word := line{b.word}
		word.add(p)
		b.word = word.pieces
	}
	if single {
		b.endWord()
	}
}

// endWord puts the word on this line or the next one.
func (b *breaker) endWord() {
	if len(b.word) == 0 {
		return
	}
	gap := (&line{b.space}).wide()
	if len(b.line.pieces) > 0 && b.used+gap+b.wide > b.width {
		b.endLine()
	}
	if len(b.line.pieces) > 0 {
		b.line.add(b.space...)
		b.used += gap
	}
	b.line.add(b.word...)
	b.used += b.wide
	b.space, b.word, b.wide, b.empty = nil, nil, 0, false
}

func (b *breaker) endLine() {
	b.lines = append(b.lines, b.line)
	b.line, b.used, b.space, b.empty = line{}, 0, nil, false
}

// widths returns the width of spans on one line, and of their longest word.
func (f *fonts) widths(spans []span, size float64) (all, longest float64) {
	var word, this float64 // so far, of this word and this line
	for _, s := range spans {
		if s.breaks {
			word, this = 0, 0
			continue
		}
		for _, r := range clean(s.text) {
			i, drawn := f.choose(s.style.font(), r)
			wide := f.width(i, drawn) * size
			this += wide
			if word += wide; r == ' ' {
				word = 0
			}
			all, longest = max(all, this), max(longest, word)
		}
	}
	return all, longest
}

// codeLines returns the lines of a text without changes, except that long ones continue on the next.
func (f *fonts) codeLines(text string, size, width float64) (lines []line) {
	for _, source := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		var l line
		used := 0.0
		for _, p := range f.codePieces(strings.TrimRight(source, "\r"), size) {
			if used+p.width > width && used > 0 {
				lines, l, used = append(lines, l), line{}, 0
			}
			l.add(p)
			used += p.width
		}
		lines = append(lines, l)
	}
	return lines
}

// codePieces returns the characters of a line of code. A tab leads to the next multiple of four columns.
func (f *fonts) codePieces(source string, size float64) (pieces []piece) {
	column := 0
	for i, part := range strings.Split(source, "\t") {
		if i > 0 {
			blank := strings.Repeat(" ", 4-column%4)
			column += len(blank)
			pieces = append(pieces, f.pieces(blank, style{code: true}, size)...)
		}
		for _, r := range clean(part) {
			column++
			pieces = append(pieces, f.pieces(string(r), style{code: true}, size)...)
		}
	}
	return pieces
}

// A tint is a color with values from 0 to 255.
type tint struct{ r, g, b int }

var (
	colorText  = tint{26, 26, 26}
	colorQuote = tint{90, 90, 90}
	colorNote  = tint{120, 120, 120}
	colorLink  = tint{17, 85, 170}
	colorRule  = tint{200, 200, 200}
	colorShade = tint{244, 244, 244}
)

// drawAt draws a line whose baseline begins at a point.
func (l *line) drawAt(w *writer, x, baseline, size float64, c tint) {
	for _, p := range l.pieces {
		if p.style.shaded {
			w.fill(x, baseline-size*0.82, p.width, size*1.06, colorShade)
		}
		shown := c
		if p.style.link != "" {
			shown = colorLink
			w.pdf.LinkString(x, baseline-size, p.width, size*1.3, p.style.link)
		}
		w.fonts.use(p.font, size)
		w.pdf.SetTextColor(shown.r, shown.g, shown.b)
		w.write(p, x, baseline)
		if p.style.strike {
			w.fill(x, baseline-size*0.3, p.width, size*0.06, shown)
		}
		x += p.width
	}
}

// slant is the angle of italics, in degrees. They are slanted shapes of the upright font, because an italic font
// and a bold italic one would add 800 kB to the program.
const slant = 12

// write writes a piece in the current font.
func (w *writer) write(p piece, x, baseline float64) {
	if p.style.italic && !p.style.code {
		w.pdf.TransformBegin()
		defer w.pdf.TransformEnd()
		w.pdf.TransformSkewX(slant, x, baseline)
	}
	w.pdf.Text(x, baseline, string(p.text))
}

// fill fills a rectangle.
func (w *writer) fill(x, y, width, height float64, c tint) {
	w.pdf.SetFillColor(c.r, c.g, c.b)
	w.pdf.Rect(x, y, width, height, "F")
}
