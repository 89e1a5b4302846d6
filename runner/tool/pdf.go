package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ledongthuc/pdf"
	"golang.org/x/text/unicode/norm"

	"journeyman/runner/sandbox"
)

// pdfType is the media type of PDF documents.
const pdfType = "application/pdf"

// pdfFilter is what the program's main calls PDFText by, as a sandbox.Filter.
const pdfFilter = "pdf"

// Filters are what this package needs sandbox.BeFilter for.
func Filters() map[string]sandbox.Filter { return map[string]sandbox.Filter{pdfFilter: PDFText} }

// pdfsAtOnce is how many documents one tool reads side by side: each may take much
// memory, and must not run out of its time because of the others.
const pdfsAtOnce = 2

// A pdfReader reads PDF documents, so many at once as it has room for.
type pdfReader chan struct{}

func newPDFReader() pdfReader { return make(pdfReader, pdfsAtOnce) }

// read gives the text of a PDF document, which a process that can do nothing else
// reads. A document that cannot be read is an *Error.
func (r pdfReader) read(ctx context.Context, in io.Reader) (string, error) {
	select {
	case r <- struct{}{}:
		defer func() { <-r }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	text, err := sandbox.RunFilter(ctx, pdfFilter, in)
	var fe *sandbox.FilterError
	if errors.As(err, &fe) {
		return "", Errorf("the PDF document has no text that can be read: %s", fe.Message)
	}
	return string(text), err
}

// maxPages is how many pages of a document are read.
const maxPages = 2000

// PDFText gives the text of a PDF document, each page but the first under a line with
// its number.
// It may panic or never end where the document is made for that.
func PDFText(document []byte) ([]byte, error) {
	r, err := pdf.NewReader(bytes.NewReader(document), int64(len(document)))
	if errors.Is(err, pdf.ErrInvalidPassword) {
		return nil, errors.New("a password protects it")
	}
	if err != nil {
		return nil, errors.New("it is damaged")
	}
	var b strings.Builder
	found, pages := false, r.NumPage()
	for i := 1; i <= min(pages, maxPages); i++ {
		text, err := r.Page(i).GetPlainText(nil)
		if err != nil {
			text = "(This page cannot be read.)"
		}
		text = tidyPage(text)
		found = found || text != "" && err == nil
		if i > 1 {
			fmt.Fprintf(&b, "[page %d of %d]\n\n", i, pages)
		}
		b.WriteString(text + "\n\n")
	}
	if !found {
		return nil, errors.New("it holds pictures of pages, or nothing")
	}
	if pages > maxPages {
		fmt.Fprintf(&b, "[%d more pages are not read]\n", pages-maxPages)
	}
	return []byte(b.String()), nil
}

// tidyPage puts together the lines that a change of typeface has parted, and writes
// ligatures as the letters they stand for.
func tidyPage(text string) string {
	var b strings.Builder
	blank := true // what comes next begins a line
	for line := range strings.Lines(printable(norm.NFKC.String(text))) {
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" {
			continue
		}
		switch goesOn := strings.HasPrefix(line, " ") || strings.HasSuffix(b.String(), " "); {
		case blank || goesOn:
		default:
			b.WriteByte('\n')
		}
		b.WriteString(line)
		blank = false
	}
	return strings.TrimSpace(b.String())
}
