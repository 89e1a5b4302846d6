package pdf

import (
	"slices"
	"unicode"

	"golang.org/x/text/unicode/bidi"
)

// rightToLeft reports whether a character belongs to a script that is written from right to left.
func rightToLeft(r rune) bool {
	p, _ := bidi.LookupRune(r)
	return p.Class() == bidi.R || p.Class() == bidi.AL
}

// readingOrder brings the letters of words that are written from right to left into the order of reading. Browsers
// draw such words from their last letter, and PDFium turns only some of them. It also turns the letters that one glyph
// stands for, such as lam and alef.
func readingOrder(glyphs []glyph) {
	for i := 0; i < len(glyphs); i++ {
		end := i
		for end < len(glyphs) && (rightToLeft(glyphs[end].r) || end > i && unicode.Is(unicode.Mn, glyphs[end].r)) {
			end++
		}
		if end == i {
			continue
		}
		word := glyphs[i:end]
		if ascends(word) {
			slices.Reverse(word)
		}
		for len(word) > 0 {
			n := 1
			for n < len(word) && sameBox(&word[n], &word[0]) {
				n++
			}
			slices.Reverse(word[:n])
			word = word[n:]
		}
		i = end
	}
	mirrorBrackets(glyphs)
}

// ascends reports whether most letters of a word are placed right of the letters before them.
func ascends(word []glyph) bool {
	up := 0
	var last *glyph
	for i := range word {
		g := &word[i]
		if !g.placed() || !unicode.IsLetter(g.r) {
			continue
		}
		if last != nil && !sameBox(last, g) {
			up += map[bool]int{true: 1, false: -1}[middle(g) > middle(last)]
		}
		last = g
	}
	return up > 0
}

// middle returns the middle of a glyph, in the direction of its line.
func middle(g *glyph) float64 {
	start, end := g.span()
	return (start + end) / 2
}

// sameBox reports whether two characters belong to one glyph.
func sameBox(a, b *glyph) bool {
	return a.placed() && a.left == b.left && a.right == b.right && a.bottom == b.bottom && a.top == b.top
}

// mirrorBrackets changes the brackets that stand right of the word that follows them, or left of the word before them:
// in the order of reading an opening bracket comes first, though it has the form of a closing one.
func mirrorBrackets(glyphs []glyph) {
	mirrored := map[rune]rune{'(': ')', ')': '(', '[': ']', ']': '[', '{': '}', '}': '{', '«': '»', '»': '«'}
	beside := func(i int) *glyph {
		if i < 0 || i >= len(glyphs) || !glyphs[i].placed() || !rightToLeft(glyphs[i].r) {
			return nil
		}
		return &glyphs[i]
	}
	for i := range glyphs {
		g := &glyphs[i]
		if mirrored[g.r] == 0 || !g.placed() {
			continue
		}
		// PDFium sees the space before such a bracket after it.
		if next := i + 1; next < len(glyphs) && glyphs[next].r == ' ' && middle(&glyphs[next]) > middle(g) && beside(i+2) != nil {
			glyphs[i], glyphs[next] = glyphs[next], glyphs[i]
			continue // the bracket is next
		}
		before, after := beside(i-1), beside(i+1)
		if before != nil && middle(g) < middle(before) || after != nil && middle(g) > middle(after) {
			g.r = mirrored[g.r]
		}
	}
}
