package pdf

import (
	"fmt"
	"strings"

	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
)

// Limits of a page.
const (
	maxChars       = 400_000 // characters whose places are read
	maxMarks       = 2000    // links, or fields and comments
	maxAttachments = 100
	maxLabel       = 200  // bytes of a label or a name
	maxValue       = 4000 // bytes of a value, a comment or an address
)

// A pageKind is what a page consists of.
type pageKind int

const (
	withText pageKind = iota
	pictureOnly
	emptyPage
)

// pageText returns the text of a page. An error means that PDFium cannot continue.
func (d *document) pageText(page int) (text string, kind pageKind, err error) {
	loaded, err := d.pdfium.FPDF_LoadPage(&requests.FPDF_LoadPage{Document: d.ref, Index: page - 1})
	if d.memory.refused {
		return "", withText, errMemory
	}
	if err != nil { // one damaged page must not prevent reading the others
		return "(This page is damaged.)", withText, nil
	}
	p := requests.Page{ByReference: &loaded.Page}
	glyphs, err := d.glyphs(p)
	if err != nil {
		return "", withText, d.failure(err)
	}
	marks := d.marks(p)
	text = strings.TrimSpace(layout(glyphs, d.links(p)))
	if d.memory.refused {
		return "", withText, errMemory
	}
	objects, err := d.pdfium.FPDFPage_CountObjects(&requests.FPDFPage_CountObjects{Page: p})
	if err != nil {
		return "", withText, d.failure(err)
	}
	if _, err := d.pdfium.FPDF_ClosePage(&requests.FPDF_ClosePage{Page: loaded.Page}); err != nil {
		return "", withText, d.failure(err)
	}
	switch {
	case text == "" && objects.Count == 0:
		text, kind = "(This page is empty.)", emptyPage
	case text == "":
		text = fmt.Sprintf("(This page has no text, only a picture: view_image with page %d shows it.)", page)
		kind = pictureOnly
	case unreadable(text):
		text += fmt.Sprintf("\n\n(Letters of this page have no known meaning: view_image with page %d shows it.)", page)
	}
	return strings.Join(append([]string{text}, marks...), "\n"), kind, nil
}

// minUnreadable is the number of letters without a meaning that a page may have anyway.
const minUnreadable = 5

// unreadable reports whether a page has many letters of fonts that do not say what they stand for.
func unreadable(text string) bool {
	letters, unknown := 0, 0
	for _, r := range text {
		switch {
		case r == '\ufffd' || r >= 0xe000 && r <= 0xf8ff:
			unknown++
		case r > ' ':
			letters++
		}
	}
	return unknown > max(letters/5, minUnreadable)
}

// glyphs returns the characters of a page, in PDFium's reading order.
func (d *document) glyphs(p requests.Page) (list []glyph, err error) {
	// The size must be known before the library copies all characters with their places.
	text, err := d.pdfium.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: p})
	if err != nil {
		return nil, err
	}
	count, err := d.pdfium.FPDFText_CountChars(&requests.FPDFText_CountChars{TextPage: text.TextPage})
	if err != nil {
		return nil, err
	}
	newLine, angle := true, 0.0
	for i := range min(count.Count, maxChars) {
		g, err := d.glyph(text.TextPage, i)
		if err != nil {
			return nil, err
		}
		// All characters of a line have one direction.
		if newLine && g.placed() {
			a, err := d.pdfium.FPDFText_GetCharAngle(&requests.FPDFText_GetCharAngle{TextPage: text.TextPage, Index: i})
			if err == nil {
				newLine, angle = false, float64(a.CharAngle)
			}
		}
		newLine = newLine || g.r == '\n'
		g.angle = angle
		list = append(list, g)
	}
	_, err = d.pdfium.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: text.TextPage})
	return list, err
}

// glyph returns a character with its place.
func (d *document) glyph(text references.FPDF_TEXTPAGE, i int) (g glyph, err error) {
	u, err := d.pdfium.FPDFText_GetUnicode(&requests.FPDFText_GetUnicode{TextPage: text, Index: i})
	if err != nil {
		return g, err
	}
	g.r = rune(u.Unicode)
	box, err := d.pdfium.FPDFText_GetLooseCharBox(&requests.FPDFText_GetLooseCharBox{TextPage: text, Index: i})
	if err != nil || g.r == '\r' || g.r == '\n' {
		return g, nil // PDFium has added it, so it has no place
	}
	r := box.Rect
	g.left, g.right = float64(min(r.Left, r.Right)), float64(max(r.Left, r.Right))
	g.bottom, g.top = float64(min(r.Bottom, r.Top)), float64(max(r.Bottom, r.Top))
	return g, nil
}
