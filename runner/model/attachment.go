package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of attached files that are sent to the model. For larger or other files, the model
// only gets a note with the path.
const (
	maxInlineText  = 256 << 10 // bytes of a text file
	maxInlineImage = 5 << 20   // bytes of a picture that has no method Picture
	maxInlinePDF   = 20 << 20
	maxPDFPages    = 100      // Anthropic and OpenAI refuse more
	maxInlineTotal = 22 << 20 // total of all files in a request: Anthropic takes 32 MB, in base64 and with the text
)

// A fileKind is the form in which a file is sent to a provider.
type fileKind int

const (
	fileNote  fileKind = iota // a note with its name and path
	fileText                  // its content as text
	fileImage                 // its content as an image
	filePDF                   // its content as a PDF
)

// An attachment is a file in the form in which it is sent.
type attachment struct {
	kind      fileKind
	mediaType string
	name      string
	text      string // the note or the text
	data      []byte // the image or the PDF
	picture   Picture
}

// An attacher converts the files of one request.
type attacher struct {
	takes Takes
	reads bool            // the model may call read_file
	left  int64           // remaining bytes for this request
	over  map[string]bool // files that are left out because all files together are too large, by fileKey
}

// newAttacher returns an attacher for the files of a request. If they are too large together, the largest ones
// are left out.
func newAttacher(req *Request, t Takes) *attacher {
	a := &attacher{takes: t, left: maxInlineTotal, over: map[string]bool{}}
	a.reads = slices.ContainsFunc(req.Tools, func(t Tool) bool { return t.Name == "read_file" })
	files := slices.DeleteFunc(filesIn(req), func(f Part) bool { return t.refusal(f) != "" })
	total := int64(0)
	for _, f := range files {
		total += sentSize(f)
	}
	slices.SortStableFunc(files, func(x, y Part) int { return cmp.Compare(sentSize(y), sentSize(x)) })
	for _, f := range files {
		if total <= maxInlineTotal {
			break
		}
		a.over[fileKey(f)] = true
		total -= sentSize(f)
	}
	return a
}

// filesIn returns the files and the images of tools in a request.
func filesIn(req *Request) (files []Part) {
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			if p.Type == PartFile {
				files = append(files, p)
			}
			files = append(files, p.Images...)
		}
	}
	return files
}

func fileKey(p Part) string { return fmt.Sprint(p.Size, " ", p.Path) }

// sentSize returns the bytes of a file that is sent. A picture may become smaller.
func sentSize(p Part) int64 {
	const largestPicture = 3_000_000 // what Picture returns at most
	if p.Picture != nil {
		return min(p.Size, largestPicture)
	}
	return p.Size
}

// attach converts a file to the best kind that the model accepts.
func (a *attacher) attach(p Part) attachment {
	at, why := a.takes.form(p)
	if at.kind != fileNote && a.over[fileKey(p)] {
		why = "all files together are larger than the request may be, and the largest are left out"
	}
	if at.kind == filePDF && why == "" {
		data, err := p.Open()
		at.data = data
		if err != nil {
			why = "it cannot be read"
		}
	}
	size := int64(len(at.data) + len(at.text))
	if why == "" && size > a.left {
		why = "all files together are larger than the request may be" // files may grow after their size is determined
	}
	if why != "" {
		return attachment{mediaType: at.mediaType, name: at.name, text: note(p, why, a.wayOut(p))}
	}
	a.left -= size
	if at.kind == fileText {
		at.text = "File " + p.Path + ":\n\n" + at.text
	}
	return at
}

// wayOut returns a sentence about how the model can still read a file that it does not get, "" if there is no way.
func (a *attacher) wayOut(p Part) string {
	switch {
	case p.Path == "":
		return ""
	case IsPicture(p.MediaType) && !a.takes.Pictures:
		return "A model that takes pictures is needed to see it."
	case IsPicture(p.MediaType) && p.LeftOut != "":
		if file, page := pageOf(p.Path); page != "" {
			return fmt.Sprintf("view_image with path %q and page %s shows it again.", file, page)
		}
		return "view_image shows it again."
	case IsPicture(p.MediaType) || !a.reads:
		return ""
	}
	return "read_file reads it, if it holds text."
}

