package message

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"path"
	"strings"

	"github.com/emersion/go-message"
	"github.com/emersion/go-message/textproto"

	"journeyman/runner/tool/mailfile/mailtext"
	"journeyman/store/pattern"
)

// An Attachment is a file that came with a mail.
type Attachment struct {
	Name      string // a label that the sender has chosen, never a path
	MediaType string // as the sender states it
	io.Reader
}

// ReadBody returns the text that the author of a mail has written, and separately the mails that it quotes
// and the signature. It passes HTML to convert and each attachment to keep, whose
// error ends the reading. If a part cannot be read, it also passes the whole mail to keep,
// as message.eml. The texts of attached mails follow the author's text as quotes. Notes name files as the sender names
// them: see Body.Named.
func ReadBody(h Header, raw []byte, convert ConvertHTML, keep func(Attachment) error) (Body, error) {
	b := bodyReader{convert: convert, open: h.Open, keep: keep, broken: h.broken}
	texts, err := b.read(h, raw)
	if err != nil {
		return Body{}, err
	}
	body := splitBody(texts[0], h)
	if len(b.notices)+len(b.attached) > 0 {
		body.notes = &notes{own: cmp.Or(body.Text, h.Subject), notices: b.notices, mails: b.attached, texts: texts[1:]}
	}
	return body.Named(func(int) string { return "" }), nil
}

// read returns the whole text of a mail, and the texts of the mails that are attached to it.
func (b *bodyReader) read(h Header, raw []byte) (texts []string, err error) {
	b.room = 2*len(raw) + moreUnpacked
	texts = b.texts(b.part(h.fields, bytes.NewReader(h.body), 0, false))
	if b.err != nil {
		return nil, b.err
	}
	if b.broken {
		err = b.keep(Attachment{Name: "message.eml", MediaType: "message/rfc822", Reader: bytes.NewReader(raw)})
	}
	return texts, err
}

// A bodyReader reads the parts of one mail.
type bodyReader struct {
	convert  ConvertHTML
	open     OpenEnvelope // may be nil
	keep     func(Attachment) error
	parts    int            // read so far
	files    int            // attachments so far
	text     int            // bytes of text so far
	opened   int            // envelopes so far
	room     int            // bytes that files and opened envelopes may still have
	attached []attachedMail // in the order of their files
	inside   int            // mails around the current part
	notices  []notice       // about encrypted parts
	broken   bool           // a part was not read, or not completely
	err      error          // ends the reading
}

// htmlHint matches plain text that only points to the HTML form of the mail.
const htmlHint pattern.Pattern = `(?i)(view|display|see|read|support|enable|require)[^.]{0,60}\bhtml\b|` +
	`\bhtml\b[^.]{0,60}(view|enabled|client|reader|format)`

func isHTMLHint(plain string) bool { return len(plain) < 300 && htmlHint.Compiled().MatchString(plain) }

// part reads a part and the parts inside it. It returns the text, and passes attachments
// to keep. alternative means that the part is one of several forms of the same content.
func (b *bodyReader) part(fields textproto.Header, body io.Reader, depth int, alternative bool) content {
	if b.err != nil {
		return content{}
	}
	if b.parts++; b.parts > maxParts || depth > maxDepth {
		b.broken = true
		return content{}
	}
	kind, params := mailtext.Params(fields.Get("Content-Type"))
	if !strings.Contains(kind, "/") {
		kind = "text/plain"
	}
	disposition, where := mailtext.Params(fields.Get("Content-Disposition"))
	name := cmp.Or(where["filename"], params["name"])
	decoded := &truncatingReader{r: b.decode(fields, body), broken: &b.broken}
	if packed := envelopeKind(kind, name); packed != "" && !(kind == "text/plain" && alternative) {
		name = cmp.Or(name, nameFor(kind, params, fields.Get("Content-Id")))
		return b.envelope(packed, kind, name, params, decoded, depth)
	}
	switch {
	case kind == "multipart/encrypted" && params["boundary"] != "":
		return b.pgpMIME(params["boundary"], decoded, depth)
	case strings.HasPrefix(kind, "multipart/") && params["boundary"] != "":
		return b.multipart(kind, params["boundary"], decoded, depth)
	case strings.HasPrefix(kind, "multipart/"):
		b.broken = true // without a boundary the parts cannot be separated
		return plainContent(b.readText(decoded, params))
	// A text with a name is a file, but not as one of several forms.
	case disposition != "attachment" && (name == "" || alternative) && (kind == "text/plain" || kind == "text/html"):
		return b.textPart(kind, params, decoded, depth)
	case isSignature(kind), alternative && strings.HasPrefix(kind, "text/") && kind != "text/calendar":
		return content{} // it is only for programs
	}
	if name == "" {
		name = nameFor(kind, params, fields.Get("Content-Id"))
	}
	return b.file(name, kind, decoded)
}

