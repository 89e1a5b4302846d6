package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"journeyman/runner/sandbox"
	"journeyman/runner/tool/office"
	"journeyman/runner/tool/pdfwriter"
	"journeyman/runner/tool/workbook"
)

// Names of the filters that are not a reader of a kind of document.
const (
	pageFilter = "page"
	mailFilter = "mail"
	docxWriter = "write docx"
	xlsxWriter = "write xlsx"
	pdfWriter  = "write pdf"
)

// Filters returns the readers of untrusted documents. The program's main passes them to
// sandbox.BeFilter. No other code parses HTML, PDF or office documents. A hostile
// document can make a parser use any amount of memory and time.
func Filters() map[string]sandbox.Filter {
	filters := map[string]sandbox.Filter{pageFilter: readPage, mailFilter: readMailPages,
		docxWriter: office.WriteDocx, xlsxWriter: workbook.Write,
		pdfWriter: pdfwriter.Write}
	for _, k := range documentKinds() {
		filters[k.filter] = k.run
	}
	return filters
}

// Documents converts untrusted documents, each in a confined process.
type Documents struct{ pool *sandbox.FilterPool }

// NewDocuments returns a Documents that runs its processes in pool.
func NewDocuments(pool *sandbox.FilterPool) Documents { return Documents{pool} }

// document returns the text of the selected part of a document. isDocument must be true for
// mediaType. It returns an *Error for a document that cannot be read.
func (d Documents) document(ctx context.Context, mediaType string, s selection, document []byte) (string, error) {
	kind := documentKindOf(mediaType)
	in, err := request(s, document)
	if err != nil {
		return "", err
	}
	text, err := d.pool.Run(ctx, kind.filter, in)
	// A FilterError is caused by the document. Any other error is caused by this machine, and
	// ends the turn.
	if fe, ok := errors.AsType[*sandbox.FilterError](err); ok {
		// The reason may be that there is no such part.
		if s != (selection{}) {
			return "", Errorf("this part of the %s cannot be read: %s", kind.name, fe.Message)
		}
		return "", Errorf("the %s has no text that can be read: %s", kind.name, fe.Message)
	}
	return string(text), err
}

// request returns the input of a kind's filter: the selection as a line of JSON, then the document.
func request(s selection, document []byte) ([]byte, error) {
	line, err := json.Marshal(s)
	return slices.Concat(line, []byte("\n"), document), err
}

// parseRequest is the inverse of request.
func parseRequest(in []byte) (s selection, document []byte, err error) {
	line, document, _ := bytes.Cut(in, []byte("\n"))
	err = json.Unmarshal(line, &s)
	return s, document, err
}

// Text returns the text of a document. known is false for a media type that is no kind of document. It
// returns an *Error for a document that cannot be read.
func (d Documents) Text(ctx context.Context, mediaType string, document []byte) (text string, known bool, err error) {
	if !isDocument(mediaType) {
		return "", false, nil
	}
	text, err = d.document(ctx, mediaType, selection{}, document)
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
