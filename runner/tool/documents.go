package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"journeyman/runner/sandbox"
	"journeyman/runner/tool/office"
)

// Names of the filters.
const (
	pdfFilter  = "pdf"
	pageFilter = "page"
	mailFilter = "mail"
	docxFilter = "docx"
	xlsxFilter = "xlsx"
	pptxFilter = "pptx"
	docxWriter = "write docx"
	xlsxWriter = "write xlsx"
)

// Filters returns the readers of untrusted documents. The program's main passes them to
// sandbox.BeFilter. No other code parses HTML, PDF or office documents. A hostile
// document can make a parser use any amount of memory and time.
func Filters() map[string]sandbox.Filter {
	return map[string]sandbox.Filter{pdfFilter: timedFilter(pdfText), pageFilter: readPage, mailFilter: readMailPages,
		docxFilter: timedFilter(office.Docx), xlsxFilter: timedFilter(office.Xlsx),
		pptxFilter: timedFilter(office.Pptx), docxWriter: office.WriteDocx, xlsxWriter: office.WriteXlsx}
}

// timedFilter makes a filter from a reader of long documents. The reader can check whether
// its time is used up. It then returns the text so far, before the sandbox kills the process.
func timedFilter(read func(document []byte, expired func() bool) ([]byte, error)) sandbox.Filter {
	expired := func() bool { return sandbox.ProcessTime() > sandbox.FilterTime }
	return func(document []byte) ([]byte, error) { return read(document, expired) }
}

// Documents converts untrusted documents, each in a confined process.
type Documents struct{ pool *sandbox.FilterPool }

// NewDocuments returns a Documents that runs its processes in pool.
func NewDocuments(pool *sandbox.FilterPool) Documents { return Documents{pool} }

// The media types of office documents.
const (
	docxType = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	xlsxType = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	pptxType = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
)

// A documentKind is a kind of document that has its own filter.
type documentKind struct{ name, filter string }

// documentKindOf returns the kind of document for a media type. For other media types it
// returns the zero kind, which has no filter.
func documentKindOf(mediaType string) documentKind {
	switch mediaType {
	case pdfType:
		return documentKind{"PDF document", pdfFilter}
	case docxType:
		return documentKind{"docx document", docxFilter}
	case xlsxType:
		return documentKind{"xlsx document", xlsxFilter}
	case pptxType:
		return documentKind{"pptx document", pptxFilter}
	}
	return documentKind{}
}

// isDocument reports whether the method document supports a media type.
func isDocument(mediaType string) bool { return documentKindOf(mediaType).filter != "" }

// document returns the text of a document. isDocument must be true for mediaType. It returns
// an *Error for a document that cannot be read.
func (d Documents) document(ctx context.Context, mediaType string, document []byte) (string, error) {
	kind := documentKindOf(mediaType)
	text, err := d.pool.Run(ctx, kind.filter, document)
	// A FilterError is caused by the document. Any other error is caused by this machine, and
	// ends the turn.
	if fe, ok := errors.AsType[*sandbox.FilterError](err); ok {
		return "", Errorf("the %s has no text that can be read: %s", kind.name, fe.Message)
	}
	return string(text), err
}

// Text returns the text of a PDF, docx, xlsx or pptx document. known is false for another
// media type. It returns an *Error for a document that cannot be read.
func (d Documents) Text(ctx context.Context, mediaType string, document []byte) (text string, known bool, err error) {
	if !isDocument(mediaType) {
		return "", false, nil
	}
	text, err = d.document(ctx, mediaType, document)
	return text, true, err
}

// write returns the document that a filter makes of content. It also uses a confined process,
// because hostile content can keep a Markdown parser busy for a long time.
func (d Documents) write(ctx context.Context, filter, kind, content string) ([]byte, error) {
	document, err := d.pool.Run(ctx, filter, []byte(content))
	if fe, ok := errors.AsType[*sandbox.FilterError](err); ok {
		return nil, Errorf("the content cannot become a %s: %s", kind, fe.Message)
	}
	return document, err
}

// page returns the text of a web page, or of a text in an unknown encoding. It returns
// an *Error for a page that cannot be read.
func (d Documents) page(ctx context.Context, in pageInput) (out pageText, err error) {
	err = d.convert(ctx, pageFilter, in, &out)
	if fe, ok := errors.AsType[*sandbox.FilterError](err); ok {
		return out, Errorf("the page at %s cannot be read: %s", in.URL, fe.Message)
	}
	return out, err
}

// MailHTML converts the HTML parts of one mail to Markdown, in one process. Quoted lines begin
// with ">", and signatures are removed.
func (d Documents) MailHTML(ctx context.Context, pages []string) (texts []string, err error) {
	err = d.convert(ctx, mailFilter, pages, &texts)
	// Callers match texts to pages by index.
	if err == nil && len(texts) != len(pages) {
		err = fmt.Errorf("read HTML of a mail: %d texts for %d pages", len(texts), len(pages))
	}
	return texts, err
}

// convert runs a filter whose input and output are JSON.
func (d Documents) convert(ctx context.Context, filter string, in, out any) error {
	// Parsing JSON in this process is safe. Only the filter parses the document itself.
	b, err := json.Marshal(in)
	if err == nil {
		b, err = d.pool.Run(ctx, filter, b)
	}
	if err == nil {
		err = json.Unmarshal(b, out)
	}
	return err
}