// decode reverses the transfer encoding of a part. It leaves the charset to readText, which handles
// wrong labels: the library would return an error.
func (b *bodyReader) decode(fields textproto.Header, body io.Reader) io.Reader {
	var h message.Header
	encoding, _ := mailtext.Params(fields.Get("Content-Transfer-Encoding"))
	h.Set("Content-Transfer-Encoding", encoding)
	h.Set("Content-Type", "application/octet-stream") // so that the library decodes no charset
	e, err := message.New(h, body)
	if err != nil {
		b.broken = true // an unknown encoding, so e has the body as it is
	}
	return e.Body
}

// textPart reads a part of plain text or HTML.
func (b *bodyReader) textPart(kind string, params map[string]string, decoded io.Reader, depth int) content {
	text := b.readText(decoded, params)
	if kind == "text/html" {
		return content{html: []piece{{text: text, isHTML: true}}}
	}
	if strings.EqualFold(params["format"], "flowed") {
		text = mailtext.Unflow(text, strings.EqualFold(params["delsp"], "yes"))
	}
	return plainContent(b.inlinePGP(text, depth))
}

// readText reads text in the charset of params, as far as maxText allows.
func (b *bodyReader) readText(r io.Reader, params map[string]string) string {
	room := maxText - b.text                               // of all parts together
	raw, _ := io.ReadAll(io.LimitReader(r, int64(room)+1)) // a truncatingReader returns no errors
	if len(raw) > room {
		b.broken = true
		raw = raw[:room]
	}
	b.text += len(raw)
	return cleanText(mailtext.Decode(raw, params["charset"]))
}

// multipart reads the parts of a part.
func (b *bodyReader) multipart(kind, boundary string, body io.Reader, depth int) content {
	mr := textproto.NewMultipartReader(bufio.NewReader(body), boundary)
	var all []content
	for b.err == nil && b.parts <= maxParts {
		p, err := mr.NextPart()
		if err != nil {
			// A multipart without any part, or one that ends early, was not understood.
			b.broken = b.broken || err != io.EOF || len(all) == 0
			break
		}
		if kind == "multipart/digest" && !p.Header.Has("Content-Type") { // RFC 2046, section 5.1.5
			p.Header.Set("Content-Type", "message/rfc822")
		}
		all = append(all, b.part(p.Header, p, depth+1, kind == "multipart/alternative"))
	}
	all = withoutRepeats(all)
	if kind == "multipart/alternative" {
		return bestOf(all)
	}
	return joined(all)
}

// isSignature reports whether a part is the digital signature of another part. It is useless
// without the source of the mail.
func isSignature(kind string) bool {
	switch kind {
	case "application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature":
		return true
	}
	return false
}

// nameFor returns a name for an attachment that has none.
func nameFor(kind string, params map[string]string, contentID string) string {
	// The table of package mime depends on the machine.
	extension := cmp.Or(map[string]string{
		"text/plain": "txt", "text/html": "html", "text/calendar": "ics", "text/csv": "csv", "text/markdown": "md",
		"text/vcard": "vcf", "text/x-vcard": "vcf", "text/x-patch": "patch", "text/x-diff": "diff",
		"application/pdf": "pdf", "application/json": "json", "application/zip": "zip",
		"application/ms-tnef": "dat", "application/pkcs7-mime": "p7m",
		"image/jpeg": "jpg", "image/png": "png", "image/gif": "gif", "image/svg+xml": "svg", "image/webp": "webp",
		"image/heic": "heic", "audio/mpeg": "mp3", "audio/ogg": "ogg", "audio/wav": "wav", "video/mp4": "mp4",
		"message/rfc822": "eml", "message/delivery-status": "txt", "text/rfc822-headers": "txt",
	}[kind], "bin")
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

// A truncatingReader ends at the first error of its reader, and sets broken.
type truncatingReader struct {
	r      io.Reader
	broken *bool
}

// Read returns no error but io.EOF.
func (t *truncatingReader) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	if err != nil && err != io.EOF {
		*t.broken, err = true, io.EOF
	}
	return n, err
}

// cleanText returns a text with \n as its only line end, without invisible characters.
func cleanText(s string) string {
	s = strings.TrimPrefix(s, "\ufeff")
	s = strings.ReplaceAll(s, "\r\n", "\n")
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
