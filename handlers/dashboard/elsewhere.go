package dashboard

import (
	"net/http"
	"net/url"

	"journeyman/store"
)

// An elsewherePage offers to switch to the organization that has a task.
type elsewherePage struct {
	Organizations []store.Organization
	Next          string // the address of the task
}

// orElsewhere returns the handle of a task's page. If another organization of the user has the
// task, and the current one does not, the page offers to switch. Two organizations may have a task
// of the same id: then the link names the organization.
func (d *Dashboard) orElsewhere(page handle) handle {
	return func(w http.ResponseWriter, r *request) error {
		named := r.URL.Query().Get("organization")
		var refused error
		if named == "" || named == r.who.OrganizationID {
			refused = page(w, r)
			if !store.IsKind(refused, store.NotFound) && !store.IsKind(refused, store.Forbidden) {
				return refused
			}
		}
		p := elsewherePage{Next: taskPath(url.PathEscape(r.params.ByName("taskId")))}
		list, err := d.store.TaskElsewhere(r.Context(), r.who.Caller, r.params.ByName("taskId"))
		if err != nil {
			return err
		}
		for _, o := range list {
			if named == "" || named == r.who.OrganizationID || named == o.ID {
				p.Organizations = append(p.Organizations, o)
			}
		}
		switch {
		case len(p.Organizations) > 0:
			return d.page(w, r, "elsewhere.html", r.t("Another organization"), p)
		case refused != nil:
			return refused
		}
		// The user is not a member of the named organization: the page ignores the name.
		return page(w, r)
	}
}
