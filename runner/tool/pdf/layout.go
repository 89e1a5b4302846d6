package pdf

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"

	"golang.org/x/text/unicode/norm"
)

// A glyph is a character of a page with its place, in points. Characters that PDFium has added, such as line ends,
// have no place.
type glyph struct {
	r                        rune
	left, bottom, right, top float64
	angle                    float64 // of its line, in radians

	after string // text that follows the glyph: the address of a link
}

// placed reports whether the glyph has a place.
func (g *glyph) placed() bool { return g.right > g.left || g.top > g.bottom }

// span returns where the glyph begins and ends in the direction of its line.
func (g *glyph) span() (start, end float64) {
	switch int(math.Round(g.angle/(math.Pi/2))) & 3 {
	case 1:
		return g.bottom, g.top
	case 2:
		return -g.right, -g.left
	case 3:
		return -g.top, -g.bottom
	}
	return g.left, g.right
}

// lineEndHyphen is PDFium's character for a hyphen that divides a word at the end of a line.
const lineEndHyphen = '\x02'

// layout returns the text of a page. Wide gaps in a line, such as those between the columns of a table, become as
// many spaces as letters would fit there.
func layout(glyphs []glyph, links []link) string {
	glyphs = compose(glyphs)
	readingOrder(glyphs)
	placeLinks(glyphs, links)
	var b strings.Builder
	for len(glyphs) > 0 {
		n := lineEnd(glyphs)
		// PDFium ends a line at some wide gaps, such as those of a table.
		for n < len(glyphs) && sameRow(glyphs[:n], glyphs[n+1:]) {
			n += 1 + lineEnd(glyphs[n+1:])
		}
		newTextLine(glyphs[:n]).write(&b)
		glyphs = glyphs[min(n+1, len(glyphs)):]
	}
	return b.String()
}

// lineEnd returns the index of the first line end.
func lineEnd(glyphs []glyph) int {
	if n := slices.IndexFunc(glyphs, func(g glyph) bool { return g.r == '\n' }); n >= 0 {
		return n
	}
	return len(glyphs)
}

// sameRow reports whether the glyphs of next go on in the row of a line, at its right.
func sameRow(line, next []glyph) bool {
	var last, first *glyph
	for i := len(line) - 1; i >= 0 && last == nil; i-- {
		if line[i].placed() && !unicode.IsSpace(line[i].r) {
			last = &line[i]
		}
	}
	for i := 0; i < len(next) && next[i].r != '\n' && first == nil; i++ {
		if next[i].placed() && !unicode.IsSpace(next[i].r) {
			first = &next[i]
		}
	}
	if last == nil || first == nil || last.angle != 0 || first.angle != 0 || first.left < last.right {
		return false
	}
	common := min(last.top, first.top) - max(last.bottom, first.bottom)
	return common > 0.7*max(last.top-last.bottom, first.top-first.bottom)
}

// Gaps in a line, in units of the line's average letter.
const (
	columnGap   = 2  // a gap from this width on separates columns
	sentenceGap = 5  // so does such a gap after the end of a sentence
	alignedGap  = 4  // equal gaps up to this width only align a line with the margins
	minSpaces   = 3  // in place of a gap between columns
	maxSpaces   = 40 // of the widest gap
)

// A textLine is a line of a page.
type textLine struct {
	glyphs []glyph
	letter float64 // average width of its letters
	plain  bool    // all of its gaps are equal, so none separates columns
}

// newTextLine measures a line.
func newTextLine(glyphs []glyph) *textLine {
	l := &textLine{glyphs: glyphs}
	l.letter = averageWidth(glyphs)
	if l.letter <= 0 {
		return l
	}
	least, most, n := math.Inf(1), 0.0, 0
	var last *glyph
	spaced := false
	for i := range glyphs {
		g := &glyphs[i]
		if unicode.IsSpace(g.r) || !g.placed() {
			spaced = spaced || unicode.IsSpace(g.r)
			continue
		}
		if last != nil && spaced {
			gap := l.gap(last, g)
			least, most, n = min(least, gap), max(most, gap), n+1
		}
		last, spaced = g, false
	}
	l.plain = n >= 2 && most < alignedGap && most < 1.1*least
	return l
}

// gap returns the width between two glyphs, in letters. It is 0 where the direction changes: the beginning of what is
// written from right to left is not beside the end of what is not.
func (l *textLine) gap(last, g *glyph) float64 {
	lastStart, lastEnd := last.span()
	start, end := g.span()
	switch before, after := rightToLeft(last.r), rightToLeft(g.r); {
	case before && after:
		return (lastStart - end) / l.letter
	case before != after:
		return 0
	}
	return (start - lastEnd) / l.letter
}

