package tool

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"journeyman/runner/sandbox"
	"journeyman/runner/tool/chart"
	"journeyman/runner/tool/mailfile"
	"journeyman/runner/tool/office"
	"journeyman/runner/tool/pdfwriter"
	"journeyman/runner/tool/workbook"
	"journeyman/store/visible"
)

// Names of the filters that are not a reader of a kind of document.
const (
	pageFilter = "page"
	mailFilter = "mail"
	openFilter = "envelope"
	docxWriter = "write docx"
	xlsxWriter = "write xlsx"
	pdfWriter  = "write pdf"
	chartMaker = "make chart"
)

// Filters returns the readers of untrusted documents. The program's main passes them to
// sandbox.BeFilter. No other code parses HTML, PDF or office documents. A hostile
// document can make a parser use any amount of memory and time.
func Filters() map[string]sandbox.Filter {
	filters := map[string]sandbox.Filter{pageFilter: readPage, mailFilter: readMailPages,
		openFilter:    func(in []byte) ([]byte, error) { return mailfile.Open(in, sandbox.FilterExpired) },
		pictureFilter: fitPicture, pagesFilter: countPages, docxWriter: office.WriteDocx, xlsxWriter: writeWorkbook,
		pdfWriter: pdfwriter.Write, chartMaker: chart.Write, memberFilter: readMember, sectionsFilter: readSections,
		pdfLoader: pdfs.load, pdfMaker: compilePDF, pdfPageFilter: pdfs.picture}
	for _, k := range documentKinds() {
		filters[k.filter] = k.run
	}
	return filters
}

// Documents converts untrusted documents, each in a confined process.
type Documents struct {
	pool   *sandbox.FilterPool
	texts  *textCache       // of searches
	office *officeConverter // nil for none
}

// NewDocuments returns a Documents that runs its processes in pool.
func NewDocuments(pool *sandbox.FilterPool) Documents {
	return Documents{pool: pool, texts: &textCache{}}
}

// document returns the text of the selected part of a document of a kind. It returns an *Error for a document that
// cannot be read.
func (d Documents) document(ctx context.Context, kind documentKind, s selection, document []byte) (string, error) {
	kind, document, err := d.modern(ctx, kind, document)
	if err != nil {
		return "", err
	}
	text, err := d.run(ctx, kind.filter, kind.preparation, request{selection: s}, document)
	// A FilterError is caused by the document. Any other error is caused by this machine, and
	// ends the turn.
	if fe, ok := errors.AsType[*sandbox.FilterError](err); ok {
		// The reason may be that there is no such part.
		if s.isPart() {
			return "", Errorf("this part of the %s cannot be read: %s", kind.name, fe.Message)
		}
		why := fe.Message
		if kind.plain {
			why += "; read_file with source true gives the file as it is"
		}
		return "", Errorf("the %s has no text that can be read: %s", kind.name, why)
	}
	return string(text), err
}

// member returns the file at a path in a container, and its name.
func (d Documents) member(ctx context.Context, kind documentKind, container, member string, document []byte) (name string,
	body []byte, err error) {
	q := request{selection: selection{Name: path.Base(container)}, Kind: kind.filter, Member: member}
	out, err := d.run(ctx, memberFilter, sandbox.Preparation{}, q, document)
	if fe, ok := errors.AsType[*sandbox.FilterError](err); ok {
		return "", nil, Errorf("%q: %s", visible.Name(container), fe.Message)
	}
	if err != nil {
		return "", nil, err
	}
	line, body, _ := bytes.Cut(out, []byte("\n"))
	return name, body, json.Unmarshal(line, &name)
}

