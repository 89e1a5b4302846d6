package tool

import (
	"slices"

	"journeyman/runner/sandbox"
	"journeyman/runner/tool/office"
	"journeyman/runner/tool/workbook"
)

// The media types of documents that this program also writes, or that providers read themselves.
const (
	pdfType  = "application/pdf"
	docxType = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	xlsxType = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	pptxType = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
	odsType  = "application/vnd.oasis.opendocument.spreadsheet"
	xlsmType = "application/vnd.ms-excel.sheet.macroenabled.12"
	xltxType = "application/vnd.openxmlformats-officedocument.spreadsheetml.template"
	xltmType = "application/vnd.ms-excel.template.macroenabled.12"
	xlsbType = "application/vnd.ms-excel.sheet.binary.macroenabled.12"
)

// A selection names the part of a document that a call reads. The zero value is the whole document.
type selection struct {
	Pages string `json:"pages,omitempty"` // such as "3-7"
	Sheet string `json:"sheet,omitempty"` // name or number of a sheet
	Range string `json:"range,omitempty"` // cells, such as "A1:F20"
}

// A documentKind is a kind of document that has its own reader.
type documentKind struct {
	name    string // for messages, such as "PDF document"
	filter  string // name of its filter
	types   []string
	selects []string // names of the arguments of read_file that this kind supports

	// read returns the text of a document. It runs in a confined process. When expired returns true, it
	// stops and returns the text so far, before the sandbox kills the process.
	read func(document []byte, s selection, expired func() bool) ([]byte, error)
}

// documentKinds returns all kinds of documents. A new kind needs only an entry here.
func documentKinds() []documentKind {
	return []documentKind{
		{name: "PDF document", filter: "pdf", types: []string{pdfType}, read: whole(pdfText)},
		{name: "docx document", filter: "docx", types: []string{docxType}, read: whole(office.Docx)},
		{
			name: "workbook", filter: "xlsx", types: []string{xlsxType, xlsmType, xltxType, xltmType, xlsbType},
			selects: []string{"sheet", "range"}, read: cells(workbook.Xlsx)},
		{name: "pptx document", filter: "pptx", types: []string{pptxType}, read: whole(office.Pptx)},
	}
}

// whole makes a reader of a kind whose documents are only read as a whole.
func whole(read func([]byte, func() bool) ([]byte, error)) func([]byte, selection, func() bool) ([]byte, error) {
	return func(document []byte, _ selection, expired func() bool) ([]byte, error) {
		return read(document, expired)
	}
}

// cells makes a reader of a kind of workbook, of which a call may select a sheet or a range.
func cells(read func([]byte, workbook.Selection, func() bool) ([]byte, error)) func([]byte, selection,
	func() bool) ([]byte, error) {
	return func(document []byte, s selection, expired func() bool) ([]byte, error) {
		return read(document, workbook.Selection{Sheet: s.Sheet, Range: s.Range}, expired)
	}
}

// documentKindOf returns the kind of document for a media type. For other media types it
// returns the zero kind, which has no filter.
func documentKindOf(mediaType string) documentKind {
	for _, k := range documentKinds() {
		if slices.Contains(k.types, mediaType) {
			return k
		}
	}
	return documentKind{}
}

// isDocument reports whether the method document supports a media type.
func isDocument(mediaType string) bool { return documentKindOf(mediaType).filter != "" }

// run is the filter of this kind. Its input is that of Documents.document.
func (k documentKind) run(in []byte) ([]byte, error) {
	s, document, err := parseRequest(in)
	if err != nil {
		return nil, err
	}
	return k.read(document, s, func() bool { return sandbox.ProcessTime() > sandbox.FilterTime })
}

// maxSelection is the maximum number of characters in an argument that selects a part of a document.
const maxSelection = 200

// selection returns the part of a document that the arguments select.
func (a *arguments) selection() selection {
	return selection{Pages: a.text("pages", false, maxSelection), Sheet: a.text("sheet", false, maxSelection),
		Range: a.text("range", false, maxSelection)}
}

// supportedBy returns an *Error if s has an argument that the kind of the file at path does not support.
func (s selection) supportedBy(k documentKind, path string) error {
	for _, argument := range []struct{ name, value string }{{"pages", s.Pages}, {"sheet", s.Sheet}, {"range", s.Range}} {
		if argument.value != "" && !slices.Contains(k.selects, argument.name) {
			return Errorf("%s does not apply to %q: leave it out", argument.name, path)
		}
	}
	return nil
}
