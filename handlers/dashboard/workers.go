package dashboard

import (
	"net/http"
	"strings"

	"journeyman/store"
)

// workerRoutes registers the pages of workers.
func (d *Dashboard) workerRoutes() {
	page := d.formOfWorker("overview", d.workerPage)
	members := d.formOfWorker("members", d.workerMembersPage)
	d.on("GET", "/workers", d.listWorkers)
	d.on("POST", "/workers", submitted(d.createWorker, d.refusedWorker))
	d.on("POST", "/run", d.run(turnOfAnything, d.refusedRun))
	d.on("POST", "/check-schema", submitted(d.checkSchema, nil))
	d.on("GET", "/workers/:workerId", func(w http.ResponseWriter, r *request) error {
		if r.params.ByName("workerId") == "new" { // no worker has this id
			return d.page(w, r, "worker-new.html", r.t("New worker"), d.newWorkerPage(r))
		}
		return page(w, r, http.StatusOK, nil)
	})
	d.on("POST", "/workers/:workerId/run", d.run(turnOfWorker, page))
	d.on("POST", "/workers/:workerId/keep", button(d.keepWorker))
	d.on("POST", "/workers/:workerId/pin", submitted(d.pinWorker, nil))
	d.on("POST", "/workers/:workerId/unpin", submitted(d.unpinWorker, nil))
	d.on("GET", "/workers/:workerId/settings", blank(d.formOfWorker("settings", d.workerSettingsPage)))
	d.on("POST", "/workers/:workerId/settings", d.ofWorker("settings", d.updateWorker))
	d.on("POST", "/workers/:workerId/delete", d.ofWorker("settings", d.deleteWorker))
	d.on("GET", "/workers/:workerId/members", blank(members))
	d.on("POST", "/workers/:workerId/members", submitted(d.inviteWorkerMember, members))
	d.on("POST", "/workers/:workerId/members/:userId/remove", button(d.removeWorkerMember))
	d.on("GET", "/workers/:workerId/secrets", blank(d.secretsPage))
	d.on("POST", "/workers/:workerId/secrets", submitted(d.setSecret, d.secretsPage))
	d.on("POST", "/workers/:workerId/secrets/:name/delete", button(d.deleteSecret))
	d.on("GET", "/workers/:workerId/files", d.ofWorker("files", d.listFiles))
	d.on("GET", "/workers/:workerId/preview/*filePath", d.ofWorker("files", d.previewFile))
	d.on("GET", "/workers/:workerId/files.zip", d.ofWorker("files", d.zipWorkerFiles))
	d.on("GET", "/workers/:workerId/workspace/*path", d.ofWorker("files", d.browse))
	d.on("GET", "/workers/:workerId/workspace-file/*path", d.sendWorkspaceFile)
	d.on("GET", "/workers/:workerId/workspace-zip/*path", d.zipWorkspace)
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
	Form    *form // the search
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
func (d *Dashboard) hidesWorkers(r *request, origin store.WorkerOrigin) (bool, error) {
	if origin == store.TaskOrigin {
		return false, nil
	}
	made, _, err := d.store.Workers(r.Context(), r.who.Caller, store.WorkerQuery{Origin: store.TaskOrigin, Limit: 1})
	return len(made) > 0, err
}

func (d *Dashboard) listWorkers(w http.ResponseWriter, r *request) error {
	typed := r.URL.Query()
	p := workerList{Form: formOf(typed), Later: typed.Get("cursor") != "", Back: r.URL.RequestURI(),
		OfTasks: typed.Get("origin") == string(store.TaskOrigin), starterGallery: d.gallery()}
	q := store.WorkerQuery{Text: typed.Get("q"), Origin: store.CreatedOrigin, Cursor: typed.Get("cursor"),
		Limit: workersOnPage}
	if p.OfTasks {
		q.Origin = store.TaskOrigin
	}
	workers, next, err := d.store.Workers(r.Context(), r.who.Caller, q)
	status, err := p.Form.listStatus(r, err)
	if err != nil {
		return err
	}
	if p.Workers, err = d.workerRows(r, workers); err != nil {
		return err
	}
	if p.Others, err = d.hidesWorkers(r, q.Origin); err != nil {
		return err
	}
	set := filters(typed, "q", "origin")
	p.First, p.Next = strings.TrimSuffix("/workers?"+set.Encode(), "?"), listPage("/workers", set, next)
	return d.render(w, r, status, "workers.html", r.t("Workers"), p)
}
