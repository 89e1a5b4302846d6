package mailfile

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"strings"

	"journeyman/runner/tool/mailfile/mailtext"
	"journeyman/runner/tool/mailfile/outlook"
)

// Limits of reading a mail that is a file.
const (
	maxParts   = 1000
	maxDepth   = 20        // parts inside parts
	maxMails   = 5         // mails inside mails
	maxHeader  = 256 << 10 // bytes
	maxContent = 128 << 20 // bytes of all decoded parts together, which may contain each other
)

// fields holds the fields of a header, by name in lower case. Of fields with the same name the first one counts.
type fields map[string]string

// cutFields splits a part into its header and its body. Lines that belong to no field are left out.
func cutFields(raw []byte) (f fields, body []byte) {
	f = fields{}
	name, value := "", []byte{}
	store := func() {
		if _, seen := f[name]; name != "" && !seen {
			f[name] = strings.TrimSpace(string(value))
		}
	}
	at := 0
	for line := range bytes.Lines(raw) {
		if at += len(line); len(bytes.TrimRight(line, "\r\n")) == 0 {
			break
		}
		if at > maxHeader {
			continue // up to the empty line
		}
		if line[0] == ' ' || line[0] == '\t' {
			value = append(append(value, ' '), bytes.TrimSpace(line)...)
			continue
		}
		store()
		n, v, found := bytes.Cut(line, []byte(":"))
		if name, value = "", bytes.Clone(v); found && !bytes.ContainsAny(bytes.TrimSpace(n), " \t") {
			name = strings.ToLower(strings.TrimSpace(string(n)))
		}
	}
	store()
	return f, raw[at:]
}

// An entity is a part of a mail.
type entity struct {
	fields  fields
	kind    string // media type
	params  map[string]string
	name    string // unique among the files of a mail; "" for a part that is only shown
	content []byte // decoded; nil for a part that holds others
	inside  []*entity
	mail    *entity // the mail inside an attached mail
	notice  string  // why the part cannot be read
	signed  bool    // a document with its signature: the part inside is the document alone
}

// A parser reads the parts of one document.
type parser struct {
	expired func() bool
	parts   int
	bytes   int
	missing bool // a limit was reached
}

// document reads a mail: an eml file, a msg file or a winmail.dat.
func (p *parser) document(document []byte) (*entity, error) {
	if outlook.IsMsg(document) || outlook.IsTNEF(document) {
		part, err := Open(document, p.expired)
		if err != nil {
			return nil, err
		}
		document = part
	}
	if bytes.HasPrefix(document, []byte("From ")) { // the line above a mail in a mailbox
		_, document, _ = bytes.Cut(document, []byte("\n"))
	}
	document = bytes.TrimPrefix(document, []byte("\xef\xbb\xbf"))
	f, _ := cutFields(document)
	if f["from"]+f["subject"]+f["date"]+f["content-type"]+f["received"]+f["to"] == "" {
		return nil, errNoMail
	}
	return p.mail(document, 0, 0), nil
}

// mail reads a mail with its parts. Equal names of its files get numbers.
func (p *parser) mail(raw []byte, depth, mails int) *entity {
	e := p.entity(raw, depth, mails, "text/plain")
	names := map[string]int{}
	e.each(func(part *entity) {
		if part.name == "" {
			return
		}
		key := strings.ToLower(part.name)
		for names[key]++; names[key] > 1; names[key]++ {
			extension := path.Ext(part.name)
			numbered := fmt.Sprintf("%s-%d%s", strings.TrimSuffix(part.name, extension), names[key], extension)
			if names[strings.ToLower(numbered)] == 0 {
				part.name = numbered
				names[strings.ToLower(numbered)] = 1
				break
			}
		}
	})
	return e
}

// each passes a part and the parts inside it to use, without those of attached mails.
func (e *entity) each(use func(*entity)) {
	use(e)
	for _, inner := range e.inside {
		inner.each(use)
	}
}

// entity reads a part. implied is its media type if it names none.
func (p *parser) entity(raw []byte, depth, mails int, implied string) *entity {
	f, body := cutFields(raw)
	e := &entity{fields: f}
	e.kind, e.params = mailtext.Params(cmp.Or(f["content-type"], implied))
	if !strings.Contains(e.kind, "/") {
		e.kind = "text/plain"
	}
	p.parts++
	if p.parts > maxParts || depth > maxDepth || p.expired() {
		p.missing = true
		return e
	}
	e.content = mailtext.Transfer(f["content-transfer-encoding"], body)
	if p.bytes += len(e.content); p.bytes > maxContent {
		p.missing, e.content = true, nil
		return e
	}
	disposition, where := mailtext.Params(f["content-disposition"])
	name := fileName(cmp.Or(where["filename"], e.params["name"]))
	if strings.HasPrefix(e.kind, "multipart/") && e.params["boundary"] != "" {
		p.multipart(e, depth, mails)
		return e
	}
	if isText := e.kind == "text/plain" || e.kind == "text/html"; !isText || disposition == "attachment" || name != "" {
		e.name = cmp.Or(name, defaultName(e.kind))
		// By this extension, a path that leads into the mail is recognized.
		if strings.HasPrefix(e.kind, "message/") && e.kind != "message/delivery-status" && !strings.HasSuffix(strings.ToLower(e.name), ".eml") {
			e.name += ".eml"
		}
		p.envelope(e, depth, mails)
	}
	return e
}