// sections returns the texts in a document for a search, and how many of its members were not read.
func (d Documents) sections(ctx context.Context, kind documentKind, name string, document []byte) (all []section, left int,
	err error) {
	q := request{selection: selection{Name: path.Base(name)}, Kind: kind.filter}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\x00%s\x00", q.Kind, q.Name)
	sum.Write(document)
	key := [sha256.Size]byte(sum.Sum(nil))
	if known, ok := d.texts.get(key); ok {
		return known.sections, known.left, nil
	}
	if kind, document, err = d.modern(ctx, kind, document); err != nil {
		return nil, 0, err
	}
	q.Kind = kind.filter
	prepared := kind.preparation
	if kind.packed || kind.members != nil { // there may be PDF documents in it
		prepared = PDFPreparation()
	}
	out, err := d.run(ctx, sectionsFilter, prepared, q, document)
	// What is in the container can be searched, except for its PDF documents.
	if fe, ok := errors.AsType[*sandbox.FilterError](err); ok && fe.Unprepared && kind.preparation.Load == "" {
		out, err = d.run(ctx, sectionsFilter, sandbox.Preparation{}, q, document)
	}
	if err != nil {
		return nil, 0, err
	}
	if all, left, err = parseSections(out); err == nil {
		d.texts.add(cachedTexts{key: key, sections: all, left: left})
	}
	return all, left, err
}

// A request is the first line of the input of the filters of documents. The document follows.
type request struct {
	selection
	Kind   string `json:"kind,omitempty"`   // filter of the document's kind
	Member string `json:"member,omitempty"` // path of a file in it
}

// kind returns the kind of the document.
func (q request) kind() documentKind {
	for _, k := range documentKinds() {
		if k.filter == q.Kind {
			return k
		}
	}
	return documentKind{}
}

// run runs a filter on a document, after a preparation unless it is the zero value.
func (d Documents) run(ctx context.Context, filter string, p sandbox.Preparation, q request, document []byte) ([]byte, error) {
	line, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	line = append(line, '\n')
	if p.Load == "" {
		return d.pool.RunLarge(ctx, filter, 0, line, document)
	}
	return d.pool.RunPrepared(ctx, p, filter, line, document)
}

// parseRequest returns the request and the document of a filter's input.
func parseRequest(in []byte) (q request, document []byte, err error) {
	line, document, _ := bytes.Cut(in, []byte("\n"))
	err = json.Unmarshal(line, &q)
	return q, document, err
}

// Text returns the text of a document. known is false for a media type that is no kind of document. It
// returns an *Error for a document that cannot be read.
func (d Documents) Text(ctx context.Context, mediaType string, document []byte) (text string, known bool, err error) {
	if !isDocument(mediaType) {
		return "", false, nil
	}
	text, err = d.document(ctx, documentKindOf(mediaType), selection{}, document)
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

// writeWorkbook is the filter that makes a workbook. Its output is a line of JSON with notes about the workbook, then
// the workbook.
func writeWorkbook(content []byte) ([]byte, error) {
	document, notes, err := workbook.Write(content, time.Now(), sandbox.FilterExpired)
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(notes)
	return slices.Concat(line, []byte("\n"), document), err
}

// workbook returns the workbook that content describes, and notes about it for its author.
func (d Documents) workbook(ctx context.Context, content string) (document []byte, notes []string, err error) {
	out, err := d.write(ctx, xlsxWriter, "xlsx document", content)
	if err != nil {
		return nil, nil, err
	}
	line, document, _ := bytes.Cut(out, []byte("\n"))
	if err := json.Unmarshal(line, &notes); err != nil {
		return nil, nil, fmt.Errorf("write workbook: %w", err)
	}
	return document, notes, nil
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

// OpenEnvelope returns the part of a mail that is packed in a signed S/MIME message, a winmail.dat or a msg file. The
// part is nil if the document cannot be read. encrypted reports that only a key opens it.
func (d Documents) OpenEnvelope(ctx context.Context, document []byte) (part []byte, encrypted bool, err error) {
	part, err = d.pool.Run(ctx, openFilter, document)
	if fe, ok := errors.AsType[*sandbox.FilterError](err); ok { // caused by the document
		return nil, fe.Message == mailfile.ErrEncrypted.Error(), nil
	}
	return part, false, err
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
