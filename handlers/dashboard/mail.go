package dashboard

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"journeyman/store"
)

// mailRoutes are the pages of mail.
func (d *Dashboard) mailRoutes() {
	d.on("GET", "/mail", d.listMail(mailAll))
	d.on("GET", "/mail/held", d.listMail(mailHeld))
	d.on("GET", "/mail/outbox", d.listMail(mailOutbox))
	d.on("GET", "/mail/messages/:emailId", d.showMail)
	d.on("GET", "/mail/messages/:emailId/source", d.downloadMail)
	d.may(store.ManageMail, "POST", "/mail/messages/:emailId/release", d.releaseMail)
	d.may(store.ManageMail, "POST", "/mail/messages/:emailId/retry", d.retryMail)
}

// The lists of mail.
const (
	mailAll    = "/mail"
	mailHeld   = "/mail/held"
	mailOutbox = "/mail/outbox"
)

// mailOnPage is how many mails a list shows.
const mailOnPage = 50

// A mailList is one of the lists of mail.
type mailList struct {
	Path     string
	Form     *form // the filter
	Emails   []mailRow
	Filtered bool
	Later    bool   // this is not the first page
	Next     string // address of the next page; '' after the last
	Address  string // of a worker, to write to
	Worker   bool   // there is such a worker
	Server   string // where mail is taken in, '' for nowhere
}

// A mailRow is a mail as the pages show it.
type mailRow struct{ store.Email }

// Outbound reports whether it is a reply of ours.
func (m mailRow) Outbound() bool { return m.Direction == store.Outbound }

// Peer is who sent it to us, or whom we send it to.
func (m mailRow) Peer() string {
	if m.Outbound() {
		return brief(m.To)
	}
	return brief(cmp.Or(m.From, m.MailFrom, "nobody"))
}

// Why is the reason of its status, as far as a list has room.
func (m mailRow) Why() string { return brief(m.Reason) }

// inList is how many bytes a text has in a line of a list, as they are written.
const inList = 200

// brief is the beginning of a text that has one line of a list.
func brief(text string) string {
	e := excerptOf(text, inList)
	if e.Cut() {
		return e.Text + "…"
	}
	return text
}

// Title is the subject, or what stands for one.
func (m mailRow) Title() string {
	switch {
	case strings.TrimSpace(m.Subject) != "":
		return brief(m.Subject)
	case m.Outbound() && m.Size == 0:
		return "(not written yet)"
	}
	return "(no subject)"
}

// Releasable reports whether it waits for somebody to let it in.
func (m mailRow) Releasable() bool { return !m.Outbound() && m.Status != store.EmailAccepted }

// Retryable reports whether it may be sent again.
func (m mailRow) Retryable() bool { return m.Outbound() && m.Status != store.EmailSent }

// Statuses are the choices of the filter.
func (l mailList) Statuses() []option {
	out := []option{{"", "Any"}, {"queued", "queued"}, {"sent", "sent"}, {"kept", "kept: no relay"}, {"failed", "failed"}, {"bounced", "bounced"}}
	if l.Path == mailOutbox {
		return out
	}
	return append([]option{{"", "Any"}, {"accepted", "accepted"}, {"held", "held"}, {"ignored", "ignored"}}, out[1:]...)
}

func (d *Dashboard) listMail(path string) handle {
	return func(w http.ResponseWriter, r *request) error {
		v := r.URL.Query()
		q := store.EmailQuery{Status: store.EmailStatus(v.Get("status")), WorkerID: v.Get("workerId"), Cursor: v.Get("cursor"), Limit: mailOnPage}
		p := mailList{Path: path, Form: &form{Values: v, Errors: map[string]string{}}, Filtered: v.Get("status") != "" || v.Get("workerId") != "",
			Later: q.Cursor != "", Server: d.cfg.MailAddr}
		switch path {
		case mailHeld:
			q.Status = store.EmailHeld
		case mailOutbox:
			q.Direction = store.Outbound
		}
		status := http.StatusOK
		list, next, err := d.store.Emails(r.Context(), r.who.Caller, q)
		if err != nil {
			if !p.Form.refused(err) {
				return err
			}
			status = http.StatusUnprocessableEntity
		}
		for _, e := range list {
			p.Emails = append(p.Emails, mailRow{e})
		}
		if next != "" {
			p.Next = path + "?" + url.Values{"status": {v.Get("status")}, "workerId": {q.WorkerID}, "cursor": {next}}.Encode()
		}
		if len(list) == 0 {
			if err := d.addressForMail(r, &p); err != nil {
				return err
			}
		}
		return d.render(w, r, status, "mail.html", "Mail", p)
	}
}

// addressForMail finds a worker that the reader could write to.
func (d *Dashboard) addressForMail(r *request, p *mailList) error {
	workers, _, err := d.store.Workers(r.Context(), r.who.Caller, store.WorkerQuery{Limit: 1})
	p.Address = "WORKER_ID@" + d.cfg.MailDomain
	if len(workers) > 0 {
		p.Address, p.Worker = workers[0].ID+"@"+d.cfg.MailDomain, true
	}
	return err
}

