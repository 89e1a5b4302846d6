package dashboard

import "net/http"

// refuseInMaintenance returns the refusal of a form in maintenance. A few forms work: people need a
// session to read pages, the checks of a schema and of the server change nothing, and a backup changes
// only its place.
func (d *Dashboard) refuseInMaintenance(method, pattern string) error {
	if method == http.MethodGet {
		return nil
	}
	switch pattern {
	case "/sign-in", "/sign-out", "/check-schema", "/settings/system/backup", "/settings/system/doctor":
		return nil
	}
	return d.store.Maintenance()
}
