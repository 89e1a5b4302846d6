package frame

import "net/http"

// refuseInMaintenance returns an error for a form during maintenance. A few forms work. Users need
// a session to read pages. The checks of a schema and of the server change nothing. A backup changes
// only its destination.
func (fr *Frame) refuseInMaintenance(method, pattern string) error {
	if method == http.MethodGet {
		return nil
	}
	switch pattern {
	case "/sign-in", "/sign-out", "/check-schema", "/settings/system/backup", "/settings/system/doctor":
		return nil
	}
	return fr.Store.Gate.Maintenance()
}
