package tool

import (
	"context"
	"errors"
	"strconv"

	"journeyman/runner/sandbox"
	"journeyman/runner/tool/pdf"
)

// Names of the filters for PDF documents that are not the reader of their text.
const (
	pdfLoader     = "load pdf"
	pdfMaker      = "compile pdf"
	pdfPageFilter = "pdf page"
)

// PDFPreparation describes the compiled reader of PDF documents.
func PDFPreparation() sandbox.Preparation {
	return sandbox.Preparation{Load: pdfLoader, Make: pdfMaker, Memory: pdf.Memory, MakeMemory: pdf.CompileMemory}
}

// A pdfReader is the reader of a process that reads a PDF document. It is nil until load, which runs before the
// process is confined.
type pdfReader struct{ *pdf.Reader }

// pdfs is the reader of this process. Only load sets it, before a confined process reads its input.
var pdfs pdfReader

// load is the filter pdfLoader.
func (r *pdfReader) load(folder []byte) (_ []byte, err error) {
	r.Reader, err = pdf.Open(string(folder))
	return nil, err
}

// compilePDF is the filter pdfMaker.
func compilePDF(folder []byte) ([]byte, error) { return nil, pdf.Compile(string(folder)) }

// errNotLoaded is the error of a process that has not loaded the reader of PDF documents.
var errNotLoaded = errors.New("the reader of PDF documents is not loaded")

// text reads the text of a PDF document.
func (r *pdfReader) text(document []byte, s selection, expired func() bool) ([]byte, error) {
	if r.Reader == nil {
		return nil, errNotLoaded
	}
	text, err := r.Text(document, s.Pages, expired)
	return []byte(printable(string(text))), err
}

// Limits of the picture of a page. Providers scale larger pictures down.
const (
	pictureSide  = 1568 // pixels of the longer side
	pictureBytes = 3_000_000
)

// picture is the filter pdfPageFilter. Its input is that of Documents.document, with one page.
func (r *pdfReader) picture(in []byte) ([]byte, error) {
	q, document, err := parseRequest(in)
	if err != nil {
		return nil, err
	}
	if r.Reader == nil {
		return nil, errNotLoaded
	}
	page, err := strconv.Atoi(q.Pages)
	if err != nil {
		return nil, err
	}
	return r.Picture(document, page, pictureSide, pictureBytes)
}

// pdfPage returns a page of a PDF document as an image. It returns an *Error for a page that cannot be shown.
func (d Documents) pdfPage(ctx context.Context, document []byte, page int) ([]byte, error) {
	q := request{selection: selection{Pages: strconv.Itoa(page)}}
	image, err := d.run(ctx, pdfPageFilter, PDFPreparation(), q, document)
	if fe, ok := errors.AsType[*sandbox.FilterError](err); ok {
		return nil, Errorf("page %d of the PDF document cannot be shown: %s", page, fe.Message)
	}
	return image, err
}