// write writes the line.
func (l *textLine) write(b *strings.Builder) {
	var last *glyph // with a place
	spaced := false
	var text strings.Builder
	for i := range l.glyphs {
		g := &l.glyphs[i]
		switch {
		case g.r == lineEndHyphen:
			last = nil // the word goes on in the next line
		case unicode.IsSpace(g.r):
			spaced = true
		default:
			text.WriteString(l.space(last, g, spaced && text.Len() > 0))
			spaced = false
			text.WriteString(printable(g.r))
			if g.placed() {
				last = g
			}
		}
		text.WriteString(g.after)
	}
	if text.Len() > 0 {
		b.WriteString(norm.NFC.String(text.String()) + "\n")
	}
}

// space returns the white space between two glyphs. spaced is true if PDFium sees a space there.
func (l *textLine) space(last, g *glyph, spaced bool) string {
	if last != nil && g.placed() && l.letter > 0 && !l.plain {
		least := float64(columnGap)
		if strings.ContainsRune(".?!:;,", last.r) {
			least = sentenceGap
		}
		if gap := l.gap(last, g); gap >= least {
			return strings.Repeat(" ", int(min(max(math.Round(gap), minSpaces), maxSpaces)))
		}
	}
	if spaced {
		return " "
	}
	return ""
}

// averageWidth returns the average width of the letters of a line.
func averageWidth(line []glyph) float64 {
	sum, n := 0.0, 0
	for i := range line {
		if g := &line[i]; g.placed() && !unicode.IsSpace(g.r) {
			start, end := g.span()
			sum += end - start
			n++
		}
	}
	return sum / float64(max(n, 1))
}

// printable returns a character for a model. Ligatures and the shapes that Arabic letters have in a word become
// letters.
func printable(r rune) string {
	switch {
	case r >= 0xfb00 && r <= 0xfdff || r >= 0xfe70 && r <= 0xfefc:
		return norm.NFKC.String(string(r))
	case unicode.IsControl(r), r >= 0xfffe && r <= 0xffff:
		return "\ufffd"
	}
	return string(r)
}

// accents maps the accents that TeX draws above, or below, a letter of its own to those that combine with a letter.
var accents = map[rune]rune{'`': '\u0300', '´': '\u0301', 'ˆ': '\u0302', '˜': '\u0303', '¯': '\u0304',
	'˘': '\u0306', '˙': '\u0307', '¨': '\u0308', '˚': '\u030a', '˝': '\u030b', 'ˇ': '\u030c', '¸': '\u0327', '˛': '\u0328'}

// accentRange is the number of glyphs before and after an accent among which its letter is searched. PDFium
// sees an accent above a capital as part of another line.
const accentRange = 400

// compose joins pairs of surrogates, and accents with the letters above or below them.
func compose(glyphs []glyph) []glyph {
	var out []glyph
	for i := range glyphs {
		g := glyphs[i]
		if n := len(out); n > 0 && utf16.IsSurrogate(g.r) && utf16.IsSurrogate(out[n-1].r) {
			out[n-1].r = utf16.DecodeRune(out[n-1].r, g.r)
			continue
		}
		if g.r != 0 {
			out = append(out, g)
		}
	}
	marks := map[int]rune{} // by the index of the letter
	drop := map[int]bool{}
	left := maxMarks
	for i := range out {
		mark := accents[out[i].r]
		if mark == 0 {
			continue
		}
		if left--; left < 0 {
			break
		}
		if at, ok := accented(out, i); ok {
			marks[at], drop[i] = mark, true
		}
	}
	if len(marks) == 0 {
		return out
	}
	kept := out[:0:0]
	for i, g := range out {
		if drop[i] {
			continue
		}
		if mark := marks[i]; mark != 0 {
			g.r = withAccent(g.r, mark)
		}
		kept = append(kept, g)
	}
	return kept
}

// accented returns the index of the letter on which an accent is drawn.
func accented(glyphs []glyph, accent int) (at int, ok bool) {
	a := &glyphs[accent]
	if !a.placed() {
		return 0, false
	}
	middle, line := (a.left+a.right)/2, a.top-a.bottom
	for distance := 1; distance <= accentRange; distance++ {
		for _, i := range []int{accent + distance, accent - distance} {
			if i < 0 || i >= len(glyphs) {
				continue
			}
			g := &glyphs[i]
			if middle < g.left || middle > g.right || math.Abs(g.bottom-a.bottom) > line*0.6 {
				continue
			}
			if unicode.IsLetter(g.r) && withAccent(g.r, accents[a.r]) != g.r {
				return i, true
			}
		}
	}
	return 0, false
}

// withAccent returns a letter with an accent, or the letter itself if there is no such letter.
func withAccent(letter, accent rune) rune {
	switch letter {
	case 'ı':
		letter = 'i'
	case 'ȷ':
		letter = 'j'
	}
	if composed := []rune(norm.NFC.String(string([]rune{letter, accent}))); len(composed) == 1 {
		return composed[0]
	}
	return letter
}

// oneLine returns a text of the document without line ends, and with at most limit bytes.
func oneLine(text string, limit int) string {
	text = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			return '\ufffd'
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))), " ")
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return text
}
