// Package pdfwriter makes PDF documents of Markdown. It runs in a confined process, and gets the bytes of pictures with
// its input. Its fonts have the Latin, Greek and Cyrillic scripts, and many symbols. The result names the characters
// that no font has.
//
// Of this module, the package may import only markdown.
package pdfwriter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"codeberg.org/go-pdf/fpdf"
	"github.com/yuin/goldmark/ast"

	"journeyman/runner/tool/markdown"
)

// An Input is a document to write.
type Input struct {
	Markdown string            `json:"markdown"`
	Pictures map[string][]byte `json:"pictures,omitempty"` // contents by the address in the Markdown
	Made     time.Time         `json:"made"`               // date of the document
}

// A Report describes a document. Write puts it before the document as one line of JSON.
type Report struct {
	Pages    int      `json:"pages"`
	Notes    []string `json:"notes,omitempty"`    // what the document lacks
	Pictures []string `json:"pictures,omitempty"` // addresses of pictures that the input does not contain
}

// Limits of a document.
const (
	maxPages    = 1000
	maxDocument = 15 << 20 // bytes; a filter returns little more
	maxWanted   = 100      // pictures
)

// Write returns the Report of a document, and the document. in is an Input.
func Write(in []byte) ([]byte, error) {
	var input Input
	if err := json.Unmarshal(in, &input); err != nil {
		return nil, fmt.Errorf("read input: %w", err)
	}
	w := newWriter(input)
	root := markdown.Parse(w.source)
	w.blocks(root, box{left: marginLeft, width: pageWidth - marginLeft - marginRight})
	if w.err == nil {
		w.numberPages()
	}
	var document bytes.Buffer
	if err := errors.Join(w.err, w.pdf.Error()); err != nil {
		return nil, err
	}
	if err := w.pdf.Output(&document); err != nil {
		return nil, fmt.Errorf("write document: %w", err)
	}
	if document.Len() > maxDocument {
		return nil, fmt.Errorf("the document would have more than %d bytes; use smaller pictures", maxDocument)
	}
	head, err := json.Marshal(Report{Pages: w.pdf.PageCount(), Notes: w.notes(), Pictures: w.wanted})
	if err != nil {
		return nil, fmt.Errorf("write report: %w", err)
	}
	return append(append(head, '\n'), document.Bytes()...), nil
}

// Split returns the parts of a result of Write.
func Split(out []byte) (r Report, document []byte, err error) {
	head, document, _ := bytes.Cut(out, []byte("\n"))
	if err := json.Unmarshal(head, &r); err != nil {
		return Report{}, nil, fmt.Errorf("read report of a document: %w", err)
	}
	return r, document, nil
}

// Lengths in points.
const (
	pageWidth, pageHeight   = 595.28, 841.89 // A4
	marginLeft, marginRight = 62, 62
	marginTop, marginBottom = 62, 68
	pageBottom              = pageHeight - marginBottom
)

// A writer writes one document.
type writer struct {
	pdf      *fpdf.Fpdf
	source   []byte
	pictures map[string][]byte
	fonts    *fonts
	err      error // the first error; nothing is drawn after it

	y       float64  // upper edge of the next line on the page
	gap     float64  // space before the next line, unless it begins a page
	markers []marker // of list items whose first line is not drawn yet
	outline int      // level of the last heading in the outline, -1 for none
	title   bool     // the document has a title

	drawn  map[string]registered // pictures by address: each one is decoded once
	wanted []string              // addresses of missing pictures
	lacks  []string              // notes on pictures
}

func newWriter(input Input) *writer {
	pdf := fpdf.New("P", "pt", "A4", "")
	pdf.SetAutoPageBreak(false, 0)
	pdf.SetMargins(0, 0, 0)
	pdf.SetCreationDate(input.Made)
	pdf.SetModificationDate(input.Made)
	pdf.SetCatalogSort(true) // the same input gives the same document
	pdf.SetProducer("Journeyman", true)
	w := &writer{pdf: pdf, source: []byte(input.Markdown), pictures: input.Pictures, fonts: newFonts(pdf), outline: -1,
		drawn: map[string]registered{}}
	w.newPage()
	return w
}

// newPage begins a page.
func (w *writer) newPage() {
	if w.err == nil && w.pdf.PageCount() >= maxPages {
		w.err = fmt.Errorf("the document would have more than %d pages", maxPages)
	}
	if w.err != nil {
		return
	}
	w.pdf.AddPage()
	w.y, w.gap = marginTop, 0
}

// room begins a page if a block of that height does not fit on this one, and applies the gap before the block.
func (w *writer) room(height float64) {
	if w.y > marginTop {
		w.y += w.gap
	}
	w.gap = 0
	if w.y+height > pageBottom && w.y > marginTop {
		w.newPage()
	}
}

// space sets the least gap before the next line.
func (w *writer) space(points float64) { w.gap = max(w.gap, points) }

// numberPages writes the numbers of all pages.
func (w *writer) numberPages() {
	total := w.pdf.PageCount()
	for i := 1; i <= total; i++ {
		w.pdf.SetPage(i)
		// Select another font first: fpdf would otherwise not write the font on this page.
		w.fonts.use(boldFont, 8)
		text := fmt.Sprint(i)
		if total > 1 {
			text = fmt.Sprintf("%d / %d", i, total)
		}
		line := line{pieces: w.fonts.pieces(text, style{}, 8.5)}
		line.drawAt(w, pageWidth/2-line.wide()/2, pageHeight-marginBottom/2, 8.5, colorNote)
	}
}

// blocks writes the blocks in n.
func (w *writer) blocks(n ast.Node, b box) {
	for c := n.FirstChild(); c != nil && w.err == nil; c = c.NextSibling() {
		w.block(c, b)
	}
}
