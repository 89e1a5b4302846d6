package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"journeyman/runner"
	"journeyman/store"
)

// An Inbox takes mail in. It checks senders and recipients by the rules of mail
// that comes over SMTP.
type Inbox interface {
	// Receive takes a mail in for the caller's workers. from and to are its
	// envelope; without them its header counts.
	Receive(ctx context.Context, c store.Caller, from string, to []string, raw []byte) ([]store.Email, error)
	// Release has a mail start work that was held or ignored; only an Admin may.
	Release(ctx context.Context, c store.Caller, id string) (store.Email, error)
}

type emailView struct {
	ID          string            `json:"id"`
	Direction   string            `json:"direction"`
	WorkerID    *string           `json:"workerId"`
	TaskID      *string           `json:"taskId"`
	TurnID      *string           `json:"turnId"`
	Status      store.EmailStatus `json:"status"`
	Reason      *string           `json:"reason"`
	MessageID   string            `json:"messageId"`
	MailFrom    *string           `json:"mailFrom"`
	From        *string           `json:"from"`
	To          string            `json:"to"`
	Subject     string            `json:"subject"`
	Verdicts    json.RawMessage   `json:"verdicts"`
	RemoteAddr  *string           `json:"remoteAddr"`
	Size        int64             `json:"size"`
	Attempts    int64             `json:"attempts"`
	CreatedAt   string            `json:"createdAt"`
	NextAttempt *string           `json:"nextAttemptAt"`
	SentAt      *string           `json:"sentAt"`
}

func (a *API) emailView(e store.Email) emailView {
	v := emailView{ID: e.ID, Direction: e.Direction, WorkerID: optional(e.WorkerID), TaskID: optional(e.TaskID), TurnID: optional(e.TurnID),
		Status: e.Status, Reason: optional(e.Reason), MessageID: e.MessageID, MailFrom: optional(e.MailFrom), From: optional(e.From),
		To: e.To, Subject: e.Subject, Verdicts: e.Verdicts, RemoteAddr: optional(e.RemoteAddr), Size: e.Size, Attempts: e.Attempts,
		CreatedAt: runner.Timestamp(e.CreatedAt), NextAttempt: optionalTime(e.NextAttempt), SentAt: optionalTime(e.SentAt)}
	if e.Direction == store.Outbound {
		address := e.WorkerID + "@" + a.cfg.MailDomain
		v.MessageID += "@" + a.cfg.MailDomain
		v.MailFrom, v.From = &address, &address
	}
	return v
}

// receiveEmail takes in a mail that a relay posts, or a developer: the body is the
// mail itself.
func (a *API) receiveEmail(w http.ResponseWriter, r *request) error {
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); strings.HasPrefix(kind, "multipart/") || kind == "application/json" {
		return &problem{Status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type",
			Message: "the body must be the mail itself, as message/rfc822"}
	}
	query, err := parseQuery(r)
	if err != nil {
		return err
	}
	raw, err := io.ReadAll(newPatientReader(w, r, a.cfg.Uploads.RequestSize))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return store.Errorf(store.TooLarge, "a request has at most %d bytes", a.cfg.Uploads.RequestSize)
	case err != nil:
		return store.Errorf(store.Invalid, "the body broke off")
	case len(raw) == 0:
		return store.Errorf(store.Invalid, "the body is empty: send the mail itself")
	}
	emails, err := a.emailsOnce(w, r, append(raw, query.Encode()...), func(ctx context.Context) ([]store.Email, error) {
		return a.cfg.Inbox.Receive(ctx, r.who.Caller, query.Get("from"), query["to"], raw)
	})
	if err != nil {
		return err
	}
	return respond(w, http.StatusOK, map[string]any{"items": a.emailViews(emails)})
}

