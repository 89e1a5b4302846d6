package mailfile

import (
	"errors"
	"fmt"
	"strings"

	"journeyman/runner/tool/mailfile/mailtext"
	"journeyman/store/visible"
)

var errNoMail = errors.New("it has no header of a mail")

// maxText is how many bytes of text EML returns.
const maxText = 2 << 20

// A Member is a file in a mail.
type Member struct {
	Name      string // unique in the mail: equal names have numbers
	MediaType string // as the mail states it
	Content   []byte
}

// Members returns the files of a mail: an eml file, a msg file or a winmail.dat. The files of an attached mail are
// members of that mail, which is a member itself.
func Members(document []byte, expired func() bool) ([]Member, error) {
	p := &parser{expired: expired}
	e, err := p.document(document)
	if err != nil {
		return nil, err
	}
	var list []Member
	e.each(func(part *entity) {
		if part.isFile() {
			list = append(list, Member{part.name, part.kind, part.content})
		}
	})
	if p.missing {
		err = errors.New("it has more parts than can be read")
	}
	return list, err
}

// EML returns a reader of mails that are files: eml files, msg files and winmail.dat. It returns the author, the
// recipients, the date, the subject, the text, and the names of the files. Attached mails follow below a line with
// their name. html converts a page to text.
func EML(html func(page string) string) func(document []byte, expired func() bool) ([]byte, error) {
	return func(document []byte, expired func() bool) ([]byte, error) {
		p := &parser{expired: expired}
		e, err := p.document(document)
		if err != nil {
			return nil, err
		}
		w := &writer{html: html, expired: expired}
		w.mail(e, "")
		text := strings.TrimSpace(w.out.String()) + "\n"
		if len(text) > maxText {
			text, p.missing = strings.ToValidUTF8(text[:maxText], ""), true
		}
		if p.missing || expired() {
			text += "\n[The mail goes on, but not everything could be read.]\n"
		}
		return []byte(text), nil
	}
}

// A writer writes the text of a mail.
type writer struct {
	html    func(page string) string
	expired func() bool
	out     strings.Builder
}

// mail writes a mail. within is the path of its file in the document, "" for the document itself.
func (w *writer) mail(e *entity, within string) {
	for _, field := range []string{"From", "Reply-To", "To", "Cc", "Bcc", "Date", "Subject"} {
		if v := strings.Join(strings.Fields(mailtext.Words(e.fields[strings.ToLower(field)])), " "); v != "" {
			w.out.WriteString(field + ": " + visible.Line(v) + "\n")
		}
	}
	w.out.WriteString("\n")
	if text := tidy(w.text(e)); text != "" {
		w.out.WriteString(text + "\n\n")
	}
	w.list(e, within)
	e.each(func(part *entity) {
		if part.mail != nil && w.out.Len() < maxText && !w.expired() {
			fmt.Fprintf(&w.out, "[part %q]\n", within+part.name)
			w.mail(part.mail, within+part.name+"/")
		}
	})
}

// list writes the names of the files.
func (w *writer) list(e *entity, within string) {
	any := false
	e.each(func(part *entity) {
		if !part.isFile() {
			return
		}
		if !any {
			w.out.WriteString("Files in this mail:\n")
		}
		any = true
		fmt.Fprintf(&w.out, "- %s (%s, %d bytes)\n", visible.Name(within+part.name), visible.Name(part.kind), len(part.content))
	})
	if any {
		w.out.WriteString("\n")
	}
}

// text returns the text of a part and of the parts inside it, without files.
func (w *writer) text(e *entity) string {
	notice := ""
	if e.notice != "" {
		notice = "[" + e.notice + "]"
	}
	switch {
	case w.expired():
		return ""
	case e.kind == "multipart/alternative":
		return joinTexts(notice, w.best(e.inside))
	case len(e.inside) > 0:
		texts := []string{notice}
		for _, part := range e.inside {
			texts = append(texts, w.text(part))
		}
		return joinTexts(texts...)
	case e.name != "" || len(e.content) == 0:
		return notice
	}
	text := strings.TrimPrefix(mailtext.Decode(e.content, e.params["charset"]), "\ufeff")
	switch {
	case e.kind == "text/html":
		return w.html(text)
	case strings.EqualFold(e.params["format"], "flowed"):
		text = strings.ReplaceAll(text, "\r\n", "\n")
		return mailtext.Unflow(text, strings.EqualFold(e.params["delsp"], "yes"))
	}
	return text
}

// best returns the text of the first form of a content that has any, the plain ones first.
func (w *writer) best(forms []*entity) string {
	for _, plain := range []bool{true, false} {
		for _, form := range forms {
			if (form.kind == "text/plain") != plain {
				continue
			}
			if text := w.text(form); strings.TrimSpace(text) != "" {
				return text
			}
		}
	}
	return ""
}

func joinTexts(texts ...string) string {
	var all []string
	for _, text := range texts {
		if strings.TrimSpace(text) != "" {
			all = append(all, strings.Trim(text, "\r\n"))
		}
	}
	return strings.Join(all, "\n\n")
}

// tidy returns a text with \n as its line end, and without characters that are not visible.
func tidy(text string) string {
	text = mailtext.Printable(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text))
	return strings.Trim(text, "\n")
}
