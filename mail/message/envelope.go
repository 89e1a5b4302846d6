package message

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/emersion/go-message/textproto"

	"journeyman/runner/tool/mailfile/mailtext"
)

// OpenEnvelope opens what mails are packed in: signed S/MIME messages, the winmail.dat of Exchange, and msg files. It
// returns the part of a mail inside, with its header. The part is nil if the document cannot be read. encrypted
// reports that only a key opens it. An error ends the reading of the mail, and the sender has to repeat it.
//
// Implementations must not trust a document: it may make a parser use all memory or time.
type OpenEnvelope func(document []byte) (part []byte, encrypted bool, err error)

const (
	maxMails    = 20      // attached mails whose text is read
	maxInside   = 5       // mails inside mails
	maxOpened   = 20      // envelopes that are opened, each by a process
	maxQuoted   = 8 << 10 // bytes of the text of an attached mail that the instruction has
	maxOneField = 1000    // bytes of a field that the instruction shows
)

// moreUnpacked is how many bytes all files and opened envelopes of a mail may have, besides twice those of the mail.
// It is enough for two envelopes with the most that one can have inside. The files of a mail with more are kept too,
// but envelopes among them stay closed.
const moreUnpacked = 32 << 20

// An attachedMail is a mail inside the mail.
type attachedMail struct {
	header  Header
	content content
	file    namedFile // with the whole mail
}

// envelopeKind returns what a part is packed in, "" for an ordinary part: "smime", "tnef", "msg" or "mail". A part
// that only has the media type of any file is judged by its name.
func envelopeKind(kind, name string) string {
	switch kind {
	case "application/pkcs7-mime", "application/x-pkcs7-mime":
		return "smime"
	case "application/ms-tnef", "application/vnd.ms-tnef", "application/x-ms-tnef":
		return "tnef"
	case "application/vnd.ms-outlook", "application/x-msg":
		return "msg"
	case "message/rfc822", "message/global", "application/eml", "application/x-eml":
		return "mail"
	case "application/octet-stream", "application/x-unknown", "application/binary", "text/plain":
	default:
		return ""
	}
	name = strings.ToLower(name)
	switch path.Ext(name) {
	case ".p7m":
		return "smime"
	case ".tnef":
		return "tnef"
	case ".msg":
		return "msg"
	case ".eml":
		return "mail"
	}
	if name == "winmail.dat" || name == "win.dat" {
		return "tnef"
	}
	return ""
}

// envelope reads a part that is packed in something.
func (b *bodyReader) envelope(packed, kind, name string, params map[string]string, decoded io.Reader,
	depth int) content {
	document, _ := io.ReadAll(decoded) // a truncatingReader returns no errors
	if packed == "mail" {
		return b.attachMail(document, kind, name, document, depth)
	}
	smime := strings.ToLower(params["smime-type"])
	if strings.Contains(smime, "enveloped") || strings.Contains(smime, "encrypted") {
		return b.encrypted("S/MIME", kind, name, document, depth == 0)
	}
	if b.open == nil || smime == "certs-only" || b.opened >= maxOpened || b.room < len(document) {
		return b.file(name, kind, bytes.NewReader(document))
	}
	b.opened++
	part, encrypted, err := b.open(document)
	b.room -= len(part)
	switch {
	case err != nil:
		b.err = err
		return content{}
	case encrypted:
		return b.encrypted("S/MIME", kind, name, document, depth == 0)
	case part == nil || b.room < 0:
		return b.file(name, kind, bytes.NewReader(document))
	case packed == "msg":
		return b.attachMail(document, kind, name, part, depth)
	}
	if !mailtext.IsPart(part) {
		return b.signedFile(name, kind, document, part, depth)
	}
	fields, body, broken := splitHeader(part)
	b.broken = b.broken || broken
	c := b.part(fields, bytes.NewReader(body), depth+1, false)
	c.repeats = packed == "tnef"
	return c
}

// signedFile attaches a signed document that is no part of a mail: with its signature, and as the file that was signed.
func (b *bodyReader) signedFile(name, kind string, document, signed []byte, depth int) content {
	b.file(name, kind, bytes.NewReader(document))
	if b.err != nil {
		return content{}
	}
	const anyFile = "application/octet-stream"
	name = mailtext.SignedName(name, signed)
	if packed := envelopeKind(anyFile, name); packed != "" && packed != "smime" && depth < maxDepth {
		return b.envelope(packed, anyFile, name, nil, bytes.NewReader(signed), depth+1)
	}
	return b.file(name, anyFile, bytes.NewReader(signed))
}

// attachMail attaches a mail as the file that it came as. Its text becomes a part of the instruction, and its own
// attachments become attachments of the mail around it.
func (b *bodyReader) attachMail(document []byte, kind, name string, raw []byte, depth int) content {
	name = b.unused(name)
	file := namedFile{b.files, name}
	c := b.file(name, kind, bytes.NewReader(document))
	if b.err != nil || len(b.attached) >= maxMails || b.inside >= maxInside || b.room < len(raw) {
		return c
	}
	h := ReadHeader(WithCRLF(raw))
	body := bytes.NewReader(h.body)
	h.body = nil // the attached mails are many
	n := len(b.attached)
	b.attached = append(b.attached, attachedMail{header: h, file: file})
	b.inside++
	inner := b.part(h.fields, body, depth+1, false)
	b.inside--
	b.attached[n].content = inner
	return c
}

// unused returns a name that no attached mail has, with a number if necessary.
func (b *bodyReader) unused(name string) string {
	has := func(name string) bool {
		return slices.ContainsFunc(b.attached, func(a attachedMail) bool { return strings.EqualFold(a.file.name, name) })
	}
	extension := path.Ext(name)
	stem := strings.TrimSuffix(name, extension)
	for n := 2; has(name) && n <= maxMails+1; n++ {
		name = fmt.Sprintf("%s-%d%s", stem, n, extension)
	}
	return name
}

