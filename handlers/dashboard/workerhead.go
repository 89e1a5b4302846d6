package dashboard

import "journeyman/store"

// A workerHead is the data of the top of every page of a worker.
type workerHead struct {
	store.Worker
	Creator store.WorkerMember
	Mine    bool   // the user created the worker; no other user may change it
	Tab     string // the page: overview, settings, schedules, versions, files, webhook, secrets or members
}

// Base returns the address of the worker's first page.
func (h workerHead) Base() string { return "/workers/" + h.ID }

// Restricted reports whether the worker may call only some tools.
func (h workerHead) Restricted() bool { return h.Settings.Tools != nil }

// title returns the title for the browser.
func (h workerHead) title(r *request) string {
	if name := r.lang.Label("worker page", h.Tab); name != "" { // the overview has no name
		return h.Title + " · " + name
	}
	return h.Title
}
