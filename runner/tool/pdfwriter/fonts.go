package pdfwriter

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"codeberg.org/go-fonts/dejavu/dejavusans"
	"codeberg.org/go-fonts/liberation/liberationmonoregular"
	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"codeberg.org/go-pdf/fpdf"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/text/unicode/norm"
)

// The fonts of a document, as indexes of fonts.faces.
const (
	regularFont = iota
	boldFont
	codeFont
	symbolFont // for characters that the other fonts lack
)

// A face is one font.
type face struct {
	family, style string
	data          []byte
	font          *sfnt.Font // nil until used
	widths        map[rune]float64
}

// fonts selects the font of each character, and collects those that no font has.
type fonts struct {
	pdf     *fpdf.Fpdf
	faces   []*face
	buffer  sfnt.Buffer
	missing []rune
	lost    map[rune]bool // the runes in missing
	turned  bool          // there was text that is written from right to left
}

func newFonts(pdf *fpdf.Fpdf) *fonts {
	return &fonts{pdf: pdf, lost: map[rune]bool{}, faces: []*face{
		{family: "sans", data: liberationsansregular.TTF}, {family: "sans", style: "B", data: liberationsansbold.TTF},
		{family: "mono", data: liberationmonoregular.TTF}, {family: "symbols", data: dejavusans.TTF}}}
}

// open parses a font at its first use.
func (f *fonts) open(i int) *face {
	c := f.faces[i]
	if c.font == nil {
		font, err := sfnt.Parse(c.data)
		if err != nil {
			f.pdf.SetErrorf("font %s: %s", c.family, err)
			font = &sfnt.Font{}
		}
		c.font, c.widths = font, map[rune]float64{}
		f.pdf.AddUTF8FontFromBytes(c.family, c.style, c.data)
	}
	return c
}

// use selects a font for the next text.
func (f *fonts) use(i int, size float64) {
	c := f.open(i)
	f.pdf.SetFont(c.family, c.style, size)
}

// has reports whether a font has a character.
func (f *fonts) has(i int, r rune) bool {
	index, err := f.open(i).font.GlyphIndex(&f.buffer, r)
	return err == nil && index != 0
}

// width returns the width of a character in a font of one point.
func (f *fonts) width(i int, r rune) float64 {
	c := f.open(i)
	w, known := c.widths[r]
	if !known {
		f.use(i, 1000)
		w = f.pdf.GetStringWidth(string(r)) / 1000
		c.widths[r] = w
	}
	return w
}

// unknown is drawn for a character outside of the Basic Multilingual Plane, which the library cannot write.
const unknown = '□'

// choose returns the font for a character, and the character to draw. For a character that no font has it is the empty
// box of the font, which a reader of the text still finds as that character.
func (f *fonts) choose(i int, r rune) (int, rune) {
	f.turned = f.turned || unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko)
	switch {
	case f.has(i, r) && r <= 0xffff:
		return i, r
	case f.has(symbolFont, r) && r <= 0xffff:
		return symbolFont, r
	}
	if !f.lost[r] {
		f.lost[r] = true
		f.missing = append(f.missing, r)
	}
	if r > 0xffff {
		return symbolFont, unknown
	}
	return i, r
}

// pieces returns a text without line breaks as pieces of one font each.
func (f *fonts) pieces(text string, s style, size float64) (pieces []piece) {
	for _, r := range text {
		i, r := f.choose(s.font(), r)
		wide := f.width(i, r) * size
		if n := len(pieces); n > 0 && pieces[n-1].font == i {
			pieces[n-1].text = utf8.AppendRune(pieces[n-1].text, r)
			pieces[n-1].width += wide
			continue
		}
		pieces = append(pieces, piece{text: utf8.AppendRune(nil, r), font: i, style: s, width: wide})
	}
	return pieces
}

// clean returns a text with composed characters, and without characters that have no shape.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\u00a0', r == '\u202f', r == '\u2007': // spaces at which no line ends
			return r
		case unicode.IsSpace(r), r == '\u2028', r == '\u2029':
			return ' '
		case unicode.Is(unicode.Cf, r), unicode.IsControl(r), unicode.Is(unicode.Variation_Selector, r):
			return -1
		}
		return r
	}, norm.NFC.String(strings.ToValidUTF8(text, "\ufffd")))
}

// maxNamed is the number of missing characters that a note names.
const maxNamed = 30

// notes returns what the document lacks.
func (w *writer) notes() []string {
	notes := slices.Clone(w.lacks)
	if n := len(w.fonts.missing); n > 0 {
		var names []string
		for _, r := range w.fonts.missing[:min(n, maxNamed)] {
			names = append(names, fmt.Sprintf("%c (U+%04X)", r, r))
		}
		more := ""
		if n > maxNamed {
			more = fmt.Sprintf(" and %d more", n-maxNamed)
		}
		notes = append(notes, "The fonts lack these characters, which are drawn as empty boxes: "+
			strings.Join(names, ", ")+more+".")
	}
	if w.fonts.turned {
		notes = append(notes, "Text in Hebrew, Arabic and similar scripts is not set from right to left, nor joined.")
	}
	return notes
}
