package lists

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/show"
	"journeyman/runner/sandbox"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// mailRoutes registers the pages of mail.
func (d *Pages) mailRoutes() {
	d.On("GET", "/mail", d.listMail(mailAll))
	d.On("GET", "/mail/held", d.listMail(mailHeld))
	d.On("GET", "/mail/outbox", d.listMail(mailOutbox))
	d.On("GET", "/mail/messages/:emailId", d.showMail)
	d.On("GET", "/mail/messages/:emailId/source", d.downloadMail)
	d.May(people.ManageMail, "POST", "/mail/messages/:emailId/release", frame.Button(d.releaseMail))
	d.May(people.ManageMail, "POST", "/mail/messages/:emailId/retry", frame.Button(d.retryMail))
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
	Form     *frame.Form // the filter
	Statuses []frame.Option
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
	r *frame.Request
}

// Outbound reports whether the mail is a reply of a worker.
func (m mailRow) Outbound() bool { return m.Direction == store.Outbound }

// Peer returns the sender of a mail, or the recipient of a reply.
func (m mailRow) Peer() string {
	if m.Outbound() {
		return show.Brief(m.To)
	}
	return show.Brief(cmp.Or(m.From, m.MailFrom, m.r.T("nobody")))
}

// Kept reports whether the reply stays in the outbox, because the server had no relay.
func (m mailRow) Kept() bool { return m.Status == store.EmailKept }

// Why returns the beginning of the reason for the status.
func (m mailRow) Why() string {
	if m.Kept() {
		return m.r.T("the server had no relay")
	}
	return show.Brief(m.Reason)
}

// Title returns the subject, or a note that there is none.
func (m mailRow) Title() string {
	switch {
	case strings.TrimSpace(m.Subject) != "":
		return show.Brief(m.Subject)
	case m.Outbound() && m.Size == 0:
		return m.r.T("(not written yet)")
	}
	return m.r.T("(no subject)")
}

// mailStatuses returns the choices of the status filter. The outbox holds replies only.
func mailStatuses(r *frame.Request, path string) []frame.Option {
	list := []store.EmailStatus{store.EmailQueued, store.EmailSent, store.EmailKept, store.EmailFailed,
		store.EmailBounced}
	if path != mailOutbox {
		list = append([]store.EmailStatus{store.EmailAccepted, store.EmailHeld, store.EmailIgnored}, list...)
	}
	options := []frame.Option{{Value: "", Label: r.T("Any")}}
	for _, status := range list {
		options = append(options, frame.Option{Value: string(status), Label: r.T(show.StateOf(string(status)).Key)})
	}
	return options
}

// listMail returns the handle of the list at path.
func (d *Pages) listMail(path string) frame.Handle {
	return func(w http.ResponseWriter, r *frame.Request) error {
		v := r.URL.Query()
		set := frame.Filters(v, "status", "workerId")
		q := store.EmailQuery{Status: store.EmailStatus(v.Get("status")), WorkerID: v.Get("workerId"),
			Cursor: v.Get("cursor"), Limit: mailOnPage}
		p := mailList{Path: path, Form: frame.FormOf(v), Statuses: mailStatuses(r, path), Filtered: len(set) > 0,
			Later: q.Cursor != "", Server: d.cfg.MailAddr}
		switch path {
		case mailHeld:
			q.Status = store.EmailHeld
		case mailOutbox:
			q.Direction = store.Outbound
		}
		list, next, err := d.Store.Effects.Emails(r.Context(), r.Who.Caller, q)
		status, err := p.Form.ListStatus(r, err)
		if err != nil {
			return err
		}
		for _, e := range list {
			p.Emails = append(p.Emails, mailRow{e, r})
		}
		p.Next = frame.ListPage(path, set, next)
		// An empty list shows an address to which the user can write.
		if len(list) == 0 {
			if err := d.addressForMail(r, &p); err != nil {
				return err
			}
		}
		return d.Render(w, r, status, "mail.html", r.T("Mail"), p)
	}
}

