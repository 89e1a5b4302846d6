// Package worker serves the pages of one worker: its overview, settings, members, versions, schedules and webhook, and
// the page for a new one.
//
// It imports handlers, runner, store and rooms below them, stands on frame and draws with show. It imports no other
// package of pages but the gallery of starters. The store decides who may change a worker. A form that was opened
// before somebody else's change must not undo it: see setBase.
package worker

import (
	"errors"
	"net/http"

	"journeyman/handlers"
	"journeyman/handlers/dashboard/frame"
	"journeyman/runner/tool/mcp"
)

// A Config holds what these pages need beside the frame. Every field must be set.
type Config struct {
	Servers         *mcp.Pool // the MCP servers that workers may use
	Webhooks        handlers.Webhooks
	MailDomain      string         // of the workers' mail addresses
	ScheduleChanged func()         // is called after a schedule changed
	Home            frame.FormPage // the first page, which shows a refused instruction that was sent from it
}

// Pages holds what the pages of this package share.
type Pages struct {
	*frame.Frame
	cfg Config
}

// New returns the pages on a frame. Routes registers them. It returns an error if cfg lacks what they need.
func New(fr *frame.Frame, cfg Config) (*Pages, error) {
	if cfg.Servers == nil || cfg.Webhooks == nil || cfg.ScheduleChanged == nil || cfg.Home == nil {
		return nil, errors.New("the pages of workers need MCP servers, webhooks, a notice of schedules and the first page")
	}
	return &Pages{Frame: fr, cfg: cfg}, nil
}

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
