package dashboard

import (
	"net/http"

	"journeyman/store"
)

// workerRoutes registers the pages of workers.
func (d *Dashboard) workerRoutes() {
	d.on("GET", "/workers", d.listWorkers)
	d.on("POST", "/workers", submitted(d.createWorker, d.refusedWorker))
	d.on("POST", "/run", d.runAnything)
	d.on("POST", "/check-schema", submitted(d.checkSchema, nil))
	d.on("GET", "/workers/:workerId", func(w http.ResponseWriter, r *request) error {
		if r.params.ByName("workerId") == "new" { // no worker has this id
			return d.page(w, r, "worker-new.html", r.t("New worker"), d.newWorkerPage(r))
		}
		return d.workerPage(w, r, http.StatusOK, nil)
	})
	d.on("POST", "/workers/:workerId/run", d.runWorker)
	d.on("POST", "/workers/:workerId/pin", submitted(d.pinWorker, nil))
	d.on("POST", "/workers/:workerId/unpin", submitted(d.unpinWorker, nil))
	d.on("GET", "/workers/:workerId/settings", blank(d.workerSettingsPage))
	d.on("POST", "/workers/:workerId/settings", d.updateWorker)
	d.on("POST", "/workers/:workerId/delete", d.deleteWorker)
	d.on("GET", "/workers/:workerId/members", blank(d.workerMembersPage))
	d.on("POST", "/workers/:workerId/members", submitted(d.inviteWorkerMember, d.workerMembersPage))
	d.on("POST", "/workers/:workerId/members/:userId/remove", button(d.removeWorkerMember))
	d.on("GET", "/workers/:workerId/secrets", blank(d.secretsPage))
	d.on("POST", "/workers/:workerId/secrets", submitted(d.setSecret, d.secretsPage))
	d.on("POST", "/workers/:workerId/secrets/:name/delete", button(d.deleteSecret))
	d.on("GET", "/workers/:workerId/files", d.listFiles)
	d.on("GET", "/workers/:workerId/preview/*filePath", d.previewFile)
	d.on("GET", "/workers/:workerId/files.zip", d.zipWorkerFiles)
	d.on("GET", "/workers/:workerId/workspace/*path", d.browse)
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
	Later   bool   // this is not the first page
	Back    string // the address of this page

	starterGallery // shown if there are no workers
}

func (d *Dashboard) listWorkers(w http.ResponseWriter, r *request) error {
	typed := r.URL.Query()
	p := workerList{Form: formOf(typed), Later: typed.Get("cursor") != "", Back: r.URL.RequestURI(),
		starterGallery: d.gallery(r)}
	workers, next, err := d.store.Workers(r.Context(), r.who.Caller,
		store.WorkerQuery{Text: typed.Get("q"), Cursor: typed.Get("cursor"), Limit: workersOnPage})
	status, err := p.Form.listStatus(err)
	if err != nil {
		return err
	}
	if p.Workers, err = d.workerRows(r, workers); err != nil {
		return err
	}
	p.Next = listPage("/workers", filters(typed, "q"), next)
	return d.render(w, r, status, "workers.html", r.t("Workers"), p)
}
