package dashboard

import (
	"cmp"
	"net/http"
	"slices"

	"journeyman/handlers"
	"journeyman/store"
)

// An elsewherePage offers to switch to the organization that has a record.
type elsewherePage struct {
	Organizations []store.Organization
	Next          string // the address of the page
}

// orElsewhere returns the handle of a page. If another organization of the user has the task, worker
// or mail of the page, and the current one does not, the page offers to switch. Two organizations may
// have a task of the same id, and each has its own lists: then the link names the organization.
func (fr *frame) orElsewhere(page handle) handle {
	return func(w http.ResponseWriter, r *request) error {
		named := r.URL.Query().Get("organization")
		if named == r.who.OrganizationID {
			named = ""
		}
		var refused error
		if named == "" {
			refused = page(w, r)
			if !store.IsKind(refused, store.NotFound) && !store.IsKind(refused, store.Forbidden) ||
				!handlers.WantsHTML(r.Request) { // a script of a page fetches a text or a stream
				return refused
			}
		}
		record := store.Record{TaskID: r.params.ByName("taskId"), WorkerID: r.params.ByName("workerId"),
			EmailID: r.params.ByName("emailId")}
		if named == "" && record == (store.Record{}) {
			return refused
		}
		list, err := fr.store.Elsewhere(r.Context(), r.who.Caller, record)
		if err != nil {
			return cmp.Or(refused, err)
		}
		if named != "" {
			list = slices.DeleteFunc(list, func(o store.Organization) bool { return o.ID != named })
		}
		switch {
		case len(list) > 0:
			return fr.page(w, r, "elsewhere.html", r.t("Another organization"), elsewherePage{list, withoutNamed(r)})
		case refused != nil:
			return refused
		}
		// The user is not a member of the named organization: the page ignores the name.
		return page(w, r)
	}
}

// withoutNamed returns the address of the request without the name of an organization.
func withoutNamed(r *request) string {
	to := *r.URL
	q := to.Query()
	q.Del("organization")
	to.RawQuery = q.Encode()
	return to.RequestURI()
}
