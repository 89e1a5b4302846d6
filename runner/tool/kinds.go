package tool

import (
	"errors"
	"io"
	"slices"

	"journeyman/runner/sandbox"
	"journeyman/runner/tool/archive"
	"journeyman/runner/tool/charset"
	"journeyman/runner/tool/epub"
	"journeyman/runner/tool/mailfile"
	"journeyman/runner/tool/office"
	"journeyman/runner/tool/opendocument"
	"journeyman/runner/tool/rtf"
	"journeyman/runner/tool/workbook"
)

// The media types of documents that this program also writes, or that providers read themselves.
const (
	pdfType  = "application/pdf"
	docxType = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	xlsxType = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	pptxType = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
	odsType  = "application/vnd.oasis.opendocument.spreadsheet"
	odtType  = "application/vnd.oasis.opendocument.text"
	odpType  = "application/vnd.oasis.opendocument.presentation"
	rtfType  = "application/rtf"
	odgType  = "application/vnd.oasis.opendocument.graphics"
	otsType  = "application/vnd.oasis.opendocument.spreadsheet-template"
	xlsmType = "application/vnd.ms-excel.sheet.macroenabled.12"
	xltxType = "application/vnd.openxmlformats-officedocument.spreadsheetml.template"
	xltmType = "application/vnd.ms-excel.template.macroenabled.12"
	xlsbType = "application/vnd.ms-excel.sheet.binary.macroenabled.12"
	docType  = "application/msword"
	xlsType  = "application/vnd.ms-excel"
	pptType  = "application/vnd.ms-powerpoint"
	msgType  = "application/vnd.ms-outlook"
	zipType  = "application/zip"
	docmType = "application/vnd.ms-word.document.macroenabled.12"
	dotxType = "application/vnd.openxmlformats-officedocument.wordprocessingml.template"
	dotmType = "application/vnd.ms-word.template.macroenabled.12"
	pptmType = "application/vnd.ms-powerpoint.presentation.macroenabled.12"
	ppsxType = "application/vnd.openxmlformats-officedocument.presentationml.slideshow"
	ppsmType = "application/vnd.ms-powerpoint.slideshow.macroenabled.12"
	potxType = "application/vnd.openxmlformats-officedocument.presentationml.template"
	potmType = "application/vnd.ms-powerpoint.template.macroenabled.12"
)

// A selection names the part of a document that a call reads. The zero value is the whole document.
type selection struct {
	Pages    string `json:"pages,omitempty"`    // such as "3-7"
	Sheet    string `json:"sheet,omitempty"`    // name or number of a sheet
	Range    string `json:"range,omitempty"`    // cells, such as "A1:F20"
	Encoding string `json:"encoding,omitempty"` // canonical name; "" to guess
	Name     string `json:"name,omitempty"`     // the last name of the file's path; no argument
}

// isPart reports whether s selects less than the whole document.
func (s selection) isPart() bool { return s.Pages+s.Sheet+s.Range != "" }

// The forms of files, by their first bytes.
const (
	pdfForm        = "PDF"
	zipForm        = "zip"
	compoundForm   = "compound" // office documents before 2007, and encrypted ones (MS-CFB)
	tarForm        = "tar"
	compressedForm = "compressed"
	tnefForm       = "TNEF" // what Exchange packs a mail in (MS-OXTNEF)
)

// A documentKind is a kind of document that has its own reader.
type documentKind struct {
	name    string // for messages, such as "PDF document"
	filter  string // name of its filter
	types   []string
	selects []string // names of the arguments of read_file that this kind supports

	// form is the form of all files of this kind: a file of another form is not of this kind, whatever its name
	// says. A kind without a form is recognized by names only.
	form string

	// target is the media type of the kind to which LibreOffice converts documents before 2007.
	target string

	// plain kinds are stored as text, which the argument source returns as it is, for edits.
	plain bool

	// preparation is what the filter needs before its process is confined. Most kinds need nothing.
	preparation sandbox.Preparation

	// read returns the text of a document. It runs in a confined process. When expired returns true, it
	// stops and returns the text so far, before the sandbox kills the process.
	read func(document []byte, s selection, expired func() bool) ([]byte, error)

	// members visits the files in a container, such as the parts of a mail, and stops at the first error of visit.
	// nil means that the kind has none, but all kinds of zipForm have those of the archive. It runs in a confined
	// process.
	members func(document []byte, s selection, expired func() bool, visit func(archive.Member, io.Reader) error) error

	// packed means that the text of a container is in its members: search_files searches them. The parts of an
	// office document only repeat its text.
	packed bool
}

