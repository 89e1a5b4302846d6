package chart

import (
	"fmt"
	"image/color"
	"slices"
	"strings"
	"unicode"

	"codeberg.org/go-fonts/dejavu/dejavusans"
	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
)

// A point has pixels of an SVG as its unit. A PNG has more pixels.
type point struct{ x, y float64 }

// A canvas is a picture that shapes are drawn on.
type canvas interface {
	// polygon fills a shape.
	polygon(points []point, c color.NRGBA)

	// polyline draws lines from each point to the next.
	polyline(points []point, width float64, c color.NRGBA)

	// text writes a text with its baseline at a point. The anchor is 0 if the text begins at the point, 0.5 if it is
	// centered there and 1 if it ends there. It is turned counterclockwise around the point by degrees.
	text(at point, s string, l look, anchor, degrees float64)

	// bytes returns the picture as a file.
	bytes() ([]byte, error)
}

// A look is the style of a text.
type look struct {
	size float64
	bold bool
	c    color.NRGBA
}

// The fonts, as indexes of letters.fonts.
const (
	regularFont = iota
	boldFont
	symbolFont // for characters that the others lack
)

// letters measures texts, and selects the font of each character.
type letters struct {
	fonts   []*sfnt.Font
	faces   map[faceKey]font.Face
	buffer  sfnt.Buffer
	missing []rune
}

type faceKey struct {
	font int
	size float64
}

func newType() *letters {
	t := &letters{faces: map[faceKey]font.Face{}}
	for _, data := range [][]byte{liberationsansregular.TTF, liberationsansbold.TTF, dejavusans.TTF} {
		f, err := sfnt.Parse(data)
		if err != nil {
			f = &sfnt.Font{} // has no characters; a test draws with each font
		}
		t.fonts = append(t.fonts, f)
	}
	return t
}

// face returns a font in one size.
func (t *letters) face(i int, size float64) font.Face {
	key := faceKey{i, size}
	if t.faces[key] == nil {
		// The options are valid, so there is no error.
		t.faces[key], _ = opentype.NewFace(t.fonts[i], &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingNone})
	}
	return t.faces[key]
}

// choose returns the font for a character.
func (t *letters) choose(r rune, bold bool) int {
	first := regularFont
	if bold {
		first = boldFont
	}
	for _, i := range []int{first, symbolFont} {
		if index, err := t.fonts[i].GlyphIndex(&t.buffer, r); err == nil && index != 0 {
			return i
		}
	}
	if !slices.Contains(t.missing, r) && len(t.missing) < 100 {
		t.missing = append(t.missing, r)
	}
	return first
}

// A run is a part of a text in one font.
type run struct {
	font int
	text string
}

func (t *letters) runs(s string, bold bool) (runs []run) {
	for _, r := range clean(s) {
		i := t.choose(r, bold)
		if n := len(runs); n > 0 && runs[n-1].font == i {
			runs[n-1].text += string(r)
			continue
		}
		runs = append(runs, run{i, string(r)})
	}
	return runs
}

// width returns the width of a text.
func (t *letters) width(s string, l look) (width float64) {
	for _, r := range t.runs(s, l.bold) {
		width += float64(font.MeasureString(t.face(r.font, l.size), r.text)) / 64
	}
	return width
}

// fit returns a text that is shortened to a width.
func (t *letters) fit(s string, l look, width float64) string {
	if t.width(s, l) <= width {
		return s
	}
	runes := []rune(s)
	for n := len(runes) - 1; n > 0; n-- {
		if short := strings.TrimSpace(string(runes[:n])) + "…"; t.width(short, l) <= width {
			return short
		}
	}
	return "…"
}

// notes names the characters that no font has.
func (t *letters) notes() []string {
	if len(t.missing) == 0 {
		return nil
	}
	var names []string
	for _, r := range t.missing[:min(len(t.missing), 30)] {
		names = append(names, fmt.Sprintf("%c (U+%04X)", r, r))
	}
	return []string{"The fonts lack these characters, which a PNG shows as empty boxes: " + strings.Join(names, ", ") + "."}
}

// clean returns a text as one line of visible characters.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Variation_Selector, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	return strings.TrimSpace(s)
}

// rect returns the corners of a rectangle.
func rect(x, y, width, height float64) []point {
	return []point{{x, y}, {x + width, y}, {x + width, y + height}, {x, y + height}}
}