// emailsOnce gives what do gives, or what it gave to the same request before. If the
// process dies in between, the mail itself is known: doing it again makes nothing
// new.
func (a *API) emailsOnce(w http.ResponseWriter, r *request, content []byte, do func(context.Context) ([]store.Email, error)) ([]store.Email, error) {
	o, err := once(r, content)
	if err != nil {
		return nil, err
	}
	if o.Key == "" {
		o = store.Once{}
	}
	done, err := a.store.Replay(r.Context(), o)
	if err != nil {
		return nil, err
	}
	markReplay(w, done != "")
	var emails []store.Email
	for _, id := range strings.Fields(done) {
		e, err := a.store.Email(r.Context(), r.who.Caller, id)
		if err != nil {
			return nil, err
		}
		emails = append(emails, e)
	}
	if done != "" {
		return emails, nil
	}
	if emails, err = do(r.Context()); err != nil {
		return nil, err
	}
	ids := make([]string, len(emails))
	for i, e := range emails {
		ids[i] = e.ID
	}
	return emails, a.store.Remember(r.Context(), o, strings.Join(ids, " "))
}

func (a *API) emailViews(emails []store.Email) []emailView {
	views := make([]emailView, 0, len(emails))
	for _, e := range emails {
		views = append(views, a.emailView(e))
	}
	return views
}

func (a *API) listEmails(w http.ResponseWriter, r *request) error {
	v, err := parseQuery(r)
	if err != nil {
		return err
	}
	var f store.Fields
	q := store.EmailQuery{Direction: v.Get("direction"), Status: store.EmailStatus(v.Get("status")), WorkerID: v.Get("workerId"),
		Cursor: v.Get("cursor"), Limit: pageLimit(&f, v)}
	q.Check(&f)
	if err := f.Err(); err != nil {
		return err
	}
	emails, next, err := a.store.Emails(r.Context(), r.who.Caller, q)
	if err != nil {
		return err
	}
	return respond(w, http.StatusOK, page[emailView]{Items: a.emailViews(emails), NextCursor: optional(next)})
}

// maxShownSource is how much of a mail's source is shown in JSON, in bytes.
const maxShownSource = 1 << 20

// getEmailByID gives a mail with its source, or the source alone, byte for byte.
func (a *API) getEmailByID(w http.ResponseWriter, r *request) error {
	e, err := a.store.Email(r.Context(), r.who.Caller, r.params.ByName("emailId"))
	if err != nil {
		return err
	}
	raw, err := a.store.EmailSource(r.Context(), e)
	if err != nil {
		return err
	}
	if strings.Contains(r.Header.Get("Accept"), "message/rfc822") {
		if raw == nil {
			return store.Errorf(store.NotFound, "the mail is not composed yet, or older than the sources of mail are kept")
		}
		w.Header().Set("Content-Type", "message/rfc822")
		_, _ = w.Write(raw) // the client may have gone
		return nil
	}
	text, cut := shownSource(raw)
	return respond(w, http.StatusOK, struct {
		emailView
		Raw          *string `json:"raw"`
		RawTruncated bool    `json:"rawTruncated"`
	}{a.emailView(e), text, cut})
}

// shownSource is the beginning of a source as text.
func shownSource(raw []byte) (*string, bool) {
	if raw == nil {
		return nil, false
	}
	cut := len(raw) > maxShownSource
	if cut {
		raw = raw[:maxShownSource]
		for len(raw) > 0 && !utf8.RuneStart(raw[len(raw)-1]) {
			raw = raw[:len(raw)-1]
		}
	}
	text := strings.ToValidUTF8(string(raw), "\uFFFD")
	return &text, cut
}

// releaseEmail has a mail start work that was held or ignored.
func (a *API) releaseEmail(w http.ResponseWriter, r *request) error {
	emails, err := a.emailsOnce(w, r, nil, func(ctx context.Context) ([]store.Email, error) {
		e, err := a.cfg.Inbox.Release(ctx, r.who.Caller, r.params.ByName("emailId"))
		return []store.Email{e}, err
	})
	if err != nil {
		return err
	}
	return respond(w, http.StatusOK, a.emailView(emails[0]))
}
