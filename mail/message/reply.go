package message

import (
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/emersion/go-message/mail"

	"journeyman/store/pattern"
	"journeyman/store/visible"
)

// A Reply is the answer to a mail.
type Reply struct {
	ID       string // Message-ID, without angle brackets
	Date     time.Time
	From     string // address
	FromName string
	To       string // address
	ReplyTo  string // address
	Original Header // header of the original mail; zero if this is no reply
	Title    string // subject of a mail that is no reply; "" for a reply
	Text     string
	HTML     string // the same as a page
	Files    []ReplyFile
}

// A ReplyFile is an attachment of a reply.
type ReplyFile struct {
	Name      string
	MediaType string
	Open      func() (io.ReadCloser, error)
}

// Subject returns Title, or the subject of the original, marked as that of a reply. It shows hidden
// characters: the subject may quote a title or a stranger's mail.
func (r Reply) Subject() string { return visible.Running(OneLine(r.subject())) }

func (r Reply) subject() string {
	switch subject := r.Original.Subject; {
	case r.Title != "":
		return r.Title
	case subject == "":
		return "Re: your mail"
	case replyPrefix.Compiled().MatchString(subject):
		return subject
	default:
		return "Re: " + subject
	}
}

// replyPrefix matches the beginning of the subjects of replies.
const replyPrefix pattern.Pattern = `(?i)^\s*(re|aw|sv|antw|vs|odp|ynt|回复|答复)\s*(\[\d+\])?\s*[:：]`

// Write writes the whole mail: the text and the page as two forms of one part, followed by the
// files.
func (r Reply) Write(w io.Writer) error {
	// Without files the mail needs no outer multipart/mixed part.
	if len(r.Files) == 0 {
		forms, err := mail.CreateInlineWriter(w, r.header())
		if err != nil {
			return err
		}
		return r.writeForms(forms)
	}
	parts, err := mail.CreateWriter(w, r.header())
	if err != nil {
		return err
	}
	forms, err := parts.CreateInline()
	if err != nil {
		return err
	}
	if err := r.writeForms(forms); err != nil {
		return err
	}
	for _, f := range r.Files {
		if err := f.attach(parts); err != nil {
			return err
		}
	}
	return parts.Close()
}

// header returns the header of the reply. It puts the reply into the thread of the original (RFC
// 5322, section 3.6.4). It also marks the reply as automatic (RFC 3834), so that no other program
// answers it.
func (r Reply) header() mail.Header {
	var h mail.Header
	h.SetDate(r.Date)
	h.SetAddressList("From", []*mail.Address{{Name: visible.Running(OneLine(r.FromName)), Address: r.From}})
	h.SetAddressList("To", []*mail.Address{{Address: r.To}})
	h.SetAddressList("Reply-To", []*mail.Address{{Address: r.ReplyTo}})
	h.SetSubject(r.Subject())
	h.SetMessageID(r.ID)
	if r.Original.HasID {
		h.SetMsgIDList("In-Reply-To", []string{r.Original.MessageID})
		h.SetMsgIDList("References", r.references())
	}
	h.Set("Auto-Submitted", "auto-replied")
	if r.Title != "" {
		// RFC 3834, section 5: auto-replied is only for a mail that answers another one.
		h.Set("Auto-Submitted", "auto-generated")
	}
	h.Set("X-Auto-Response-Suppress", "All")
	h.Set("X-MS-Reactions", "disallow") // Outlook offers no emoji below the mail, which would come back as a mail
	h.Set("MIME-Version", "1.0")
	return h
}

// references returns the references of the original, and its id. Of a long list it keeps the first
// one and the newest ones.
func (r Reply) references() []string {
	const most = 20
	refs := r.Original.References
	if len(refs) == 0 && len(r.Original.InReplyTo) == 1 {
		refs = r.Original.InReplyTo
	}
	if len(refs) > most {
		refs = append([]string{refs[0]}, refs[len(refs)-most+1:]...)
	}
	var list []string
	for _, id := range append(refs, r.Original.MessageID) {
		// Old mail servers allow only ASCII in a header.
		if isPrintableASCII(id) && !strings.ContainsAny(id, " <>") {
			list = append(list, id)
		}
	}
	return list
}

// writeForms writes the answer as text and as HTML.
func (r Reply) writeForms(w *mail.InlineWriter) error {
	// The last form is the one that clients prefer (RFC 2046, section 5.1.4).
	for _, form := range []struct{ kind, body string }{{"text/plain", r.Text + "\n"}, {"text/html", r.HTML}} {
		var h mail.InlineHeader
		h.SetContentType(form.kind, map[string]string{"charset": "utf-8"})
		h.Set("Content-Transfer-Encoding", "quoted-printable")
		p, err := w.CreatePart(h)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(p, strings.ReplaceAll(form.body, "\n", "\r\n")); err != nil {
			return err
		}
		if err := p.Close(); err != nil {
			return err
		}
	}
	return w.Close()
}

func (f ReplyFile) attach(w *mail.Writer) error {
	content, err := f.Open()
	if err != nil {
		return err
	}
	defer content.Close()
	var h mail.AttachmentHeader
	h.Set("Content-Type", f.MediaType)
	if strings.HasPrefix(f.MediaType, "message/") || strings.HasPrefix(f.MediaType, "multipart/") {
		// base64 is not allowed for these types (RFC 2046, section 5.2.1).
		h.Set("Content-Type", "application/octet-stream")
	}
	h.Set("Content-Disposition", disposition(f.Name))
	h.Set("Content-Transfer-Encoding", "base64")
	p, err := w.CreateAttachment(h)
	if err != nil {
		return err
	}
	if _, err := io.Copy(p, content); err != nil {
		return err
	}
	return p.Close()
}

// disposition returns the Content-Disposition of an attachment. A name that quotes
// cannot hold is encoded (RFC 2231).
func disposition(name string) string {
	if isPrintableASCII(name) && !strings.ContainsAny(name, `"\`) {
		return `attachment; filename="` + name + `"`
	}
	return "attachment; filename*=utf-8''" + strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
}

// isPrintableASCII reports whether s has only ASCII characters that print, or spaces.
func isPrintableASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}
