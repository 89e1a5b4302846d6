// Package pdf reads PDF documents with PDFium, which runs as WebAssembly.
//
// The text of a page is what a person sees, in PDFium's reading order: words with spaces between them, rows of
// tables as lines, addresses of links behind their text, and then values of fields and comments. PDFium is
// compiled once for a machine: see Compile. A document may be hostile, so the process that reads it must be
// confined. The process may be killed at any time: a page can keep PDFium busy for ever.
package pdf

import (
	"errors"
	"fmt"
	"strings"

	pdfium "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
)

// Limits of a document. A longer one is read as far as they allow.
const (
	maxPages = 5000    // pages of one result
	maxText  = 8 << 20 // bytes of text
)

// A document is an open document.
type document struct {
	*Reader
	ref   references.FPDF_DOCUMENT
	form  references.FPDF_FORMHANDLE // "" without fields
	pages int
}

// open opens a document.
func (r *Reader) open(data []byte) (*document, error) {
	opened, err := r.pdfium.OpenDocument(&requests.OpenDocument{File: &data})
	switch {
	case r.memory.refused:
		return nil, errMemory
	case errors.Is(err, pdfium.ErrPassword):
		return nil, errors.New("a password protects it: ask for the document without one, or for its text")
	case errors.Is(err, pdfium.ErrSecurity):
		return nil, errors.New("it is encrypted in a way that cannot be read")
	case err != nil:
		return nil, errors.New("it is damaged")
	}
	d := &document{Reader: r, ref: opened.Document}
	count, err := r.pdfium.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: d.ref})
	if err != nil {
		return nil, d.failure(err)
	}
	if d.pages = count.PageCount; d.pages < 1 {
		return nil, errors.New("it is damaged: it has no pages")
	}
	return d, nil
}

// failure returns the error for a failure of PDFium itself.
func (d *document) failure(error) error {
	if d.memory.refused {
		return errMemory
	}
	return errors.New("it is damaged")
}

// label returns the label of a page, which readers show in place of its number. It returns "" if the page has none
// or if that is the number.
func (d *document) label(page int) string {
	l, err := d.pdfium.FPDF_GetPageLabel(&requests.FPDF_GetPageLabel{Document: d.ref, Page: page - 1})
	if err != nil || l.Label == fmt.Sprint(page) {
		return ""
	}
	return oneLine(l.Label, maxLabel)
}

// Text returns the text of the pages that a selection names, all for "". If there are several pages, each one
// begins with a line "[page 3 of 36]". Text stops before a page when expired returns true.
func (r *Reader) Text(data []byte, selection string, expired func() bool) ([]byte, error) {
	d, err := r.open(data)
	if err != nil {
		return nil, err
	}
	pages, err := d.selected(selection)
	if err != nil {
		return nil, err
	}
	d.openForm()
	var b strings.Builder
	read, pictures := 0, 0
	var failed error
	for _, n := range pages {
		if read == maxPages || b.Len() > maxText || read > 0 && expired() {
			break
		}
		text, kind, err := d.pageText(n)
		if err != nil {
			failed = err
			break
		}
		if kind == pictureOnly {
			pictures++
		}
		if d.pages > 1 {
			b.WriteString(d.heading(n))
		}
		b.WriteString(text + "\n\n")
		read++
	}
	if read == 0 {
		return nil, failed
	}
	note := ""
	if pictures == read {
		note = scanNote(selection == "" && read == len(pages))
	}
	return []byte(note + b.String() + d.attachments() + restNote(pages[read:], failed)), nil
}

// heading returns the line before the text of a page.
func (d *document) heading(page int) string {
	if label := d.label(page); label != "" {
		return fmt.Sprintf("[page %d of %d, labelled %q]\n\n", page, d.pages, label)
	}
	return fmt.Sprintf("[page %d of %d]\n\n", page, d.pages)
}

// scanNote returns the note for pages without text. all is true if these are all pages of the document.
func scanNote(all bool) string {
	what := "None of these pages has text"
	if all {
		what = "No page of this document has text"
	}
	return "[" + what + ": they are pictures, as those of a scanner are. view_image with page shows each to a model " +
		"that sees pictures. A model that does not see them cannot read them: another program must recognize the text]\n\n"
}

// restNote returns the note about pages that are not read.
func restNote(rest []int, failed error) string {
	if len(rest) == 0 {
		return ""
	}
	why := "reading them takes too long"
	if failed != nil {
		why = fmt.Sprintf("page %d cannot be read: %s", rest[0], failed)
	}
	return fmt.Sprintf("[%d more pages are not read, from page %d on: %s; pages selects others]\n",
		len(rest), rest[0], why)
}

// attachments names the files inside the document.
func (d *document) attachments() string {
	count, err := d.pdfium.FPDFDoc_GetAttachmentCount(&requests.FPDFDoc_GetAttachmentCount{Document: d.ref})
	if err != nil || count.AttachmentCount < 1 {
		return ""
	}
	var names []string
	for i := range min(count.AttachmentCount, maxAttachments) {
		a, err := d.pdfium.FPDFDoc_GetAttachment(&requests.FPDFDoc_GetAttachment{Document: d.ref, Index: i})
		if err != nil {
			break
		}
		name, err := d.pdfium.FPDFAttachment_GetName(&requests.FPDFAttachment_GetName{Attachment: a.Attachment})
		if err != nil {
			break
		}
		names = append(names, fmt.Sprintf("%q", oneLine(name.Name, maxLabel)))
	}
	return fmt.Sprintf("[%d files are attached inside of this document: %s]\n",
		count.AttachmentCount, strings.Join(names, ", "))
}
