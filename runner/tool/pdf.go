package tool

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/ledongthuc/pdf"
	"golang.org/x/text/unicode/norm"

	"journeyman/runner/sandbox"
)

// pdfType is the media type of PDF documents.
const pdfType = "application/pdf"

// Limits of a document. A longer one is read as far as the time allows.
const (
	maxPages = 2000
	maxPDF   = 8 << 20 // bytes of text
)

// PDFText returns the text of a PDF document. Before every page except the first, it adds a
// line with the page number. PDFText may panic or never return for a hostile document.
func PDFText(document []byte) ([]byte, error) {
	r, err := pdf.NewReader(bytes.NewReader(document), int64(len(document)))
	if errors.Is(err, pdf.ErrInvalidPassword) {
		return nil, errors.New("a password protects it")
	}
	if err != nil {
		return nil, errors.New("it is damaged")
	}
	var b strings.Builder
	found, pages, read := false, max(r.NumPage(), 0), 0
	for i := 1; i <= min(pages, maxPages) && b.Len() < maxPDF && sandbox.ProcessTime() < sandbox.FilterTime; i++ {
		read = i
		// One damaged page must not prevent reading the others.
		text, err := r.Page(i).GetPlainText(nil)
		if err != nil {
			text = "(This page cannot be read.)"
		}
		text = tidyPage(text)
		// Page numbers and error notes do not count as text. Without other text, the model must
		// get an error.
		found = found || text != "" && err == nil
		if i > 1 {
			fmt.Fprintf(&b, "[page %d of %d]\n\n", i, pages)
		}
		b.WriteString(text + "\n\n")
	}
	if !found {
		return nil, errors.New("it holds pictures of pages, or nothing")
	}
	if pages > read {
		fmt.Fprintf(&b, "[%d more pages are not read]\n", pages-read)
	}
	return []byte(b.String()), nil
}

// tidyPage joins lines that a change of typeface has split, and replaces ligatures by letters.
// A line continues the previous one if it begins with a space, or if the previous one does.
func tidyPage(text string) string {
	var b strings.Builder
	for line := range strings.Lines(printable(norm.NFKC.String(text))) {
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" {
			continue
		}
		if b.Len() > 0 && !strings.HasPrefix(line, " ") && !strings.HasSuffix(b.String(), " ") {
			b.WriteByte('\n')
		}
		b.WriteString(line)
	}
	return strings.TrimSpace(b.String())
}
