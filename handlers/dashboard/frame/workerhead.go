package frame

import (
	"net/http"

	"journeyman/store/workers"
)

// A WorkerHead is the data of the top of every page of a worker.
type WorkerHead struct {
	workers.Worker
	Creator workers.Member
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

// HeadOf returns the head of a page for the worker that the address names.
func (fr *Frame) HeadOf(r *Request, tab string) (WorkerHead, error) {
	id := r.Params.ByName("workerId")
	wrk, err := fr.Store.Workers.Worker(r.Context(), r.Who.Caller, id)
	if err != nil {
		return WorkerHead{}, err
	}
	creator, err := fr.Store.Workers.WorkerCreator(r.Context(), r.Who.Caller, id)
	return WorkerHead{Worker: wrk, Creator: creator, Mine: wrk.UserID == r.Who.UserID, Tab: tab}, err
}

// OfWorker returns the handle of a page with the head of a worker.
func (fr *Frame) OfWorker(tab string, h Handle) Handle {
	return func(w http.ResponseWriter, r *Request) (err error) {
		if r.Head, err = fr.HeadOf(r, tab); err != nil {
			return err
		}
		return h(w, r)
	}
}

// FormOfWorker returns a page with a form and the head of a worker.
func (fr *Frame) FormOfWorker(tab string, page FormPage) FormPage {
	return func(w http.ResponseWriter, r *Request, status int, f *Form) error {
		return fr.OfWorker(tab, func(w http.ResponseWriter, r *Request) error { return page(w, r, status, f) })(w, r)
	}
}