// A mailPage is one mail.
type mailPage struct {
	mailRow
	Full        excerpt // the subject
	Header      excerpt
	Text        excerpt
	Attachments []string
	Verdicts    []option
	HasSource   bool
	Worker      store.Worker
}

// How much of a mail its page shows, in bytes; the source holds the rest.
const (
	maxShownSubject = 5 << 10
	maxShownHeader  = 8 << 10
	maxShownMail    = 16 << 10
	maxAttachments  = 50
)

func (d *Dashboard) showMail(w http.ResponseWriter, r *request) error {
	e, err := d.store.Email(r.Context(), r.who.Caller, r.params.ByName("emailId"))
	if err != nil {
		return err
	}
	raw, err := d.store.EmailSource(r.Context(), e)
	if err != nil {
		return err
	}
	p := mailPage{mailRow: mailRow{e}, Full: excerptOf(e.Subject, maxShownSubject), HasSource: raw != nil, Verdicts: verdictsOf(e.Verdicts)}
	if p.Worker, err = d.store.Worker(r.Context(), r.who.Caller, e.WorkerID); err != nil && !store.IsKind(err, store.NotFound) {
		return err // a deleted worker's mail stays
	}
	if raw != nil {
		text, attachments := d.cfg.ReadMail(raw)
		p.Text = excerptOf(strings.ToValidUTF8(text, "\uFFFD"), maxShownMail)
		for _, name := range attachments[:min(len(attachments), maxAttachments)] {
			p.Attachments = append(p.Attachments, brief(strings.ToValidUTF8(name, "\uFFFD")))
		}
		p.Header = excerptOf(strings.ToValidUTF8(headerOf(raw), "\uFFFD"), maxShownHeader)
	}
	return d.page(w, r, "message.html", p.Title(), p)
}

// headerOf is the header of a mail's source, as it came.
func headerOf(raw []byte) string {
	end := len(raw)
	for _, blank := range []string{"\r\n\r\n", "\n\n"} {
		if at := bytes.Index(raw, []byte(blank)); at >= 0 {
			end = min(end, at)
		}
	}
	return string(raw[:end])
}

// A verdict is what one check of a mail's sender came to.
type verdict struct{ Result, Domain, Policy, Reason string }

func (v verdict) String() string {
	text := cmp.Or(v.Result, "none")
	if v.Domain != "" {
		text += " for " + v.Domain
	}
	if v.Policy != "" {
		text += ", whose policy is " + v.Policy
	}
	if v.Reason != "" {
		text += ": " + v.Reason
	}
	return text
}

// verdictsOf are what is known of a mail's sender, in words.
func verdictsOf(text json.RawMessage) (list []option) {
	var v struct {
		SPF, DMARC           verdict
		DKIM                 []verdict
		Authenticated, Local bool
	}
	if len(text) == 0 || json.Unmarshal(text, &v) != nil {
		return nil
	}
	if v.Local {
		return []option{{"Sender", "handed in on this machine or through the API: nothing was checked"}}
	}
	vouched := "nothing vouches for it"
	if v.Authenticated {
		vouched = "vouched for by its domain"
	}
	list = []option{{"Sender", vouched}, {"SPF", v.SPF.String()}}
	for _, signature := range v.DKIM {
		list = append(list, option{"DKIM", signature.String()})
	}
	return append(list, option{"DMARC", v.DMARC.String()})
}

// downloadMail gives the source of a mail as a file: no browser shows it as a page
// of ours.
func (d *Dashboard) downloadMail(w http.ResponseWriter, r *request) error {
	e, err := d.store.Email(r.Context(), r.who.Caller, r.params.ByName("emailId"))
	if err != nil {
		return err
	}
	raw, err := d.store.EmailSource(r.Context(), e)
	if err != nil {
		return err
	}
	if raw == nil {
		return store.Errorf(store.NotFound, "the mail is not written yet, or older than the sources of mail are kept")
	}
	w.Header().Set("Content-Type", "message/rfc822")
	w.Header().Set("Content-Disposition", `attachment; filename="`+e.ID+`.eml"`)
	_, _ = w.Write(raw) // the browser may have gone
	return nil
}

func (d *Dashboard) releaseMail(w http.ResponseWriter, r *request) error {
	e, err := d.cfg.Inbox.Release(r.Context(), r.who.Caller, r.params.ByName("emailId"))
	if err != nil {
		return err
	}
	return done(w, r, "/mail/messages/"+e.ID, "mail-released")
}

func (d *Dashboard) retryMail(w http.ResponseWriter, r *request) error {
	e, err := d.store.SendAgain(r.Context(), r.who.Caller, r.params.ByName("emailId"))
	if err != nil {
		return err
	}
	return done(w, r, "/mail/messages/"+e.ID, "mail-retried")
}
