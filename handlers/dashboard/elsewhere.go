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

// orElsewhere returns the handle of a task's page. If the organization that is being looked at
// does not have the task, and another one of the user's has it, the page offers to switch. A
// link names the organization where two of them may have a task of that id.
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
		// The link names an organization that the user is not in: the page answers as if it did not.
		return page(w, r)
	}
}
