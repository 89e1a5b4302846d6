package frame

import (
	"context"
	"net/http"

	"journeyman/store/db"
	"journeyman/store/people"
)

// StreamEvents sends a page the kinds of records that have changed, so that the page can reload
// itself. The stream ends with the session, and when the user switches to another organization.
func (fr *Frame) StreamEvents(w http.ResponseWriter, r *Request) error {
	r.Release() // an open stream does not count as a concurrent request: streams have their own limits
	return fr.API.StreamChanges(w, r.Request, r.Who, r.URL.Query().Get("since"), func(ctx context.Context) error {
		_, err := fr.SameSession(ctx, r)
		return err
	})
}

// SameSession returns the user of a request with the present rights. It returns an error if the browser has
// signed out meanwhile, or has another session.
func (fr *Frame) SameSession(ctx context.Context, r *Request) (people.Identity, error) {
	again := &Request{Request: r.WithContext(ctx)}
	err := fr.identify(again)
	if err == nil && (again.Who.UserID != r.Who.UserID || again.Who.OrganizationID != r.Who.OrganizationID) {
		err = errOtherSession
	}
	return again.Who, err
}

// errOtherSession ends the stream of a browser that has signed out, or has another session.
var errOtherSession = db.Errorf(db.Unauthorized, "the session is no longer the one that opened the stream")
