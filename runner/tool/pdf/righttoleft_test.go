package pdf

import (
	"strings"
	"testing"

	"github.com/matryer/is"
)

// TestRightToLeft lays out lines as PDFium gives them. A word begins at each number, the place of its first letter; the
// next letters are placed in the direction of the sign.
func TestRightToLeft(t *testing.T) {
	t.Parallel()
	type part struct {
		text string
		at   float64
		step float64 // 0: all letters belong to one glyph
	}
	for name, tt := range map[string]struct {
		parts []part
		want  string
	}{
		"turned by PDFium":       {[]part{{"نص", 300, -10}, {" ", 280, 0}, {"عربي", 270, -10}}, "نص عربي"},
		"drawn by a browser":     {[]part{{"صن", 290, 10}, {" ", 280, 0}, {"يبرع", 240, 10}}, "نص عربي"},
		"Hebrew":                 {[]part{{"םולש", 240, 10}}, "שלום"},
		"letters of one glyph":   {[]part{{"ا", 300, -10}, {"ال", 290, 0}, {"سم", 280, -10}}, "الاسم"},
		"a word of one glyph":    {[]part{{"ال", 290, 0}}, "لا"},
		"brackets":               {[]part{{"לי", 300, -10}, {" ", 280, 0}, {")", 270, 0}, {"דנה", 260, -10}, {"(", 230, 0}}, "לי (דנה)"},
		"brackets and spaces":    {[]part{{"לי", 300, -10}, {")", 260, 0}, {" ", 270, 0}, {"דנה", 250, -10}, {"(", 220, 0}}, "לי (דנה)"},
		"brackets between words": {[]part{{"א", 300, 0}, {")", 290, 0}, {"ב", 280, 0}, {"(", 270, 0}}, "א(ב)"},
		"brackets in English":    {[]part{{"say", 10, 10}, {" ", 40, 0}, {"(", 50, 0}, {"שלום", 90, -10}, {")", 100, 0}}, "say (שלום)"},
		"in a sentence": {[]part{{"The", 10, 10}, {" ", 40, 0}, {"שלום", 80, -10}, {" ", 90, 0}, {"is", 100, 10}},
			"The שלום is"},
		"columns":               {[]part{{"שם", 300, -10}, {" ", 280, 0}, {"מחיר", 200, -10}}, "שם        מחיר"},
		"numbers stay":          {[]part{{"בת", 300, -10}, {" ", 280, 0}, {"30", 260, 10}}, "בת 30"},
		"marks follow a letter": {[]part{{"ה", 300, 0}, {"ָ", 302, 0}, {"ר", 290, 0}}, "הָר"},
		"from left to right":    {[]part{{"plain (text)", 10, 10}}, "plain (text)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var glyphs []glyph
			for _, p := range tt.parts {
				at := p.at
				for _, r := range p.text {
					glyphs = append(glyphs, glyph{r: r, left: at, right: at + 10, top: 12})
					at += p.step
				}
			}
			is.New(t).Equal(strings.TrimSpace(layout(glyphs, nil)), tt.want)
		})
	}
}
