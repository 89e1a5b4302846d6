package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"journeyman/runner/share"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
)

// This file exports the functions that the dashboard shares with the API. The same code, with the
// same limits, reads the forms of pages and the requests of clients.

// A PageForm is a multipart form that a page has sent.
type PageForm struct {
	Values  url.Values   // with the line ends of Unix
	Files   []store.File // kept, not yet in a workspace
	Content []byte       // equal for forms that hold the same
}

// LinkAddress returns the URL of a link with a token.
func LinkAddress(baseURL string, kind people.LinkKind, token string) string {
	return baseURL + "/" + string(kind) + "/" + token
}

// HoldPage counts a request for a page among the concurrent requests, until release is called. It
// returns the errors of share.Shares.Take.
func (a *API) HoldPage(who people.Identity) (release func(), err error) {
	return a.shares.requests.Take(holderOf(who))
}

// HoldDelivery counts a webhook delivery that a user asked for, until release is called. It counts
// nothing if a request with that key was carried out before, because then nothing is sent.
func (a *API) HoldDelivery(ctx context.Context, who people.Identity, key db.IdempotencyKey) (
	release func(), err error) {
	if done, err := a.store.Replay(ctx, key); err != nil || done != "" {
		return func() {}, err
	}
	return a.shares.sends.Take(holderOf(who))
}

// HoldPassword counts the hashing of a password, which takes memory and time, until release
// is called. userID and organizationID are "" if nobody has signed in yet.
func (a *API) HoldPassword(addr, userID, organizationID string) (release func(), err error) {
	return a.shares.passwords.Take(share.Holder{Key: userID, Address: addr, Organization: organizationID})
}

// ReadPageForm reads a form with files. It returns a db.Error for a form that breaks the
// limits of uploads or breaks off. The form then holds the fields before the fault, and is never nil.
func (a *API) ReadPageForm(w http.ResponseWriter, r *http.Request, who people.Identity) (*PageForm, error) {
	b, refusal := a.readForm(w, &request{Request: r, who: who, readIn: a.cfg.Timing.ReadIn, bodies: a.shares.uploads})
	f := &PageForm{Values: url.Values{}}
	if b == nil {
		return f, refusal
	}
	var err error
	f.Files = b.files
	if f.Content, err = b.Canonical(); err != nil {
		return f, err
	}
	for name, raw := range b.fields {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return f, fmt.Errorf("read form: %w", err)
		}
		f.Values.Set(name, strings.ReplaceAll(text, "\r\n", "\n")) // browsers send CRLF
	}
	return f, refusal
}

// StreamChanges streams the kinds of records of the caller's organization that have changed since a
// position of stream.Hub.ChangesNow. A browser that reconnects sends its position in the header
// Last-Event-ID. The stream ends when may returns an error, so may must look up the session each
// time. It returns the errors of share.Shares.Take.
func (a *API) StreamChanges(w http.ResponseWriter, r *http.Request, who people.Identity, since string,
	may func(context.Context) error) error {
	since = cmp.Or(r.Header.Get("Last-Event-ID"), since)
	return a.serveEvents(w, r, who, a.runner.Streams.Changes(who.OrganizationID, since), since, may)
}

// OpenStreams returns the number of open event streams.
func (a *API) OpenStreams() int64 { return a.shares.streams.Total() }