// form returns the form in which the model takes a file. The data of a PDF is still missing in it. For a file
// that is only named, why is the reason.
func (t Takes) form(p Part) (at attachment, why string) {
	at = attachment{mediaType: plainType(p.MediaType), name: p.Path}
	if why := t.refusal(p); why != "" {
		return at, why
	}
	kind, limit := kindOf(at.mediaType)
	switch {
	case kind == filePDF && p.Pages != nil && p.Pages() > maxPDFPages:
		return at, fmt.Sprintf("it has %d pages, and up to %d are shown at once", p.Pages(), maxPDFPages)
	case kind == filePDF:
		at.kind = filePDF
		return at, ""
	case kind == fileImage && p.Picture != nil:
		picture, err := p.Picture()
		if err != nil {
			return at, err.Error()
		}
		at.kind, at.picture, at.data, at.mediaType = fileImage, picture, picture.Data, picture.MediaType
		return at, ""
	}
	data, err := p.Open()
	switch {
	case err != nil:
		return at, "it cannot be read"
	case int64(len(data)) > limit: // it may have grown since its size was determined
		return at, tooLarge(limit)
	case kind == fileImage:
		at.kind, at.data = fileImage, data
		return at, ""
	case !utf8.Valid(data):
		return at, "it is no text in UTF-8"
	}
	at.kind, at.text = fileText, string(data)
	return at, ""
}

// refusal returns the reason why a file is only named, as far as it follows from the file's type and size. It
// returns "" if the file may be sent.
func (t Takes) refusal(p Part) string {
	kind, limit := kindOf(plainType(p.MediaType))
	switch {
	case p.Open == nil && p.LeftOut != "":
		return p.LeftOut
	case p.Open == nil:
		return "only its name is sent"
	case IsPicture(p.MediaType) && !t.Pictures:
		return fmt.Sprintf("the model %s takes no pictures", t.Model)
	case kind == filePDF && !t.PDFs:
		return fmt.Sprintf("the model %s takes no PDF files", t.Model)
	case IsPicture(p.MediaType) && t.badPictures:
		return "the model server refuses a picture of this conversation"
	case kind == filePDF && t.badPDFs:
		return "the model server refuses a PDF file of this conversation"
	case kind == fileNote:
		return "models take no files of this type"
	case kind == fileImage && p.Picture != nil:
		return "" // Picture makes it smaller, or says what is wrong with it
	case kind == fileImage && !slices.Contains(imageTypes, plainType(p.MediaType)):
		return "models take no pictures of this type"
	case p.Size > limit:
		return tooLarge(limit)
	}
	return ""
}

func tooLarge(limit int64) string {
	return fmt.Sprintf("it is larger than the %d bytes that are shown at once", limit)
}

// imageTypes are the types of pictures that Anthropic and OpenAI document.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// plainType returns a media type in lower case, without parameters.
func plainType(mediaType string) string {
	mediaType, _, _ = strings.Cut(strings.ToLower(mediaType), ";")
	return strings.TrimSpace(mediaType)
}

// IsPicture reports whether files of a media type are pictures. SVG files count as text.
func IsPicture(mediaType string) bool {
	mediaType = plainType(mediaType)
	return strings.HasPrefix(mediaType, "image/") && mediaType != "image/svg+xml"
}

// kindOf returns the kind for a media type, and the maximum size for it.
func kindOf(mediaType string) (fileKind, int64) {
	if IsPicture(mediaType) {
		return fileImage, maxInlineImage
	}
	switch mediaType {
	case "application/pdf":
		return filePDF, maxInlinePDF
	case "application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml",
		"application/javascript", "application/sql", "application/x-ndjson", "application/x-sh", "image/svg+xml":
		return fileText, maxInlineText
	}
	if strings.HasPrefix(mediaType, "text/") || strings.HasSuffix(mediaType, "+json") ||
		strings.HasSuffix(mediaType, "+xml") {
		return fileText, maxInlineText
	}
	return fileNote, 0
}

// pageOf returns the path of a document and the number of its page if path is that of a page, such as "a.pdf#page=3".
// Otherwise the number is "".
func pageOf(path string) (file, page string) {
	i := strings.LastIndex(path, "#page=")
	if i < 0 {
		return path, ""
	}
	return path[:i], path[i+len("#page="):]
}

// note returns the text for a file whose content the model does not get. why is the reason, and wayOut a sentence.
func note(p Part, why, wayOut string) string {
	text := fmt.Sprintf("File %s (%s, %d bytes) lies in the workspace; its content is not shown here: %s.",
		p.Path, p.MediaType, p.Size, why)
	if file, page := pageOf(p.Path); page != "" {
		text = fmt.Sprintf("Page %s of %s (%s, %d bytes) is not shown here: %s.", page, file, p.MediaType, p.Size, why)
	}
	if p.Path == "" { // an image in a tool result
		text = fmt.Sprintf("A file (%s, %d bytes) is not shown here: %s.", p.MediaType, p.Size, why)
	}
	if wayOut != "" {
		text += " " + wayOut
	}
	return text
}
