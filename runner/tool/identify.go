package tool

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"journeyman/runner/tool/archive"
	"journeyman/runner/workspace"
)

// formOf returns the form of a file that begins with head, "" for text and for everything else.
func formOf(head []byte) string {
	begins := func(marks ...string) bool {
		for _, mark := range marks {
			if bytes.HasPrefix(head, []byte(mark)) {
				return true
			}
		}
		return false
	}
	switch {
	case begins("%PDF-"):
		return pdfForm
	case begins("PK\x03\x04", "PK\x05\x06", "PK\x07\x08PK\x03\x04"):
		return zipForm
	case begins("\xd0\xcf\x11\xe0"):
		return compoundForm
	case begins("\x1f\x8b", "\x28\xb5\x2f\xfd"), begins("BZh") && len(head) > 9 && string(head[4:10]) == "1AY&SY":
		return compressedForm
	case begins("\x78\x9f\x3e\x22"):
		return tnefForm
	case archive.IsTar(head):
		return tarForm
	}
	return ""
}

// kindOfForm returns the kind of a file of which only the form is known.
func kindOfForm(form string) documentKind {
	switch form {
	case pdfForm:
		return documentKindOf(pdfType)
	case zipForm:
		return documentKindOf(zipType)
	case compoundForm:
		return documentKindOf(docType)
	case tarForm:
		return documentKindOf("application/x-tar")
	case compressedForm:
		return documentKindOf("application/gzip")
	case tnefForm:
		return documentKindOf("application/vnd.ms-tnef")
	}
	return documentKind{}
}

// kindOfFile returns the kind of a file by its first bytes, and by its name where the bytes fit several kinds. The zero
// kind is that of text, and of files that nothing here reads. In the confined process, refined knows more.
func kindOfFile(name string, head []byte) documentKind {
	byName := documentKindOf(workspace.MediaType(path.Base(name), nil))
	form := formOf(head)
	switch {
	case byName.form == form && form != "", byName.filter != "" && byName.form == "" && form == "":
		return byName
	case byName.form == pdfForm && bytes.Contains(head[:min(len(head), 1024)], []byte("%PDF-")):
		return byName // some programs write other bytes before the mark
	case form == compoundForm && byName.form == zipForm && byName.filter != "zip":
		return byName // an office document that a password protects is of this form
	case form != "" && (byName.form != "" || byName.filter == "" || byName.plain):
		return kindOfForm(form)
	case len(head) > 0 && encodingOf(head) == "" && !strings.HasPrefix(workspace.MediaType("", head), "image/"):
		return byName // its reader says that it is damaged
	}
	return plainKind(head)
}

// plainKind returns the kind of a text that names it at its beginning.
func plainKind(head []byte) documentKind {
	begins := func(mark string) bool {
		start := bytes.TrimLeft(head[:min(len(head), headSize)], "\xef\xbb\xbf \t\r\n")
		return len(start) >= len(mark) && strings.EqualFold(string(start[:len(mark)]), mark)
	}
	switch {
	case begins("BEGIN:VCALENDAR"):
		return documentKindOf("text/calendar")
	case begins("BEGIN:VCARD"):
		return documentKindOf("text/vcard")
	case begins(`{\rtf1`):
		return documentKindOf(rtfType)
	}
	return documentKind{}
}

// refined returns the kind of a document by its whole contents. It reads archives, so it runs in a confined process.
func (k documentKind) refined(document []byte) documentKind {
	mediaType := ""
	switch k.form {
	case zipForm:
		mediaType = packageType(document)
	case compoundForm:
		mediaType = compoundType(document, k)
	}
	if formOf(document[:min(len(document), headSize)]) == compoundForm {
		mediaType = compoundType(document, k)
	}
	if found := documentKindOf(mediaType); found.filter != "" {
		return found
	}
	return k
}

