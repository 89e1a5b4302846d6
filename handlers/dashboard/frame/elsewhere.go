package frame

import (
	"cmp"
	"net/http"
	"slices"

	"journeyman/handlers"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
)

// An elsewherePage offers to switch to the organization that has a record.
type elsewherePage struct {
	Organizations []people.Organization
	Next          string // the address of the page
}

// orElsewhere returns the handle of a page. If another organization of the user has the task, worker
// or mail of the page, and the current one does not, the page offers to switch. Two organizations may
// have a task of the same id, and each has its own lists: then the link names the organization.
func (fr *Frame) orElsewhere(page Handle) Handle {
	return func(w http.ResponseWriter, r *Request) error {
		named := r.URL.Query().Get("organization")
		if named == r.Who.OrganizationID {
			named = ""
		}
		var refused error
		if named == "" {
			refused = page(w, r)
			if !db.IsKind(refused, db.NotFound) && !db.IsKind(refused, db.Forbidden) ||
				!handlers.WantsHTML(r.Request) { // a script of a page fetches a text or a stream
				return refused
			}
		}
		record := store.Record{TaskID: r.Params.ByName("taskId"), WorkerID: r.Params.ByName("workerId"),
			EmailID: r.Params.ByName("emailId")}
		if named == "" && record == (store.Record{}) {
			return refused
		}
		list, err := fr.Store.Elsewhere(r.Context(), r.Who.Caller, record)
		if err != nil {
			return cmp.Or(refused, err)
		}
		if named != "" {
			list = slices.DeleteFunc(list, func(o people.Organization) bool { return o.ID != named })
		}
		switch {
		case len(list) > 0:
			return fr.Page(w, r, "elsewhere.html", r.T("Another organization"), elsewherePage{list, withoutNamed(r)})
		case refused != nil:
			return refused
		}
		// The user is not a member of the named organization: the page ignores the name.
		return page(w, r)
	}
}

// withoutNamed returns the address of the request without the name of an organization.
func withoutNamed(r *Request) string {
	to := *r.URL
	q := to.Query()
	q.Del("organization")
	to.RawQuery = q.Encode()
	return to.RequestURI()
}