// file passes an attachment to keep.
func (b *bodyReader) file(name, kind string, r io.Reader) content {
	if b.files++; b.files > maxFiles {
		b.broken = true
		return content{}
	}
	b.err = b.keep(Attachment{Name: name, MediaType: kind, Reader: &countingReader{r, &b.room}})
	return content{}
}

// A countingReader takes the bytes that are read from a room.
type countingReader struct {
	io.Reader
	room *int
}

// Read reads from the reader inside.
func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	*c.room -= n
	return n, err
}

// encrypted attaches an encrypted part, and notes for the instruction that nobody here can read it. whole means that
// the mail has nothing else.
func (b *bodyReader) encrypted(how, kind, name string, document []byte, whole bool) content {
	file := namedFile{b.files, name}
	c := b.file(name, kind, bytes.NewReader(document))
	form := "[A part of this mail is encrypted (%s). It is the file %s. This server has no key for it, so it cannot be " +
		"read here. Tell the author so, and ask for the part without encryption.]"
	if whole {
		form = "[This mail is encrypted (%s). The encrypted part is the file %s. This server has no key for it, so neither " +
			"its text nor its files can be read here. Tell the author so, and ask for the mail without encryption.]"
	}
	b.notices = append(b.notices, notice{form, how, file})
	return c
}

// pgpMIME reads the parts of multipart/encrypted (RFC 3156): a version, and the encrypted mail.
func (b *bodyReader) pgpMIME(boundary string, body io.Reader, depth int) content {
	fields := textproto.Header{}
	fields.Set("Content-Type", "multipart/mixed; boundary=\""+boundary+"\"")
	raw, _ := io.ReadAll(body)
	h := Header{fields: fields, body: raw}
	document, name := raw, "encrypted.asc"
	h.eachPart(func(kind string, fields textproto.Header, body io.Reader) bool {
		if kind == "application/pgp-encrypted" {
			return true
		}
		document, _ = io.ReadAll(body)
		_, where := mailtext.Params(fields.Get("Content-Disposition"))
		_, params := mailtext.Params(fields.Get("Content-Type"))
		name = cmp.Or(where["filename"], params["name"], name)
		return false
	})
	return b.encrypted("PGP", "application/pgp-encrypted", name, document, depth == 0)
}

// Lines of PGP in a text (RFC 9580, sections 6.2 and 7).
const (
	pgpMessage   = "-----BEGIN PGP MESSAGE-----"
	pgpEnd       = "-----END PGP MESSAGE-----"
	pgpSigned    = "-----BEGIN PGP SIGNED MESSAGE-----"
	pgpSignature = "-----BEGIN PGP SIGNATURE-----"
	pgpSignedEnd = "-----END PGP SIGNATURE-----"
)

// inlinePGP returns a text without its encrypted block, which becomes a file, and without the lines of a signature.
// A block without its end stays in the text.
func (b *bodyReader) inlinePGP(text string, depth int) string {
	if before, rest, found := cutLine(text, pgpMessage); found {
		if block, after, ended := cutLine(rest, pgpEnd); ended {
			b.encrypted("PGP", "application/pgp-encrypted", "encrypted.asc",
				[]byte(pgpMessage+"\n"+block+pgpEnd+"\n"), depth == 0 && strings.TrimSpace(before+after) == "")
			text = before + after
		}
	}
	return withoutSignature(text)
}

// withoutSignature returns a text without the lines of a signature, as which it is if the block is not whole.
func withoutSignature(text string) string {
	before, rest, found := cutLine(text, pgpSigned)
	signed, rest, hasSignature := cutLine(rest, pgpSignature)
	_, after, ended := cutLine(rest, pgpSignedEnd)
	if !found || !hasSignature || !ended {
		return text
	}
	// Fields such as Hash may be above the text. An empty line is between them and the text.
	for {
		line, below, more := strings.Cut(signed, "\n")
		if !more {
			return text
		}
		signed = below
		if line = strings.TrimSpace(line); line == "" {
			break
		}
		if !strings.Contains(line, ": ") {
			return text
		}
	}
	signed = strings.TrimPrefix(strings.ReplaceAll("\n"+signed, "\n- ", "\n"), "\n")
	return before + strings.TrimRight(signed, "\n") + "\n" + after
}

// cutLine cuts a text at a whole line that is not quoted. Spaces at the end of the line do not count.
func cutLine(text, line string) (before, after string, found bool) {
	for at := 0; at < len(text); {
		whole, rest, _ := strings.Cut(text[at:], "\n")
		if strings.TrimRight(whole, " \t") == line {
			return text[:at], rest, true
		}
		at += len(whole) + 1
	}
	return text, "", false
}

// withoutRepeats leaves out the text of a winmail.dat if another part has the same words, as Exchange sends it.
func withoutRepeats(all []content) []content {
	for i, c := range all {
		if !c.repeats {
			continue
		}
		all[i].repeats = false
		words := strings.Fields(withoutTags(joinPieces(c.best())))
		for j, other := range all {
			if j != i && !other.repeats && hasWords(withoutTags(joinPieces(other.best())), words) {
				all[i] = content{}
			}
		}
	}
	return all
}

// hasWords reports whether a text has all of the words, each as often.
func hasWords(text string, words []string) bool {
	count := map[string]int{}
	for word := range strings.FieldsSeq(text) {
		count[word]++
	}
	for _, word := range words {
		if count[word]--; count[word] < 0 {
			return false
		}
	}
	return true
}
