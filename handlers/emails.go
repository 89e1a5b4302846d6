package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"unicode/utf8"

	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
)

// An emailView is a mail as the API shows it, received or to be sent.
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
	v := emailView{ID: e.ID, Direction: e.Direction, WorkerID: view.Optional(e.WorkerID),
		TaskID: view.Optional(e.TaskID), TurnID: view.Optional(e.TurnID), Status: e.Status,
		Reason: view.Optional(e.Reason), MessageID: e.MessageID, MailFrom: view.Optional(e.MailFrom),
		From: view.Optional(e.From), To: e.To, Subject: e.Subject, Verdicts: e.Verdicts,
		RemoteAddr: view.Optional(e.RemoteAddr), Size: e.Size, Attempts: e.Attempts,
		CreatedAt: view.Timestamp(e.CreatedAt), NextAttempt: view.OptionalTime(e.NextAttempt),
		SentAt: view.OptionalTime(e.SentAt)}
	if e.Direction == store.Outbound { // the store has no mail domain
		address := cmp.Or(e.WorkerID, "postmaster") + "@" + a.cfg.MailDomain // alerts come from no worker
		v.MessageID += "@" + a.cfg.MailDomain
		v.MailFrom, v.From = &address, &address
	}
	return v
}

// receiveEmail receives a mail that a relay or a developer posts. The body is the mail
// itself.
func (a *API) receiveEmail(w http.ResponseWriter, r *request) error {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if strings.HasPrefix(kind, "multipart/") || kind == "application/json" {
		return &Problem{Status: http.StatusUnsupportedMediaType, Code: codeMediaType,
			Message: "the body must be the mail itself, as message/rfc822"}
	}
	raw, done, err := readAll(w, r, "a request", a.cfg.Uploads.RequestSize)
	if err != nil {
		return err
	}
	defer done() // the mail is in memory until it is stored
	if len(raw) == 0 {
		return db.Errorf(db.Invalid, "the body is empty: send the mail itself")
	}
	emails, err := a.emailsOnce(w, r, append(raw, r.query.Encode()...), func(ctx context.Context) ([]store.Email, error) {
		return a.cfg.Inbox.Receive(ctx, r.who, r.query.Get("from"), r.query["to"], raw)
	})
	return respondOK(w, map[string]any{"items": each(emails, a.emailView)}, err)
}

// emailsOnce calls do and returns its mails. For a repeated request, it returns the mails of the
// first request instead. If the process dies before Remember, the repetition creates nothing: the
// store recognizes the mail itself.
func (a *API) emailsOnce(w http.ResponseWriter, r *request, content []byte,
	do func(context.Context) ([]store.Email, error)) ([]store.Email, error) {
	key, err := namedKey(r, content)
	if err != nil {
		return nil, err
	}
	done, err := a.store.Replay(r.Context(), key)
	if err != nil {
		return nil, err
	}
	markReplay(w, done != "")
	var emails []store.Email
	// Read with the caller's rights, which may have changed since.
	for _, id := range strings.Fields(done) {
		e, err := a.store.Effects.Email(r.Context(), r.who.Caller, id)
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
	return emails, a.store.Remember(r.Context(), key, strings.Join(ids, " "))
}

func (a *API) listEmails(w http.ResponseWriter, r *request) error {
	var f db.Fields
	q := store.EmailQuery{Direction: r.query.Get("direction"), Status: store.EmailStatus(r.query.Get("status")),
		WorkerID: r.query.Get("workerId"), Cursor: r.query.Get("cursor"), Limit: pageLimit(&f, r.query)}
	if q.Check(&f); f.Err() != nil {
		return f.Err()
	}
	emails, next, err := a.store.Effects.Emails(r.Context(), r.who.Caller, q)
	return respondPage(w, emails, next, a.emailView, err)
}

// maxShownSource bounds the source of a mail in JSON, in bytes.
const maxShownSource = 1 << 20

// getEmailByID writes a mail with its source, or the unchanged source alone.
func (a *API) getEmailByID(w http.ResponseWriter, r *request) error {
	e, err := a.store.Effects.Email(r.Context(), r.who.Caller, r.param("emailId"))
	if err != nil {
		return err
	}
	raw, err := a.store.Effects.EmailSource(r.Context(), e)
	if err != nil {
		return err
	}
	if preferred(r.Request, "application/json", "message/rfc822") == "message/rfc822" {
		if raw == nil {
			return db.Errorf(db.NotFound,
				"the mail is not composed yet, or its source was deleted because of its age")
		}
		return respondBytes(w, "message/rfc822", raw)
	}
	text, cut := shownSource(raw)
	return respond(w, http.StatusOK, struct {
		emailView
		Raw          *string `json:"raw"`
		RawTruncated bool    `json:"rawTruncated"`
	}{a.emailView(e), text, cut})
}

// shownSource returns the first maxShownSource bytes of a mail as text, and reports whether the
// mail is longer. The text is nil if the source is no longer stored.
func shownSource(raw []byte) (*string, bool) {
	if raw == nil {
		return nil, false
	}
	cut := len(raw) > maxShownSource
	if cut {
		raw = raw[:maxShownSource]
		// The cut may be inside the last character, so its bytes after the first are dropped.
		// ToValidUTF8 then replaces the first one.
		for len(raw) > 0 && !utf8.RuneStart(raw[len(raw)-1]) {
			raw = raw[:len(raw)-1]
		}
	}
	text := strings.ToValidUTF8(string(raw), "\uFFFD")
	return &text, cut
}

// releaseEmail starts the turn of a mail that was held or ignored.
func (a *API) releaseEmail(w http.ResponseWriter, r *request) error {
	emails, err := a.emailsOnce(w, r, nil, func(ctx context.Context) ([]store.Email, error) {
		e, err := a.cfg.Inbox.Release(ctx, r.who.Caller, r.param("emailId"))
		return []store.Email{e}, err
	})
	if err != nil {
		return err // there is no mail to show
	}
	return respond(w, http.StatusOK, a.emailView(emails[0]))
}
