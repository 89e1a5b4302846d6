package frame

import "journeyman/store"

// A WorkerHead is the data of the top of every page of a worker.
type WorkerHead struct {
	store.Worker
	Creator store.WorkerMember
	Mine    bool   // the user created the worker; no other user may change it
	Tab     string // the page: overview, settings, schedules, versions, files, webhook, secrets or members
}

// Base returns the address of the worker's first page.
func (h WorkerHead) Base() string { return "/workers/" + h.ID }

// Restricted reports whether the worker may call only some tools.
func (h WorkerHead) Restricted() bool { return h.Settings.Tools != nil }

// PageTitle returns the title for the browser.
func (h WorkerHead) PageTitle(r *Request) string {
	if name := r.Lang.Label("worker page", h.Tab); name != "" { // the overview has no name
		return h.Title + " · " + name
	}
	return h.Title
}
