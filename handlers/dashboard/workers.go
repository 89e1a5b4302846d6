package dashboard

import (
	"net/http"
	"strings"

	"journeyman/handlers/dashboard/frame"
	"journeyman/store"
)

// workerRoutes registers the pages of workers.
func (d *Dashboard) workerRoutes() {
	page := d.FormOfWorker("overview", d.workerPage)
	members := d.FormOfWorker("members", d.workerMembersPage)
	d.On("GET", "/workers", d.listWorkers)
	d.On("POST", "/workers", frame.Submitted(d.createWorker, d.refusedWorker))
	d.On("POST", "/run", d.run(turnOfAnything, d.refusedRun))
	d.On("POST", "/check-schema", frame.Submitted(d.checkSchema, nil))
	d.On("GET", "/workers/:workerId", func(w http.ResponseWriter, r *frame.Request) error {
		if r.Params.ByName("workerId") == "new" { // no worker has this id
			return d.Page(w, r, "worker-new.html", r.T("New worker"), d.newWorkerPage(r))
		}
		return page(w, r, http.StatusOK, nil)
	})
	d.On("POST", "/workers/:workerId/run", d.run(turnOfWorker, page))
	d.On("POST", "/workers/:workerId/keep", frame.Button(d.keepWorker))
	d.On("POST", "/workers/:workerId/pin", frame.Submitted(d.pinWorker, nil))
	d.On("POST", "/workers/:workerId/unpin", frame.Submitted(d.unpinWorker, nil))
	d.On("GET", "/workers/:workerId/settings", frame.Blank(d.FormOfWorker("settings", d.workerSettingsPage)))
	d.On("POST", "/workers/:workerId/settings", d.OfWorker("settings", d.updateWorker))
	d.On("POST", "/workers/:workerId/delete", d.OfWorker("settings", d.deleteWorker))
	d.On("GET", "/workers/:workerId/members", frame.Blank(members))
	d.On("POST", "/workers/:workerId/members", frame.Submitted(d.inviteWorkerMember, members))
	d.On("POST", "/workers/:workerId/members/:userId/remove", frame.Button(d.removeWorkerMember))
	d.On("GET", "/workers/:workerId/files", d.OfWorker("files", d.listFiles))
	d.On("GET", "/workers/:workerId/preview/*filePath", d.OfWorker("files", d.previewFile))
	d.On("GET", "/workers/:workerId/files.zip", d.OfWorker("files", d.zipWorkerFiles))
	d.On("GET", "/workers/:workerId/workspace/*path", d.OfWorker("files", d.browse))
	d.On("GET", "/workers/:workerId/workspace-file/*path", d.sendWorkspaceFile)
	d.On("GET", "/workers/:workerId/workspace-zip/*path", d.zipWorkspace)
	d.secretRoutes()
	d.scheduleRoutes()
	d.versionRoutes()
	d.starterRoutes()
	d.portableRoutes()
	d.webhookRoutes()
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

	starterGallery // shown if there are no workers
}

// hidesWorkers reports whether tasks made workers that a list of the origin leaves out.
func (d *Dashboard) hidesWorkers(r *frame.Request, origin store.WorkerOrigin) (bool, error) {
	if origin == store.TaskOrigin {
		return false, nil
	}
	made, _, err := d.Store.Workers(r.Context(), r.Who.Caller, store.WorkerQuery{Origin: store.TaskOrigin, Limit: 1})
	return len(made) > 0, err
}

func (d *Dashboard) listWorkers(w http.ResponseWriter, r *frame.Request) error {
	typed := r.URL.Query()
	p := workerList{Form: frame.FormOf(typed), Later: typed.Get("cursor") != "", Back: r.URL.RequestURI(),
		OfTasks: typed.Get("origin") == string(store.TaskOrigin), starterGallery: d.gallery()}
	q := store.WorkerQuery{Text: typed.Get("q"), Origin: store.CreatedOrigin, Cursor: typed.Get("cursor"),
		Limit: workersOnPage}
	if p.OfTasks {
		q.Origin = store.TaskOrigin
	}
	workers, next, err := d.Store.Workers(r.Context(), r.Who.Caller, q)
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
