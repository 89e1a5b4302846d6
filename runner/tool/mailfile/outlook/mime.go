package outlook

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime"
	netmail "net/mail"
	"path"
	"strings"
	"time"

	"journeyman/runner/tool/mailfile/mailtext"
)

// mime returns a mail as MIME. The header has the fields of the mail only if it is a mail of its own.
func (r *reader) mime(m *mail, whole bool) ([]byte, error) {
	var b bytes.Buffer
	if whole {
		m.writeFields(&b)
	}
	if err := r.writeBody(&b, m); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// writeFields writes the fields of a mail's header.
func (m *mail) writeFields(b *bytes.Buffer) {
	original := headerFields(m.text(pidHeaders, m.codepage))
	write := func(name, value string) {
		if value = strings.Join(strings.Fields(mailtext.Printable(value)), " "); value != "" {
			fmt.Fprintf(b, "%s: %s\r\n", name, value)
		}
	}
	date := original["date"]
	if at, ok := m.time(pidSubmitTime); ok && date == "" {
		date = at.Format(time.RFC1123Z)
	} else if at, ok := m.time(pidDeliveryTime); ok && date == "" {
		date = at.Format(time.RFC1123Z)
	}
	write("From", cmp.Or(original["from"], m.author()))
	write("To", cmp.Or(original["to"], m.list(1), encoded(m.text(pidDisplayTo, m.codepage))))
	write("Cc", cmp.Or(original["cc"], m.list(2), encoded(m.text(pidDisplayCc, m.codepage))))
	write("Date", date)
	write("Subject", encoded(cmp.Or(m.text(pidSubject, m.codepage), mailtext.Words(original["subject"]))))
	write("Message-ID", cmp.Or(original["message-id"], m.text(pidMessageID, m.codepage)))
	write("In-Reply-To", cmp.Or(original["in-reply-to"], m.text(pidInReplyTo, m.codepage)))
	write("References", cmp.Or(original["references"], m.text(pidReferences, m.codepage)))
}

// headerFields returns the first field of each name in a header, by name in lower case.
func headerFields(header string) map[string]string {
	fields := map[string]string{}
	header = strings.NewReplacer("\r\n ", " ", "\r\n\t", " ", "\n ", " ", "\n\t", " ").Replace(header)
	for line := range strings.Lines(header) {
		name, value, found := strings.Cut(line, ":")
		name = strings.ToLower(strings.TrimSpace(name))
		if _, seen := fields[name]; found && !seen {
			fields[name] = strings.TrimSpace(value)
		}
	}
	return fields
}

// author returns the author of a mail as an address.
func (m *mail) author() string {
	name := cmp.Or(m.text(pidSentName, m.codepage), m.text(pidSenderName, m.codepage))
	for _, id := range []uint16{pidSentSMTP, pidSenderSMTP, pidSentAddress, pidSenderAddress} {
		if a := m.text(id, m.codepage); strings.Contains(a, "@") {
			return address(name, a)
		}
	}
	return encoded(name)
}

// list returns the recipients of a type: 1 for To, 2 for Cc.
func (m *mail) list(kind int) string {
	var all []string
	for _, p := range m.recipients {
		if p.number(pidRecipientType)&0xf != kind {
			continue
		}
		name := p.text(pidDisplayName, m.codepage)
		for _, a := range []string{p.text(pidSMTPAddress, m.codepage), p.text(pidAddress, m.codepage), ""} {
			if strings.Contains(a, "@") || a == "" && name != "" {
				all = append(all, address(name, a))
				break
			}
		}
	}
	return strings.Join(all, ", ")
}

// address returns a name and an address as a field shows them.
func address(name, a string) string {
	if a == "" {
		return encoded(name)
	}
	if name == a {
		name = ""
	}
	return (&netmail.Address{Name: name, Address: a}).String()
}

func encoded(text string) string {
	return mime.BEncoding.Encode("utf-8", strings.Join(strings.Fields(mailtext.Printable(text)), " "))
}

// writeBody writes the texts and attachments of a mail, with the fields that describe them.
func (r *reader) writeBody(b *bytes.Buffer, m *mail) error {
	if original := m.signedOriginal(); original != nil {
		b.Write(original)
		return r.take(len(original))
	}
	plain, page, err := r.texts(m)
	if err != nil {
		return err
	}
	if err := r.take(len(plain) + len(page)); err != nil {
		return err
	}
	boundary := boundaryOf(m, plain, page)
	fmt.Fprintf(b, "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=\"%s\"\r\n\r\n", boundary)
	writeTexts(b, boundary, plain, page)
	for i := range m.attachments {
		fmt.Fprintf(b, "\r\n--%s\r\n", boundary)
		if err := r.writeAttachment(b, m, &m.attachments[i]); err != nil {
			return err
		}
	}
	fmt.Fprintf(b, "\r\n--%s--\r\n", boundary)
	return nil
}

// writeTexts writes the forms of the text as one part.
func writeTexts(b *bytes.Buffer, boundary, plain, page string) {
	fmt.Fprintf(b, "--%s\r\n", boundary)
	if strings.TrimSpace(plain+page) == "" {
		b.WriteString("Content-Type: text/plain\r\n\r\n")
		return
	}
	fmt.Fprintf(b, "Content-Type: multipart/alternative; boundary=\"%s=\"\r\n\r\n", boundary)
	for _, form := range [][2]string{{"plain", plain}, {"html", page}} {
		if strings.TrimSpace(form[1]) != "" {
			fmt.Fprintf(b, "--%s=\r\nContent-Type: text/%s; charset=utf-8\r\n", boundary, form[0])
			fmt.Fprintf(b, "Content-Transfer-Encoding: 8bit\r\n\r\n%s\r\n", form[1])
		}
	}
	fmt.Fprintf(b, "--%s=--\r\n", boundary)
}

// signedOriginal returns the signed part of which the mail was made, with its header. Outlook keeps it as the only
// attachment. It returns nil for other mails.
func (m *mail) signedOriginal() []byte {
	if len(m.attachments) != 1 || !strings.HasPrefix(m.text(pidMessageClass, 0), "IPM.Note.SMIME") {
		return nil
	}
	data := m.attachments[0].data
	switch {
	case mailtext.IsPart(data):
		return data
	case len(data) > 0 && data[0] == 0x30: // a CMS message
		const fields = "Content-Type: application/pkcs7-mime; name=smime.p7m\r\nContent-Transfer-Encoding: binary\r\n\r\n"
		return append([]byte(fields), data...)
	}
	return nil
}

// boundaryOf returns a boundary that the content cannot contain, because it is a hash of the content.
func boundaryOf(m *mail, texts ...string) string {
	h := sha256.New()
	for _, text := range texts {
		fmt.Fprintf(h, "%d:%s", len(text), text)
	}
	for _, a := range m.attachments {
		fmt.Fprintf(h, "%d:", len(a.data))
		h.Write(a.data)
	}
	return "part-" + hex.EncodeToString(h.Sum(nil))[:40]
}

// writeAttachment writes an attachment with the fields that describe it.
func (r *reader) writeAttachment(b *bytes.Buffer, m *mail, a *attachment) error {
	name := cmp.Or(a.text(pidAttachLongFile, m.codepage), a.text(pidAttachFile, m.codepage),
		a.text(pidDisplayName, m.codepage))
	name = strings.Join(strings.Fields(mailtext.Printable(name)), " ")
	if a.mail != nil {
		if !strings.HasSuffix(strings.ToLower(name), ".eml") {
			name = cmp.Or(name, strings.TrimSpace(a.mail.text(pidSubject, a.mail.codepage)), "attached") + ".eml"
		}
		fmt.Fprintf(b, "Content-Type: message/rfc822\r\nContent-Disposition: attachment; %s\r\n\r\n", fileParam(name))
		a.mail.writeFields(b)
		return r.writeBody(b, a.mail)
	}
	fmt.Fprintf(b, "Content-Type: %s\r\nContent-Disposition: attachment", a.mediaType())
	if name != "" {
		fmt.Fprintf(b, "; %s", fileParam(path.Base(strings.ReplaceAll(name, `\`, "/"))))
	}
	b.WriteString("\r\n")
	if id := contentID(a.text(pidAttachContentID, 0)); id != "" {
		fmt.Fprintf(b, "Content-ID: <%s>\r\n", id)
	}
	b.WriteString("Content-Transfer-Encoding: binary\r\n\r\n")
	b.Write(a.data)
	return r.take(len(a.data))
}

// mediaType returns the media type of a file. It is never one of a part that holds other parts.
func (a attachment) mediaType() string {
	kind := strings.ToLower(a.text(pidAttachMediaType, 0))
	value, _, err := mime.ParseMediaType(kind)
	if err != nil || value != kind || strings.HasPrefix(kind, "multipart/") || strings.HasPrefix(kind, "message/") {
		return "application/octet-stream"
	}
	return kind
}

// contentID returns an id without characters that end a field.
func contentID(id string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || r == '<' || r == '>' {
			return -1
		}
		return r
	}, id)
}

// fileParam returns the parameter with the name of a file (RFC 2231).
func fileParam(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '.' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return "filename*=utf-8''" + b.String()
}

// texts returns the plain text and the page of a mail. A mail may have its text only as RTF, which may itself be made
// of a page.
func (r *reader) texts(m *mail) (plain, page string, err error) {
	plain = m.text(pidBody, m.codepage)
	if m.codepage == 0 && m.properties[pidBody].kind == typeString8 {
		plain = m.text(pidBody, m.number(pidInternetCodepage))
	}
	if v := m.properties[pidHTML]; len(v.raw) > 0 {
		codepage := cmp.Or(m.number(pidInternetCodepage), m.codepage)
		page = m.text(pidHTML, codepage)
	}
	if page != "" || len(m.properties[pidRtf].raw) == 0 {
		return plain, page, nil
	}
	rtf, err := r.decompress(m.properties[pidRtf].raw)
	if err != nil {
		return plain, page, nil // the plain text is there in most mails
	}
	words, isPage, err := r.readRTF(rtf)
	switch {
	case err != nil:
		return "", "", err
	case isPage:
		page = words
	case strings.TrimSpace(plain) == "":
		plain = words
	}
	return plain, page, nil
}
