package worker

import (
	"net/http"

	"journeyman/handlers/dashboard/frame"
)

// Routes registers the pages.
func (d *Pages) Routes() {
	page := d.FormOfWorker("overview", d.workerPage)
	members := d.FormOfWorker("members", d.workerMembersPage)
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
	d.On("GET", "/workers/:workerId/settings", frame.Blank(d.FormOfWorker("settings", d.workerSettingsPage)))
	d.On("POST", "/workers/:workerId/settings", d.OfWorker("settings", d.updateWorker))
	d.On("POST", "/workers/:workerId/delete", d.OfWorker("settings", d.deleteWorker))
	d.On("GET", "/workers/:workerId/members", frame.Blank(members))
	d.On("POST", "/workers/:workerId/members", frame.Submitted(d.inviteWorkerMember, members))
	d.On("POST", "/workers/:workerId/members/:userId/remove", frame.Button(d.removeWorkerMember))
	d.scheduleRoutes()
	d.versionRoutes()
	d.portableRoutes()
	d.webhookRoutes()
}
