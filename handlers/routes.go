package handlers

import (
	"net/http"

	"github.com/julienschmidt/httprouter"

	"journeyman/store"
)

// routes is the list of all endpoints.
func (a *API) routes() {
	a.router = httprouter.New()
	a.router.RedirectTrailingSlash = false // a redirect would turn a POST into a GET
	a.router.RedirectFixedPath = false
	a.router.NotFound = a.refuse(func(*http.Request) error {
		return store.Errorf(store.NotFound, "there is nothing at this address")
	})
	a.router.MethodNotAllowed = a.refuse(func(r *http.Request) error {
		return &problem{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Message: "this address has no " + r.Method}
	})

	a.on("POST", "/api/workers", a.createWorker)
	a.on("GET", "/api/workers", a.listWorkers)
	a.onPage("/api/workers/:workerId", a.getWorker)
	a.on("POST", "/api/workers/:workerId", a.continueWorker)
	a.on("PATCH", "/api/workers/:workerId", a.updateWorker)
	a.on("DELETE", "/api/workers/:workerId", a.deleteWorker)
	a.on("GET", "/api/workers/:workerId/template", a.getTemplate)
	a.onPage("/api/workers/:workerId/stream", a.streamWorker)
	a.on("GET", "/api/workers/:workerId/email", a.getEmail)
	a.onPage("/api/workers/:workerId/files/*filePath", a.getFile)
	a.on("GET", "/api/workers/:workerId/members", a.listMembers)
	a.on("GET", "/api/workers/:workerId/members/:userId", a.getMember)
	a.on("PUT", "/api/workers/:workerId/members/:userId", a.addMember)
	a.on("DELETE", "/api/workers/:workerId/members/:userId", a.removeMember)

	a.on("GET", "/api/workers/:workerId/schedules", a.listSchedules)
	a.on("POST", "/api/workers/:workerId/schedules", a.createSchedule)
	a.on("GET", "/api/workers/:workerId/schedules/:scheduleId", a.getSchedule)
	a.on("PATCH", "/api/workers/:workerId/schedules/:scheduleId", a.updateSchedule)
	a.on("DELETE", "/api/workers/:workerId/schedules/:scheduleId", a.cancelSchedule)
	a.on("POST", "/api/workers/:workerId/schedules/:scheduleId/run", a.runSchedule)

	a.on("GET", "/api/workers/:workerId/webhook", a.getWebhook)
	a.on("PUT", "/api/workers/:workerId/webhook", a.putWebhook)
	a.on("DELETE", "/api/workers/:workerId/webhook", a.deleteWebhook)
	a.on("POST", "/api/workers/:workerId/webhook/regenerate-token", a.regenerateToken)
	a.on("POST", "/api/workers/:workerId/webhook/test", a.testWebhook)
	a.on("GET", "/api/workers/:workerId/webhook/executions", a.listExecutions)
	a.on("POST", "/api/workers/:workerId/webhook/executions/:executionId/redeliver", a.redeliver)

	a.on("POST", "/api/tasks", a.createTask)
	a.on("GET", "/api/tasks", a.listTasks)
	a.on("GET", "/api/tasks/:taskId", a.getTask)
	a.on("DELETE", "/api/tasks/:taskId", a.archiveTask)
	a.on("GET", "/api/tasks/:taskId/turns", a.listTurns)
	a.on("POST", "/api/tasks/:taskId/cancel", a.cancelTask)
	a.on("GET", "/api/tasks/:taskId/approvals", a.listTaskApprovals)
	a.on("POST", "/api/tasks/:taskId/approvals/:approvalId", a.decideApproval)
	a.on("GET", "/api/approvals", a.listApprovals)

	a.on("POST", "/api/inbound-email", a.receiveEmail)
	a.on("GET", "/api/emails", a.listEmails)
	a.on("GET", "/api/emails/:emailId", a.getEmailByID)
	a.on("POST", "/api/emails/:emailId/release", a.releaseEmail)

	a.on("POST", "/mcp", a.serveMCP)
	a.on("GET", "/api/me", a.getMe)
	a.open("GET", "/api/openapi.json", a.getOpenAPI)
	a.open("GET", "/healthz", a.getHealth)
	a.open("GET", "/readyz", a.getReadiness)
	a.open("GET", "/metrics", a.getMetrics)
}

// refuse answers what the router itself refuses.
func (a *API) refuse(why func(*http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.serve(w, &request{Request: r, id: requestID(r)}, func(http.ResponseWriter, *request) error { return why(r) })
	})
}
