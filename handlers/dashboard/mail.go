package dashboard

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"journeyman/handlers/dashboard/show"
	"journeyman/runner/sandbox"
	"journeyman/store"
)

// mailRoutes registers the pages of mail.
func (d *Dashboard) mailRoutes() {
	d.on("GET", "/mail", d.listMail(mailAll))
	d.on("GET", "/mail/held", d.listMail(mailHeld))
	d.on("GET", "/mail/outbox", d.listMail(mailOutbox))
	d.on("GET", "/mail/messages/:emailId", d.showMail)
	d.on("GET", "/mail/messages/:emailId/source", d.downloadMail)
	d.may(store.ManageMail, "POST", "/mail/messages/:emailId/release", button(d.releaseMail))
	d.may(store.ManageMail, "POST", "/mail/messages/:emailId/retry", button(d.retryMail))
}

// The addresses of the lists of mail.
const (
	mailAll    = "/mail"
	mailHeld   = "/mail/held"
	mailOutbox = "/mail/outbox"
)

// mailOnPage is the number of mails on a page of a list.
const mailOnPage = 50

// A mailList is the data of a list of mail.
type mailList struct {
	Path     string
	Form     *form // the filter
	Statuses []option
	Emails   []mailRow
	Filtered bool
	Later    bool   // this is not the first page
	Next     string // address of the next page; "" after the last
	Address  string // mail address of a worker, as an example
	Worker   bool   // Address belongs to a real worker
	Server   string // address of the SMTP listener; "" without one
}

// A mailRow is a mail for a page.
type mailRow struct {
	store.Email
	r *request
}

// Outbound reports whether the mail is a reply of a worker.
func (m mailRow) Outbound() bool { return m.Direction == store.Outbound }

// Peer returns the sender of a mail, or the recipient of a reply.
func (m mailRow) Peer() string {
	if m.Outbound() {
		return brief(m.To)
	}
	return brief(cmp.Or(m.From, m.MailFrom, m.r.t("nobody")))
}

// Kept reports whether the reply stays in the outbox, because the server had no relay.
func (m mailRow) Kept() bool { return m.Status == store.EmailKept }

// Why returns the beginning of the reason for the status.
func (m mailRow) Why() string {
	if m.Kept() {
		return m.r.t("the server had no relay")
	}
	return brief(m.Reason)
}

// inList is the room for a text in a list, in bytes of HTML.
const inList = 200

// brief returns a text for a list: truncated, with an ellipsis, if it is long.
func brief(text string) string {
	e := show.ExcerptOf(text, inList)
	if e.Cut {
		return e.Text + "…"
	}
	return text
}

// Title returns the subject, or a note that there is none.
func (m mailRow) Title() string {
	switch {
	case strings.TrimSpace(m.Subject) != "":
		return brief(m.Subject)
	case m.Outbound() && m.Size == 0:
		return m.r.t("(not written yet)")
	}
	return m.r.t("(no subject)")
}

// mailStatuses returns the choices of the status filter. The outbox holds replies only.
func mailStatuses(r *request, path string) []option {
	list := []store.EmailStatus{store.EmailQueued, store.EmailSent, store.EmailKept, store.EmailFailed,
		store.EmailBounced}
	if path != mailOutbox {
		list = append([]store.EmailStatus{store.EmailAccepted, store.EmailHeld, store.EmailIgnored}, list...)
	}
	options := []option{{"", r.t("Any")}}
	for _, status := range list {
		options = append(options, option{string(status), r.t(show.StateOf(string(status)).Key)})
	}
	return options
}

// listMail returns the handle of the list at path.
func (d *Dashboard) listMail(path string) handle {
	return func(w http.ResponseWriter, r *request) error {
		v := r.URL.Query()
		set := filters(v, "status", "workerId")
		q := store.EmailQuery{Status: store.EmailStatus(v.Get("status")), WorkerID: v.Get("workerId"),
			Cursor: v.Get("cursor"), Limit: mailOnPage}
		p := mailList{Path: path, Form: formOf(v), Statuses: mailStatuses(r, path), Filtered: len(set) > 0,
			Later: q.Cursor != "", Server: d.cfg.MailAddr}
		switch path {
		case mailHeld:
			q.Status = store.EmailHeld
		case mailOutbox:
			q.Direction = store.Outbound
		}
		list, next, err := d.store.Emails(r.Context(), r.who.Caller, q)
		status, err := p.Form.listStatus(r, err)
		if err != nil {
			return err
		}
		for _, e := range list {
			p.Emails = append(p.Emails, mailRow{e, r})
		}
		p.Next = listPage(path, set, next)
		// An empty list shows an address to which the user can write.
		if len(list) == 0 {
			if err := d.addressForMail(r, &p); err != nil {
				return err
			}
		}
		return d.render(w, r, status, "mail.html", r.t("Mail"), p)
	}
}

// addressForMail puts the mail address of a worker into p as an example.
func (d *Dashboard) addressForMail(r *request, p *mailList) error {
	workers, _, err := d.store.Workers(r.Context(), r.who.Caller, store.WorkerQuery{Origin: store.CreatedOrigin, Limit: 1})
	p.Address = "WORKER_ID@" + d.cfg.MailDomain
	if len(workers) > 0 {
		p.Address, p.Worker = workers[0].ID+"@"+d.cfg.MailDomain, true
	}
	return err
}

// A mailPage is the data of the page of a mail.
type mailPage struct {
	mailRow
	Full        show.Excerpt // of the subject
	Header      show.Excerpt
	Text        show.Excerpt
	Attachments []string
	Verdicts    []option
	HasSource   bool
	Worker      store.Worker
	Releasable  bool // a user can release it, so that it starts work
	Relay       bool // the server has a relay now, for a kept reply
}

