package lists

import (
	"net/http"
	"strings"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/starters"
	"journeyman/store/workers"
)

// workerListRoutes registers the list of workers, and the buttons of its rows.
func (d *Pages) workerListRoutes() {
	d.On("GET", "/workers", d.listWorkers)
	d.On("POST", "/workers/:workerId/keep", frame.Button(d.keepWorker))
	d.On("POST", "/workers/:workerId/pin", frame.Submitted(d.pinWorker, nil))
	d.On("POST", "/workers/:workerId/unpin", frame.Submitted(d.unpinWorker, nil))
}

// workersOnPage is the number of workers on a page of the list.
const workersOnPage = 25

// A workerList is the data of the list of workers.
type workerList struct {
	Form    *frame.Form // the search
	Workers []workerRow
	Next    string // address of the next page; "" after the last
	First   string // address of the first page
	Later   bool   // this is not the first page
	Back    string // the address of this page
	OfTasks bool   // the list has the workers that tasks made, and no others
	Others  bool   // tasks made workers that are not in the list

	starters.Gallery // shown if there are no workers
}

// hidesWorkers reports whether tasks made workers that a list of the origin leaves out.
func (d *Pages) hidesWorkers(r *frame.Request, origin workers.Origin) (bool, error) {
	if origin == workers.TaskOrigin {
		return false, nil
	}
	made, _, err := d.Store.Workers.List(r.Context(), r.Who.Caller, workers.Query{Origin: workers.TaskOrigin, Limit: 1})
	return len(made) > 0, err
}

func (d *Pages) listWorkers(w http.ResponseWriter, r *frame.Request) error {
	typed := r.URL.Query()
	p := workerList{Form: frame.FormOf(typed), Later: typed.Get("cursor") != "", Back: r.URL.RequestURI(),
		OfTasks: typed.Get("origin") == string(workers.TaskOrigin), Gallery: starters.NewGallery(d.Frame)}
	q := workers.Query{Text: typed.Get("q"), Origin: workers.CreatedOrigin, Cursor: typed.Get("cursor"),
		Limit: workersOnPage}
	if p.OfTasks {
		q.Origin = workers.TaskOrigin
	}
	workers, next, err := d.Store.Workers.List(r.Context(), r.Who.Caller, q)
	status, err := p.Form.ListStatus(r, err)
	if err != nil {
		return err
	}
	if p.Workers, err = d.workerRows(r, workers); err != nil {
		return err
	}
	if p.Others, err = d.hidesWorkers(r, q.Origin); err != nil {
		return err
	}
	set := frame.Filters(typed, "q", "origin")
	p.First, p.Next = strings.TrimSuffix("/workers?"+set.Encode(), "?"), frame.ListPage("/workers", set, next)
	return d.Render(w, r, status, "workers.html", r.T("Workers"), p)
}