// documentKinds returns all kinds of documents. A new kind needs only an entry here.
func documentKinds() []documentKind {
	encoded := []string{"encoding"}
	return []documentKind{
		{name: "PDF document", filter: "pdf", types: []string{pdfType}, form: pdfForm,
			selects: []string{"pages"}, preparation: PDFPreparation(), read: pdfs.text},
		{
			name: "docx document", filter: "docx", types: []string{docxType, docmType, dotxType, dotmType},
			form: zipForm, read: whole(office.Docx)},
		{
			name: "workbook", filter: "xlsx", types: []string{xlsxType, xlsmType, xltxType, xltmType, xlsbType},
			form: zipForm, selects: []string{"sheet", "range"}, read: cells(workbook.Xlsx)},
		{
			name: "workbook", filter: "ods", types: []string{odsType, otsType}, form: zipForm,
			selects: []string{"sheet", "range"}, read: cells(workbook.Ods)},
		{
			name: "workbook", filter: "flat ods", types: []string{odsType + "-flat-xml"}, plain: true,
			selects: []string{"sheet", "range"}, read: cells(workbook.Ods)},
		{
			name: "book", filter: "epub", types: []string{"application/epub+zip"}, form: zipForm,
			read: whole(epub.Text(chapterText))},
		{name: "RTF document", filter: "rtf", types: []string{rtfType, "text/rtf"}, plain: true, read: whole(rtf.Text)},
		{
			name: "pptx document", filter: "pptx", types: []string{pptxType, pptmType, ppsxType, ppsmType, potxType, potmType},
			form: zipForm, read: whole(office.Pptx)},
		{name: "doc document", filter: "doc", types: []string{docType}, form: compoundForm, target: docxType,
			read: oldOffice("docx")},
		{name: "xls document", filter: "xls", types: []string{xlsType}, form: compoundForm, target: xlsxType,
			read: oldOffice("xlsx")},
		{name: "ppt document", filter: "ppt", types: []string{pptType}, form: compoundForm, target: pptxType,
			read: oldOffice("pptx")},
		{name: "web page", filter: "html", types: []string{"text/html", "application/xhtml+xml"}, selects: encoded,
			plain: true, read: htmlText},
		{name: "calendar", filter: "ics", types: []string{"text/calendar"}, selects: encoded, plain: true,
			read: calendarText},
		{name: "contacts", filter: "vcf", types: []string{"text/vcard"}, selects: encoded, plain: true, read: contactsText},
		{
			name: "mail", filter: "eml", types: []string{"message/rfc822"}, plain: true,
			read: whole(mailfile.EML(mailText)), members: partsOfMail},
		{
			name: "mail of Outlook", filter: "msg", types: []string{msgType}, form: compoundForm,
			read: whole(mailfile.EML(mailText)), members: partsOfMail},
		{
			name: "winmail.dat", filter: "tnef", types: []string{"application/vnd.ms-tnef"}, form: tnefForm,
			read: whole(mailfile.EML(mailText)), members: partsOfMail},
		{name: "zip archive", filter: "zip", types: []string{zipType, "application/java-archive"}, form: zipForm,
			packed: true, read: listed(archive.Zip), members: within(archive.Zip)},
		{name: "tar archive", filter: "tar", types: []string{"application/x-tar"}, form: tarForm,
			packed: true, read: listed(archive.Tar), members: within(archive.Tar)},
		{name: "compressed file", filter: "compressed", types: []string{"application/gzip", "application/x-bzip2",
			"application/zstd"}, form: compressedForm, packed: true, read: unpackedText, members: compressedMembers},
		{
			name: "OpenDocument text", filter: "odt", types: []string{odtType, odtType + "-template"}, form: zipForm,
			read: whole(opendocument.Text)},
		{
			name: "OpenDocument presentation", filter: "odp", types: []string{odpType, odpType + "-template", odgType},
			form: zipForm, read: whole(opendocument.Text)},
		{
			name: "OpenDocument file", filter: "flat odf", types: []string{odtType + "-flat-xml", odpType + "-flat-xml"},
			plain: true, read: whole(opendocument.Text)},
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

// isText reports whether files of this kind are searched as they are stored. In a mail, that would find encoded
// texts only.
func (k documentKind) isText() bool { return k.filter == "" || k.plain && k.members == nil }

// isDocument reports whether files of a media type have a reader, and are not text themselves.
func isDocument(mediaType string) bool {
	k := documentKindOf(mediaType)
	return k.filter != "" && !k.plain
}

// run is the filter of this kind. Its input is that of Documents.document.
func (k documentKind) run(in []byte) ([]byte, error) {
	q, document, err := parseRequest(in)
	if err != nil {
		return nil, err
	}
	k = k.refined(document)
	if err := q.selection.supportedBy(k, q.Name); err != nil {
		return nil, err
	}
	return k.read(document, q.selection, sandbox.FilterExpired)
}

// visit visits the members of a container. It returns errNoContainer for other kinds.
func (k documentKind) visit(document []byte, s selection, visit func(archive.Member, io.Reader) error) error {
	switch {
	case k.members != nil:
		return k.members(document, s, sandbox.FilterExpired, visit)
	case k.form == zipForm:
		return within(archive.Zip)(document, s, sandbox.FilterExpired, visit)
	}
	return errNoContainer
}

// errNoContainer is the error for members of a file that has none.
var errNoContainer = errors.New("it is no archive and no other file with files in it")

// maxSelection is the maximum number of characters in an argument that selects a part of a document.
const maxSelection = 200

// selection returns the part of a document that the arguments select.
func (a *arguments) selection() selection {
	s := selection{Pages: a.text("pages", false, maxSelection), Sheet: a.text("sheet", false, maxSelection),
		Range: a.text("range", false, maxSelection), Encoding: a.text("encoding", false, maxSelection)}
	if s.Encoding == "" {
		return s
	}
	canonical, known := charset.Lookup(s.Encoding)
	if !known {
		a.wrong("encoding must be the name of an encoding, such as %s", charset.Examples)
	}
	s.Encoding = canonical
	return s
}

// supportedBy returns an *Error if s has an argument that the kind of the file at path does not support. The zero
// kind is a text file.
func (s selection) supportedBy(k documentKind, path string) error {
	if k.target != "" {
		k.selects = documentKindOf(k.target).selects
	}
	for _, argument := range []struct{ name, value string }{{"pages", s.Pages}, {"sheet", s.Sheet}, {"range", s.Range},
		{"encoding", s.Encoding}} {
		supported := slices.Contains(k.selects, argument.name) || k.filter == "" && argument.name == "encoding"
		if argument.value != "" && !supported {
			return Errorf("%s does not apply to %q: leave it out", argument.name, path)
		}
	}
	return nil
}
