package dashboard

import (
	"context"
	"net/http"

	"journeyman/store"
)

// streamEvents reports to a page which kinds of records change, so that the page can load
// itself again. The stream ends with the session, and when the user switches to another
// organization.
func (d *Dashboard) streamEvents(w http.ResponseWriter, r *request) error {
	r.release() // an open stream is no request under way: streams have limits of their own
	return d.cfg.API.StreamChanges(w, r.Request, r.who, r.URL.Query().Get("since"), func(ctx context.Context) error {
		again := &request{Request: r.WithContext(ctx)}
		err := d.identify(again)
		if err == nil && (again.who.UserID != r.who.UserID || again.who.OrganizationID != r.who.OrganizationID) {
			err = errOtherSession
		}
		return err
	})
}

// errOtherSession ends a stream whose browser is signed out, or signed in otherwise.
var errOtherSession = store.Errorf(store.Unauthorized, "the session is no longer the one that opened the stream")