// Retryable reports whether the reply can be sent again. Without a relay, a kept reply would only be
// kept again.
func (p mailPage) Retryable() bool {
	return p.Outbound() && p.Status != store.EmailSent && (p.Relay || !p.Kept())
}

// The room for the parts of a mail on its page, in bytes of HTML. The source has the rest.
const (
	maxShownSubject = 5 << 10
	maxShownHeader  = 8 << 10
	maxShownMail    = 16 << 10
	maxAttachments  = 50
)

// mail returns the mail that the address names, and its source. source is nil if the mail is not
// written yet or its source is no longer stored.
func (d *Dashboard) mail(r *request) (e store.Email, source []byte, err error) {
	e, err = d.store.Email(r.Context(), r.who.Caller, r.params.ByName("emailId"))
	if err == nil {
		source, err = d.store.EmailSource(r.Context(), e)
	}
	return e, source, err
}

func (d *Dashboard) showMail(w http.ResponseWriter, r *request) error {
	e, source, err := d.mail(r)
	if err != nil {
		return err
	}
	p := mailPage{mailRow: mailRow{e, r}, Full: show.ExcerptOf(e.Subject, maxShownSubject), HasSource: source != nil,
		Verdicts: verdictsOf(r, e.Verdicts)}
	p.Relay = p.Kept() && d.cfg.System().Relay // only where it matters: the first call may take long
	// The mail of a deleted worker stays readable.
	if p.Worker, err = d.store.Worker(r.Context(), r.who.Caller, e.WorkerID); err != nil && !store.IsNotFound(err) {
		return err
	}
	// The store decides, so that the page offers no useless button: mail for the postmaster starts
	// no work.
	_, err = d.store.Releasable(r.Context(), r.who.Caller, e.ID)
	p.Releasable = err == nil && source != nil && p.Worker.ID != ""
	if source != nil {
		text, attachments := d.cfg.ReadMail(sandbox.ForClient(r.Context(), clientOf(r.who.Caller)), source)
		p.Text = show.ExcerptOf(strings.ToValidUTF8(text, "\uFFFD"), maxShownMail)
		for _, name := range attachments[:min(len(attachments), maxAttachments)] {
			p.Attachments = append(p.Attachments, brief(strings.ToValidUTF8(name, "\uFFFD")))
		}
		p.Header = show.ExcerptOf(strings.ToValidUTF8(headerOf(source), "\uFFFD"), maxShownHeader)
	}
	return d.page(w, r, "message.html", p.Title(), p)
}

// headerOf returns the header of a mail's source, unchanged.
func headerOf(raw []byte) string {
	// The blank line after the header may have the line ends of SMTP or of Unix.
	end := len(raw)
	for _, blank := range []string{"\r\n\r\n", "\n\n"} {
		if at := bytes.Index(raw, []byte(blank)); at >= 0 {
			end = min(end, at)
		}
	}
	return string(raw[:end])
}

// A verdict is the result of one check of a mail's sender.
type verdict struct{ Result, Domain, Policy, Reason string }

// words returns the verdict as text.
func (v verdict) words(r *request) string {
	result := cmp.Or(v.Result, r.t("none"))
	switch {
	case v.Domain != "" && v.Policy != "":
		result = r.t("%s for %s, whose policy is %s", result, v.Domain, v.Policy)
	case v.Domain != "":
		result = r.t("%s for %s", result, v.Domain)
	}
	if v.Reason != "" {
		result += ": " + v.Reason
	}
	return result
}

// verdictsOf returns the results of the checks of a mail's sender, as text.
func verdictsOf(r *request, raw json.RawMessage) (list []option) {
	var v struct {
		SPF, DMARC                verdict
		DKIM                      []verdict
		Authenticated, Local, Key bool
		Relay                     string
	}
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return nil
	}
	sender := r.t("Sender")
	switch {
	case v.Local:
		return []option{{sender, r.t("submitted on this machine or through the API: not verified")}}
	case v.Key:
		return []option{{sender, r.t("verified by the API key that posted the mail")}}
	}
	verified := r.t("not verified")
	if v.Authenticated {
		verified = r.t("verified by its domain")
	}
	if v.Relay != "" {
		verified += r.t(", as checked by %s", v.Relay)
	}
	list = []option{{sender, verified}, {"SPF", v.SPF.words(r)}}
	for _, signature := range v.DKIM {
		list = append(list, option{"DKIM", signature.words(r)})
	}
	return append(list, option{"DMARC", v.DMARC.words(r)})
}

// downloadMail sends the source of a mail as a file. A browser must not show it as a page
// of this server.
func (d *Dashboard) downloadMail(w http.ResponseWriter, r *request) error {
	e, source, err := d.mail(r)
	if err != nil {
		return err
	}
	if source == nil {
		return store.Errorf(store.NotFound, "the mail is not written yet, or its source was deleted because of its age")
	}
	w.Header().Set("Content-Type", "message/rfc822")
	w.Header().Set("Content-Disposition", `attachment; filename="`+e.ID+`.eml"`)
	_, _ = w.Write(source) // the browser may have disconnected
	return nil
}

func (d *Dashboard) releaseMail(r *request) (string, error) {
	e, err := d.cfg.Inbox.Release(r.Context(), r.who.Caller, r.params.ByName("emailId"))
	return done("/mail/messages/"+e.ID, "mail-released"), err
}

func (d *Dashboard) retryMail(r *request) (string, error) {
	e, err := d.store.SendAgain(r.Context(), r.who.Caller, r.params.ByName("emailId"))
	return done("/mail/messages/"+e.ID, "mail-retried"), err
}