// multipart reads the parts inside a part.
func (p *parser) multipart(e *entity, depth, mails int) {
	implied := "text/plain"
	switch e.kind {
	case "multipart/digest":
		implied = "message/rfc822"
	case "multipart/encrypted":
		e.notice = "this mail is encrypted (PGP), and there is no key here to read it"
	}
	for _, raw := range splitParts(e.content, e.params["boundary"]) {
		if p.missing {
			break
		}
		e.inside = append(e.inside, p.entity(raw, depth+1, mails, implied))
	}
	e.content = nil
}

// splitParts splits the body of a multipart at its boundaries.
func splitParts(body []byte, boundary string) (parts [][]byte) {
	begin, at := -1, 0
	for line := range bytes.Lines(body) {
		start := at
		at += len(line)
		rest, is := bytes.CutPrefix(line, []byte("--"+boundary))
		rest = bytes.TrimRight(rest, " \t\r\n")
		if !is || len(rest) > 0 && !bytes.Equal(rest, []byte("--")) {
			continue
		}
		if begin >= 0 {
			parts = append(parts, withoutLineEnd(body[begin:max(begin, start)]))
		}
		begin = at
		if len(rest) > 0 || len(parts) > maxParts {
			return parts
		}
	}
	if begin >= 0 { // the mail ends early
		parts = append(parts, body[begin:])
	}
	return parts
}

// withoutLineEnd removes the line end that belongs to the boundary below.
func withoutLineEnd(b []byte) []byte {
	b = bytes.TrimSuffix(b, []byte("\n"))
	return bytes.TrimSuffix(b, []byte("\r"))
}

// envelope opens a file that is a mail, or in which a mail or its parts are packed.
func (p *parser) envelope(e *entity, depth, mails int) {
	extension := strings.ToLower(path.Ext(e.name))
	isMail := e.kind == "message/rfc822" || e.kind == "message/global" || extension == ".eml"
	if mails >= maxMails || !isMail && !IsEnvelope(e.content) {
		return
	}
	if isMail {
		e.mail = p.mail(e.content, depth+1, mails+1)
		return
	}
	part, err := Open(e.content, p.expired)
	switch {
	case err == ErrEncrypted:
		e.notice = "this part is encrypted (S/MIME), and there is no key here to read it"
	case err != nil: // such as a signature or a certificate: it is only a file
	case outlook.IsMsg(e.content):
		e.mail = p.mail(part, depth+1, mails+1)
	case !mailtext.IsPart(part):
		p.signedFile(e, part, depth, mails)
	default:
		e.inside = append(e.inside, p.entity(part, depth+1, mails, "text/plain"))
	}
}

// signedFile adds the document of a signed file, which is no part of a mail, as a file beside it.
func (p *parser) signedFile(e *entity, document []byte, depth, mails int) {
	p.parts++
	if p.bytes += len(document); p.parts > maxParts || depth >= maxDepth || p.bytes > maxContent {
		p.missing = true
		return
	}
	inner := &entity{kind: "application/octet-stream", name: mailtext.SignedName(e.name, document), content: document}
	e.signed, e.inside = true, []*entity{inner}
	p.envelope(inner, depth+1, mails)
}

// isFile reports whether a part is a file of the mail.
func (e *entity) isFile() bool {
	return e.name != "" && e.content != nil && (e.signed || len(e.inside) == 0)
}

// fileName returns the last element of a name that a sender has chosen.
func fileName(name string) string {
	name = strings.Join(strings.Fields(mailtext.Printable(name)), " ")
	name = path.Base("/" + strings.ReplaceAll(name, `\`, "/"))
	if name == "/" || name == "." || name == ".." {
		return ""
	}
	return name
}

// defaultName returns a name for a file that has none.
func defaultName(kind string) string {
	switch kind {
	case "message/rfc822", "message/global":
		return "forwarded.eml"
	case "text/calendar":
		return "invite.ics"
	case "application/ms-tnef":
		return "winmail.dat"
	case "application/pkcs7-mime", "application/x-pkcs7-mime":
		return "smime.p7m"
	case "message/delivery-status":
		return "delivery-status.txt"
	case "text/html":
		return "page.html"
	}
	group, sub, _ := strings.Cut(kind, "/")
	sub, _, _ = strings.Cut(strings.TrimPrefix(sub, "x-"), "+")
	if group == "text" && sub == "plain" {
		return "text.txt"
	}
	// The sender has written the type, and an extension is a few letters and digits.
	if len(sub) > 5 || sub == "" || strings.Trim(sub, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		sub = "bin"
	}
	if group == "image" || group == "audio" || group == "video" {
		return group + "." + sub
	}
	return "attachment." + sub
}
