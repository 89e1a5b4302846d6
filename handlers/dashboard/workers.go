package dashboard

import (
	"net/http"
	"net/url"

	"journeyman/store"
)

// workerRoutes are the pages of workers.
func (d *Dashboard) workerRoutes() {
	d.on("GET", "/workers", d.listWorkers)
	d.on("POST", "/workers", d.createWorker)
	d.on("POST", "/run", d.runAnything)
	d.on("POST", "/check-schema", d.checkSchema)
	d.on("GET", "/workers/:workerId", func(w http.ResponseWriter, r *request) error {
		if r.params.ByName("workerId") == "new" { // no id of a worker
			return d.showNewWorker(w, r)
		}
		return d.showWorker(w, r)
	})
	d.on("POST", "/workers/:workerId/run", d.runWorker)
	d.on("GET", "/workers/:workerId/settings", d.showWorkerSettings)
	d.on("POST", "/workers/:workerId/settings", d.updateWorker)
	d.on("POST", "/workers/:workerId/delete", d.deleteWorker)
	d.on("GET", "/workers/:workerId/members", d.showWorkerMembers)
	d.on("POST", "/workers/:workerId/members", d.inviteWorkerMember)
	d.on("POST", "/workers/:workerId/members/:userId/remove", d.removeWorkerMember)

	d.on("GET", "/workers/:workerId/schedules", d.listSchedules)
	d.on("POST", "/workers/:workerId/schedules", d.createSchedule)
	d.on("GET", "/workers/:workerId/schedules/:scheduleId", d.showSchedule)
	d.on("POST", "/workers/:workerId/schedules/:scheduleId", d.updateSchedule)
	d.on("POST", "/workers/:workerId/schedules/:scheduleId/pause", d.pauseSchedule(true))
	d.on("POST", "/workers/:workerId/schedules/:scheduleId/resume", d.pauseSchedule(false))
	d.on("POST", "/workers/:workerId/schedules/:scheduleId/run", d.runSchedule)
	d.on("POST", "/workers/:workerId/schedules/:scheduleId/cancel", d.cancelSchedule)

	d.on("GET", "/workers/:workerId/webhook", d.showWebhook)
	d.on("POST", "/workers/:workerId/webhook", d.setWebhook)
	d.on("POST", "/workers/:workerId/webhook/remove", d.removeWebhook)
	d.on("POST", "/workers/:workerId/webhook/regenerate", d.regenerateWebhook)
	d.on("POST", "/workers/:workerId/webhook/test", d.testWebhook)
	d.on("GET", "/workers/:workerId/webhook/executions/:executionId", d.showExecution)
	d.on("POST", "/workers/:workerId/webhook/executions/:executionId/redeliver", d.redeliver)

	d.on("GET", "/workers/:workerId/files", d.listFiles)
	d.on("GET", "/workers/:workerId/preview/*filePath", d.previewFile)
}

// workersOnPage is how many workers a page of the list shows.
const workersOnPage = 25

// A workerList is what the list of workers shows.
type workerList struct {
	Form    *form // the search
	Workers []workerRow
	Next    string // address of the next page, '' after the last
	Later   bool   // this is not the first page
}

// A workerRow is a worker of the list and its newest task, if it has one.
type workerRow struct {
	store.Worker
	Mine bool
	Last *store.Task
}

func (d *Dashboard) listWorkers(w http.ResponseWriter, r *request) error {
	typed := r.URL.Query()
	p := workerList{Form: &form{Values: typed, Errors: map[string]string{}}, Later: typed.Get("cursor") != ""}
	workers, next, err := d.store.Workers(r.Context(), r.who.Caller,
		store.WorkerQuery{Text: typed.Get("q"), Cursor: typed.Get("cursor"), Limit: workersOnPage})
	if err != nil {
		if !p.Form.refused(err) {
			return err
		}
		return d.render(w, r, http.StatusUnprocessableEntity, "workers.html", "Workers", p)
	}
	for _, wrk := range workers {
		row := workerRow{Worker: wrk, Mine: wrk.UserID == r.who.UserID}
		switch last, err := d.store.LatestTask(r.Context(), wrk.ID); {
		case err == nil:
			row.Last = &last
		case !store.IsNotFound(err):
			return err
		}
		p.Workers = append(p.Workers, row)
	}
	p.Next = nextPage(r, next)
	return d.page(w, r, "workers.html", "Workers", p)
}

// nextPage is the address of this list's page at a cursor, ” for none.
func nextPage(r *request, cursor string) string {
	if cursor == "" {
		return ""
	}
	q := url.Values{}
	for name, values := range r.URL.Query() {
		if name != "done" {
			q[name] = values
		}
	}
	q.Set("cursor", cursor)
	return r.URL.EscapedPath() + "?" + q.Encode()
}
