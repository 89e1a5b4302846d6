package mail

import (
	"bufio"
	"bytes"
	"io"
	"path"
	"regexp"
	"strings"

	"github.com/emersion/go-message"
	"github.com/emersion/go-message/textproto"
)

// An Attachment is a file that came with a mail, still to be read.
type Attachment struct {
	Name      string // as the sender calls it: a label, never a path
	MediaType string // as the sender says
	io.Reader
}

// ReadBody reads the text that the author of a mail has written, without the mails
// it answers and without a signature, and gives each attachment to keep, whose
// error ends the reading. What cannot be parsed is kept as message.eml, the whole
// mail; so nothing is lost.
func ReadBody(h Header, raw []byte, keep func(Attachment) error) (text string, err error) {
	b := bodyReader{keep: keep, broken: h.broken}
	content := b.part(h.fields, bytes.NewReader(h.body), 0, false)
	if b.err != nil {
		return "", b.err
	}
	if b.broken {
		err = keep(Attachment{Name: "message.eml", MediaType: "message/rfc822", Reader: bytes.NewReader(raw)})
	}
	return ownText(content.String(), isForward(h.Subject)), err
}

// A bodyReader walks the parts of one mail.
type bodyReader struct {
	keep   func(Attachment) error
	parts  int
	files  int  // attachments so far
	text   int  // bytes of text so far
	broken bool // something could not be parsed
	err    error
}

// content is what a part says, as text.
type content struct {
	plain string
	html  string // converted; used where there is no plain text
}

// String is the text: the plain one, unless it only says to look at the other.
func (c content) String() string {
	if strings.TrimSpace(c.plain) != "" && (c.html == "" || !isStub(c.plain)) {
		return c.plain
	}
	return c.html
}

// stub matches the plain text that some programs put beside an HTML one.
var stub = regexp.MustCompile(`(?i)(view|display|see|read|support|enable|require)[^.]{0,60}\bhtml\b|\bhtml\b[^.]{0,60}(view|enabled|client|reader|format)`)

func isStub(plain string) bool { return len(plain) < 300 && stub.MatchString(plain) }

// part reads a part and the parts in it. alternative says that it is one of
// several forms of the same thing.
func (b *bodyReader) part(fields textproto.Header, body io.Reader, depth int, alternative bool) content {
	if b.err != nil {
		return content{}
	}
	if b.parts++; b.parts > maxParts || depth > maxDepth {
		b.broken = true
		return content{}
	}
	kind, params := parseParams(fields.Get("Content-Type"))
	if !strings.Contains(kind, "/") {
		kind = "text/plain"
	}
	disposition, where := parseParams(fields.Get("Content-Disposition"))
	name := where["filename"]
	if name == "" {
		name = params["name"]
	}
	decoded := &tolerantReader{r: b.decode(fields, body), broken: &b.broken}
	switch {
	case strings.HasPrefix(kind, "multipart/") && params["boundary"] != "":
		return b.multipart(kind, params["boundary"], decoded, depth)
	case strings.HasPrefix(kind, "multipart/"):
		b.broken = true
		return content{plain: b.readText(decoded, params)}
	case disposition != "attachment" && (name == "" || alternative) && (kind == "text/plain" || kind == "text/html"):
		return b.textPart(kind, params, decoded)
	case isSignature(kind), alternative && strings.HasPrefix(kind, "text/") && kind != "text/calendar":
		return content{} // says the same as another part, for programs
	}
	if name == "" {
		name = nameFor(kind, params, fields.Get("Content-Id"))
	}
	if b.files++; b.files > maxFiles {
		b.broken = true
		return content{}
	}
	b.err = b.keep(Attachment{Name: name, MediaType: kind, Reader: decoded})
	return content{}
}

// decode undoes the transfer encoding alone: attachments stay as they are, and
// text is decoded where its charset can be guessed if need be.
func (b *bodyReader) decode(fields textproto.Header, body io.Reader) io.Reader {
	var h message.Header
	encoding, _ := parseParams(fields.Get("Content-Transfer-Encoding"))
	h.Set("Content-Transfer-Encoding", encoding)
	h.Set("Content-Type", "application/octet-stream")
	e, err := message.New(h, body)
	if err != nil {
		b.broken = true // an unknown encoding: the body stays as it is
	}
	return e.Body
}

func (b *bodyReader) textPart(kind string, params map[string]string, decoded io.Reader) content {
	text := b.readText(decoded, params)
	if kind == "text/html" {
		return content{html: htmlToText(text)}
	}
	if strings.EqualFold(params["format"], "flowed") {
		text = unflow(text, strings.EqualFold(params["delsp"], "yes"))
	}
	return content{plain: text}
}

func (b *bodyReader) readText(r io.Reader, params map[string]string) string {
	room := maxText - b.text
	raw, _ := io.ReadAll(io.LimitReader(r, int64(room)+1)) // a tolerant reader has no errors
	if len(raw) > room {
		b.broken = true
		raw = raw[:room]
	}
	b.text += len(raw)
	return cleanText(toUTF8(raw, params["charset"]))
}