// mainTypes are the media types of office documents, by a word in the media type of their main part.
var mainTypes = []struct{ word, mediaType string }{
	{"wordprocessingml", docxType}, {"ms-word", docxType}, {"spreadsheetml", xlsxType}, {"ms-excel", xlsxType},
	{"presentationml", pptxType}, {"ms-powerpoint", pptxType},
}

// packageType returns the media type of an office document or book that is a zip archive, "" for other archives.
func packageType(document []byte) string {
	r, err := zip.NewReader(bytes.NewReader(document), int64(len(document)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return ""
	}
	for _, f := range r.File {
		switch strings.TrimPrefix(f.Name, "/") {
		case "mimetype": // of open documents and of books
			if data := beginning(f, 200); documentKindOf(string(data)).filter != "" {
				return string(data)
			}
		case "[Content_Types].xml":
			return mainType(beginning(f, 1<<20))
		}
	}
	return ""
}

// beginning returns the first bytes of a file in an archive, or nothing if it is damaged.
func beginning(f *zip.File, most int64) []byte {
	r, err := f.Open()
	if err != nil {
		return nil
	}
	defer r.Close()
	data, _ := io.ReadAll(io.LimitReader(r, most)) // what is there of a damaged file is enough
	return bytes.TrimSpace(data)
}

// mainType returns the media type of the document whose list of parts is types.
func mainType(types []byte) string {
	d := xml.NewDecoder(bytes.NewReader(types))
	for {
		token, err := d.RawToken()
		if err != nil {
			return ""
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "Override" {
			continue
		}
		for _, a := range start.Attr {
			if t := officeType(strings.ToLower(a.Value)); a.Name.Local == "ContentType" && t != "" {
				return t
			}
		}
	}
}

// officeType returns the media type of the office documents with a main part of this type, "" for other parts.
func officeType(part string) string {
	if !strings.HasSuffix(part, ".main+xml") {
		return ""
	}
	for _, t := range mainTypes {
		if strings.Contains(part, t.word) {
			return t.mediaType
		}
	}
	return ""
}

// compoundStreams are streams of documents before 2007, by which their kinds are recognized.
var compoundStreams = []struct{ name, mediaType string }{
	{encryptedStream, ""}, {"__properties_version1.0", msgType}, {"WordDocument", docType},
	{"PowerPoint Document", pptType}, {"Workbook", xlsType}, {"Book", xlsType},
}

// compoundType returns the media type of an office document before 2007 or of a mail of Outlook, "" for others. A
// document may contain documents of other kinds, so the kind that its name says comes first.
func compoundType(document []byte, byName documentKind) string {
	found := ""
	for _, stream := range compoundStreams {
		if !hasStream(document, stream.name) {
			continue
		}
		if slices.Contains(byName.types, stream.mediaType) || stream.name == encryptedStream {
			return stream.mediaType
		}
		if found == "" {
			found = stream.mediaType
		}
	}
	return found
}

// encryptedStream is the stream of an office document that a password protects.
const encryptedStream = "EncryptedPackage"

// hasStream reports whether a document before 2007 has a stream of that name.
func hasStream(document []byte, name string) bool {
	// Names are in UTF-16LE, and a NUL ends them.
	var wide []byte
	for _, c := range []byte(name + "\x00") {
		wide = append(wide, c, 0)
	}
	return bytes.Contains(document, wide)
}

// oldOffice makes the reader of documents before 2007, which nothing in this program reads. target is the
// extension of the form that it reads.
func oldOffice(target string) func([]byte, selection, func() bool) ([]byte, error) {
	return func(document []byte, s selection, _ func() bool) ([]byte, error) {
		if formOf(document[:min(len(document), headSize)]) != compoundForm {
			return nil, errors.New("it is damaged")
		}
		if hasStream(document, encryptedStream) {
			return nil, errors.New("a password protects it")
		}
		return nil, errors.New("its format is older than 2007. Where the shell has LibreOffice, this converts it: " +
			"soffice --headless --convert-to " + target + " '" + strings.ReplaceAll(s.Name, "'", `'\''`) +
			"'; otherwise ask for it as " + target + " or PDF")
	}
}
