package dashboard

import (
	"context"
	"net/http"

	"journeyman/store"
)

// streamEvents sends a page the kinds of records that have changed, so that the page can reload
// itself. The stream ends with the session, and when the user switches to another organization.
func (fr *frame) streamEvents(w http.ResponseWriter, r *request) error {
	r.release() // an open stream does not count as a concurrent request: streams have their own limits
	return fr.cfg.API.StreamChanges(w, r.Request, r.who, r.URL.Query().Get("since"), func(ctx context.Context) error {
		_, err := fr.sameSession(ctx, r)
		return err
	})
}

// sameSession returns the user of a request with the present rights. It returns an error if the browser has
// signed out meanwhile, or has another session.
func (fr *frame) sameSession(ctx context.Context, r *request) (store.Identity, error) {
	again := &request{Request: r.WithContext(ctx)}
	err := fr.identify(again)
	if err == nil && (again.who.UserID != r.who.UserID || again.who.OrganizationID != r.who.OrganizationID) {
		err = errOtherSession
	}
	return again.who, err
}

// errOtherSession ends the stream of a browser that has signed out, or has another session.
var errOtherSession = store.Errorf(store.Unauthorized, "the session is no longer the one that opened the stream")