// multipart reads the parts of a part.
func (b *bodyReader) multipart(kind, boundary string, body io.Reader, depth int) content {
	mr := textproto.NewMultipartReader(bufio.NewReader(body), boundary)
	var all []content
	for b.err == nil && b.parts <= maxParts {
		p, err := mr.NextPart()
		if err != nil {
			b.broken = b.broken || err != io.EOF || len(all) == 0
			break
		}
		all = append(all, b.part(p.Header, p, depth+1, kind == "multipart/alternative"))
	}
	if kind == "multipart/alternative" {
		return bestOf(all)
	}
	return joined(all)
}

// bestOf merges forms of the same thing.
func bestOf(all []content) content {
	var c content
	for _, a := range all {
		if strings.TrimSpace(c.plain) == "" {
			c.plain = a.plain
		}
		if a.html != "" {
			c.html = a.html
		}
	}
	return c
}

// joined puts parts one after the other, each in its better form.
func joined(all []content) content {
	if len(all) == 1 {
		return all[0]
	}
	var texts []string
	plain := false
	for _, a := range all {
		if s := strings.Trim(a.String(), "\n"); strings.TrimSpace(s) != "" {
			texts = append(texts, s)
			plain = plain || strings.TrimSpace(a.plain) != ""
		}
	}
	text := strings.Join(texts, "\n\n")
	if plain {
		return content{plain: text}
	}
	return content{html: text}
}

// isSignature holds for the signature of a part beside it. It is in the source,
// and of no use without that.
func isSignature(kind string) bool {
	return kind == "application/pgp-signature" || kind == "application/pkcs7-signature" || kind == "application/x-pkcs7-signature"
}

// nameFor makes a name for an attachment without one.
func nameFor(kind string, params map[string]string, contentID string) string {
	extensions := map[string]string{"text/plain": "txt", "text/html": "html", "text/calendar": "ics", "text/csv": "csv", "text/markdown": "md",
		"text/vcard": "vcf", "text/x-vcard": "vcf", "text/x-patch": "patch", "text/x-diff": "diff", "application/pdf": "pdf",
		"application/json": "json", "application/zip": "zip", "application/ms-tnef": "dat", "application/pkcs7-mime": "p7m", "image/jpeg": "jpg",
		"image/png": "png", "image/gif": "gif", "image/svg+xml": "svg", "image/webp": "webp", "image/heic": "heic", "audio/mpeg": "mp3",
		"audio/ogg": "ogg", "audio/wav": "wav", "video/mp4": "mp4", "message/rfc822": "eml", "message/delivery-status": "txt",
		"text/rfc822-headers": "txt"}
	extension := extensions[kind]
	if extension == "" {
		extension = "bin"
	}
	stem := "attachment"
	switch {
	case kind == "text/calendar":
		stem = "invite"
		if m := params["method"]; m != "" && !strings.EqualFold(m, "REQUEST") {
			stem = strings.ToLower(m)
		}
	case kind == "message/rfc822":
		stem = "forwarded"
	case kind == "message/delivery-status":
		stem = "delivery-status"
	case kind == "text/rfc822-headers":
		stem = "headers"
	case strings.HasPrefix(kind, "image/"):
		stem = "image"
		if id, _, _ := strings.Cut(strings.Trim(contentID, "<> \t"), "@"); id != "" {
			stem = strings.TrimSuffix(path.Base(id), "."+extension)
		}
	}
	return stem + "." + extension
}

// A tolerantReader ends where its reader fails, and notes that.
type tolerantReader struct {
	r      io.Reader
	broken *bool
}

// Read never fails but with io.EOF.
func (t *tolerantReader) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	if err != nil && err != io.EOF {
		*t.broken, err = true, io.EOF
	}
	return n, err
}

// cleanText gives text one kind of line ends and takes out what is not text.
func cleanText(s string) string {
	s = strings.TrimPrefix(s, "\ufeff")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if isCleanASCII(s) {
		return s // most mail, and what was cleaned before
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return '\n'
		case r < ' ' && r != '\n' && r != '\t', r == 0x7f, r == '\u200b', r == '\ufeff', r == '\u00ad':
			return -1
		case r == '\u00a0':
			return ' '
		}
		return r
	}, s)
}

// isCleanASCII reports whether s is ASCII with no control characters but tabs and
// line ends.
func isCleanASCII(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// unflow joins the lines of a paragraph that format=flowed has cut (RFC 3676).
func unflow(s string, deleteSpace bool) string {
	var out strings.Builder
	open := -1 // quote depth of the paragraph that goes on; -1: none does
	for line := range strings.SplitSeq(s, "\n") {
		depth := len(line) - len(strings.TrimLeft(line, ">"))
		rest := strings.TrimPrefix(line[depth:], " ") // space-stuffing
		flows := strings.HasSuffix(rest, " ") && rest != "-- "
		if open != depth || rest == "-- " {
			if out.Len() > 0 || open >= 0 {
				out.WriteByte('\n')
			}
			if depth > 0 {
				out.WriteString(strings.Repeat(">", depth) + " ")
			}
		}
		if flows && deleteSpace {
			rest = strings.TrimSuffix(rest, " ")
		}
		out.WriteString(rest)
		if open = -1; flows {
			open = depth
		}
	}
	return out.String()
}