// addressForMail puts the mail address of a worker into p as an example.
func (d *Pages) addressForMail(r *frame.Request, p *mailList) error {
	workers, _, err := d.Store.Workers.List(r.Context(), r.Who.Caller, workers.Query{Origin: workers.CreatedOrigin,
		Limit: 1})
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
	Verdicts    []frame.Option
	HasSource   bool
	Worker      workers.Worker
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
func (d *Pages) mail(r *frame.Request) (e store.Email, source []byte, err error) {
	e, err = d.Store.Effects.Email(r.Context(), r.Who.Caller, r.Params.ByName("emailId"))
	if err == nil {
		source, err = d.Store.Effects.EmailSource(r.Context(), e)
	}
	return e, source, err
}

func (d *Pages) showMail(w http.ResponseWriter, r *frame.Request) error {
	e, source, err := d.mail(r)
	if err != nil {
		return err
	}
	p := mailPage{mailRow: mailRow{e, r}, Full: show.ExcerptOf(e.Subject, maxShownSubject), HasSource: source != nil,
		Verdicts: verdictsOf(r, e.Verdicts)}
	p.Relay = p.Kept() && d.cfg.Relay() // only where it matters: the first call may take long
	// The mail of a deleted worker stays readable.
	if p.Worker, err = d.Store.Workers.Worker(r.Context(), r.Who.Caller, e.WorkerID); err != nil && !db.IsNotFound(err) {
		return err
	}
	// The store decides, so that the page offers no useless button: mail for the postmaster starts
	// no work.
	_, err = d.Store.Releasable(r.Context(), r.Who.Caller, e.ID)
	p.Releasable = err == nil && source != nil && p.Worker.ID != ""
	if source != nil {
		text, attachments := d.cfg.ReadMail(sandbox.ForClient(r.Context(), frame.ClientOf(r.Who.Caller)), source)
		p.Text = show.ExcerptOf(strings.ToValidUTF8(text, "\uFFFD"), maxShownMail)
		for _, name := range attachments[:min(len(attachments), maxAttachments)] {
			p.Attachments = append(p.Attachments, show.Brief(strings.ToValidUTF8(name, "\uFFFD")))
		}
		p.Header = show.ExcerptOf(strings.ToValidUTF8(headerOf(source), "\uFFFD"), maxShownHeader)
	}
	return d.Page(w, r, "message.html", p.Title(), p)
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
func (v verdict) words(r *frame.Request) string {
	result := cmp.Or(v.Result, r.T("none"))
	switch {
	case v.Domain != "" && v.Policy != "":
		result = r.T("%s for %s, whose policy is %s", result, v.Domain, v.Policy)
	case v.Domain != "":
		result = r.T("%s for %s", result, v.Domain)
	}
	if v.Reason != "" {
		result += ": " + v.Reason
	}
	return result
}

// verdictsOf returns the results of the checks of a mail's sender, as text.
func verdictsOf(r *frame.Request, raw json.RawMessage) (list []frame.Option) {
	var v struct {
		SPF, DMARC                verdict
		DKIM                      []verdict
		Authenticated, Local, Key bool
		Relay                     string
	}
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return nil
	}
	sender := r.T("Sender")
	switch {
	case v.Local:
		return []frame.Option{{Value: sender, Label: r.T("submitted on this machine or through the API: not verified")}}
	case v.Key:
		return []frame.Option{{Value: sender, Label: r.T("verified by the API key that posted the mail")}}
	}
	verified := r.T("not verified")
	if v.Authenticated {
		verified = r.T("verified by its domain")
	}
	if v.Relay != "" {
		verified += r.T(", as checked by %s", v.Relay)
	}
	list = []frame.Option{{Value: sender, Label: verified}, {Value: "SPF", Label: v.SPF.words(r)}}
	for _, signature := range v.DKIM {
		list = append(list, frame.Option{Value: "DKIM", Label: signature.words(r)})
	}
	return append(list, frame.Option{Value: "DMARC", Label: v.DMARC.words(r)})
}

// downloadMail sends the source of a mail as a file. A browser must not show it as a page
// of this server.
func (d *Pages) downloadMail(w http.ResponseWriter, r *frame.Request) error {
	e, source, err := d.mail(r)
	if err != nil {
		return err
	}
	if source == nil {
		return db.Errorf(db.NotFound, "the mail is not written yet, or its source was deleted because of its age")
	}
	w.Header().Set("Content-Type", "message/rfc822")
	w.Header().Set("Content-Disposition", `attachment; filename="`+e.ID+`.eml"`)
	_, _ = w.Write(source) // the browser may have disconnected
	return nil
}

func (d *Pages) releaseMail(r *frame.Request) (string, error) {
	e, err := d.cfg.Inbox.Release(r.Context(), r.Who.Caller, r.Params.ByName("emailId"))
	return frame.Done("/mail/messages/"+e.ID, "mail-released"), err
}

func (d *Pages) retryMail(r *frame.Request) (string, error) {
	e, err := d.Store.Effects.SendAgain(r.Context(), r.Who.Caller, r.Params.ByName("emailId"))
	return frame.Done("/mail/messages/"+e.ID, "mail-retried"), err
}
